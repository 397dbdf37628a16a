"""The page says the truth about scheduled runs: edits, previews, moves, pauses, notices.

The pictures go to WAKEFUL_TEST_SHOTS if it is set, for people to look at.
"""

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.visits import go, log_in, send, shoot
from live_server import Patient, eventually, running_server
from openai_server import improvise
from wakeful.notices.texts import make_notice

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

BRIEF = "Read notes.txt with read_file and say what it contains."
TOKYO = "Asia/Tokyo"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(own_files):
    settings = own_files | {"agent_database_mb": 1}
    async with running_server(settings, always=improvise, patient=Patient(retries=0)) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def agent(server):
    """The first agent, reactive and without pauses or a next run."""
    first = (await server.call("GET", "/agents"))["agents"][0]
    yield first["id"]
    await server.call("DELETE", "/pause")
    await server.call("DELETE", f"/agents/{first['id']}/pause")
    await server.call("DELETE", f"/agents/{first['id']}/next-run")
    for wake in (await server.call("GET", "/wakes", params={"live": True}))["wakes"]:
        await server.call("DELETE", f"/wakes/{wake['id']}")


def dialog_of(page, title="Edit scheduled run"):
    return page.get_by_role("dialog", name=title)


async def book_next_run(server, agent, when="2h", **more):
    body = {"when": when, "instructions": BRIEF} | more
    return (await server.call("PUT", f"/agents/{agent}/next-run", json=body))["next_run"]


# ── Edit ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def book(server, agent, kind):
    """Book a run of a kind in two hours, and return its id and the page whose banner shows it."""
    if kind == "next_run":
        return (await book_next_run(server, agent))["id"], f"/ui/agents/{agent}"
    session = await server.session()
    body = {"kind": kind, "delay_ms": 7_200_000, "message": BRIEF}
    if kind == "session":
        body["session_config"] = {"session_name": "Started later"}
    made = await server.call("POST", f"/sessions/{session}/schedules", json=body)
    return made["schedule"]["id"].removeprefix("sch-"), f"/ui/sessions/{session}"


@pytest.mark.parametrize("kind", ["next_run", "message", "session"])
async def test_edit_moves_a_run_of_any_kind_to_a_time_in_the_zone_of_the_browser(server, agent, come, kind):
    await server.call("PATCH", f"/agents/{agent}", json={"timezone": "America/New_York"})
    wake_id, place = await book(server, agent, kind)
    in_five_hours = server.node.clock.now() + timedelta(hours=5)
    at = in_five_hours.astimezone(ZoneInfo(TOKYO)).replace(second=0, microsecond=0)
    async with come(place, timezone_id=TOKYO, locale="en-GB") as page:
        await page.get_by_role(
            "button", name="Edit the new session" if kind == "session" else "Edit", exact=True
        ).click()
        dialog = dialog_of(page)
        await dialog.get_by_label("When").fill(at.strftime("%Y-%m-%dT%H:%M"))
        await expect(dialog.locator(".next-times li")).to_contain_text(at.strftime("%-H:%M"))
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_have_count(0)
    assert datetime.fromisoformat((await server.call("GET", f"/wakes/{wake_id}"))["nominal_at"]) == at
    await server.call("PATCH", f"/agents/{agent}", json={"timezone": None})


async def test_a_refusal_is_at_its_field_in_the_words_of_the_form(server, agent, come):
    wake_id, place = await book(server, agent, "message")
    async with come(place) as page:
        await page.get_by_role("button", name="Edit", exact=True).click()
        dialog = dialog_of(page)
        when = dialog.get_by_label("When")
        await when.fill("in 2 days")
        error = page.locator(f"[id='{await described_by(when)}']")
        await expect(error).to_have_text("This kind of run can be scheduled at most 24 hours ahead.")
        await expect(when).to_have_attribute("aria-invalid", "true")
        await when.fill("soonish")
        await expect(error).to_contain_text("Try “30m”, “tomorrow at 9” or “friday 14:30”.")
        await shoot(page, "edit-refused")
        await when.fill("3h")
        await expect(error).to_have_count(0)
        await dialog.get_by_role("button", name="Cancel", exact=True).click()
        await server.call("DELETE", f"/wakes/{wake_id}")
        await page.get_by_label("Nothing scheduled").get_by_role("button", name="Schedule", exact=True).click()
        dialog = dialog_of(page, "Schedule a run")
        await dialog.get_by_label("Repeat").select_option("Every…")
        await dialog.get_by_label("Unit").select_option("seconds")
        count = dialog.get_by_label("How many")
        await count.fill("5")
        error = page.locator(f"[id='{await described_by(count)}']")
        await expect(error).to_have_text("“Every” must be at least 10 s, got 5 s.")
        await expect(dialog.get_by_role("button", name="Schedule", exact=True)).to_be_disabled()


async def described_by(field):
    await expect(field).to_have_attribute("aria-describedby", re.compile("."))
    return await field.get_attribute("aria-describedby")


async def test_runs_are_reported_to_an_address_that_the_page_never_shows(server, agent, come):
    wake_id, place = await book(server, agent, "message")
    async with come(place) as page:
        await page.get_by_role("button", name="Edit", exact=True).click()
        dialog = dialog_of(page)
        await dialog.get_by_text("Report runs to a monitoring service").click()
        address = dialog.get_by_label("Ping address")
        await address.fill("http://127.0.0.1/secret-check")
        await dialog.get_by_role("button", name="Save").click()
        error = page.locator(f"[id='{await described_by(address)}']")
        await expect(error).to_contain_text("is not on the public internet")
        await address.fill("http://93.184.215.14/secret-check")
        await expect(error).to_have_count(0)  # it was about another address
        await shoot(page, "ping-address")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_have_count(0)
        await page.get_by_role("button", name="Edit", exact=True).click()
        await expect(address).to_have_attribute("placeholder", "unchanged: http://93.184.215.14/****")
        assert "secret-check" not in await page.content()
        await shoot(page, "ping-address-set")
        await dialog.get_by_role("button", name="Remove address").click()
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_have_count(0)
    assert (await server.call("GET", f"/wakes/{wake_id}"))["ping_to"] is None


# ── What will really happen ─────────────────────────────────────────────────────────────────────────────────────────


async def test_what_moves_a_booking_is_shown_before_and_after_it_is_saved(server, agent, come):
    moved = "Reactive looks at most 24 h ahead"
    async with come(f"/ui/agents/{agent}") as page:
        await page.get_by_label("Nothing scheduled").get_by_role("button", name="Schedule", exact=True).click()
        dialog = dialog_of(page, "Schedule the next run")
        await dialog.get_by_label("What the agent should do").fill(BRIEF)
        await dialog.get_by_label("When").fill("in 5 days")
        times = dialog.locator(".next-times")
        await expect(times).to_contain_text(f"asked for “in 5 days”: {moved}")
        await expect(times.locator("li")).to_contain_text("in 1 d")
        await expect(times.get_by_role("link", name="Allow more")).to_be_visible()
        await shoot(page, "schedule-moved")
        await dialog.get_by_role("button", name="Schedule", exact=True).click()
        banner = page.get_by_label("Scheduled run", exact=True)
        await expect(banner).to_contain_text(f"asked for “in 5 days”: {moved}")
        await shoot(page, "banner-moved")
        await banner.get_by_role("button", name="Edit").click()
        await dialog_of(page).get_by_label("When").fill("in 6 days")
        await expect(dialog_of(page).locator(".next-times")).to_contain_text(f"asked for “in 6 days”: {moved}")
        await dialog_of(page).get_by_role("button", name="Save").click()
        await expect(banner).to_contain_text(f"asked for “in 6 days”: {moved}")
        await banner.get_by_role("button", name="Edit").click()
        await dialog_of(page).get_by_label("When").fill("in 3 hours")
        await dialog_of(page).get_by_role("button", name="Save").click()
        await expect(banner).not_to_contain_text("asked for")


async def test_the_dialog_says_how_a_run_came_about(server, agent, come):
    await book_next_run(server, agent, "in 5 days")
    async with come(f"/ui/agents/{agent}") as page:
        await page.get_by_label("Scheduled run", exact=True).get_by_role("button", name="Edit").click()
        await dialog_of(page).get_by_text("How it came about").click()
        story = dialog_of(page).locator(".story")
        await expect(story).to_contain_text("You scheduled it for")
        await expect(story).to_contain_text("Requested: “in 5 days”")
        await expect(story).to_contain_text("moved: too far ahead")
        await expect(story).not_to_contain_text("Z)")  # times are the viewer's
        await shoot(page, "schedule-story")


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [("POST", "/run-now", "This run has started meanwhile"), ("DELETE", "", "This run was cancelled meanwhile")],
)
async def test_a_dialog_keeps_its_text_when_its_run_ends_meanwhile(server, agent, come, method, path, said):
    wake = await book_next_run(server, agent)
    async with come(f"/ui/agents/{agent}") as page:
        await page.get_by_label("Scheduled run", exact=True).get_by_role("button", name="Edit").click()
        what = dialog_of(page).get_by_label("What the agent should do")
        await what.fill("Half a thought")
        await server.call(method, f"/wakes/{wake['id']}{path}")
        await expect(page.get_by_label("Nothing scheduled")).to_be_attached()
        await expect(dialog_of(page).get_by_role("alert")).to_contain_text(said)
        await expect(what).to_have_value("Half a thought")
        await expect(dialog_of(page).get_by_role("button", name="Save")).to_be_disabled()
        await shoot(page, f"dialog-ended{path.replace('/', '-')}")


async def test_a_dialog_keeps_its_text_when_the_agent_schedules_a_run_meanwhile(server, agent, come):
    session = await server.session()
    async with come(f"/ui/sessions/{session}") as page:
        await page.get_by_label("Nothing scheduled").get_by_role("button", name="Schedule", exact=True).click()
        dialog = dialog_of(page, "Schedule a run")
        await dialog.get_by_label("What the agent should do").fill("Half a thought")
        asked = {"call_type": "once", "when": "2h", "additional_context_message": BRIEF}
        await server.call("POST", f"/sessions/{session}/recall", json=asked)
        await expect(page.get_by_label("Scheduled run", exact=True)).to_be_attached()
        await expect(dialog.get_by_label("What the agent should do")).to_have_value("Half a thought")
        await dialog.get_by_role("button", name="Schedule", exact=True).click()
        await expect(dialog.get_by_role("alert")).to_have_text(
            "This session has a scheduled run already. Edit or cancel that one."
        )


async def test_the_preview_of_a_paused_agent_says_that_it_waits(server, agent, come):
    await server.call("PUT", f"/agents/{agent}/pause", json={"preset": "indefinitely"})
    wake = await book_next_run(server, agent, "4h")
    async with come("/ui/inbox") as page:
        found = await server.call("GET", f"/wakes/{wake['id']}/preview")
        assert (found["times"], [each["at"] for each in found["held"]]) == ([], [wake["scheduled_at"]])
        await go(page, f"/ui/agents/{agent}")
        await expect(page.get_by_label("Paused", exact=True)).to_contain_text("1 run on hold")


async def test_the_chat_shows_what_its_agent_has_just_scheduled(server, agent, come):
    name = (await server.call("GET", f"/agents/{agent}"))["name"]
    async with come(f"/ui/sessions/{await server.session()}") as page:
        await expect(page.get_by_label("Nothing scheduled")).to_be_visible()
        await send(page, f'call schedule_next_run {{"in_seconds": 10, "instructions": "{BRIEF}"}}')
        other = page.get_by_role("list", name="Scheduled elsewhere")
        await expect(other).to_contain_text(re.compile(rf"{name}'s next run in (5 min|4 min \d+ s)"))
        await expect(other).to_contain_text("asked for “in 10 s”: runs are at least 5 min apart")
        await expect(other).to_contain_text("by the agent")
        await shoot(page, "chat-next-run")
        card = page.locator(".booking-result").first  # of the tool that booked it
        await expect(card).to_contain_text(re.compile(r"Scheduled its next run: in (5 min|4 min \d+ s) · "))
        wake = (await server.call("GET", f"/agents/{agent}/next-run"))["next_run"]
        await server.call("PATCH", f"/wakes/{wake['id']}", json={"when": "1h"})
        await expect(other).to_contain_text("by the agent, moved by you")
        await expect(card).to_contain_text(re.compile("changed since: now in (1 h|59 min)"))
        await expect(card).not_to_contain_text(re.compile(r"run: in \d"))  # it does not run then any more
        config = '"session_config": {"session_name": "Later"}'
        await send(
            page,
            f'call scheduler {{"op": "create", "kind": "session", "delay_ms": 7200000, "message": "Hi", {config}}}',
        )
        await expect(other).to_contain_text(re.compile("A new session starts in 2 h"))
        await other.get_by_role("listitem").filter(has_text="next run").get_by_role("button", name="Cancel").click()
        await expect(other).not_to_contain_text("next run")
        await expect(card).not_to_contain_text(re.compile(r"\bin \d"))


async def test_the_seconds_until_a_run_are_counted_down(server, agent, come):
    """A time below ten minutes has seconds, so a clock that ticks four times a minute would show wrong ones."""
    await book_next_run(server, agent, "9m")
    async with come("/ui/inbox") as page:
        await page.clock.install(time=server.node.clock.now())
        await go(page, f"/ui/agents/{agent}")
        shown = page.get_by_label("Scheduled run", exact=True).locator("time").first
        await expect(shown).to_contain_text(re.compile(r"in [89] min"))
        for _ in range(3):
            await page.clock.run_for(4_000)
            now = datetime.fromisoformat(await page.evaluate("new Date().toISOString()"))
            at = datetime.fromisoformat(await shown.get_attribute("datetime"))
            minutes, seconds = re.search(r"in (\d+) min(?: (\d+) s)?", await shown.inner_text()).groups("0")
            assert abs((at - now).total_seconds() - 60 * int(minutes) - int(seconds)) < 2


# ── Pauses ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_every_view_and_the_api_say_the_same_about_a_pause(server, agent, come):
    name = (await server.call("GET", f"/agents/{agent}"))["name"]
    session = await server.session("Held back")
    asked = {"call_type": "recurring", "when": "3h", "interval_seconds": 86_400, "additional_context_message": BRIEF}
    await server.call("POST", f"/sessions/{session}/recall", json=asked)
    await book_next_run(server, agent, "20h")
    async with come("/ui/agenda") as page:
        row = page.get_by_role("link", name="Held back").first
        await expect(row.get_by_label("run scheduled")).to_be_visible()
        await expect(page.locator(".agenda-entry.is-planned").first).to_be_visible()
        await server.call("PUT", f"/agents/{agent}/pause", json={"preset": "indefinitely", "reason": "Guests"})
        ribbon = page.get_by_role("region", name=f"{name} is paused")
        await expect(ribbon).to_contain_text("until you resume · 2 runs on hold")
        await expect(ribbon).to_contain_text("Guests")
        await expect(page.locator(".agenda-entry.is-planned")).to_have_count(0)
        await expect(page.locator(".agenda-entry.is-held").first).to_contain_text("on hold")
        await expect(row.get_by_label("run on hold")).to_be_visible()
        await shoot(page, "agenda-paused")
        await go(page, "/ui/agents")
        card = page.locator(".agent-card").filter(has_text=name)
        await expect(card).to_contain_text("paused until you resume · 2 runs on hold")
        await shoot(page, "agents-paused")
        for place in (f"/ui/agents/{agent}", f"/ui/sessions/{session}", f"/ui/sessions/{await server.session()}"):
            await go(page, place)
            await expect(page.get_by_label("Paused", exact=True)).to_contain_text("2 runs on hold")
            held = page.get_by_role("list", name=f"Runs of {name} on hold").get_by_role("listitem")
            await expect(held).to_contain_text([BRIEF, BRIEF])
            await expect(held.first).to_contain_text(re.compile("planned .+ · recurring"))
        await shoot(page, "chat-paused")
        await go(page, "/ui/agenda")
        told = (await server.call("GET", f"/agents/{agent}/pause"))["pause"]
        agenda = await server.call("GET", "/agenda")
        listed = (await server.call("GET", "/wakes"))["wakes"]
        assert (told["held"], agenda["planned"]) == (2, [])
        assert {each["wake_id"] for each in agenda["held"]} == {each["id"] for each in listed if each["is_paused"]}
        assert (await server.call("GET", f"/agents/{agent}/next-run"))["next_run"]["is_paused"]
        assert (await server.call("GET", f"/sessions/{session}"))["recall"]["is_paused"]
        await ribbon.get_by_role("button", name="Resume").click()
        await expect(ribbon).to_have_count(0)
        await expect(page.locator(".agenda-entry.is-held")).to_have_count(0)
        await expect(page.locator(".agenda-entry.is-planned").first).to_be_visible()
        await expect(row.get_by_label("run scheduled")).to_be_visible()


async def test_a_short_pause_counts_what_it_holds_and_ends_on_the_page_by_itself(server, agent, come):
    await book_next_run(server, agent, "3h")
    until = server.node.clock.now() + timedelta(seconds=6)
    async with come(f"/ui/agents/{agent}") as page:
        await expect(page.get_by_label("Scheduled run", exact=True)).to_be_visible()
        made = await server.call("PUT", f"/agents/{agent}/pause", json={"until": until.isoformat()})
        assert made["pause"]["held"] == 0  # it runs after the pause
        await expect(page.get_by_label("Paused", exact=True)).not_to_contain_text("on hold")
        await expect(page.get_by_label("Scheduled run", exact=True)).to_be_visible()  # no event says so


async def test_a_paused_agent_without_self_scheduling_says_so_on_its_page(server, agent, come):
    other = await server.call("POST", "/agents", json={"name": "Does not schedule"})
    await server.call("PUT", f"/agents/{other['id']}/pause", json={"preset": "indefinitely"})
    async with come(f"/ui/agents/{other['id']}") as page:
        banner = page.get_by_label("Paused", exact=True)
        await expect(banner).to_contain_text("Paused until you resume")
        await banner.get_by_role("button", name="Resume").click()
        await expect(banner).to_have_count(0)
    await server.call("DELETE", f"/agents/{other['id']}")


# ── The inbox ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_times_in_a_notice_are_the_viewers(server, agent, come):
    user = (await server.call("GET", "/me"))["user"]
    await server.call("PATCH", f"/users/{user['id']}", json={"timezone": TOKYO})
    now = server.node.clock.now()
    until = now.astimezone(ZoneInfo("America/New_York")).replace(hour=14, minute=5, second=0) + timedelta(days=30)
    wake = await server.book(await server.session(), BRIEF, call_type="once", at=now + timedelta(days=1))
    await server.node.store.write(lambda tx: tx.notices.add(make_notice("brake", wake, now, until=until)))
    async with come("/ui/inbox", timezone_id="America/New_York", locale="en-GB") as page:
        entry = page.get_by_role("listitem").filter(has_text="Too many runs within an hour")
        await expect(entry).to_contain_text(re.compile(r"The rest wait until \d+ \w+ (\d+ )?14:05\."))
        await shoot(page, "inbox-times")
    body = (await server.call("GET", "/notifications"))["notifications"][0]["body"]
    assert f"until {until.astimezone(ZoneInfo(TOKYO)):%Y-%m-%d %H:%M:%S} (Asia/Tokyo)." in body


async def test_the_notice_of_an_ended_loop_is_resolved_by_the_next_run(server, agent, come):
    session = await server.session()
    ask = {"content": f'call schedule_next_run {{"in_seconds": 600, "instructions": "{BRIEF}"}}'}
    await server.call("POST", f"/sessions/{session}/messages", json=ask)
    await eventually(lambda: next_run_of(server, agent))
    await server.call("POST", f"/agents/{agent}/next-run/run-now")
    async with come("/ui/inbox") as page:
        entry = page.get_by_role("listitem").filter(has_text="has no next run scheduled")
        await expect(entry.get_by_role("button", name="Run now")).to_be_visible()
        await expect(page.get_by_role("link", name=re.compile(r"Inbox \d+ unread"))).to_be_visible()
        await entry.get_by_role("button", name="Schedule again").click()
        dialog = dialog_of(page, "Schedule the next run")
        await dialog.get_by_label("What the agent should do").fill(BRIEF)
        await dialog.get_by_role("button", name="Schedule", exact=True).click()
        await expect(entry).to_contain_text("resolved: a next run was scheduled")
        await expect(entry.get_by_role("button", name=re.compile("Run now|Schedule again"))).to_have_count(0)
        await expect(entry).not_to_have_class(re.compile("is-unread"))
        await shoot(page, "inbox-resolved")


async def next_run_of(server, agent):
    return (await server.call("GET", f"/agents/{agent}/next-run"))["next_run"]


async def test_the_quota_banner_names_a_setting_that_its_reader_may_change(server, come):
    token = await server.add_user("Rhea")
    [theirs] = (await server.call("GET", "/agents", token=token))["agents"]
    ours = await server.call("POST", "/agents", json={"name": "Ours", "toolsets": ["database"]})
    await server.call("PATCH", f"/agents/{theirs['id']}", token=token, json={"toolsets": ["database"]})
    for agent_id, who in ((ours["id"], None), (theirs["id"], token)):
        await fill(server, f"/agents/{agent_id}/db", who)
    async with come(f"/ui/agents/{ours['id']}/configure") as page:
        await banner_of(page).get_by_role("link", name="database size limit").click()
        await expect(page.get_by_label("Database size limit (MB)")).to_be_in_viewport()
    async with come(f"/ui/agents/{theirs['id']}/configure", as_=await log_in(server.address, token)) as page:
        for own_limit in (None, 1):  # 1 is the server's own: no more is allowed
            await server.call("PATCH", f"/agents/{theirs['id']}", token=token, json={"database_mb": own_limit})
            await page.reload()
            await expect(banner_of(page)).to_contain_text("An owner of this server can allow more")
            await expect(banner_of(page).get_by_role("link", name="limit")).to_have_count(0)
        await shoot(page, "quota-banner")


def banner_of(page):
    return page.get_by_role("region", name="Database size")


async def fill(server, database, token):
    """Fill more than four fifths of a database."""
    await server.call("POST", f"{database}/import", token=token, json={"table": "tasks", "text": "a\nx\n"})
    found = await server.call("GET", database, token=token)
    while found["used_bytes"] < 0.82 * found["quota_bytes"]:
        row = {"a": "x" * 40_000}
        await server.call("POST", f"{database}/tables/tasks/rows", token=token, json={"rows": [row]})
        found = await server.call("GET", database, token=token)
