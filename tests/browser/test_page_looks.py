"""Every page in light, in dark and on a phone: a screenshot is taken, nothing is too wide, axe finds nothing serious.

With WAKEFUL_TEST_SHOTS set to a folder, screenshots go there, for people to look at.
"""

import os
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.visits import go
from live_server import Patient, running_server
from openai_server import call, calls, say, stream, thinking

pytestmark = pytest.mark.asyncio(loop_scope="session")

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
CHECK = """async only => {
  const found = await axe.run(document, {resultTypes: ['violations'], ...(only && {runOnly: only})});
  return found.violations
    .filter(each => each.impact === 'serious' || each.impact === 'critical')
    .map(({id, nodes}) => `${id}: ${nodes.map(node => node.html.slice(0, 160) + node.failureSummary).join(' | ')}`);
}"""
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
        calls(*call("read_file", '{"path": "gone.txt"}', id="call_2")),
        say(
            "# Title\n\nA [link](https://example.org), `code` and\n\n```js\nlet x = 1\n```\n\n| a | b |\n",
            "|---|---|\n| 1 | 2 |\n\n- [x] done\n- one\n\n> quote\n",
        ),
    )
    async with server.watch(session) as client:
        await client.ask("Show me all sorts of things")
    brief = "Read garden.txt with read_file and say what it contains."
    asked = {"call_type": "recurring", "when": "2h", "interval_seconds": 14_400, "additional_context_message": brief}
    await server.call("POST", f"/sessions/{session}/recall", json=asked | {"internal_comment": "Look at the garden"})
    [run] = await server.runs_of(session)
    agent = run["agent_id"]
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
        "settings": "/ui/settings",
    }


# In the dark only the colours differ, on a phone only the layout, so axe looks for no more there.
LOOKS = [
    pytest.param({"color_scheme": "light", "viewport": {"width": 1280, "height": 820}}, None, id="light"),
    pytest.param({"color_scheme": "dark", "viewport": {"width": 1280, "height": 820}}, ["color-contrast"], id="dark"),
    pytest.param(
        {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
        ["target-size", "scrollable-region-focusable"],
        id="phone",
    ),
]


@pytest.mark.parametrize(("how", "only"), LOOKS)
async def test_every_page_fits_and_axe_finds_nothing_serious(places, come, how, only, request):
    folder = os.environ.get("WAKEFUL_TEST_SHOTS")
    look, found = request.node.callspec.id, {}
    async with come(**how) as page:
        await page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
        for name, path in places.items():
            await go(page, path)
            if folder is not None:
                await page.screenshot(path=Path(folder, f"{name}-{look}.png"), animations="disabled")
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert (name, wide) == (name, how["viewport"]["width"])
            await page.evaluate("document.querySelectorAll('.fold[aria-expanded=false]').forEach(fold => fold.click())")
            found[name] = await page.evaluate(CHECK, only)
        assert {name: problems for name, problems in found.items() if problems} == {}


async def test_on_a_phone_the_sidebar_opens_and_closes(come):
    async with come(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True) as page:
        await page.get_by_role("button", name="Open the sidebar").click()
        await page.get_by_role("link", name="Agenda").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Agenda")
        await expect(page.get_by_role("link", name="Agenda")).to_be_hidden()


async def test_axe_finds_nothing_serious_in_dialogs_and_menus(places, come):
    async with come(places["chat"]) as page:
        await page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
        await page.get_by_role("button", name="Edit").click()
        await expect(page.locator(".next-times li")).to_have_count(5)
        assert await page.evaluate(CHECK) == []
        await page.keyboard.press("Escape")
        await page.get_by_label("Scheduled run", exact=True).get_by_role("button", name="Pause").click()
        await expect(page.get_by_role("menu")).to_be_visible()
        assert await page.evaluate(CHECK) == []
        await go(page, places["data"])
        await page.get_by_role("button", name="Open row 1").click()
        await page.get_by_text("History").click()
        assert await page.evaluate(CHECK) == []
        await page.get_by_role("dialog").get_by_role("button", name="Edit").click()
        assert await page.evaluate(CHECK) == []
