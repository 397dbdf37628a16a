"""Every page except the chat: banner, sidebar, agents, agenda, runs, inbox, settings."""

import re
from datetime import timedelta

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.visits import add_notice, check_with_axe, go, load_axe, send, shoot
from live_server import eventually
from openai_server import improvise
from wakeful.core.ids import new_id
from wakeful.core.types import Session

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SERVER = {"always": improvise}

BRIEF = "Read notes.txt with read_file and say what it contains."


@pytest_asyncio.fixture(loop_scope="session")
async def agent(server):
    """The first agent, as it was at the start."""
    agents = (await server.call("GET", "/agents"))["agents"]
    first = agents[0]["id"]
    yield first
    await server.call("DELETE", f"/agents/{first}/pause")
    await server.call("DELETE", "/pause")
    change = {"self_scheduling": True, "schedule": {"mode": "reactive"}}
    await server.call("PATCH", f"/agents/{first}", json=change)


async def recall_of(server, session):
    return (await server.call("GET", f"/sessions/{session}/recall"))["recall"]


# ── The banner ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_person_books_skips_changes_and_cancels_a_recall(server, agent, come):
    session = await server.session("Booked by hand")
    async with come(f"/ui/sessions/{session}") as page:
        await page.get_by_label("Nothing scheduled").get_by_role("button", name="Schedule", exact=True).click()
        dialog = page.get_by_role("dialog", name="Schedule a run")
        await dialog.get_by_label("What the agent should do").fill(BRIEF)
        await dialog.get_by_label("When").fill("in 2 hours")
        await dialog.get_by_label("Repeat").select_option("Every…")
        await dialog.get_by_label("How many").fill("3")
        await dialog.get_by_label("Unit").select_option("hours")
        times = dialog.locator(".next-times li")
        await expect(times).to_have_count(5)
        await expect(times.nth(1)).to_contain_text(re.compile("in (4 h 59 min|5 h)"))
        await dialog.get_by_role("button", name="Schedule", exact=True).click()
        banner = page.get_by_label("Scheduled run", exact=True)
        await expect(banner).to_contain_text(re.compile("in (1 h 59 min|2 h)"))
        await expect(banner).to_contain_text("recurring · by you")
        clock = page.get_by_role("link", name="Booked by hand").get_by_label("run scheduled")
        await expect(clock).to_be_visible()

        before = await recall_of(server, session)
        await banner.get_by_role("button", name="Skip").click()
        await expect(banner).to_contain_text(re.compile("in (4 h 59 min|5 h)"))
        assert (await recall_of(server, session))["nominal_at"] > before["nominal_at"]

        await server.call("PATCH", f"/wakes/{before['id']}", json={"interval_seconds": 5430})
        await page.reload()
        await banner.get_by_role("button", name="Edit").click()
        dialog = page.get_by_role("dialog", name="Edit scheduled run")
        await expect(dialog.get_by_label("What the agent should do")).to_have_value(BRIEF)
        await expect(dialog.get_by_label("How many")).to_have_value("5430")
        await expect(dialog.get_by_label("Unit")).to_have_value("seconds")
        rules = dialog.get_by_label("Repeat").get_by_role("option")
        await expect(rules).to_have_text(["Every…", "Cron rule"])  # it cannot become one that fires once
        await dialog.get_by_label("When").fill("nonsense")
        await expect(dialog.get_by_role("alert")).to_contain_text("nonsense")  # refused, with forms to try
        await dialog.get_by_label("When").fill("in 30 minutes")
        await expect(dialog.locator(".next-times li").first).to_contain_text(re.compile("in (29|30) min"))
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_have_count(0)
        await expect(banner).to_contain_text(re.compile("in (29|30) min"))

        await banner.get_by_role("button", name="Cancel").click()
        await expect(page.get_by_label("Nothing scheduled")).to_be_visible()
        await expect(clock).to_have_count(0)
    assert await recall_of(server, session) is None


async def test_run_now_runs_it_before_the_eyes(server, agent, come):
    session = await server.session()
    await server.book(session, BRIEF, call_type="once", at=server.node.clock.now() + timedelta(days=1))
    async with come(f"/ui/sessions/{session}") as page:
        await page.get_by_label("Scheduled run", exact=True).get_by_role("button", name="Run now").click()
        await expect(page.locator(".asked.is-woken")).to_contain_text(BRIEF)
        await expect(page.locator(".answer")).to_contain_text("You said:")
        await expect(page.get_by_label("Nothing scheduled")).to_be_visible()


async def test_what_someone_else_books_appears_by_itself(server, agent, come):
    session = await server.session()
    async with come(f"/ui/sessions/{session}") as page:
        await expect(page.get_by_label("Nothing scheduled")).to_be_visible()
        asked = {"call_type": "once", "when": "40m", "additional_context_message": BRIEF}
        await server.call("POST", f"/sessions/{session}/recall", json=asked)
        await expect(page.get_by_label("Scheduled run", exact=True)).to_contain_text(re.compile("in (39|40) min"))
        await server.call("DELETE", f"/sessions/{session}/recall")
        await expect(page.get_by_label("Nothing scheduled")).to_be_visible()


async def test_the_pause_menu_pauses_for_a_reason_and_resume_lifts_it(server, agent, come):
    async with come(f"/ui/agents/{agent}") as page:
        banner = page.get_by_label("Paused", exact=True)
        for item, shown in {
            "1 hour": "Paused until",
            "4 hours": "Paused until",
            "Until tomorrow": "Paused until",
            "Indefinitely": "Paused until you resume",
        }.items():
            await page.get_by_label("Nothing scheduled").get_by_role("button", name="Pause").click()
            await page.get_by_role("menuitem", name=item).click()
            await expect(banner).to_contain_text(shown)
            before = (await server.call("GET", f"/agents/{agent}/pause"))["pause"]
            await banner.get_by_role("button", name="Add a reason").click()
            await banner.get_by_label("Reason").fill(f"Guests, {item}")
            await banner.get_by_label("Reason").press("Enter")
            await expect(banner).to_contain_text(f"Guests, {item}")
            paused = (await server.call("GET", f"/agents/{agent}/pause"))["pause"]
            assert (paused["until"], paused["reason"]) == (before["until"], f"Guests, {item}")
            await banner.get_by_role("button", name="Resume").click()
            await expect(page.get_by_label("Nothing scheduled")).to_be_visible()


async def test_a_custom_pause_has_a_time_and_a_reason(server, agent, come):
    async with come(f"/ui/agents/{agent}") as page:
        await page.get_by_label("Nothing scheduled").get_by_role("button", name="Pause").click()
        await page.get_by_role("menuitem", name="Custom…").click()
        dialog = page.get_by_role("dialog", name="Pause this agent")
        await dialog.get_by_label("Until").fill("2099-01-01T08:00")
        await dialog.get_by_label("Reason").fill("Holidays")
        await dialog.get_by_role("button", name="Pause").click()
        banner = page.get_by_label("Paused", exact=True)
        await expect(banner).to_contain_text("2099")
        await expect(banner).to_contain_text("Holidays")


async def test_pause_everything_is_in_reach_of_every_page(server, agent, come):
    async with come("/ui/agenda") as page:
        await page.get_by_role("button", name="Pause everything").click()
        await page.get_by_role("menuitem", name="4 hours").click()
        await expect(page.locator(".pause-all")).to_contain_text("Everything is paused")
        await server.call("PUT", "/pause", json={"preset": "1h", "reason": "By another window"})
        await expect(page.locator(".pause-all")).to_contain_text("By another window")
        await page.goto(f"{server.address}/ui/agents/{agent}")
        await expect(page.get_by_label("Paused", exact=True)).to_contain_text("Everything is paused")
        await page.locator(".pause-all").get_by_role("button", name="Resume").click()
        await expect(page.get_by_role("button", name="Pause everything")).to_be_visible()
        await expect(page.get_by_label("Nothing scheduled")).to_be_visible()


async def test_a_pause_is_shown_wherever_its_runs_are(server, agent, come):
    session = await server.session("On hold")
    await server.book(session, BRIEF, call_type="once", at=server.node.clock.now() + timedelta(hours=5))
    name = (await server.call("GET", f"/agents/{agent}"))["name"]
    async with come("/ui/agents") as page:
        card = page.locator(".agent-card").filter(has_text=name)
        await expect(card).to_contain_text("scheduled run in 5 h")
        await card.click()
        idle = page.get_by_label("No next run scheduled", exact=True)
        await expect(idle).to_contain_text("1 other scheduled run, in 5 h")
        await idle.get_by_role("link", name="1 other scheduled run").click()
        await expect(page.get_by_role("heading", name="Agenda")).to_be_visible()
        await go(page, "/ui/agents")
        await server.call("PUT", f"/agents/{agent}/pause", json={"preset": "indefinitely"})
        await expect(card).to_contain_text("paused until you resume")
        await expect(card).not_to_contain_text("scheduled run")
        await card.click()
        await expect(page.get_by_label("Paused", exact=True)).to_contain_text("1 run on hold")
        await go(page, "/ui/agenda")
        await expect(page.get_by_role("region", name=f"{name} is paused")).to_contain_text("until you resume")
        await server.call("PUT", "/pause", json={"preset": "indefinitely"})
        await expect(page.get_by_role("region", name="Everything is paused")).to_contain_text("until you resume")
    await server.call("DELETE", f"/sessions/{session}")


async def test_a_title_that_changes_elsewhere_changes_on_the_open_page(server, come):
    session = await server.session("As it was")
    async with come(f"/ui/sessions/{session}") as page:
        await expect(page.get_by_role("heading", level=1)).to_have_text("As it was")
        for title in ("As it is", "As it will be"):  # the first may be loaded as the page opens
            await server.call("PATCH", f"/sessions/{session}", json={"title": title})
            await expect(page.locator(".session-title").filter(has_text=title)).to_be_visible()
            await expect(page.get_by_role("heading", level=1)).to_have_text(title)
    await server.call("DELETE", f"/sessions/{session}")


async def test_a_click_that_fails_says_so_above_the_page(server, agent, come):
    async with come(f"/ui/agents/{agent}") as page:
        pause = page.get_by_label("Nothing scheduled").get_by_role("button", name="Pause")
        await pause.click()
        await page.context.set_offline(True)
        await page.get_by_role("menuitem", name="1 hour").click()
        notice = page.get_by_role("alert").filter(has_text="The server did not respond.")
        await expect(notice).to_be_visible()
        await notice.get_by_role("button", name="Dismiss").click()
        await expect(notice).to_have_count(0)
        await page.context.set_offline(False)
        # The machine has no network, but its own server needs none.
        await page.evaluate("window.dispatchEvent(new Event('offline'))")
        await pause.click()
        await page.get_by_role("menuitem", name="1 hour").click()
        await expect(page.get_by_label("Paused", exact=True)).to_be_visible()


async def test_the_next_run_is_booked_changed_and_cancelled_on_the_agents_page(server, agent, come):
    async with come(f"/ui/agents/{agent}") as page:
        await page.get_by_label("Nothing scheduled").get_by_role("button", name="Schedule", exact=True).click()
        dialog = page.get_by_role("dialog", name="Schedule the next run")
        await dialog.get_by_label("What the agent should do").fill(BRIEF)
        await dialog.get_by_label("When").fill("in 5 days")
        await expect(dialog.locator(".next-times li")).to_contain_text("in 1 d")  # the agent's horizon, as it is booked
        await expect(dialog.locator(".next-times")).to_contain_text("Reactive looks at most 24 h ahead")
        await dialog.get_by_label("When").fill("in 3 hours")
        await expect(dialog.locator(".next-times li")).to_contain_text(re.compile("in (2 h 59 min|3 h)"))
        await dialog.get_by_role("button", name="Schedule", exact=True).click()
        banner = page.get_by_label("Scheduled run", exact=True)
        await expect(banner).to_contain_text(re.compile("in (2 h 59 min|3 h)"))
        await expect(banner.get_by_role("link", name="Reactive")).to_have_attribute(
            "href", f"/ui/agents/{agent}/configure#scheduling"
        )
        await banner.get_by_role("button", name="Edit").click()
        dialog = page.get_by_role("dialog", name="Edit scheduled run")
        await dialog.get_by_label("When").fill("in 5 hours")
        await expect(dialog.locator(".next-times li")).to_contain_text(re.compile("in (4 h 59 min|5 h)"))
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_have_count(0)
        await expect(banner).to_contain_text(re.compile("in (4 h 59 min|5 h)"))
        await banner.get_by_role("button", name="Cancel").click()
        await expect(page.get_by_label("Nothing scheduled")).to_be_visible()


# ── The sidebar ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_sessions_are_searched_filtered_and_show_what_happens_in_them(server, agent, come):
    quiet, waiting = await server.session("Quiet garden"), await server.session("Waiting room")
    expecting = await server.session("Expecting a message")
    later = {"kind": "message", "message": "Work.", "delay_ms": 3_600_000}
    await server.call("POST", f"/sessions/{expecting}/schedules", json=later)
    await server.book(waiting, BRIEF, call_type="once", at=server.node.clock.now() + timedelta(days=1))
    async with come("/ui/inbox") as page:
        listed = page.get_by_role("list", name="Sessions")
        await expect(listed).to_contain_text("Quiet garden")
        await page.get_by_role("searchbox", name="Search sessions").fill("garden")
        await expect(listed.locator(".session-title")).to_have_text(["Quiet garden"])
        await page.get_by_role("searchbox", name="Search sessions").fill("")
        await page.get_by_role("button", name="Only sessions with a scheduled run").click()
        await expect(listed.locator(".session-title")).to_have_text(["Expecting a message", "Waiting room"])
        await page.get_by_role("button", name="Only sessions with a scheduled run").click()
        row = listed.get_by_role("link", name="Quiet garden")
        await server.call("POST", f"/sessions/{quiet}/messages", json={"content": "stream 3 0.4"})
        await expect(row.get_by_label("running")).to_be_visible()
        await expect(row.get_by_label("running")).to_have_count(0)
        await server.call("POST", f"/sessions/{quiet}/messages", json={"content": "fail 400"})
        await expect(row.get_by_label("failed")).to_be_visible()
    for session in (waiting, expecting):
        await server.call("DELETE", f"/sessions/{session}")


async def test_sessions_of_long_ago_are_listed_further_down_and_found_at_once(server, agent, come):
    old = server.node.clock.now() - timedelta(days=400)
    [user] = [each for each in (await server.call("GET", "/users"))["users"] if each["role"] == "owner"]
    sessions = [
        Session(
            id=new_id(old), agent_id=agent, user_id=user["id"], title=f"Old {number}", created_at=old, updated_at=old
        )
        for number in range(120)
    ]
    await server.node.store.write(lambda tx: tx.sessions.add(sessions))
    async with come("/ui/inbox") as page:
        links = page.get_by_role("list", name="Sessions").get_by_role("link")
        await expect(links).to_have_count(100)
        await page.get_by_role("searchbox", name="Search sessions").fill("OLD 7")
        await expect(links).to_have_count(11)
        await page.get_by_role("searchbox", name="Search sessions").fill("nowhere to be found")
        await expect(page.get_by_text("No session matches “nowhere to be found”.")).to_be_visible()
        await page.get_by_role("searchbox", name="Search sessions").fill("")
        await expect(links).to_have_count(100)
        await page.get_by_role("button", name="Show more").click()
        await expect(page.get_by_role("button", name="Show more")).to_have_count(0)
        await expect(links.filter(has_text="Old")).to_have_count(120)


async def test_sessions_of_scheduled_runs_have_names_and_do_not_bury_conversations(server, agent, come):
    await server.session("A conversation")
    [user] = [each for each in (await server.call("GET", "/users"))["users"] if each["role"] == "owner"]
    now = server.node.clock.now()
    whose = {"agent_id": agent, "user_id": user["id"], "created_at": now, "updated_at": now}
    sessions = [Session(id=new_id(now), title="A look", origin_wake_id="it", **whose) for _ in range(42)]
    await server.node.store.write(lambda tx: tx.sessions.add(sessions))
    async with come("/ui/inbox") as page:
        listed = page.get_by_role("list", name="Sessions").get_by_role("link")
        await expect(listed.filter(has_text="A conversation")).to_be_visible()
        await expect(listed.filter(has_text="A look")).to_have_count(0)
        group = page.get_by_role("button", name=re.compile(r"^Runs \d"))
        await expect(group).to_contain_text("42")
        await group.click()
        inside = page.get_by_role("list", name="Runs", exact=True).get_by_role("link")
        await expect(inside).to_have_count(42)
        await expect(inside.first).to_contain_text(re.compile(r"A look, Wakeful, today \d"))
        title = await inside.first.locator(".session-title").bounding_box()
        time = await inside.first.locator("time").bounding_box()
        assert title["y"] + title["height"] <= time["y"] + 1  # below it, so that the whole width is the title's
        await page.reload()
        await expect(inside).to_have_count(42)  # it stays open
        await page.get_by_role("searchbox", name="Search sessions").fill("a look")
        await expect(listed).to_have_count(42)
    for session in sessions:
        await server.call("DELETE", f"/sessions/{session.id}")


async def test_times_are_the_viewers_and_the_agents_when_hovered(server, agent, come):
    other = await server.call("POST", "/agents", json={"name": "Far off", "timezone": "Asia/Tokyo"})
    session = await server.session("Far off", agent_id=other["id"])
    at = (server.node.clock.now() + timedelta(days=2)).replace(hour=3, minute=0, second=0, microsecond=0)
    await server.book(session, BRIEF, call_type="once", at=at)
    async with come(f"/ui/sessions/{session}", timezone_id="America/New_York", locale="en-GB") as page:
        when = page.get_by_label("Scheduled run", exact=True).locator("time").last
        await expect(when).to_contain_text(re.compile("2[23]:00"))  # by the time of the year
        await when.hover()
        await expect(when).to_have_attribute("title", re.compile("12:00:00 in Asia/Tokyo"))
    await server.call("DELETE", f"/agents/{other['id']}")


async def test_a_new_session_can_be_begun_with_another_agent(server, agent, come):
    other = await server.call("POST", "/agents", json={"name": "Other one"})
    async with come() as page:
        await page.get_by_role("button", name="New session with…").click()
        await page.get_by_role("menuitem", name="Other one").click()
        await expect(page.get_by_role("heading", name="What should Other one do?")).to_be_visible()
        await expect(page.get_by_text("so it cannot set its own alarm")).to_be_visible()
        await expect(page.get_by_role("button", name="What can you do?")).to_be_visible()
        await expect(page.get_by_role("button", name="In 10 seconds check notes.txt")).to_have_count(0)
        await send(page, "Hello")
        await expect(page.locator(".answer")).to_have_text("You said: Hello")
        session = await server.call("GET", f"/sessions/{page.url.rpartition('/')[2]}")
    assert session["agent_id"] == other["id"]
    await server.call("DELETE", f"/agents/{other['id']}")


# ── Agents ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_mode_rewrites_every_bound_and_an_edited_bound_shows_as_customised(server, agent, come):
    async with come(f"/ui/agents/{agent}/configure#scheduling") as page:
        await page.get_by_role("radio", name="Project").click()
        await expect(page.get_by_label("Runs per day")).to_have_value("4")
        await expect(page.get_by_label("Quiet from")).to_have_value("22:00")
        chip = page.get_by_label("Nothing scheduled").get_by_role("link", name="Project")
        await page.get_by_label("Prompt").scroll_into_view_if_needed()
        await chip.click()
        await expect(page.get_by_role("heading", name="Scheduling")).to_be_in_viewport()
        await page.get_by_label("Runs per day").fill("9")
        await page.get_by_label("Runs per day").press("Enter")
        await expect(page.get_by_role("radio", name="Project")).to_contain_text("customised")
        await page.get_by_role("checkbox", name="Sun").click()
        await expect(page.locator(".save-state")).to_have_text("Saved.")
        told = (await server.call("GET", f"/agents/{agent}"))["schedule"]
        assert (told["mode"], told["daily_cap"], told["days"]) == ("project", 9, [0, 1, 2, 3, 4, 5])
        await page.get_by_role("radio", name="Reactive").click()
        await expect(page.get_by_label("Runs per day")).to_have_value("48")
        await expect(page.get_by_role("checkbox", name="Sun")).to_be_checked()


async def test_without_self_scheduling_there_are_no_modes_and_no_banner(server, agent, come):
    async with come(f"/ui/agents/{agent}/configure") as page:
        await expect(page.get_by_label("Nothing scheduled")).to_be_visible()
        await page.get_by_role("switch", name="Self-scheduling").click()
        await expect(page.get_by_role("radio")).to_have_count(0)
        await expect(page.get_by_label("Nothing scheduled")).to_have_count(0)
        await page.get_by_role("switch", name="Self-scheduling").click()
        await expect(page.get_by_role("radio")).to_have_count(3)


async def test_settings_of_an_agent_are_kept_and_a_refused_one_says_why(server, agent, come):
    async with come(f"/ui/agents/{agent}/configure") as page:
        await page.get_by_label("Prompt").fill("Be brief.")
        await page.get_by_label("Tokens per day").fill("5000")
        await page.get_by_role("switch", name="Web").click()
        await expect(page.locator(".save-state")).to_have_text("Saved.")
        await page.get_by_label("Time zone").fill("Mars/Olympus")
        await page.get_by_label("Time zone").press("Enter")
        await expect(page.locator(".field .bad-text")).to_contain_text("Mars/Olympus")
        told = await server.call("GET", f"/agents/{agent}")
        assert told["system_prompt"] == "Be brief."
        assert told["budgets"]["day_tokens"] == 5000
        assert "web" not in told["toolsets"]
    await server.call(
        "PATCH",
        f"/agents/{agent}",
        json={"system_prompt": "", "budgets": {"day_tokens": None}, "toolsets": [*told["toolsets"], "web"]},
    )


async def test_an_agent_is_made_and_deleted(server, agent, come):
    async with come("/ui/agents") as page:
        await page.get_by_role("button", name="New agent").click()
        await page.get_by_label("Name").fill("Short-lived")
        await page.get_by_role("button", name="Create").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Short-lived")
        await page.get_by_role("button", name="Delete Short-lived").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await page.wait_for_url("**/ui/agents")
        await expect(page.get_by_role("link", name="Short-lived")).to_have_count(0)


TEMPLATES = ["Helper", "Watcher", "Journal", "Empty"]
SCHEDULING = {"recall", "scheduler", "next_run"}


@pytest.mark.parametrize(
    ("template", "toolsets", "mode"),
    [
        (TEMPLATES[0], {"files", "web", "notify"} | SCHEDULING, "ambient"),
        (TEMPLATES[1], {"files", "web", "notify"} | SCHEDULING, "reactive"),
        (TEMPLATES[2], {"files", "web", "notify", "database"} | SCHEDULING, "ambient"),
        (TEMPLATES[3], {"files", "web"}, None),
    ],
)
async def test_a_new_agent_is_what_its_dialog_said(server, come, template, toolsets, mode):
    """With the keyboard alone, on a phone."""
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    async with come("/ui/agents", **phone) as page:
        await page.get_by_role("button", name="New agent").focus()
        await page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="New agent")
        await page.keyboard.type("Made by keyboard")  # the name has the focus
        await page.keyboard.press("Tab")
        kinds = dialog.get_by_role("radio")
        await expect(kinds).to_have_count(4)
        for _ in TEMPLATES[: TEMPLATES.index(template)]:
            await page.keyboard.press("ArrowDown", delay=50)  # held as by a finger
        await expect(dialog.get_by_role("radio", name=template)).to_be_checked()
        for label, name in (("Self-scheduling", "recall"), ("Notifications", "notify"), ("Database", "database")):
            await expect(dialog.get_by_role("switch", name=label)).to_be_checked(checked=name in toolsets)
        if mode is None:
            await expect(dialog.get_by_label("Mode")).to_have_count(0)
        else:
            await expect(dialog.get_by_label("Mode")).to_have_value(mode)
        prompt = await dialog.get_by_label("Prompt").input_value()
        assert await page.evaluate("document.documentElement.scrollWidth") == 390
        await load_axe(page)
        assert await check_with_axe(page) == []
        await shoot(page, f"new-agent-{template.lower()}")
        await dialog.get_by_label("Name", exact=True).focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Made by keyboard")
        [made] = [
            each for each in (await server.call("GET", "/agents"))["agents"] if each["name"] == "Made by keyboard"
        ]
        await server.call("DELETE", f"/agents/{made['id']}")
    assert (set(made["toolsets"]), made["self_scheduling"]) == (toolsets, mode is not None)
    assert (made["system_prompt"], made["hidden_toolsets"]) == (prompt, [])
    assert bool(prompt) == (mode is not None)
    if mode is not None:
        assert (made["schedule"]["mode"], made["schedule"]["is_customised"]) == (mode, False)


async def test_the_switches_of_a_new_agent_can_be_changed(server, come):
    async with come("/ui/agents") as page:
        await page.get_by_role("button", name="New agent").click()
        dialog = page.get_by_role("dialog", name="New agent")
        await dialog.get_by_label("Name", exact=True).fill("Changed")
        await dialog.get_by_label("Prompt").fill("You are mine.")
        await dialog.get_by_role("radio", name="Watcher").click()
        await expect(dialog.get_by_label("Prompt")).to_have_value("You are mine.")  # what was written stays
        await dialog.get_by_label("Mode").select_option("project")
        await dialog.get_by_role("switch", name="Notifications").click()
        await dialog.get_by_role("switch", name="Database").click()
        await dialog.get_by_role("button", name="Create").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Changed")

        await page.goto(f"{server.address}/ui/agents")
        await page.get_by_role("button", name="New agent").click()
        await dialog.get_by_label("Name", exact=True).fill("Quiet")
        await dialog.get_by_role("switch", name="Self-scheduling").click()
        await expect(dialog.get_by_role("switch", name="Notifications")).to_be_disabled()
        await expect(dialog.get_by_role("switch", name="Notifications")).not_to_be_checked()
        await dialog.get_by_role("button", name="Create").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Quiet")
    made = {each["name"]: each for each in (await server.call("GET", "/agents"))["agents"]}
    for name in ("Changed", "Quiet"):
        await server.call("DELETE", f"/agents/{made[name]['id']}")
    changed, quiet = made["Changed"], made["Quiet"]
    assert set(changed["toolsets"]) == {"files", "web", "database"} | SCHEDULING
    assert (changed["schedule"]["mode"], changed["system_prompt"]) == ("project", "You are mine.")
    assert (set(quiet["toolsets"]), quiet["self_scheduling"]) == ({"files", "web"}, False)


@pytest.mark.parametrize("path", ["/nothing", "/agents", "/ui/nothing", "/ui/nothing.html"])
async def test_an_address_without_a_page_says_so_and_leads_home(server, come, path):
    async with come("/") as page:
        await page.get_by_role("textbox", name="Message").wait_for()
        answer = await page.goto(server.address + path)
        assert answer.status == 404
        await expect(page.get_by_role("heading", level=1)).to_have_text("This page does not exist")
        await shoot(page, "no-page")
        await page.get_by_role("link", name="Home").click()
        await page.get_by_role("textbox", name="Message").wait_for()


async def test_a_tab_that_is_not_there_snaps_back_to_configure(agent, come):
    async with come(f"/ui/agents/{agent}/nowhere") as page:
        await page.wait_for_url("**/configure")
        await expect(page.get_by_role("link", name="Configure")).to_have_attribute("aria-current", "page")


# ── What ran and what will ─────────────────────────────────────────────────────────────────────────────────────────


async def test_activity_the_run_page_and_the_agenda_tell_what_a_wake_did(server, agent, come):
    session = await server.session()
    await server.book(session, 'call write_file {"path": "t.txt", "content": "x"}')
    await eventually(lambda: _ran(server, session))
    at = server.node.clock.now() + timedelta(minutes=1)
    await server.book(session, BRIEF, call_type="once", at=at, comment="Try again")
    async with come(f"/ui/agents/{agent}/activity") as page:
        row = page.get_by_role("list", name="Runs").get_by_role("button", name='call write_file {"path": "t.txt"')
        await expect(row.first).to_contain_text("Scheduled run")
        await row.first.click()
        await expect(page.get_by_role("region", name="Result")).to_contain_text("The tool said")
        await expect(page.locator(".run-origin")).to_contain_text("scheduled by you")
        await page.get_by_role("link", name="All steps").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("call write_file")
        await expect(page.get_by_role("region", name="What it was asked")).to_contain_text('"content": "x"')
        await expect(page.get_by_label("Tool write_file")).to_contain_text("t.txt")
        await expect(page.locator(".answer")).to_contain_text("The tool said")
        await expect(page.locator(".facts")).to_contain_text("1 tool call")
        sections = await page.locator(".run-summary h2").all_text_contents()
        assert sections == ["What it was asked", "Result", "Figures", "How it came about", "What it changed"]
        story = page.get_by_role("region", name="How it came about").get_by_role("listitem")
        wake_id = (await server.runs_of(session))[0]["wake_id"]
        told = [each["text"] for each in (await server.call("GET", f"/wakes/{wake_id}/why"))["decisions"]]
        await expect(story).to_have_count(len(told))
        await expect(story.first).to_contain_text("You scheduled it for ")
        await expect(story.last).to_contain_text(told[-1])
        await expect(page.locator(".run-origin").get_by_role("link")).to_have_attribute(
            "href", f"/ui/agents/{agent}/activity"
        )
        await expect(page.get_by_role("link", name="Open the session")).to_be_visible()
        await page.get_by_role("button", name="Run again").click()
        await expect(page.get_by_text("Running again")).to_be_visible()
        await page.get_by_role("link", name="Agenda").click()
        await expect(page.locator(".agenda-entry.is-good").first).to_contain_text("done")
        planned = page.locator(".agenda-entry.is-planned", has_text="Try again")
        await expect(planned).to_be_visible()
        await page.get_by_role("button", name="Day", exact=True).click()
        await expect(planned).to_be_visible()
        await page.locator(".agenda-entry.is-good").first.click()
        await page.wait_for_url("**/ui/runs/*")
    await server.call("DELETE", f"/sessions/{session}/recall")


async def _ran(server, session):
    runs = await server.runs_of(session)
    return runs and all(run["finished_at"] for run in runs)


async def test_the_inbox_counts_what_is_unread_and_leads_to_what_is_meant(server, agent, come):
    session = await server.session("What it is about")
    async with come("/ui/agenda") as page:
        await expect(page.get_by_role("link", name="Inbox")).to_be_visible()
        await add_notice(server, agent, "First", session_id=session)
        await add_notice(server, agent, "Second", session_id=session)
        await expect(page.get_by_role("link", name="Inbox 2 unread")).to_be_visible()
        await page.get_by_role("link", name="Inbox").click()
        await page.get_by_role("link", name="First").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("What it is about")
        await expect(page.get_by_role("link", name="Inbox 1 unread")).to_be_visible()
        await page.get_by_role("link", name="Inbox").click()
        await page.get_by_role("button", name="Mark all read").click()
        await expect(page.locator(".count")).to_have_count(0)


async def test_a_failed_once_wake_is_run_again_from_the_inbox(server, agent, come):
    session = await server.session("It fails")
    await server.book(session, "fail 400")
    await eventually(lambda: _ran(server, session))
    async with come("/ui/inbox") as page:
        entry = page.locator(".inbox-entry", has_text="A scheduled run failed")
        await entry.get_by_role("button", name="Run again").click()
        await expect(entry).not_to_have_class(re.compile("is-unread"))
    await eventually(lambda: _has_runs(server, session, 2))


async def _has_runs(server, session, count):
    return len(await server.runs_of(session)) == count


async def test_the_banner_shows_a_wake_that_waits_for_its_model(server, agent, come):
    session = await server.session("It waits")
    await server.book(session, "fail 503")
    async with come(f"/ui/sessions/{session}") as page:
        banner = page.get_by_role("region", name="Scheduled run")
        await expect(banner).to_contain_text("delayed: its model did not answer", timeout=30_000)
        await banner.get_by_role("button", name="Cancel").click()
        await expect(banner).to_have_count(0)


# ── Settings ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_settings_tell_what_runs_and_make_and_revoke_tokens(server, agent, come):
    async with come("/ui/settings") as page:
        await expect(page.locator(".facts").first).to_contain_text("running")
        await expect(page.get_by_role("region", name="Models")).to_contain_text("The default is openai-chat:test.")
        await page.get_by_label("Name of the program").fill("My script")
        await page.get_by_label("Scope").select_option("read")
        await page.get_by_role("button", name="Create token").click()
        secret = await page.locator(".secret code").inner_text()
        assert await server.call("GET", "/me", token=secret)
        row = page.get_by_role("list", name="Tokens").get_by_role("listitem").filter(has_text="My script")
        await row.get_by_role("button", name="Revoke").click()
        await expect(row).to_have_count(0)
        await page.get_by_label("Name of the program").fill("Open WebUI")
        await page.get_by_label("Scope").select_option("chat")
        await page.get_by_role("button", name="Create token").click()
        await expect(page.locator(".secret")).to_contain_text(f"{server.address}/v1")
        await page.get_by_role("button", name="Dark").click()
        await page.reload()
        await expect(page.locator("html")).to_have_attribute("data-theme", "dark")


async def test_an_owner_adds_a_person_and_gets_their_link(server, agent, come):
    async with come("/ui/settings") as page:
        await page.get_by_label("Name of the person").fill("Grace")
        await page.get_by_role("button", name="Add a person").click()
        row = page.get_by_role("list", name="People").get_by_role("listitem").filter(has_text="Grace")
        await row.get_by_role("button", name="Login link").click()
        await expect(page.locator(".secret code")).to_contain_text(f"{server.address}/login?code=")
        await row.get_by_role("button", name="Change to owner").click()
        await expect(row).to_contain_text("owner · since")
        await row.get_by_role("button", name="Remove").click()
        await page.get_by_role("dialog", name="Remove Grace?").get_by_role("button", name="Remove").click()
        await expect(row).to_have_count(0)


async def test_the_description_of_the_api_opens_in_a_tab_with_a_ticket(come):
    async with come("/ui/settings") as page:
        for button, words in (("API reference", "POST /login-links"), ("openapi.json", '"openapi":')):
            async with page.expect_popup() as opened:
                await page.get_by_role("button", name=button).click()
            tab = await opened.value
            await expect(tab.locator("body")).to_contain_text(words)
            assert "ticket=wkf_" in tab.url
            await tab.reload()
            await expect(tab.locator("body")).to_contain_text("wrong_pass")  # it worked once
            await tab.close()


async def test_who_is_not_logged_in_is_told_how(server, browser):
    page = await browser.new_page()
    await page.goto(f"{server.address}/ui/agenda")
    await expect(page.get_by_text("This browser is not logged in.")).to_be_visible()
    await page.close()
