"""A scripted week: what each place shows is what REST says, to the minute, in light, in dark and on a phone."""

import re
from datetime import timedelta
from functools import partial

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.shown import IN_BERLIN, check_agenda, check_times, clock, moment, status_of
from browser.visits import add_notice, go, shoot
from wakeful.core.ids import new_id
from wakeful.core.labels import TOOLSETS
from wakeful.core.types import Message, Run, RunUsage

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

BRIEF = "Read prices.txt with read_file and say what has changed since yesterday."
HOUR = timedelta(hours=1)
LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1440, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1440, "height": 900}},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}
# Hours ago, and how each run ended.
PAST = [
    (50, {"status": "success"}),
    (42, {"status": "failed", "reason": "error", "error": "The provider refused the key."}),
    (34, {"status": "skipped", "reason": "missed", "covers": 2}),
    (26, {"status": "stopped", "reason": "stopped"}),
    (18, {"status": "success", "note": "did_nothing"}),
    (2, {"status": "interrupted", "reason": "attempts_used_up", "error": "The process died 3 times."}),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def week(server):
    """Two agents, one of them paused; a run every eight hours, behind and ahead; other runs; notices."""
    [gardener] = (await server.call("GET", "/agents"))["agents"]
    await server.call("PATCH", f"/agents/{gardener['id']}", json={"name": "Gardener", "timezone": "Asia/Tokyo"})
    clerk = await server.call("POST", "/agents", json={"name": "Clerk", "self_scheduling": True})
    garden, prices = await server.session("The garden"), await server.session("Prices", agent_id=clerk["id"])
    asked = {"call_type": "recurring", "interval_seconds": 8 * 3600, "additional_context_message": BRIEF}
    label = {"when": "6h", "internal_comment": "Look at the garden"}
    recall = (await server.call("POST", f"/sessions/{garden}/recall", json=asked | label))["recall"]["id"]
    later = (server.node.clock.now() + 3 * HOUR).isoformat()
    note = {"kind": "message", "message": BRIEF, "at": later, "label": "Prices at noon"}
    await server.call("POST", f"/sessions/{prices}/schedules", json=note)
    await server.call("PUT", f"/agents/{gardener['id']}/next-run", json={"in_seconds": 9_000, "instructions": BRIEF})
    await add_past(server, gardener["id"], garden, recall)
    await add_harvest(server, f"/agents/{gardener['id']}/db")
    await add_notice(server, gardener["id"], "Frost tonight")
    await add_notice(server, clerk["id"], "Prices are up")
    [first, _] = (await server.call("GET", "/notifications"))["notifications"]
    await server.call("POST", f"/notifications/{first['id']}/read")
    await server.call("PUT", f"/agents/{clerk['id']}/pause", json={"preset": "4h", "reason": "Year end"})
    return {"gardener": gardener["id"], "clerk": clerk["id"], "garden": garden}


async def add_past(server, agent_id, session_id, wake_id):
    """Add finished runs: of the recurring wake, and one that answered a message."""
    [user] = (await server.call("GET", "/users"))["users"]
    now = server.node.clock.now()
    whose = {"agent_id": agent_id, "user_id": user["id"], "session_id": session_id, "scheduled_by": "user"}
    runs = []
    for hours, fields in PAST:
        at = now - hours * HOUR
        began = {} if fields["status"] == "skipped" else {"started_at": at + timedelta(seconds=1), "attempt": 1}
        woken = {"wake_id": wake_id, "kind": "recall", "trigger": "wake", "finished_at": at + timedelta(seconds=91)}
        runs.append(Run(id=new_id(at), nominal_at=at, queued_at=at, **whose, **woken, **began, **fields))
    at = now - 20 * HOUR
    times = {"nominal_at": at, "queued_at": at, "started_at": at, "finished_at": at + timedelta(seconds=5)}
    answered = {"wake_id": None, "kind": None, "trigger": "message", "status": "success"}
    runs.append(Run(id=new_id(at), **whose, **times, **answered))
    spent = {"model": "demo", "input_tokens": 12_345, "output_tokens": 678, "model_calls": 3, "tool_calls": 2}
    said = {"session_id": session_id, "position": 0, "run_id": runs[-1].id, "created_at": at}

    async def work(tx):
        await tx.runs.add(runs)
        await tx.sessions.append(Message(id=new_id(at), role="user", content="How are the beans?", **said))
        await tx.sessions.append(Message(id=new_id(at), role="assistant", content="They climb.", **said))
        usage = RunUsage(run_id=runs[-1].id, agent_id=agent_id, user_id=user["id"], at=at, cost_micros=4_200, **spent)
        await tx.usage.save(usage)

    await server.node.store.write(work)


async def add_harvest(server, database):
    """Add a table with a deleted row, and a view on Home."""
    harvest = "plant,kilos\nbeans,2.5\ntomatoes,1204\nleeks,3"
    await server.call("POST", f"{database}/import", json={"table": "harvest", "text": harvest})
    await server.call("POST", f"{database}/tables/harvest/rows/delete", json={"row_ids": [3]})
    view = {"sql": "SELECT sum(kilos) AS kilos FROM harvest", "render": "number", "pinned": True}
    await server.call("PUT", f"{database}/views/all_kilos", json=view)


@pytest.mark.parametrize("look", LOOKS)
async def test_what_each_place_shows_is_what_rest_says(server, week, come, look):
    async with come(**LOOKS[look], **IN_BERLIN) as page:
        await check_agenda(page, partial(server.call, "GET"), server.node.clock.now())
        await shoot(page, "week-agenda")
        for agent in ("gardener", "clerk"):
            await check_activity(page, server, week[agent])
        await check_runs(page, server, week["gardener"])
        await check_agents(page, server)
        await check_inbox(page, server)
        await check_sessions(page, server, week["garden"])
        for agent in ("gardener", "clerk"):
            await check_configure(page, server, week[agent])
        await check_database(page, server, week["gardener"])
        await check_settings(page, server)


# ── Places ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def check_activity(page, server, agent_id):
    runs = (await server.call("GET", "/runs", params={"agent_id": agent_id}))["runs"]
    await go(page, f"/ui/agents/{agent_id}/activity")
    await expect(page).to_have_url(re.compile("/activity$"))
    rows = page.get_by_role("list", name="Runs").get_by_role("button")
    await expect(rows).to_have_count(len(runs))
    for run, text in zip(runs, await rows.all_inner_texts(), strict=True):
        assert run["about"] in text
        assert status_of(run) in text
        assert clock(run["started_at"] or run["queued_at"]) in text
        assert ("2 times" in text) == (run["covers"] == 2)
    await check_times(page, server.node.clock.now())
    await shoot(page, "week-activity")


async def check_runs(page, server, agent_id):
    listed = (await server.call("GET", "/runs", params={"agent_id": agent_id}))["runs"]
    for run in [each for each in listed if each["status"] in ("failed", "skipped") or each["usage"]]:
        shown = await server.call("GET", f"/runs/{run['id']}")
        await go(page, f"/ui/runs/{run['id']}")
        await expect(page.get_by_role("heading", level=1)).to_have_text(shown["about"])
        await expect(page.locator(".run-origin")).to_contain_text(status_of(shown))
        await expect(page.get_by_role("region", name="What it was asked")).to_contain_text(shown["brief"])
        await expect(page.get_by_role("region", name="Result")).to_contain_text(
            shown["error"] or shown["answer"] or "No output"
        )
        facts = page.locator(".facts")
        if shown["started_at"]:
            took = moment(shown["finished_at"]) - moment(shown["started_at"])
            await expect(facts).to_contain_text("1 min 30 s" if took > timedelta(seconds=60) else "5.0 s")
        if used := shown["usage"]:
            await expect(facts).to_contain_text(f"{used['input_tokens']:,} in, {used['output_tokens']} out")
            await expect(facts).to_contain_text(f"${used['cost']:.4f}")
            await expect(facts).to_contain_text("3 model calls, 2 tool calls")
        await check_times(page, server.node.clock.now())
        await shoot(page, "week-run")


async def check_agents(page, server):
    wakes = (await server.call("GET", "/wakes", params={"status": "pending"}))["wakes"]
    await go(page, "/ui/agents")
    for agent in (await server.call("GET", "/agents"))["agents"]:
        card = page.get_by_role("main").get_by_role("link", name=agent["name"])
        pause = (await server.call("GET", f"/agents/{agent['id']}/pause"))["pause"]
        first = min(wake["attempt_at"] for wake in wakes if wake["agent_id"] == agent["id"])
        time = card.locator("time").first
        await expect(card).to_contain_text("paused until" if pause else "scheduled run")
        assert moment(await time.get_attribute("datetime")) == moment(pause["until"] if pause else first)
    await check_times(page, server.node.clock.now())
    await shoot(page, "week-agents")


async def check_inbox(page, server):
    entries = (await server.call("GET", "/notifications"))["notifications"]
    unread = sum(each["read_at"] is None for each in entries)
    await go(page, "/ui/inbox")
    await expect(page.get_by_role("heading", level=1)).to_have_text(f"Inbox ({unread})")
    await expect(page.locator(".nav-link .count")).to_contain_text(str(unread))
    await expect(page.locator(".inbox-entry strong")).to_have_text([each["title"] for each in entries])
    await check_times(page, server.node.clock.now())
    await shoot(page, "week-inbox")


def is_phone(page):
    return page.viewport_size["width"] < 640


async def check_sessions(page, server, session_id):
    sessions = (await server.call("GET", "/sessions", params={"unattended": False}))["sessions"]
    await expect(page.locator("ul[aria-label=Sessions] .session-title")).to_have_text(
        [session["title"] for session in sessions]
    )
    recall = (await server.call("GET", f"/sessions/{session_id}/recall"))["recall"]
    await go(page, f"/ui/sessions/{session_id}")
    line = page.get_by_role("button", name="Look at the garden")  # on a phone, it opens the banner
    if is_phone(page):
        await line.click()
    banner = page.get_by_label("Scheduled run", exact=True)
    await expect(banner).to_contain_text("Look at the garden")
    instants = [await time.get_attribute("datetime") for time in await banner.locator("time").all()]
    assert moment(recall["trigger_at"]) in map(moment, instants)
    await check_times(page, server.node.clock.now())
    if is_phone(page):
        await page.keyboard.press("Escape")
    await shoot(page, "week-chat")


async def check_configure(page, server, agent_id):
    [agent] = [each for each in (await server.call("GET", "/agents"))["agents"] if each["id"] == agent_id]
    today = (await server.call("GET", f"/agents/{agent_id}/usage"))["today"]
    await go(page, f"/ui/agents/{agent_id}/configure")
    limits = agent["schedule"]
    fields = {
        "Name": agent["name"],
        "Time zone": agent["timezone"] or "",
        "Steps per run": agent["max_iterations"],
        "Time per run (minutes)": agent["run_limit_seconds"] / 60,
        "How far ahead (hours)": limits["max_horizon_seconds"] / 3_600,
        "Minimum gap (minutes)": limits["min_interval_seconds"] / 60,
        "Runs per day": limits["daily_cap"],
    }
    for label, value in fields.items() if agent["self_scheduling"] else list(fields.items())[:4]:
        shown = page.get_by_label(label, exact=True)
        await expect(shown).to_have_value(value if isinstance(value, str) else f"{value:g}")
    switches = {known.label: name in agent["toolsets"] for name, known in TOOLSETS.items()}
    for label, is_on in (switches | {"Self-scheduling": agent["self_scheduling"]}).items():
        await expect(page.get_by_role("switch", name=label, exact=True)).to_be_checked(checked=is_on)
    used = page.get_by_role("group", name="Used today")
    await expect(used).to_contain_text(f"{today['runs']} run{'' if today['runs'] == 1 else 's'},")
    await expect(used).to_contain_text(f"Tokens{today['tokens']:,}")
    cost = f"${today['cost']:.4f}" if today["cost"] else "$0.00"
    await expect(used).to_contain_text(f"Cost{cost}")
    await check_times(page, server.node.clock.now())
    await shoot(page, "week-configure")


async def check_database(page, server, agent_id):
    database = f"/agents/{agent_id}/db"
    schema = await server.call("GET", f"{database}/schema")
    await go(page, f"/ui/agents/{agent_id}/schema")
    for table in schema["tables"]:
        shown = page.get_by_role("region", name=table["name"], exact=True)
        await expect(shown).to_contain_text(f"{table['rows']} rows, {table['deleted_rows']} deleted")
        await expect(shown.locator("tbody td:first-child")).to_have_text([each["name"] for each in table["columns"]])
    await shoot(page, "week-schema")
    found = await server.call("GET", f"{database}/tables/harvest/rows")
    await go(page, f"/ui/agents/{agent_id}/data?table=harvest")
    rows = page.get_by_label("Rows of harvest").locator("tbody tr, li")
    await expect(rows).to_have_count(found["total"])
    for row, values in zip(await rows.all(), found["rows"], strict=True):
        for name in ("plant", "kilos"):
            value = str(values[found["columns"].index(name)]).removesuffix(".0")  # JavaScript has one kind of number
            await expect(row.get_by_text(value, exact=True)).to_be_visible()
    await expect(page.get_by_role("navigation", name="Pages")).to_contain_text(f"{found['total']} rows")
    await shoot(page, "week-data")
    [[total]] = (await server.call("POST", f"{database}/views/all_kilos/run", json={}))["rows"]
    await go(page, f"/ui/agents/{agent_id}/home")
    await expect(page.locator(".numbers dd")).to_have_text(f"{total:,}")
    await shoot(page, "week-home")
    await go(page, f"/ui/agents/{agent_id}/views")
    names = [view["name"] for view in schema["views"]]
    await expect(page.get_by_role("list", name="Views").get_by_role("button")).to_contain_text(names)
    await expect(page.locator(".numbers dd")).to_have_text(f"{total:,}")
    await check_times(page, server.node.clock.now())
    await shoot(page, "week-views")


async def check_settings(page, server):
    about, me = await server.call("GET", "/about"), await server.call("GET", "/me")
    await go(page, "/ui/settings")
    await expect(page.locator(".facts").first).to_contain_text(f"Wakeful {about['version']}")
    await expect(page.locator(".facts").first).to_contain_text(f"{me['user']['name']} (owner)")
    await expect(page.get_by_role("combobox", name="Your time zone")).to_have_value(me["user"]["timezone"])
    for name, path in (("People", "/users"), ("Tokens", "/tokens")):
        listed = (await server.call("GET", path))[path[1:]]
        shown = page.get_by_role("list", name=name, exact=True).get_by_role("listitem")
        await expect(shown.locator("strong")).to_have_text([each["name"] for each in listed])
        instants = [await each.get_attribute("datetime") for each in await shown.locator("time").all()]
        assert list(map(moment, instants)) == [moment(each["created_at"]) for each in listed]
    kept = (await server.call("GET", "/storage"))["retention"]
    disk = page.locator(".facts").filter(has_text="Run streams")
    await expect(disk).to_contain_text(f"kept for {kept['events_hours']} h after the run")
    await expect(disk).to_contain_text(f"listed for {kept['skipped_days']} days, then counted")
    await check_times(page, server.node.clock.now())
    await shoot(page, "week-settings")
