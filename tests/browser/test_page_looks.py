"""Every page in light, in dark and on a phone: a screenshot is taken, nothing is too wide, axe finds nothing.

With WAKEFUL_TEST_SHOTS set to a folder, screenshots go there, for people to look at.
"""

import os
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.places import make_places
from browser.visits import check_with_axe, go, load_axe, watch
from live_server import Patient, running_server

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(own_files):
    async with running_server(own_files, patient=Patient(retries=0)) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def places(server):
    return await make_places(server)


# In the dark only the colours differ, on a phone only the layout, so axe looks for no more there.
LOOKS = [
    pytest.param({"color_scheme": "light", "viewport": {"width": 1280, "height": 820}}, {}, id="light"),
    pytest.param(
        {"color_scheme": "dark", "viewport": {"width": 1280, "height": 820}}, {"runOnly": ["color-contrast"]}, id="dark"
    ),
    pytest.param(
        {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
        {"rules": {"color-contrast": {"enabled": False}}},
        id="phone",
    ),
]


@pytest.mark.parametrize(("how", "rules"), LOOKS)
async def test_every_page_fits_and_axe_finds_nothing(places, come, how, rules, request):
    folder = os.environ.get("WAKEFUL_TEST_SHOTS")
    look, found, refused = request.node.callspec.id, {}, []
    async with come(**how) as page:
        page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
        await load_axe(page)
        for name, path in places.items():
            await go(page, path)
            if folder is not None:
                await page.screenshot(path=Path(folder, f"{name}-{look}.png"), animations="disabled")
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert (name, wide) == (name, how["viewport"]["width"])
            await page.evaluate("document.querySelectorAll('.fold[aria-expanded=false]').forEach(fold => fold.click())")
            found[name] = await check_with_axe(page, rules)
        assert {name: problems for name, problems in found.items() if problems} == {}
    assert refused == []  # which the browser logs as errors


@pytest.mark.parametrize(("how", "rules"), LOOKS)
async def test_axe_finds_nothing_on_the_login_pages(server, browser, how, rules, request):
    folder = os.environ.get("WAKEFUL_TEST_SHOTS")
    look, found = request.node.callspec.id, {}
    context = await browser.new_context(**how)
    page = await context.new_page()
    complaints = watch(page)
    for name, path in {"login": "/login", "used-link": "/login?code=used", "signed-out": "/ui/agenda"}.items():
        await page.goto(server.address + path)
        await expect(page.get_by_role("main")).to_contain_text("wakeful login")
        if name == "used-link":
            await expect(page.get_by_role("alert")).to_contain_text("used before")
        if folder is not None:
            await page.screenshot(path=Path(folder, f"{name}-{look}.png"), animations="disabled")
        assert await page.evaluate("document.documentElement.scrollWidth") == how["viewport"]["width"]
        await load_axe(page)
        found[name] = await check_with_axe(page, rules)
    assert {name: problems for name, problems in found.items() if problems} == {}
    assert complaints == []
    await context.close()


async def test_on_a_phone_the_sidebar_opens_and_closes(come):
    async with come(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True) as page:
        await page.get_by_role("button", name="Open the sidebar").click()
        await page.get_by_role("link", name="Agenda").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Agenda")
        await expect(page.get_by_role("link", name="Agenda")).to_be_hidden()


async def test_axe_finds_nothing_in_dialogs_and_menus(places, come):
    async with come(places["chat"]) as page:
        await load_axe(page)
        await page.get_by_role("button", name="Edit", exact=True).click()
        await expect(page.locator(".next-times li")).to_have_count(5)
        assert await check_with_axe(page) == []
        await page.keyboard.press("Escape")
        await page.get_by_label("Scheduled run", exact=True).get_by_role("button", name="Pause").click()
        await expect(page.get_by_role("menu")).to_be_visible()
        assert await check_with_axe(page) == []
        await go(page, places["data"])
        await page.get_by_role("button", name="Open row 1").click()
        await page.get_by_text("History").click()
        assert await check_with_axe(page) == []
        await page.get_by_role("dialog").get_by_role("button", name="Edit").click()
        assert await check_with_axe(page) == []
