"""The login link, in a real browser."""

import pytest
from playwright.async_api import expect

from browser.attempts import FETCH, SOCKET
from browser.visits import watch
from fixtures.browser import TOKEN
from live_server import running_server as serve_here
from network.tls_proxy import tls_proxy
from upgrade.old_data import change, copy_old_data
from wakeful.people.login import STORAGE_KEY

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

REBOUND = "evil.test"  # which the browser finds on this machine


async def test_the_link_that_is_printed_logs_in_once(page, browser, served):
    await page.goto(served.login_link)
    await page.wait_for_url(f"{served.address}/")  # nobody had to press anything
    [cookie] = await page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    assert await page.evaluate("document.cookie") == ""
    me = await page.evaluate(FETCH, {"base": served.address, "method": "GET", "path": "/me"})
    assert (me["status"], me["body"]["user"]["role"]) == (200, "owner")

    elsewhere = await browser.new_context()
    second = await elsewhere.new_page()
    async with second.expect_response(lambda response: response.request.method == "POST") as answer:
        await second.goto(served.login_link)
    assert (await answer.value).status == 401
    await expect(second.locator("body")).to_contain_text("used before")
    assert await elsewhere.cookies() == []
    await elsewhere.close()


async def test_a_link_that_is_clicked_on_another_site_logs_in(page, served, site):
    async with site(f'<a href="{await served.new_login_link()}">Log in</a>') as port:
        await page.goto(f"http://localhost:{port}/")
        await page.click("a")
        await page.wait_for_url(f"{served.address}/")
    me = await page.evaluate(FETCH, {"base": served.address, "method": "GET", "path": "/me"})
    assert me["status"] == 200


async def test_without_a_login_a_page_of_our_own_gets_nothing_but_life_signs(page, served):
    await page.goto(f"{served.address}/healthz")
    me = await page.evaluate(FETCH, {"base": served.address, "method": "GET", "path": "/me"})
    assert (me["status"], me["body"]["error"]["code"]) == (401, "not_signed_in")
    events = await page.evaluate(SOCKET, {"base": served.address, "path": "/ws/events"})
    assert (events["opened"], events["code"]) == (False, 1006)


async def test_the_page_secret_is_in_no_address_and_stays_in_the_storage_of_the_page(page, served):
    asked = []
    page.on("request", lambda request: asked.append((request.url, request.headers.get("referer", ""))))
    await page.goto(await served.new_login_link())
    await page.get_by_role("textbox", name="Message").wait_for()
    secret = await page.evaluate(f"localStorage.getItem('{STORAGE_KEY}')")
    assert secret.startswith("wkf_")
    assert [seen for seen in asked if secret in "".join(seen)] == []
    assert len(asked) > 5


async def test_reloads_bookmarks_and_further_tabs_stay_logged_in(page, served):
    await page.goto(await served.new_login_link())
    await page.get_by_role("textbox", name="Message").wait_for()
    second = await page.context.new_page()
    await second.goto(f"{served.address}/ui/settings")
    await expect(second.get_by_role("heading", name="Settings")).to_be_visible()
    # A new login in one tab is the other one's too.
    await second.goto(await served.new_login_link())
    await second.get_by_role("textbox", name="Message").wait_for()
    await page.get_by_role("link", name="Agenda").click()
    await expect(page.get_by_role("heading", name="Agenda")).to_be_visible()
    await page.reload()
    await expect(page.get_by_role("heading", name="Agenda")).to_be_visible()


async def test_without_its_secret_the_page_says_why_and_how_to_log_in_and_notices_a_login(page, served):
    await page.goto(await served.new_login_link())
    await page.get_by_role("textbox", name="Message").wait_for()
    await page.evaluate("localStorage.clear()")
    await page.reload()
    await expect(page.locator("main")).to_contain_text("not the secret that this page keeps beside it")
    await expect(page.locator("main")).to_contain_text("Run wakeful login on the machine that runs the server")
    second = await page.context.new_page()
    await second.goto(await served.new_login_link())
    await second.get_by_role("textbox", name="Message").wait_for()
    await page.get_by_role("textbox", name="Message").wait_for()  # it loaded itself again


@pytest.mark.parametrize("path", ["/ui/agenda", "/login", "/login?code=used-before"])
async def test_a_token_logs_in_on_every_login_page(browser, served, path):
    """The page of the product, the bare login page, and a link that no longer works."""
    context = await browser.new_context()
    page = await context.new_page()
    complaints = watch(page)
    await page.goto(served.address + path)
    await expect(page.get_by_role("main")).to_contain_text("wakeful login")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Log in to Wakeful")
    await page.get_by_label("Token").fill("not the token")
    await page.get_by_role("button", name="Log in", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("The token is not known here")
    await page.get_by_label("Token").fill(TOKEN)
    await page.get_by_role("button", name="Log in", exact=True).click()
    await page.get_by_role("link", name="New session").wait_for()
    assert [cookie["httpOnly"] for cookie in await context.cookies()] == [True]
    assert TOKEN not in await page.evaluate("JSON.stringify(localStorage)")
    assert complaints == []
    await context.close()


async def test_a_browser_that_was_logged_in_with_0_1_is_told_of_the_upgrade(context, tmp_path, built_page):
    old = copy_old_data("sqlite", tmp_path)
    await change(old, "UPDATE tokens SET page_digest = NULL")  # as 0.2 left it when it had upgraded data of 0.1
    async with serve_here(old.settings) as server:
        await context.add_cookies([{"name": "wakeful", "value": old.facts["cookie"], "url": server.address}])
        page = await context.new_page()
        await page.goto(f"{server.address}/ui/agenda")
        await expect(page.locator("main")).to_contain_text("Wakeful was upgraded")
        await expect(page.locator("main")).to_contain_text("Log in once more.")
        link = (await server.call("POST", "/login-links", json={}, token=old.facts["token"]))["path"]
        await page.goto(server.address + link)
        await page.get_by_role("textbox", name="Message").wait_for()


async def test_with_https_the_cookie_is_bound_to_this_host(browser, tmp_path, own_files):
    async with (
        serve_here(own_files | {"allowed_hosts": [REBOUND]}) as server,
        tls_proxy(REBOUND, int(server.address.rpartition(":")[2]), tmp_path) as port,
    ):
        context = await browser.new_context(ignore_https_errors=True)
        page = await context.new_page()
        link = (await server.call("POST", "/login-links", json={}))["path"]
        await page.goto(f"https://{REBOUND}:{port}{link}")
        await page.get_by_role("textbox", name="Message").wait_for()
        [cookie] = await context.cookies()
        assert (cookie["name"], cookie["secure"], cookie["path"]) == ("__Host-wakeful", True, "/")
        assert cookie["domain"] == REBOUND  # no leading dot: for this host alone
        await page.get_by_role("link", name="Settings").click()
        await page.get_by_role("button", name="Log out").click()
        await expect(page.locator("main")).to_contain_text("This browser is not logged in")
        assert await context.cookies() == []
        await context.close()


async def test_logging_out_on_the_page_removes_both_secrets(page, served):
    await page.goto(await served.new_login_link())
    await page.get_by_role("link", name="Settings").click()
    second = await page.context.new_page()
    await second.goto(f"{served.address}/ui/agenda")
    await page.get_by_role("button", name="Log out").click()
    await expect(page.locator("main")).to_contain_text("This browser is not logged in")
    assert await page.context.cookies() == []
    assert await page.evaluate(f"localStorage.getItem('{STORAGE_KEY}')") is None
    await second.reload()
    await expect(second.locator("main")).to_contain_text("This browser is not logged in")


async def test_a_link_that_was_used_leaves_an_earlier_login_as_it_is(page, served):
    link = await served.new_login_link()
    await page.goto(link)
    await page.get_by_role("textbox", name="Message").wait_for()
    await page.goto(link)
    await expect(page.get_by_role("alert")).to_contain_text("used before")
    await expect(page.get_by_role("main")).to_contain_text("Run wakeful login on the machine that runs the server")
    await page.goto(served.address)
    await page.get_by_role("textbox", name="Message").wait_for()


async def test_after_the_logout_what_was_copied_opens_nothing(logged_in, served):
    page = await logged_in.new_page()
    await page.goto(f"{served.address}/healthz")
    kept = await logged_in.cookies()
    out = await page.evaluate(FETCH, {"base": served.address, "method": "POST", "path": "/logout"})
    assert out["status"] == 200
    assert await logged_in.cookies() == []
    await logged_in.add_cookies(kept)  # as someone who had copied it would
    me = await page.evaluate(FETCH, {"base": served.address, "method": "GET", "path": "/me"})
    assert me["status"] == 401
    assert not (await page.evaluate(SOCKET, {"base": served.address, "path": "/ws/events"}))["opened"]


async def test_a_page_of_our_own_opens_a_session_and_chats_in_it(logged_in, served):
    page = await logged_in.new_page()
    await page.goto(f"{served.address}/healthz")
    made = await page.evaluate(
        FETCH, {"base": served.address, "method": "POST", "path": "/sessions", "body": {"title": "From a page"}}
    )
    assert made["status"] == 201
    path = f"/ws/sessions/{made['body']['id']}"
    message = {"type": "message", "content": "write milk to notes.txt"}
    talk = await page.evaluate(SOCKET, {"base": served.address, "path": path, "message": message})
    kinds = [frame["type"] for frame in talk["frames"]]
    assert talk["opened"]
    assert kinds[0] == "session_sync"
    assert {"stream_start", "tool_started", "tool_call", "stream_delta", "stream_end"} <= set(kinds)
    events = await page.evaluate(SOCKET, {"base": served.address, "path": "/ws/events"})
    assert events["opened"]
