"""The page without a mouse: the palette, the search in messages, shortcuts, and the marks of the sidebar.

The pictures go to WAKEFUL_TEST_SHOTS if it is set, for people to look at.
"""

import re
from datetime import timedelta

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.visits import check_with_axe, load_axe, send, shoot
from openai_server import improvise
from wakeful.core.ids import new_id
from wakeful.core.types import Message, Session

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SERVER = {"always": improvise}

WRITE = 'call write_file {"path": "a.txt", "content": "x"}'
TABLE = "day,plant\n2026-11-01,tomato\n"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def agent(server):
    """The first agent, with a table and a view."""
    first = (await server.call("GET", "/agents"))["agents"][0]["id"]
    await server.call("PATCH", f"/agents/{first}", json={"name": "Gardener"})
    await server.call("POST", f"/agents/{first}/db/import", json={"table": "harvest", "text": TABLE})
    view = {"sql": "SELECT plant FROM harvest", "render": "table", "pinned": True, "parameters": []}
    await server.call("PUT", f"/agents/{first}/db/views/plants_of_the_year", json=view)
    return first


def palette_of(page):
    return page.get_by_role("dialog", name="Search and commands")


async def open_palette(page):
    await expect(page.get_by_role("button", name="Search or jump")).to_be_attached()
    await page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search and commands")
    await expect(field).to_be_focused()
    return field


def active(page):
    return palette_of(page).get_by_role("option", selected=True)


async def heading(page, text):
    await expect(page.get_by_role("heading", level=1)).to_have_text(text)


# ── The palette ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_palette_jumps_to_everything_by_keyboard(server, agent, come):
    session = await server.session("Quarterly pruning plan")
    async with come("/ui/inbox") as page:
        for typed, kind, address in (
            ("gardnr", "Gardener", f"/ui/agents/{agent}"),
            ("quart prun", "Quarterly pruning plan", f"/ui/sessions/{session}"),
            ("harvest", "harvest", f"/ui/agents/{agent}/data?table=harvest"),
            ("plants of", "plants_of_the_year", f"/ui/agents/{agent}/views?view=plants_of_the_year"),
            ("agenda", "Agenda", "/ui/agenda"),
            ("settings", "Settings", "/ui/settings"),
            ("new sess", "New session", "/"),
        ):
            field = await open_palette(page)
            await field.press_sequentially(typed)
            await expect(active(page)).to_contain_text(kind)
            await page.keyboard.press("Enter")
            await expect(page).to_have_url(server.address + address)
            await expect(palette_of(page)).to_have_count(0)
            await expect(page.get_by_role("main").locator("css=:focus").or_(page.locator("main:focus"))).to_have_count(
                1
            )


async def test_arrows_move_in_the_palette_and_escape_goes_back(agent, come):
    async with come("/ui/agents") as page:
        button = page.get_by_role("button", name="Search or jump")
        await button.focus()
        await page.keyboard.press("Enter")
        field = page.get_by_role("combobox", name="Search and commands")
        await expect(field).to_be_focused()
        options = palette_of(page).get_by_role("option")
        await expect(options.first).to_have_attribute("aria-selected", "true")
        await expect(field).to_have_attribute("aria-activedescendant", await options.first.get_attribute("id"))
        await page.keyboard.press("ArrowDown")
        await expect(options.nth(1)).to_have_attribute("aria-selected", "true")
        await expect(field).to_have_attribute("aria-activedescendant", await options.nth(1).get_attribute("id"))
        await page.keyboard.press("ArrowUp")
        await page.keyboard.press("ArrowUp")  # from the first to the last
        await expect(options.last).to_have_attribute("aria-selected", "true")
        await field.fill("qqqq")
        await expect(palette_of(page).get_by_role("status")).to_contain_text("Nothing matches “qqqq”.")
        await expect(field).to_have_attribute("aria-expanded", "false")
        await page.keyboard.press("Escape")
        await expect(palette_of(page)).to_have_count(0)
        await expect(button).to_be_focused()
        await heading(page, "Agents")


async def test_the_palette_schedules_pauses_and_switches_the_theme(server, agent, come):
    session = await server.session("To be scheduled")
    async with come(f"/ui/sessions/{session}") as page:
        await heading(page, "To be scheduled")

        async def do(typed, what):
            field = await open_palette(page)
            await field.fill(typed)
            await expect(active(page)).to_contain_text(what)
            await page.keyboard.press("Enter")

        await do("schedule a run", "Schedule a run in this session")
        dialog = page.get_by_role("dialog", name="Schedule a run")
        await expect(dialog.get_by_label("What the agent should do")).to_be_focused()
        await page.keyboard.type("Look at the roses.")
        await dialog.get_by_role("button", name="Schedule", exact=True).press("Enter")
        await expect(page.get_by_label("Scheduled run", exact=True)).to_contain_text("Look at the roses.")
        await server.call("DELETE", f"/sessions/{session}/recall")

        await do("next run of gard", "Schedule the next run of Gardener")
        await expect(page.get_by_role("dialog", name="Schedule the next run")).to_be_visible()
        await page.keyboard.press("Escape")

        await do("pause 4", "Pause everything for 4 hours")
        await expect(page.get_by_text("Everything is paused").first).to_be_visible()
        await do("resume", "Resume everything")
        await expect(page.get_by_text("Everything is paused")).to_have_count(0)

        await do("theme dark", "Theme: dark")
        await expect(page.locator("html")).to_have_attribute("data-theme", "dark")


# ── Search in messages ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def long_session(server, agent):
    """A session with 80 turns; the question and the answer of the third have a word of their own."""
    session = await server.session("A long talk")
    now = server.node.clock.now()

    async def write(tx):
        for number in range(160):
            role = "user" if number % 2 == 0 else "assistant"
            about = {4: "Where is the xylophone kept?", 5: "The **xylophone** is in the attic 🎵."}
            content = about.get(number, f"Words number {number}, nothing more.")
            await tx.sessions.append(
                Message(id=new_id(now), session_id=session, position=0, role=role, content=content, created_at=now)
            )

    await server.node.store.write(write)
    return session


async def test_a_message_is_found_and_opened_where_it_stands(server, long_session, come):
    stranger = await server.add_user()
    theirs = await server.call("POST", "/sessions", token=stranger, json={"title": "Their xylophone"})
    await server.call("POST", f"/sessions/{theirs['id']}/messages", token=stranger, json={"content": "xylophone"})
    async with come("/ui/inbox") as page:
        await load_axe(page)

        async def search(words):
            await (await open_palette(page)).press_sequentially(words)
            return palette_of(page).get_by_role("group", name="Messages").get_by_role("option")

        async def check(text):
            await expect(page).to_have_url(f"{server.address}/ui/sessions/{long_session}")
            await expect(page.locator(".is-found")).to_contain_text(text)
            await expect(page.locator(".is-found")).to_be_in_viewport()
            await expect(page.locator(".is-found")).to_be_focused()

        found = await search("XYLOPHON")
        await expect(found).to_have_count(2)  # nothing of the stranger's
        await expect(found.locator("mark")).to_have_text(["xylophon", "xylophon"])
        await expect(found.first).to_contain_text("A long talk")
        await expect(found.first).to_contain_text("Gardener, today")
        assert await check_with_axe(page) == []
        await shoot(page, "palette-messages")
        await expect(active(page)).to_contain_text("attic")
        await page.keyboard.press("Enter")
        await expect(page.locator(".is-found")).to_be_visible()
        await shoot(page, "found")
        await check("in the attic")

        found = await search("xylophon")  # from here, and another message of the same session
        await found.filter(has_text="Where is").click()
        await check("Where is the xylophone kept?")
        await page.get_by_role("button", name="Scroll to the end").click()
        await expect(page.get_by_text("Words number 159, nothing more.")).to_be_in_viewport()
        found = await search("xylophon")  # and the same one again
        await found.filter(has_text="Where is").click()
        await check("Where is the xylophone kept?")
        await expect(page.locator(".is-found")).to_have_count(0)  # after a moment


async def test_the_palette_says_what_the_search_cannot_find_yet(come):
    async with come("/ui/inbox") as page:

        async def half_built(route):
            answer = await route.fetch()
            body = await answer.json() | {"index": {"is_complete": False, "percent": 42}}
            await route.fulfill(response=answer, json=body)

        await page.route("**/search?*", half_built)
        field = await open_palette(page)
        status = palette_of(page).get_by_role("status")
        await field.press_sequentially("gr")
        await expect(status).to_contain_text("Type 3 letters to search in messages.")
        await field.press_sequentially("een")
        await expect(status).to_contain_text("still being indexed (42 %)")
        await page.unroute("**/search?*")
        await page.route("**/search?*", lambda route: route.abort())
        await field.press_sequentially("house")
        await expect(status).to_contain_text("Messages could not be searched: The server is not responding.")


# ── Shortcuts ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_single_keys_go_places(server, agent, come):
    async with come("/ui/agents") as page:
        await heading(page, "Agents")
        for keys, title in (
            ("ga", "Agenda"),
            ("gi", re.compile("Inbox")),
            ("gs", "Settings"),
            ("gg", "Agents"),
            ("n", "New session"),
        ):
            await page.keyboard.type(keys)
            await heading(page, title)
            if title != "New session":
                await expect(page.locator("main")).to_be_focused()
        box = page.get_by_role("textbox", name="Message")
        await expect(box).to_be_focused()
        await page.keyboard.type("ngg/?")
        await expect(box).to_have_value("ngg/?")  # while someone types, keys are letters
        await box.fill("")
        await box.blur()
        await page.keyboard.press("/")
        await expect(page.get_by_role("combobox", name="Search and commands")).to_have_value("")


async def test_keys_are_left_to_menus_dialogs_and_the_browser(agent, come):
    async with come("/ui/agents") as page:
        await heading(page, "Agents")
        await page.get_by_role("button", name="Pause everything").click()
        await page.keyboard.press("n")
        await expect(page.get_by_role("menu")).to_be_visible()
        await heading(page, "Agents")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("menu")).to_have_count(0)
        await page.keyboard.press("Alt+n")
        await page.keyboard.press("Shift+N")
        await page.get_by_role("button", name="New agent").click()
        await page.get_by_role("dialog").get_by_role("button", name="Close").focus()
        await page.keyboard.press("n")
        await page.keyboard.press("Control+k")
        await expect(page.get_by_role("dialog", name="New agent")).to_be_visible()
        await expect(palette_of(page)).to_have_count(0)
        await page.keyboard.press("Escape")
        await heading(page, "Agents")


async def test_a_value_that_was_refused_is_not_left_unasked(agent, come):
    async with come(f"/ui/agents/{agent}/configure") as page:
        zone = page.get_by_label("Time zone")
        await zone.fill("Mars/Olympus")
        await zone.blur()
        await expect(zone).to_have_attribute("aria-invalid", "true")
        asked = page.get_by_role("dialog", name="Leave without saving?")
        await page.keyboard.type("ga")
        await asked.get_by_role("button", name="Stay").press("Enter")
        await expect(asked).to_have_count(0)
        await (await open_palette(page)).fill("inbox")
        await expect(active(page)).to_contain_text("Inbox")
        await page.keyboard.press("Enter")
        await asked.get_by_role("button", name="Leave").press("Enter")
        await heading(page, re.compile("Inbox"))
        await expect(palette_of(page)).to_have_count(0)


async def test_a_conversation_with_approval_pause_and_rename_needs_no_mouse(server, agent, come):
    await server.call("PATCH", f"/agents/{agent}", json={"ask_before": ["write_file"]})
    async with come("/ui/agenda") as page:
        await heading(page, "Agenda")
        await page.keyboard.press("n")
        await expect(page.get_by_role("textbox", name="Message")).to_be_focused()
        await page.keyboard.type(WRITE)
        await page.keyboard.press("Enter")
        approve = page.get_by_role("button", name="Approve", exact=True)
        await expect(approve).to_be_visible()
        await tab_to(page, approve)
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("The tool said")).to_be_visible()
        await tab_to(page, page.get_by_label("Nothing scheduled").get_by_role("button", name="Pause"))
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("menuitem", name="1 hour")).to_be_focused()
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        paused = page.get_by_label("Paused", exact=True)
        await expect(paused).to_be_visible()
        await tab_to(page, paused.get_by_role("button", name="Resume"))
        await page.keyboard.press("Enter")
        await expect(paused).to_have_count(0)
        await tab_to(page, page.get_by_role("button", name="Session", exact=True))
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("menuitem", name="Rename…")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("Title")).to_be_focused()
        await page.keyboard.press("Control+a")
        await page.keyboard.type("Without a mouse")
        await page.keyboard.press("Enter")
        await heading(page, "Without a mouse")
    await server.call("PATCH", f"/agents/{agent}", json={"ask_before": []})


async def tab_to(page, wanted):
    """Press Tab until an element has the focus."""
    for _ in range(80):
        if await wanted.evaluate("each => each === document.activeElement"):
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {wanted}")


async def test_shortcuts_can_be_turned_off(agent, come):
    async with come("/ui/settings") as page:
        await page.get_by_role("checkbox", name="Keyboard shortcuts").uncheck()
        await page.get_by_role("heading", level=1).click()
        for keys in ("n", "Control+k", "?"):
            await page.keyboard.press(keys)
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await heading(page, "Settings")
        await page.reload()
        await expect(page.get_by_role("checkbox", name="Keyboard shortcuts")).not_to_be_checked()
        await page.get_by_role("button", name="Search or jump").click()  # which needs no shortcut
        await expect(palette_of(page)).to_be_visible()
        await page.keyboard.press("Escape")
        await page.get_by_role("checkbox", name="Keyboard shortcuts").check()
        await page.get_by_role("heading", level=1).click()
        await page.keyboard.press("n")
        await heading(page, "New session")


async def test_j_and_k_move_through_lists(server, agent, come):
    await server.session("The second of two")
    await server.session("The first of two")
    async with come("/ui/settings") as page:
        rows = page.get_by_role("list", name="Sessions").get_by_role("link")
        await expect(rows.first).to_contain_text("The first of two")
        await page.keyboard.press("j")
        await expect(rows.first).to_be_focused()
        await page.keyboard.press("j")
        await expect(rows.nth(1)).to_be_focused()
        await page.keyboard.press("k")
        await page.keyboard.press("Enter")
        await heading(page, "The first of two")


async def test_escape_in_the_message_box_stops_the_run(server, agent, come):
    session = await server.session("A long answer")
    async with come(f"/ui/sessions/{session}") as page:
        await send(page, "stream 400 0.05")
        await expect(page.get_by_role("button", name="Stop")).to_be_visible()
        box = page.get_by_role("textbox", name="Message")
        await box.fill("And then?")
        await box.press("Enter")
        await expect(page.get_by_text("Your message will be sent when it's done.").first).to_be_visible()
        await box.press("Escape")  # keeps the message as a draft
        await expect(page.get_by_role("button", name="Keep as draft")).to_have_count(0)
        await expect(page.get_by_role("button", name="Stop")).to_be_visible()
        await box.press("Escape")
        await expect(page.get_by_text("This run was stopped.")).to_be_visible()
        await expect(box).to_have_value("And then?")


# ── The sidebar ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_sessions_are_grouped_by_day_and_the_open_one_is_in_view(server, agent, come):
    [user] = [each for each in (await server.call("GET", "/users"))["users"] if each["role"] == "owner"]
    now = server.node.clock.now()

    def made(title, days):
        at = now - timedelta(days=days)
        return Session(id=new_id(at), agent_id=agent, user_id=user["id"], title=title, created_at=at, updated_at=at)

    old = [made(f"Long ago {number}", 30 + number) for number in range(60)]
    await server.node.store.write(lambda tx: tx.sessions.add([made("Of yesterday", 1), *old]))
    await server.session("Of today")
    async with come(f"/ui/sessions/{old[-1].id}", viewport={"width": 1440, "height": 900}) as page:
        lists = page.get_by_role("list", name="Sessions")
        await expect(lists.get_by_role("list", name="Today").get_by_role("link", name="Of today")).to_have_count(1)
        await expect(lists.get_by_role("list", name="Yesterday")).to_contain_text("Of yesterday")
        await expect(lists.get_by_role("list", name="Earlier")).to_contain_text("Long ago 0")
        await expect(lists.get_by_role("heading")).to_have_text(["Today", "Yesterday", "Earlier"])
        row = lists.get_by_role("link", name="Long ago 59")
        await expect(row).to_be_in_viewport()
        await expect(row).to_have_accessible_name(re.compile("Long ago 59.*Gardener"))
        await shoot(page, "sidebar")
    for session in old:
        await server.call("DELETE", f"/sessions/{session.id}")


async def test_a_session_that_waits_for_approval_is_marked_at_once_and_unlike_a_running_one(server, agent, come):
    await server.call("PATCH", f"/agents/{agent}", json={"ask_before": ["write_file"]})
    session, running = await server.session("Asks first"), await server.session("Just works")
    async with come("/ui/settings") as page:
        row = page.get_by_role("list", name="Sessions").get_by_role("link", name="Asks first")
        await server.call("POST", f"/sessions/{session}/messages", json={"content": WRITE})
        await expect(row.get_by_label("needs approval")).to_be_visible()
        await expect(row.get_by_label("running")).to_have_count(0)
        await server.call("POST", f"/sessions/{running}/messages", json={"content": "stream 100 0.05"})
        other = page.get_by_role("list", name="Sessions").get_by_role("link", name="Just works")
        await expect(other.get_by_label("running")).to_be_visible()
        await shoot(page, "marks")
        [run] = await server.runs_of(session)
        [asked] = (await server.call("GET", f"/runs/{run['id']}/approvals"))["approvals"]
        await server.call("POST", f"/runs/{run['id']}/approvals/{asked['call_id']}", json={"approve": False})
        await expect(row.get_by_label("needs approval")).to_have_count(0)
    await server.call("POST", f"/sessions/{running}/stop")
    await server.call("PATCH", f"/agents/{agent}", json={"ask_before": []})


async def test_a_quiet_session_has_no_banner_and_one_axis(server, agent, come):
    session = await server.session("Quiet")
    async with come(f"/ui/sessions/{session}", viewport={"width": 1440, "height": 900}) as page:
        await send(page, "stream 3 0")
        await expect(page.locator(".footnote")).to_be_visible()
        await expect(page.locator(".banner")).to_have_count(0)
        idle = page.get_by_label("Nothing scheduled")
        await expect(idle.get_by_role("button", name="Schedule", exact=True)).to_be_visible()
        await shoot(page, "quiet")
        body = {"call_type": "once", "when": "2h", "additional_context_message": "Look again."}
        await server.call("POST", f"/sessions/{session}/recall", json=body)
        await expect(page.get_by_label("Scheduled run", exact=True)).to_be_visible()
        await expect(idle).to_have_count(0)
        boxes = [await page.locator(each).first.bounding_box() for each in (".banner", ".turn", ".composer-box")]
        assert {(round(box["x"]), round(box["width"])) for box in boxes} == {(round(boxes[0]["x"]), 705)}
        await shoot(page, "one-axis")
        await server.call("DELETE", f"/sessions/{session}/recall")
