"""What a newcomer does in the first minutes, on the demo model, and how every page looks to them.

The pictures go to WAKEFUL_TEST_SHOTS if it is set; for people, and for the README.
"""

import os
import re
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.conftest import TOKEN
from browser.visits import go, log_in, send, visit, watch

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cookies(served):
    return await log_in(served.address, TOKEN)


async def test_a_newcomer_with_nothing_but_the_link_sees_the_whole_loop(served, browser):
    """First message, a wake in ten seconds, its live run, rows in the database, a pause, the agenda."""
    context = await browser.new_context()
    page = await context.new_page()
    complaints = watch(page)
    await page.goto(served.login_link)
    await page.wait_for_url(f"{served.address}/")

    await send(page, "What can you do?")
    await expect(page.locator(".answer")).to_contain_text("This is the demo model, not an LLM")
    await send(page, "Write buy milk to notes.txt")
    await expect(page.get_by_label("Tool write_file")).to_contain_text("notes.txt")

    await send(page, "In 10 seconds check notes.txt")
    banner = page.get_by_label("Next wake")
    await expect(banner).to_contain_text("by the agent")
    await expect(banner).to_contain_text(re.compile(r"in \d+ s"))
    await expect(page.locator(".session-clock")).to_be_visible()
    woken = page.locator(".asked.is-woken")
    await expect(woken).to_contain_text("Read notes.txt with read_file", timeout=20_000)
    await expect(page.locator(".answer").last).to_contain_text("buy milk")
    await expect(page.locator(".session-clock")).to_have_count(0)

    await send(page, "Remember that the plumber comes on Friday")
    await expect(page.get_by_label("Tool db_insert")).to_be_visible()
    await expect(page.locator(".answer").last).to_contain_text("I have noted that.")
    await page.get_by_role("link", name="Agents").click()
    await page.get_by_role("main").get_by_role("link", name="Wakeful").click()
    tabs = page.get_by_role("navigation", name="Parts of this agent")
    await tabs.get_by_role("link", name="Data").click()
    await expect(page.get_by_role("cell", name="the plumber comes on Friday")).to_be_visible()

    await page.get_by_label("No wake booked").get_by_role("button", name="Pause").click()
    await page.get_by_role("menuitem", name="1 hour").click()
    await expect(page.get_by_label("Paused", exact=True)).to_contain_text("Paused until")
    await page.get_by_role("button", name="Resume").click()
    await expect(page.get_by_label("No wake booked")).to_be_visible()

    await page.get_by_role("link", name="Agenda").click()
    await page.locator(".agenda-entry.is-good", has_text="Recall").click()
    await expect(page.locator(".facts")).to_contain_text("Recall, booked by the agent")
    await page.get_by_role("link", name="Settings").click()
    await expect(page.get_by_text("This is the built-in demo model.")).to_be_visible()
    assert complaints == []
    await context.close()


LOOKS = [
    pytest.param({"color_scheme": "light", "viewport": {"width": 1280, "height": 820}}, id="light"),
    pytest.param({"color_scheme": "dark", "viewport": {"width": 1280, "height": 820}}, id="dark"),
    pytest.param({"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}, id="phone"),
]


VIEWS = [
    ("beds_by_plant", "bar", "SELECT plant, beds, beds * 1.5 AS next_year FROM garden WHERE beds > 0"),
    ("beds_over_time", "line", "SELECT day, beds FROM garden WHERE day IS NOT NULL"),
    ("share_of_beds", "pie", "SELECT plant, beds FROM garden WHERE beds > 0"),
    ("all_beds", "number", "SELECT sum(beds) AS beds, count(*) AS plants FROM garden"),
    ("notes", "table", "SELECT plant, note FROM garden"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def places(served, cookies, browser):
    """Every page by its name, with something on each."""
    session = (await served.ask("POST", "/sessions", {"title": "Notes on the garden"}))["id"]
    async with visit(browser, cookies, f"{served.address}/ui/sessions/{session}") as page:
        for text in ("write beans to garden.txt", "read garden.txt", "read nothing.txt", "remember that beans climb"):
            await send(page, text)
            await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
            await expect(page.locator(".footnote").last).to_be_visible()
    brief = "Read garden.txt with read_file and say what it contains."
    asked = {"call_type": "recurring", "when": "2h", "interval_seconds": 14_400, "additional_context_message": brief}
    await served.ask("POST", f"/sessions/{session}/recall", asked | {"internal_comment": "Look at the garden"})
    agents = (await served.ask("GET", "/agents"))["agents"]
    agent = agents[0]["id"]
    await served.ask("PUT", f"/agents/{agent}/next-run", {"in_seconds": 9_000, "instructions": brief})
    if len(agents) == 1:
        more = {"name": "Researcher", "description": "Looks things up on the web", "self_scheduling": True}
        await served.ask("POST", "/agents", more | {"schedule": {"mode": "project"}, "timezone": "Asia/Tokyo"})
    data = f"/agents/{agent}/db"
    beds = (
        "day,plant,beds,note\n2026-11-01,tomato,3,\n2026-11-03,bean,5,climbs\n2026-11-09,leek,2,\n2026-11-12,beet,4,\n"
    )
    await served.ask("POST", f"{data}/import", {"table": "garden", "text": beds})
    await served.ask("POST", f"{data}/tables/garden/rows/delete", {"row_ids": [3]})
    await served.ask("POST", f"{data}/tables/garden/rows", {"rows": [{"plant": "pea", "note": "sow early " * 20}]})
    for name, render, sql in VIEWS:
        await served.ask("PUT", f"{data}/views/{name}", {"sql": sql, "render": render, "pinned": True})
    [run, *_] = (await served.ask("GET", f"/runs?session_id={session}"))["runs"]
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


@pytest.mark.parametrize("how", LOOKS)
async def test_every_page_has_its_picture_taken(served, browser, cookies, places, how, request, tmp_path):
    folder = Path(os.environ.get("WAKEFUL_TEST_SHOTS", tmp_path))
    look = request.node.callspec.id
    async with visit(browser, cookies, served.address, **how) as page:
        for name, path in places.items():
            await go(page, path)
            await page.screenshot(path=folder / f"{name}-{look}.png", animations="disabled")
        if look == "phone":
            await page.get_by_role("button", name="Open the sidebar").click()
            await page.screenshot(path=folder / f"sidebar-{look}.png", animations="disabled")
        else:
            await go(page, places["chat"])
            await page.get_by_role("button", name="Edit").click()
            await expect(page.locator(".next-times li")).to_have_count(5)
            await page.screenshot(path=folder / f"edit-{look}.png", animations="disabled")
    assert (folder / f"chat-{look}.png").stat().st_size > 10_000
