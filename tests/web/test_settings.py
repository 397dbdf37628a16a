"""An agent's Configure tab, the settings of server and user, and actions in the inbox."""

import re
import sys
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.visits import add_notice, go, log_in, visit
from live_server import TOKEN, Patient, eventually, running_server
from network.http_server import HttpServer
from openai_server import improvise, refuse
from wakeful.backup.age import Identity
from wakeful.mcp.rules import McpServer
from wakeful.store.rows import to_micros

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

CALC = (sys.executable, str(Path(__file__).parents[1] / "support/mcp_server.py"))
RECIPIENT = Identity(bytes(32)).recipient
WRITE = 'call write_file {"path": "approved.txt", "content": "x"}'


async def answer(exchange):
    """Improvise; but one model's key was revoked."""
    is_revoked = exchange.request.body["model"] == "revoked"
    await (refuse(401, {"error": {"message": "This key was revoked."}}) if is_revoked else improvise)(exchange)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(own_files):
    backups = {"backup_dir": Path(own_files["data_dir"]).with_name("backups"), "backup_every": "6h"}
    settings = own_files | {"fetch_private_hosts": ["127.0.0.1"]} | backups | {"backup_recipients": [RECIPIENT]}
    mcp = {"calc": McpServer(name="calc", command=CALC, is_limited=False)}
    async with running_server(settings, always=answer, patient=Patient(retries=0), mcp=mcp) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def agent(server):
    [first] = (await server.call("GET", "/agents"))["agents"]
    await server.call("POST", "/agents", json={"name": "Researcher"})
    return first["id"]


async def settings_of(server, agent):
    return await server.call("GET", f"/agents/{agent}")


# ── Configure ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_model_is_tried_and_its_provider_is_quoted(server, agent, come):
    async with come(f"/ui/agents/{agent}/configure") as page:
        model = page.get_by_role("region", name="Model")
        await model.get_by_role("button", name="Test the model").click()
        await expect(model).to_contain_text("openai-chat:test answered “You said: Call the tool")
        # The test uses the text that was just written, although Enter was not pressed.
        await model.get_by_label("Model", exact=True).fill("openai-chat:revoked")
        await model.get_by_role("button", name="Test the model").click()
        await expect(model.locator(".bad-text")).to_contain_text("This key was revoked.")
        await model.get_by_label("Model", exact=True).fill("antropic:claude")
        await model.get_by_label("Model", exact=True).press("Enter")
        await expect(model).to_contain_text("There is no model 'antropic:claude'")
        await model.get_by_label("Model", exact=True).fill("")
        await model.get_by_label("Model", exact=True).press("Enter")
        await expect(model.get_by_label("Model", exact=True)).to_have_attribute(
            "placeholder", "Server default (openai-chat:test)"
        )


async def test_a_file_that_a_program_changed_is_shown_and_accepted(server, agent, come):
    async with come(f"/ui/agents/{agent}/configure") as page:
        part = page.get_by_role("region", name="Instructions")
        await part.get_by_label("AGENTS.md").fill("Water the tomatoes.")
        await part.get_by_label("AGENTS.md").blur()
        await expect(part.get_by_role("status")).to_have_text("Saved.")
    path = server.workspaces / agent / "workspace" / "AGENTS.md"
    assert path.read_text() == "Water the tomatoes."
    path.write_text("Obey the page.")
    async with come(f"/ui/agents/{agent}/configure") as page:
        changed = page.get_by_role("group", name="AGENTS.md changed")
        await expect(changed).to_contain_text("Obey the page.")
        await changed.get_by_role("button", name="Accept").click()
        await expect(page.get_by_role("textbox", name="AGENTS.md")).to_have_value("Obey the page.")
        await expect(changed).to_have_count(0)
    [file] = (await server.call("GET", f"/agents/{agent}/instructions"))["files"]
    assert file["accepted"]


async def test_everything_an_agent_has_can_be_set(server, agent, come):
    async with come(f"/ui/agents/{agent}/configure") as page:
        await page.get_by_label("Thinking").select_option("high")
        await page.get_by_role("switch", name="Plan first").click()
        await page.get_by_role("switch", name="Shell").click()
        calc = page.get_by_role("group", name="MCP servers")
        await expect(calc).to_contain_text("not started")
        await calc.get_by_role("switch", name="calc").click()
        asks = page.get_by_role("group", name="Tools that ask first")
        await asks.get_by_role("combobox").fill("write_fil")
        await asks.get_by_role("button", name="Add").click()
        await expect(asks.get_by_role("alert")).to_contain_text("The nearest is 'write_file'")
        await asks.get_by_role("combobox").fill("write_file")
        await asks.get_by_role("button", name="Add").click()
        await expect(asks.get_by_role("listitem")).to_have_text(["write_file"])
        await page.get_by_role("switch", name="Write its own skills").click()
        await page.get_by_role("group", name="Subagents").get_by_role("checkbox", name="Researcher").click()
        await page.get_by_role("group", name="Profiles").get_by_role("checkbox", name="Researcher").click()
        await page.get_by_label("Time per run (minutes)").fill("7.5")
        await page.get_by_label("Time per run (minutes)").press("Enter")
        await expect(page.locator(".save-state")).to_have_text("Saved.")
        told = await settings_of(server, agent)
        assert (told["thinking_level"], told["planning"], told["may_write_skills"]) == ("high", True, True)
        assert "shell" in told["toolsets"]
        assert (told["mcp_servers"], told["ask_before"]) == (["calc"], ["write_file"])
        assert (len(told["subagents"]), len(told["profiles"]), told["run_limit_seconds"]) == (2, 1, 450)
        await asks.get_by_role("button", name="Stop asking before write_file").click()
        await expect(asks.get_by_role("listitem")).to_have_count(0)
        await page.reload()
        await expect(page.get_by_role("switch", name="calc")).to_be_checked()
        back = {"toolsets": [name for name in told["toolsets"] if name != "shell"], "mcp_servers": []}
    await server.call("PATCH", f"/agents/{agent}", json=back | {"planning": False, "thinking_level": None})


async def test_how_commands_and_mcp_programs_are_confined_is_shown(server, agent, come):
    level = (await server.call("GET", "/about"))["shell"]
    shown = {"bubblewrap": "by bubblewrap", "landlock": "by Landlock", "refused": "disabled"}[level]
    async with come("/ui/settings") as page:
        await expect(page.get_by_role("region", name="Server")).to_contain_text(shown)
    async with come(f"/ui/agents/{agent}/configure") as page:
        tools = page.get_by_role("region", name="Tools")
        await expect(tools).to_contain_text("cannot confine" if level == "refused" else "confined to its workspace")
        calc = page.get_by_role("group", name="MCP servers")
        await expect(calc).to_contain_text("unconfined")
        await expect(calc).to_contain_text("Runs unconfined, as the settings file says.")


async def test_each_mode_sets_what_its_card_says(server, agent, come):
    async with come(f"/ui/agents/{agent}/configure") as page:
        for name in ("Ambient", "Project", "Reactive"):
            card = page.get_by_role("radio", name=name)
            await card.click()
            await expect(card).to_be_checked()
            await expect(page.locator(".save-state")).to_have_text("Saved.")
            await expect(page.locator(".changed")).to_have_count(0)
        await page.get_by_label("Minimum gap (minutes)").fill("12")
        await page.get_by_label("Minimum gap (minutes)").press("Enter")
        await expect(page.locator(".changed")).to_have_text("Reactive: 5 min")
        await expect(page.get_by_role("radio", name="Reactive")).to_contain_text("at least 12 min apart")
        await page.get_by_role("button", name="Reset to Reactive").click()
        await expect(page.locator(".changed")).to_have_count(0)
    assert (await settings_of(server, agent))["schedule"]["is_customised"] is False


async def test_a_refused_value_stays_at_its_field_and_is_not_left_unasked(server, agent, come):
    async with come(f"/ui/agents/{agent}/configure") as page:
        zone = page.get_by_label("Time zone")
        before = await zone.input_value()
        await zone.fill("Mars/Olympus")
        await page.get_by_role("link", name="Agenda").click()
        dialog = page.get_by_role("dialog", name="Leave without saving?")
        await dialog.get_by_role("button", name="Stay").click()
        await expect(zone).to_have_value("Mars/Olympus")
        await expect(zone).to_have_attribute("aria-invalid", "true")
        problem = page.locator(".field", has=zone).get_by_role("alert")
        await expect(problem).to_contain_text("Mars/Olympus")
        await zone.press("Escape")
        await expect(zone).to_have_value(before)
        await expect(problem).to_have_count(0)
        prompt = page.get_by_label("Prompt")
        before = await prompt.input_value()
        await prompt.fill("Be brief.\n")
        await prompt.press("Escape")
        await expect(prompt).to_have_value(before)
        await page.get_by_label("Runs per day").fill("many")
        await page.get_by_label("Runs per day").press("Enter")
        await expect(page.get_by_text("Must be a number of at least 0, got “many”.")).to_be_visible()
        await page.get_by_role("link", name="Agenda").click()
        await dialog.get_by_role("button", name="Leave").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Agenda")


async def test_what_is_written_last_is_saved_by_leaving(server, agent, come):
    async with come("/ui/inbox") as page:
        await go(page, f"/ui/agents/{agent}/configure")
        await page.get_by_label("Description").fill("Left with a link")
        await page.get_by_role("link", name="Inbox").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Inbox")
        assert (await settings_of(server, agent))["description"] == "Left with a link"
        await page.go_back()
        await page.get_by_label("Description").fill("Left with the back button")
        await page.go_back()

        async def is_saved():
            return (await settings_of(server, agent))["description"] == "Left with the back button"

        await eventually(is_saved)


async def test_todays_use_stands_beside_the_budget(server, agent, come):
    session = await server.session()
    async with server.watch(session) as client:
        await client.ask("Hello")
    async with come(f"/ui/agents/{agent}/configure") as page:
        await page.get_by_label("Tokens per day").fill("1000")
        await page.get_by_label("Tokens per day").press("Enter")
        used = page.get_by_role("group", name="Used today")
        await expect(used).to_contain_text("of 1,000")
        await expect(used.get_by_role("meter", name="Tokens used today")).to_be_visible()
        spent = (await server.call("GET", f"/agents/{agent}/usage"))["today"]["tokens"]
        await expect(used).to_contain_text(f"{spent} of 1,000")
        async with server.watch(session) as client:
            await client.ask("Hello again")
        await expect(used).not_to_contain_text(f"{spent} of 1,000")  # live
        await page.get_by_label("Tokens per day").fill("")
        await page.get_by_label("Tokens per day").press("Enter")
        await expect(used.get_by_role("meter")).to_have_count(0)


async def test_only_an_owner_grants_the_shell_and_sees_the_disk(server, agent, come):
    secret = await server.add_user()
    [hers] = (await server.call("GET", "/agents", token=secret))["agents"]
    async with come(f"/ui/agents/{hers['id']}/configure", as_=await log_in(server.address, secret)) as page:
        await expect(page.get_by_role("switch", name="Shell")).to_be_disabled()
        await expect(page.get_by_text("Only an owner of this server may grant it")).to_be_visible()
        await page.get_by_role("link", name="Settings").click()
        await expect(page.get_by_role("region", name="Channels")).to_be_visible()
        await expect(page.get_by_role("region", name="Disk and retention")).to_have_count(0)


# ── Settings ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_channel_is_added_tried_turned_off_and_deleted_and_its_address_never_shown(server, agent, come):
    async with HttpServer() as outside, come("/ui/settings") as page:
        channels = page.get_by_role("region", name="Channels")
        await channels.get_by_label("Name of the channel").fill("Phone")
        await channels.get_by_label("Address of the channel").fill("nonsense")
        await channels.get_by_role("button", name="Add a channel").click()
        await expect(channels.get_by_role("alert")).to_be_visible()
        await channels.get_by_label("Address of the channel").fill(outside.url())
        await channels.get_by_role("button", name="Add a channel").click()
        row = channels.get_by_role("list").get_by_role("listitem")
        await expect(row).to_contain_text("json://127.0.0.1")
        await expect(channels.get_by_label("Address of the channel")).to_have_value("")
        assert "secret" in outside.url()
        assert "/secret" not in await page.content()
        await row.get_by_role("button", name="Test").click()
        await expect(row).to_contain_text("Sent. Check that it arrived.")
        assert (await outside.next())["title"] == "A test from Wakeful"
        await row.get_by_role("button", name="Turn off").click()
        await expect(row.locator(".badge")).to_have_text("off")
        await row.get_by_role("button", name="Turn on").click()
        await expect(row.locator(".badge")).to_have_count(0)
        await row.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog", name="Delete Phone?").get_by_role("button", name="Delete").click()
        await expect(row).to_have_count(0)
    assert (await server.call("GET", "/channels"))["channels"] == []


async def test_a_channel_that_fails_says_why(server, agent, come):
    async with HttpServer() as outside:
        url = outside.url()
    made = await server.call("POST", "/channels", json={"name": "Broken", "url": url})
    async with come("/ui/settings") as page:
        row = page.get_by_role("list", name="Channels").get_by_role("listitem")
        await row.get_by_role("button", name="Test").click()
        await expect(row).to_contain_text("Not sent.")
        await expect(row.locator(".badge")).to_have_text("failing")
        await page.reload()
        [told] = (await server.call("GET", "/channels"))["channels"]
        await expect(row).to_contain_text(told["last_error"])
    await server.call("DELETE", f"/channels/{made['id']}")


def shown_size(size):
    """Write a number of bytes as the page does."""
    unit = 0
    while size >= 1000 and unit < 4:
        size, unit = size / 1000, unit + 1
    return f"{round(size) if size >= 10 or not unit else f'{size:.1f}'} {('B', 'kB', 'MB', 'GB', 'TB')[unit]}"


async def test_settings_tell_the_disk_and_how_long_things_are_kept(server, agent, come):
    async with come("/ui/settings") as page:
        disk = page.get_by_role("region", name="Disk and retention")
        await expect(disk).to_contain_text(re.compile(r"Store[\d.]+ (kB|MB)"))
        await expect(disk).to_contain_text("kept for 24 h after the run")
        found = await server.call("GET", "/storage")  # measured once an hour, so it has what the page has
        await disk.get_by_text("By table").click()
        tables = disk.get_by_role("list", name="Sizes of tables").get_by_role("listitem")
        await expect(tables).to_have_count(len(found["tables"]))
        await expect(tables.first).to_contain_text(found["tables"][0]["name"])
        await disk.get_by_text("By agent").click()
        agents = disk.get_by_role("list", name="Sizes of agents").get_by_role("listitem")
        first = found["agents"][0]
        files = f"database {shown_size(first['database_bytes'])} · files {shown_size(first['file_bytes'])}"
        await expect(agents).to_have_count(len(found["agents"]))
        await expect(agents.first).to_contain_text(first["name"])
        await expect(agents.first).to_contain_text(files)


async def test_backups_are_shown_and_a_failure_is_loud(server, agent, come, own_files):
    async with come("/ui/settings") as page:
        backups = page.get_by_role("region", name="Backups")
        await expect(backups).to_contain_text("every 6 hours, the last 7 are kept, encrypted to 1 recipient")
        await expect(backups).to_contain_text("none yet")
        await server.node.services.scheduled_backups.look()
        await page.reload()
        await expect(backups.get_by_role("alert")).to_contain_text("does not exist. Create it")
        Path(own_files["data_dir"]).with_name("backups").mkdir()
        state = await server.node.services.scheduled_backups.state()
        begun = state.started_at - timedelta(hours=1)
        await server.sql(f"UPDATE scheduled_backups SET started_at = {to_micros(begun)}")
        await server.node.services.scheduled_backups.look()
        await page.reload()
        await expect(backups).to_contain_text(re.compile(r"wakeful-\S+\.age · [\d.]+ (kB|MB)"))
        await expect(backups.get_by_role("alert")).to_have_count(0)


# ── The inbox ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_call_that_nobody_was_there_for_is_approved_in_the_inbox(server, agent, come):
    await server.call("PATCH", f"/agents/{agent}", json={"ask_before": ["write_file"]})
    session = await server.session()
    async with come("/ui/inbox") as page:
        await server.book(session, WRITE)
        entry = page.get_by_role("listitem").filter(has_text="needs your approval")
        await expect(entry).to_contain_text("wants to write “approved.txt” (1 byte)")
        await expect(entry.get_by_label("Arguments")).to_have_text("pathapproved.txtcontentx")
        await entry.get_by_role("button", name="Approve and run again").click()
        await expect(entry).to_contain_text("You approved it.")
        await expect(entry).not_to_have_class("is-unread")
        written = server.node.services.workspace_of(agent) / "approved.txt"

        async def is_written():
            return written.exists()

        await eventually(is_written)
        await entry.get_by_role("link", name="Running again").click()
        await expect(page.get_by_label("Tool write_file")).to_contain_text("approved.txt")
    await server.call("PATCH", f"/agents/{agent}", json={"ask_before": []})


async def test_a_wake_is_muted_where_it_was_heard_and_heard_again_where_it_waits(server, agent, come):
    session = await server.session("Noisy")
    at = server.node.clock.now() + timedelta(hours=5)
    wake = await server.book(session, "Read notes.txt with read_file.", call_type="once", at=at)
    await add_notice(server, agent, "Noise", wake_id=wake.id, session_id=session)
    async with come("/ui/inbox") as page:
        entry = page.get_by_role("listitem").filter(has_text="Noise")
        await entry.get_by_role("button", name="Mute").click()
        await expect(entry.get_by_role("button", name="Muted")).to_be_visible()
        assert (await server.call("GET", f"/wakes/{wake.id}"))["muted"] is True
        await entry.get_by_role("link", name="Noise").click()
        banner = page.get_by_label("Scheduled run", exact=True)
        await banner.get_by_role("button", name="Muted").click()
        await expect(banner.get_by_role("button", name="Mute", exact=True)).to_be_visible()
    assert (await server.call("GET", f"/wakes/{wake.id}"))["muted"] is False
    await server.call("DELETE", f"/wakes/{wake.id}")


async def test_the_browser_tells_of_news_while_nobody_looks(server, agent, come):
    # Without its service worker, as where the browser forbids storage.
    async with come("/ui/inbox", permissions=["notifications"], service_workers="block") as page:
        await page.get_by_role("button", name="Browser notifications off").click()
        await expect(page.get_by_role("button", name="Browser notifications on")).to_be_visible()
        await page.evaluate("""() => {
          window.made = [];
          window.Notification = class extends Notification {
            static get permission() { return "granted"; }  // without windows, Chromium says "denied" all the same
            constructor(title, options) { super(title, options); made.push([title, options.body]); window.last = this; }
          };
        }""")
        await add_notice(server, agent, "Seen")
        await expect(page.get_by_role("listitem").filter(has_text="Seen")).to_be_visible()
        await page.evaluate("Object.defineProperty(document, 'visibilityState', {get: () => 'hidden'})")
        session = await server.session("What it is about")
        at = server.node.clock.now() + timedelta(hours=5)
        wake = await server.book(session, "Read notes.txt with read_file.", call_type="once", at=at)
        await server.call("PATCH", f"/wakes/{wake.id}", json={"muted": True})
        await server.call("DELETE", f"/wakes/{wake.id}")  # no longer pending, as after its run has started
        await add_notice(server, agent, "Muted", wake_id=wake.id, session_id=session)
        await add_notice(server, agent, "Unseen", session_id=session)
        await eventually(
            lambda: page.evaluate("made.length")
        )  # wait_for_function needs `eval`, which our policy forbids
        assert await page.evaluate("made") == [["Unseen", "Body"]]
        await page.evaluate("last.onclick()")
        await expect(page.get_by_role("heading", level=1)).to_have_text("What it is about")


async def test_a_notification_leads_to_the_view_it_names(server, agent, come):
    rows = {"table": "tasks", "text": "task\nwater the beans"}
    await server.call("POST", f"/agents/{agent}/db/import", json=rows)
    await server.call("PUT", f"/agents/{agent}/db/views/open_tasks", json={"sql": "SELECT task FROM tasks"})
    await add_notice(server, agent, "Look at this", view_ref="open_tasks")
    async with come("/ui/inbox") as page:
        await page.get_by_role("link", name="Look at this").click()
        await page.wait_for_url(f"**/ui/agents/{agent}/views?view=open_tasks")
        await expect(page.get_by_text("water the beans")).to_be_visible()


# ── Nodes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_nodes_on_a_shared_store_are_shown_and_drained(built_page, browser, tmp_path, swept_postgres_url):
    def settings(name):
        places = {"data_dir": tmp_path / name, "config_dir": tmp_path / "config", "database_url": swept_postgres_url}
        return places | {"node_name": name}

    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(running_server(settings("berlin")))
        await stack.enter_async_context(running_server(settings("oslo")))
        login = await log_in(here.address, TOKEN)
        page = await stack.enter_async_context(visit(browser, login, f"{here.address}/ui/settings"))
        nodes = page.get_by_role("region", name="Nodes")
        await expect(nodes.get_by_role("listitem")).to_have_count(2)
        own, other = await nodes.get_by_role("listitem").all()
        await expect(own).to_contain_text("berlin this one running")
        await expect(other).to_contain_text("0 runs now")
        await other.get_by_role("button", name="Drain").click()
        await expect(other).to_contain_text("draining")
        await other.get_by_role("button", name="Stop draining").click()
        await expect(other).to_contain_text("oslo running")
