"""The page while the server is unavailable, after an upgrade, and with a fault in one of its places."""

import os
import re
from contextlib import suppress

import pytest
from playwright.async_api import Error, expect

from browser.visits import PATIENCE, log_in, send, shoot, watch
from crash.server_process import TOKEN, ServerProcess
from openai_server import improvise

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SERVER = {"always": improvise}

BRIEF = "Read notes.txt with read_file."


async def test_every_place_heals_by_itself_when_the_server_is_back(built_page, browser, tmp_path):
    """Each tab goes to a place whose script it does not have yet, while the server is down."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    ours = {"WAKEFUL_DATA_DIR": f"{tmp_path}/data", "WAKEFUL_CONFIG_DIR": f"{tmp_path}/config"}
    server = ServerProcess(tmp_path, plain | ours | {"WAKEFUL_TOKEN": TOKEN})
    try:
        await server.start()
        address = str(server.client.base_url)
        places = await make_places(server)
        # Without the service worker, which keeps scripts: those of one tab would be there for the others.
        context = await browser.new_context(storage_state=await log_in(address, TOKEN), service_workers="block")
        context.set_default_timeout(PATIENCE)
        tabs = {path: await context.new_page() for path in places}
        complaints = {path: watch(tab) for path, tab in tabs.items()}
        for tab in tabs.values():
            await tab.goto(address)
            await tab.get_by_role("textbox", name="Message").wait_for()
        await server.kill()
        for path, tab in tabs.items():
            await tab.evaluate("path => history.pushState(null, '', path)", path)
        for path, tab in tabs.items():
            await expect(tab.get_by_role("heading", level=1)).to_be_visible()
            await expect(tab.get_by_role("navigation", name="Main")).to_be_visible()  # the rest of the page is there
            if "sessions" not in path:
                await expect(tab.get_by_text("The page will load when the server is back.")).to_be_visible()
        await shoot(tabs["/ui/agenda"], "server-away")
        await server.start(server.client.base_url.port)
        for path, tab in tabs.items():
            await expect(tab.get_by_role("heading", level=1)).to_have_text(places[path])
            await expect(tab.locator("main .empty[role=alert]")).to_have_count(0)
            await expect(tab.get_by_text("Connection lost.")).to_have_count(0)
        await offer_reload(server, context, tabs["/ui/inbox"])
        await context.close()
        assert {path: said for path, said in complaints.items() if said} == {}
    finally:
        await server.clean_up()


async def offer_reload(server, context, page):
    """Start the server again, as one whose page has other files."""

    async def upgraded(route):
        with suppress(Error):  # the server was killed, or the route has ended meanwhile
            answer = await route.fetch()
            body = re.sub(r"assets/index-[\w-]+\.js", "assets/index-other.js", await answer.text())
            await route.fulfill(response=answer, body=body)

    await context.route("**/ui/", upgraded)
    await context.route("**/assets/AgendaView-*.js", lambda route: route.fulfill(status=404, body="{}"))
    await server.kill()
    await expect(page.get_by_text("Connection lost.")).to_be_visible()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Inbox")  # what was loaded stays
    await server.start(server.client.base_url.port)
    notice = page.get_by_role("status").filter(has_text="Wakeful was updated.")
    await expect(notice.get_by_role("button", name="Reload")).to_be_visible()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Inbox")
    await page.get_by_role("link", name="Agenda").click()
    await expect(page.get_by_text("Wakeful was updated, so this page has to be reloaded.")).to_be_visible()
    await shoot(page, "upgraded")
    await context.unroute("**/ui/")
    await context.unroute("**/assets/AgendaView-*.js")
    await notice.get_by_role("button", name="Reload").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Agenda")
    await expect(notice).to_have_count(0)


async def make_places(server):
    """Return a page of every kind that is loaded when it is first shown, with its heading."""
    [agent] = (await server.send("GET", "/agents", {}))["agents"]
    session = (await server.send("POST", "/sessions", {"title": "Kept"}))["id"]
    asked = {"call_type": "immediate", "additional_context_message": BRIEF}
    wake = (await server.send("POST", f"/sessions/{session}/recall", asked))["recall"]["id"]
    run = None
    while not run:
        run = (await server.send("GET", f"/runs?wake_id={wake}", {}))["runs"]
    return {
        f"/ui/sessions/{session}": "Kept",
        "/ui/agenda": "Agenda",
        "/ui/inbox": "Inbox",
        "/ui/agents": "Agents",
        f"/ui/agents/{agent['id']}/data": agent["name"],
        f"/ui/runs/{run[0]['id']}": re.compile("."),
        "/ui/settings": "Settings",
    }


async def test_a_page_that_is_opened_while_the_server_does_not_answer_loads_when_it_is_back(server, come):
    async with come("/ui/inbox") as page:
        await page.route("**/me", lambda route: route.abort())
        await page.reload()
        await expect(page.get_by_text("This page will load when it is back.")).to_be_visible()
        await page.unroute("**/me")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Inbox")


async def test_a_tab_of_an_agent_that_cannot_be_loaded_says_so_and_is_tried_again(server, come):
    [agent] = (await server.call("GET", "/agents"))["agents"]
    async with come(f"/ui/agents/{agent['id']}/configure") as page:
        await expect(page.get_by_label("Prompt")).to_be_visible()
        await page.context.set_offline(True)
        await page.get_by_role("link", name="Schema").click()
        await expect(page.get_by_role("heading", name="This page could not be loaded")).to_be_visible()
        await expect(page.get_by_role("heading", level=1)).to_have_text(agent["name"])
        await page.context.set_offline(False)
        await expect(page.get_by_role("heading", name=f"{agent['name']} has stored nothing yet")).to_be_visible()


async def test_a_message_that_could_not_be_sent_stays_and_what_is_said_of_it_stays_true(server, come):
    async with come(f"/ui/sessions/{await server.session()}") as page:
        await expect(page.get_by_label("Nothing scheduled")).to_be_visible()
        await page.context.set_offline(True)
        await send(page, "Are you there?")
        problem = page.get_by_role("alert").filter(has_text="did not respond")
        await expect(problem).to_have_text("The server did not respond. Check that it is running, then try again.")
        await page.context.set_offline(False)
        await expect(page.get_by_text("Connection lost.")).to_have_count(0)
        await expect(page.get_by_role("textbox", name="Message")).to_have_value("Are you there?")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator(".answer")).to_have_text("You said: Are you there?")
        await expect(problem).to_have_count(0)


async def test_a_fault_in_one_place_leaves_the_others_and_goes_when_it_is_left(server, browser):
    login = await log_in(server.address, TOKEN)
    context = await browser.new_context(storage_state=login)
    context.set_default_timeout(PATIENCE)
    page = await context.new_page()
    await page.route("**/agenda?*", lambda route: route.fulfill(json={"ran": [None], "planned": [], "held": []}))
    await page.goto(f"{server.address}/ui/agenda")
    await expect(page.get_by_role("heading", level=1)).to_have_text("This part of the page has an error")
    await shoot(page, "fault")
    await page.get_by_role("link", name="Agents").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Agents")
    await page.unroute("**/agenda?*")
    await page.get_by_role("link", name="Agenda").click()
    await page.get_by_role("button", name="Today").wait_for()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Agenda")
    await context.close()
