"""The page under a path, as a proxy may have it."""

import pytest
from playwright.async_api import expect

from openai_server import say

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

BASE = "/tools/wakeful"
SERVER = {"base_path": BASE}


async def test_login_talk_links_and_downloads_stay_under_the_path(server, page):
    server.provider.then(say("Under the path."))
    seen = []
    page.on("request", lambda request: seen.append(request.url.removeprefix(server.address)))
    made = await server.call("POST", "/login-links", json={})
    await page.goto(server.address + BASE + made["path"])
    await expect(page).to_have_url(f"{server.address}{BASE}/")
    await page.goto(f"{server.address}{BASE}/ui/sessions/{await server.session('Talk')}")
    box = page.get_by_role("textbox", name="Message")
    await box.fill("Hello")
    await box.press("Enter")
    await expect(page.locator(".answer")).to_have_text("Under the path.")
    await page.get_by_role("link", name="Agenda").click()
    await expect(page).to_have_url(f"{server.address}{BASE}/ui/agenda")
    await page.reload()
    await expect(page.get_by_role("heading", name="Agenda")).to_be_visible()
    worker = await page.evaluate("navigator.serviceWorker.ready.then((found) => [found.scope, found.active.scriptURL])")
    assert worker == [f"{server.address}{BASE}/", f"{server.address}{BASE}/ui/sw.js"]
    await page.goto(f"{server.address}{BASE}/ui/sessions/{await server.session('Export')}")
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Session", exact=True).click()
        await page.get_by_role("menuitem", name="Export as Markdown").click()
    assert (await download.value).url.startswith(f"{server.address}{BASE}/")
    assert [path for path in seen if not path.startswith(f"{BASE}/")] == []


async def test_around_the_proxy_the_page_finds_its_path(server, browser):
    page = await browser.new_page()
    await page.goto(f"{server.address}/ui/agenda")
    await expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    await expect(page).to_have_url(f"{server.address}{BASE}/ui/agenda")
    await page.close()
