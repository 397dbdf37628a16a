"""Every page in light, in dark and on a phone: a screenshot is taken, nothing is too wide, axe finds nothing.

With WAKEFUL_TEST_SHOTS set to a folder, screenshots go there, for people to look at.
"""

import os
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.visits import check_with_axe, go, load_axe, watch
from live_server import Patient, eventually, running_server
from openai_server import call, calls, say, stream, thinking

pytestmark = pytest.mark.asyncio(loop_scope="session")

BEDS = "day,plant,beds,note\n2026-11-01,tomato,3,\n2026-11-03,bean,5,climbs\n2026-11-09,leek,2,\n2026-11-12,beet,4,\n"
VIEWS = [
    ("beds_by_plant", "bar", "SELECT plant, beds, beds * 1.5 AS next_year FROM garden WHERE beds > 0"),
    ("beds_over_time", "line", "SELECT day, beds FROM garden WHERE day IS NOT NULL"),
    ("share_of_beds", "pie", "SELECT plant, beds FROM garden WHERE beds >= :least"),
    ("all_beds", "number", "SELECT sum(beds) AS beds, count(*) AS plants FROM garden"),
    ("notes", "table", "SELECT plant, note FROM garden"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(own_files):
    async with running_server(own_files, patient=Patient(retries=0)) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def places(server):
    """Every page by its name, with something of everything on each."""
    session = await server.session("Notes on the garden")
    server.provider.then(
        stream(*thinking("Let me see"), *call("write_file", '{"path": "a.txt", "content": "x"}'), finish="tool_calls"),
        calls(
            *call("read_file", '{"path": "gone.txt"}', id="call_2"),
            *call("read_file", '{"path": "gone.txt"}', index=1, id="call_3"),
        ),
        say(
            "# Title\n\nA [link](https://example.org), `code` and\n\n```js\nlet x = 1\n```\n\n| a | b |\n",
            "|---|---|\n| 1 | 2 |\n\n- [x] done\n- one\n\n> quote\n",
        ),
        say("Below the fold."),
    )
    async with server.watch(session) as client:
        await client.ask("Show me all sorts of things")
        await client.ask("And more of them")
    brief = "Read garden.txt with read_file and say what it contains."
    asked = {"call_type": "recurring", "when": "2h", "interval_seconds": 14_400, "additional_context_message": brief}
    await server.call("POST", f"/sessions/{session}/recall", json=asked | {"internal_comment": "Look at the garden"})
    [_, run] = await server.runs_of(session)
    agent = run["agent_id"]
    server.provider.then(say("It is empty."))
    await server.call("PUT", f"/agents/{agent}/next-run", json={"in_seconds": 0, "instructions": brief})
    scheduled = await eventually(lambda: _ended(server, agent))
    await server.call("PUT", f"/agents/{agent}/next-run", json={"in_seconds": 9_000, "instructions": brief})
    more = {"name": "Researcher", "description": "Looks things up on the web", "self_scheduling": True}
    await server.call("POST", "/agents", json=more | {"schedule": {"mode": "project"}, "timezone": "Asia/Tokyo"})
    data = f"/agents/{agent}/db"
    await server.call("POST", f"{data}/import", json={"table": "garden", "text": BEDS})
    await server.call("POST", f"{data}/tables/garden/rows/delete", json={"row_ids": [3]})
    late = {"plant": "pea", "note": "sow early " * 20}
    await server.call("POST", f"{data}/tables/garden/rows", json={"rows": [late]})
    least = {"name": "least", "description": "How many beds", "default": 1}
    for name, render, sql in VIEWS:
        view = {"sql": sql, "render": render, "pinned": True, "parameters": [least] if ":least" in sql else []}
        await server.call("PUT", f"{data}/views/{name}", json=view)
    return {
        "start": "/",
        "chat": f"/ui/sessions/{session}",
        "agenda-week": "/ui/agenda",
        "agenda-day": "/ui/agenda?view=day",
        "inbox": "/ui/inbox",
        "agents": "/ui/agents",
        "configure": f"/ui/agents/{agent}/configure",
        "home": f"/ui/agents/{agent}/home",
        "schema": f"/ui/agents/{agent}/schema",
        "data": f"/ui/agents/{agent}/data?table=garden&show=all",
        "views": f"/ui/agents/{agent}/views?view=share_of_beds",
        "activity": f"/ui/agents/{agent}/activity",
        "run": f"/ui/runs/{run['id']}",
        "scheduled-run": f"/ui/runs/{scheduled['id']}",
        "scheduled-session": f"/ui/sessions/{scheduled['session_id']}",
        "not-found": "/ui/nowhere",
        "settings": "/ui/settings",
    }


async def _ended(server, agent):
    runs = (await server.call("GET", "/runs", params={"agent_id": agent, "status": "success"}))["runs"]
    return next((run for run in runs if run["kind"] == "next_run"), None)


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


async def height_of(page):
    return await page.evaluate("document.documentElement.scrollHeight")


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
            assert (name, await height_of(page)) == (name, how["viewport"]["height"])  # only its parts scroll
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
        assert await height_of(page) == how["viewport"]["height"]
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
