"""Data of a 0.2 server in which every feature was used and which was killed: nothing is lost, on both backends."""

import asyncio
import hashlib
import hmac
import json
import shutil
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest

from fixtures.stores import BACKENDS
from live_server import eventually
from terminal import Terminal
from upgrade.moved_data import execute as execute_in_postgres
from upgrade.moved_data import rows_in_postgres, rows_in_sqlite
from upgrade.old_data import DATA, USED, copy_old_data, running_old_server
from used_data import Place
from wakeful.backup.age import Passphrase, read_identities
from wakeful.backup.restore_plan import RestoreOptions
from wakeful.backup.restoring import restore_backup
from wakeful.config.settings import Settings
from wakeful.datadir.device_key import database_of
from wakeful.store.store import Store

pytestmark = pytest.mark.upgrade

EVER = datetime.fromisoformat("2000-01-01T00:00:00+00:00")
AFTER = timedelta(minutes=10)  # the server was down; leases have ended, and no wake has come due
BACKUPS = [("sqlite", "passphrase"), ("postgres", "passphrase"), ("postgres", "recipient"), ("postgres", "device")]
# Rows that a start deletes: those of nodes and of people who are present.
PASSING = {"nodes", "presence", "passes"}


@pytest.fixture(params=BACKENDS)
def copy(request, tmp_path):
    """A copy of its own, for a test that starts the server itself."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    return copy_old_data(request.param, tmp_path, url, USED)


@pytest.fixture(scope="module")
def old(shared_settings):
    url = shared_settings.get("database_url")
    backend = "sqlite" if url is None else "postgres"
    return copy_old_data(backend, shared_settings["data_dir"].parent, url, USED)


@asynccontextmanager
async def upgrading(old):
    async with running_old_server(old.settings, old.stopped_at + AFTER) as server:
        server.rest.headers["Authorization"] = f"Bearer {old.facts['token']}"
        yield server


@pytest.fixture(scope="module")
async def upgraded(old):
    async with upgrading(old) as server:
        yield server


async def get(server, path, **more):
    answer = await server.rest.get(path, **more)
    assert answer.is_success, answer.text
    return answer.json()


@asynccontextmanager
async def receiving():
    """Listen for requests of webhooks and channels."""
    arrived, ids = [], []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            arrived.append((self.path, self.rfile.read(int(self.headers["Content-Length"])).decode()))
            ids.append(self.headers["webhook-id"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        Thread(target=receiver.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{receiver.server_port}", arrived, ids
        finally:
            receiver.shutdown()


async def folder_of(server, agent_id):
    """Return an agent's workspace; on PostgreSQL it is a copy, which a request for its files makes."""
    await get(server, f"/agents/{agent_id}/instructions")
    return server.node.services.workspace_of(agent_id)


def count_rows(settings):
    url = settings.get("database_url")
    found = rows_in_sqlite(Settings.model_validate(settings)) if url is None else rows_in_postgres(url)
    return {table: len(rows) for table, rows in found.items() if table not in PASSING}


async def test_no_table_has_lost_rows(copy):
    before = await asyncio.to_thread(count_rows, copy.settings)
    before["outgoing"] = before.pop("webhook_messages")
    assert (before["wakes"], before["runs"], before["sessions"]) == (27, 33, 25)
    async with upgrading(copy):
        pass
    after = await asyncio.to_thread(count_rows, copy.settings)
    # Of the Librarian: db_query was a tool of an MCP server, and is the name of the built-in one alone.
    dropped = {"allowances": before["allowances"] - 1, "approvals": before["approvals"] - 2}
    assert {table: after.get(table, 0) for table, rows in before.items() if after.get(table, 0) < rows} == dropped


async def test_people_agents_and_their_limits_are_there(upgraded, old):
    agents = {agent["name"]: agent for agent in (await get(upgraded, "/agents"))["agents"]}
    assert set(agents) == {"Wakeful", "Librarian", "Scribe", "Poet", "Janitor"}
    first = agents["Wakeful"]
    assert (first["ask_before"], first["mcp_servers"]) == (["db_query", "fetch_url"], ["db"])
    assert first["subagents"] == [old.facts["scribe_agent_id"], old.facts["agent_id"]]
    assert first["profiles"] == [old.facts["poet_agent_id"]]
    assert (first["allowed_models"], first["may_write_skills"]) == (["wordy", "far"], True)
    limits = {"run_tokens": 500_000, "day_tokens": 5_000_000, "run_cost": 1.5, "day_cost": 20.0}
    assert first["budgets"] == limits
    bounds = first["schedule"]
    assert (bounds["mode"], bounds["daily_cap"], bounds["days"]) == ("project", 3, [0, 1, 2, 3, 4])
    assert (bounds["quiet_from"], bounds["quiet_to"]) == ("21:30", "06:15")
    assert (agents["Scribe"]["model"], agents["Janitor"]["timezone"]) == ("wordy", "Asia/Tokyo")
    assert [user["name"] for user in (await get(upgraded, "/users"))["users"]] == ["Owner", "Grace"]
    pause = await get(upgraded, f"/agents/{old.facts['janitor_agent_id']}/pause")
    assert "On holiday" in json.dumps(pause)


async def test_tokens_and_the_login_are_still_good(upgraded, old):
    for scope in ("read", "chat", "schedule", "admin"):
        async with upgraded.client(old.facts[f"{scope}_token"]) as client:
            assert (await client.get("/me")).json()["scope"] == scope
    async with upgraded.client(old.facts["revoked_token"]) as client:
        assert (await client.get("/me")).status_code == 401
    async with upgraded.client(old.facts["grace_token"]) as client:
        assert [each["name"] for each in (await client.get("/agents")).json()["agents"]] == ["Gardener"]
    headers = {"Cookie": f"wakeful={old.facts['cookie']}", "X-Wakeful-Page": old.facts["page_secret"]}
    async with httpx.AsyncClient(base_url=upgraded.address, headers=headers) as browser:
        assert (await browser.get("/me")).json()["user"]["name"] == "Owner"


async def test_wakes_are_booked_as_they_were(upgraded, old):
    found = {each["id"]: each for each in (await get(upgraded, "/wakes?limit=200"))["wakes"]}
    facts = old.facts

    def look(name, *fields):
        return tuple(found[facts[name].removeprefix("sch-")][field] for field in fields)

    assert look("pinged_wake_id", "kind", "status", "ping_to", "muted") == (
        "recall",
        "pending",
        "http://127.0.0.1:9/****",
        True,
    )
    every = ("status", "call_type", "interval_seconds", "cron", "timezone", "max_runs")
    day = 24 * 3600
    assert look("interval_wake_id", *every) == ("pending", "recurring", day // 4, None, "Europe/Berlin", None)
    assert look("bounded_wake_id", *every) == ("pending", "recurring", day, None, "Europe/Berlin", 5)
    assert look("bounded_wake_id", "on_miss", "priority", "comment") == ("run_catchup", "low", "A few times only")
    assert found[facts["bounded_wake_id"]]["until"] is not None
    assert look("cron_wake_id", *every) == ("pending", "recurring", None, "30 9 * * 1-5", "America/New_York", None)
    assert look("skipped_wake_id", *every) == ("pending", "recurring", None, "0 7 * * *", "Asia/Tokyo", None)
    why = await get(upgraded, f"/wakes/{facts['skipped_wake_id']}/why")
    assert "skipped_by_request" in json.dumps(why)
    for name in ("message_schedule_id", "session_schedule_id", "program_wake_id", "paused_wake_id", "mcp_schedule_id"):
        assert look(name, "status") == ("pending",), name
    for name, status in (("cancelled", "cancelled"), ("fired", "fired"), ("refused", "fired")):
        assert look(f"{name}_wake_id", "status") == (status,)
    # It lasts as long as its server runs; with PostgreSQL there may be other nodes.
    status = "pending" if "database_url" in old.settings else "cancelled"
    assert look("ephemeral_schedule_id", "status") == (status,)


async def test_next_runs_and_schedules_are_complete(upgraded, old):
    for name, agent, by in (("person", "agent_id", "user"), ("agent", "librarian_agent_id", "agent")):
        booked = (await get(upgraded, f"/agents/{old.facts[agent]}/next-run"))["next_run"]
        assert (booked["id"], booked["scheduled_by"]) == (old.facts[f"{name}_next_run_id"], by)
    schedule = await get(upgraded, f"/schedules/{old.facts['session_schedule_id']}")
    assert "Morning review" in json.dumps(schedule)
    config = (await stored_wake(upgraded, old, "session_schedule_id")).session_config
    assert (config["model"], config["thinking_level"], config["skills"]) == ("wordy", "high", ["watering"])
    assert config["tool_ids"] == ["read_file", "write_file", "db_query"]
    assert [each["content"] for each in config["preloaded_messages"]] == ["Look at the roses first.", "I will."]
    assert config["prompt_component_selection"] == ["base", "tools", "skills"]
    person = await stored_wake(upgraded, old, "person_next_run_id")
    assert list(person.context_views or ()) == ["all_prices"]


async def stored_wake(server, old, name):
    wake_id = old.facts[name].removeprefix("sch-")
    return await server.node.store.read(lambda tx: tx.wakes.find(wake_id))


async def test_a_tool_of_an_mcp_server_that_was_called_like_a_built_in_one_is_dropped_and_told(upgraded, old):
    librarian = old.facts["librarian_agent_id"]
    assert (await get(upgraded, f"/agents/{librarian}/allowances"))["allowances"] == []
    for name in ("mcp_wake_id", "agent_next_run_id", "mcp_schedule_id"):
        wake = await stored_wake(upgraded, old, name)
        assert (wake.agent_id, "db_query" in wake.tools) == (librarian, False), name
    assert (await get(upgraded, f"/hooks/{old.facts['tools_hook_id']}"))["tools"] == ["write_file"]
    told = (await get(upgraded, "/notifications"))["notifications"]
    assert [each["agent_id"] for each in told if each["code"] == "tools_dropped"] == [librarian]
    # The other agent was shown the built-in tool of this name.
    [allowed] = (await get(upgraded, f"/agents/{old.facts['agent_id']}/allowances"))["allowances"]
    assert (allowed["tool"], allowed["session_id"]) == ("db_query", old.facts["figures_session_id"])
    [server] = [each for each in (await get(upgraded, "/mcp-servers"))["mcp_servers"] if each["name"] == "db"]
    assert server["kind"] == "stdio"


async def test_models_keep_their_keys_and_how_they_call_tools(upgraded, old):
    found = await get(upgraded, "/models")
    models = {each["name"]: each for each in found["models"]}
    calls = {name: each["tool_calls"] for name, each in models.items()}
    assert calls == {
        "scripted": "native",
        "wordy": "none",  # it was text, which is read as none
        "mute": "none",
        "tested": None,
        "far": None,
        "local": "none",
        "native": "native",
    }
    assert {name for name, each in models.items() if each["has_key"]} == {"far", "native"}
    assert {each["name"] for each in models.values() if each["source"] == "settings"} == {"local", "native"}


async def test_the_agents_database_and_files_are_there(upgraded, old):
    agent = f"/agents/{old.facts['agent_id']}"
    assert (await get(upgraded, f"{agent}/db/verify"))["intact"]
    for show, items in (
        ("active", {f"thing {number}" for number in range(7)} | {"a hose"}),
        ("deleted", {"thing 7", "a mistake"}),
    ):
        found = await get(upgraded, f"{agent}/db/tables/prices/rows", params={"show": show})
        assert {row[found["columns"].index("item")] for row in found["rows"]} == items
    assert len((await upgraded.rest.post(f"{agent}/db/views/cheap/run", json={})).json()["rows"]) == 4
    assert {view["name"] for view in (await get(upgraded, f"{agent}/db/views"))["views"]} == {"cheap", "all_prices"}
    assert len((await get(upgraded, f"{agent}/db/snapshots"))["snapshots"]) == 1
    changes = (await get(upgraded, f"{agent}/db/changelog", params={"limit": 200}))["changes"]
    assert old.facts["undone_run_id"] in {change["run_id"] for change in changes}
    files = (await get(upgraded, f"{agent}/instructions"))["files"]
    accepted = {each["path"]: each["accepted"] for each in files}
    assert accepted == {"AGENTS.md": True, "skills/watering.md": True, "skills/pruning.md": True}
    workspace = await folder_of(upgraded, old.facts["agent_id"])
    assert (workspace / "notes.txt").read_text() == "water the tomatoes"
    assert (workspace / "uploads" / old.facts["session_id"] / "plan.txt").read_bytes() == b"Tomatoes"


async def test_conversations_are_complete(upgraded, old):
    garden = (await get(upgraded, f"/sessions/{old.facts['session_id']}"))["messages"]
    asked = [each for each in garden if each["role"] == "user" and "plumber" in each["content"]]
    assert [each["superseded_by"] is None for each in asked] == [False, True]
    assert [len(each["images"]) for each in asked] == [1, 1]
    dictated = (await get(upgraded, f"/sessions/{old.facts['scribe_session_id']}"))["messages"]
    assert [each["role"] for each in dictated] == ["user", "assistant", "tool", "assistant"] * 2
    handed = await get(upgraded, f"/sessions/{old.facts['profile_session_id']}")
    assert handed["agent_id"] == old.facts["poet_agent_id"]
    client = await get(upgraded, f"/sessions/{old.facts['v1_session_id']}")
    assert client["messages"][0]["content"] == "Hello from a client"
    notes = {name: await get(upgraded, f"/runs/{old.facts[f'{name}_run_id']}") for name in ("failed", "call_as_text")}
    assert (notes["failed"]["status"], notes["call_as_text"]["note"]) == ("failed", "call_as_text")


async def test_hooks_and_their_deliveries_are_there(upgraded, old):
    async def deliveries(name):
        return (await get(upgraded, f"/hooks/{old.facts[f'{name}_hook_id']}/deliveries"))["deliveries"]

    hooks = {each["name"]: each for each in (await get(upgraded, "/hooks"))["hooks"]}
    assert {name: each["enabled"] for name, each in hooks.items()} == {
        "tools": True,
        "waiting": True,
        "held": True,
        "inform": False,
    }
    long, short = await deliveries("tools")
    assert {long["run_id"], short["run_id"]} == {old.facts["hook_run_id"], old.facts["long_hook_run_id"]}
    body = await get(upgraded, f"/hooks/{old.facts['tools_hook_id']}/deliveries/{long['id']}")
    assert len(body["payload"]) == long["size"] == 40_027
    inbox = await folder_of(upgraded, old.facts["librarian_agent_id"]) / "inbox"
    assert [path.stat().st_size for path in inbox.iterdir()] == [40_027]
    assert [each["outcome"] for each in await deliveries("waiting")] == ["folded", "run"]
    [held] = await deliveries("held")
    assert (await get(upgraded, f"/wakes/{held['wake_id']}"))["status"] == "pending"
    secret = old.facts["held_hook_old_secret"]  # for another 24 hours
    body = b'{"ref": "after the upgrade"}'
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-GitHub-Event": "push", "X-GitHub-Delivery": "new", "X-Hub-Signature-256": f"sha256={signature}"}
    sent = await upgraded.rest.post(f"/hooks/{old.facts['held_hook_id']}", content=body, headers=headers)
    assert sent.status_code == 202


async def test_unfinished_runs_are_taken_up_again(upgraded, old):
    names = ("running", "queued", "headless", "behind", "notify", "approval")

    async def have_ended():
        found = {name: await get(upgraded, f"/runs/{old.facts[f'{name}_run_id']}") for name in names}
        ended = {name: run["status"] for name, run in found.items() if run["status"] not in ("queued", "running")}
        return ended if len(ended) == len(names) else None

    assert await eventually(have_ended, 60) == dict.fromkeys(names, "success")
    # Its tool has another name now; the model reads that the call was interrupted, and goes on.
    said = (await get(upgraded, f"/sessions/{old.facts['approval_session_id']}"))["messages"]
    assert any("interrupted" in each["content"] for each in said if each["role"] == "tool")


@pytest.mark.parametrize("is_killed", [False, True], ids=["", "killed"])
async def test_what_was_not_sent_is_sent_once(copy, is_killed):
    async with receiving() as (address, arrived, ids):
        channel = address.replace("http", "json")
        script = f"""
            UPDATE webhooks SET url = '{address}/webhook' WHERE id = '{copy.facts["pending_webhook_id"]}';
            UPDATE channels SET url = '{channel}/channel' WHERE id = '{copy.facts["slow_channel_id"]}';
        """
        await asyncio.to_thread(execute, copy.settings, script)
        if is_killed:
            await upgrade_and_die(copy)
        async with upgrading(copy) as server:
            webhook = f"/webhooks/{copy.facts['pending_webhook_id']}/deliveries"

            async def are_sent():
                found = (await get(server, webhook))["deliveries"]
                is_sent = {each["id"]: each["status"] for each in found}[copy.facts["pending_message_id"]] == "sent"
                waiting = await server.node.store.read(lambda tx: tx.outgoing.next_at("channel", EVER))
                return is_sent and waiting == (False, None)

            await eventually(are_sent)
            for name, message, status in (
                ("sent", "sent_message_id", "sent"),
                ("off", "cancelled_message_id", "cancelled"),
            ):
                [kept] = (await get(server, f"/webhooks/{copy.facts[f'{name}_webhook_id']}/deliveries"))["deliveries"]
                assert (kept["id"], kept["status"]) == (copy.facts[message], status)
            assert len((await get(server, "/push-subscriptions"))["browsers"]) == 1
    # Besides, the upgrade has notices of its own.
    tank = [(path, body) for path, body in arrived if "The tank is empty" in body]
    assert sorted(path for path, _ in tank) == ["/channel", "/webhook"]
    assert ids.count(copy.facts["pending_message_id"]) == 1
    assert ["Sent once more" in body for path, body in tank if path == "/channel"] == [True]  # 0.2 was sending it


async def upgrade_and_die(copy):
    """Upgrade the store, and claim all that is due as a node does that is killed before it sends it."""
    store, now = Store(database_of(Settings.model_validate(copy.settings))), copy.stopped_at + timedelta(minutes=1)
    await store.open(copy.stopped_at)
    claimed = {}
    for kind in ("channel", "push", "webhook"):
        claimed[kind] = await store.write(lambda tx, kind=kind: tx.outgoing.claim(kind, now, now, now, 9))
    await store.close()
    assert {kind: len(messages) for kind, messages in claimed.items()} == {"channel": 1, "push": 1, "webhook": 1}


def execute(settings, script):
    """Change rows of a store that no server uses."""
    if url := settings.get("database_url"):
        execute_in_postgres(url, script)
        return
    connection = database_of(Settings.model_validate(settings)).connect()
    connection.execute(script)
    connection.close()


def test_the_doctor_finds_nothing_else(copy):
    folder = copy.settings["data_dir"].parent
    place = Place(folder, copy.settings.get("database_url"))
    del place.environment["WAKEFUL_TOKEN"]
    terminal = Terminal(place.environment, folder)

    def look():
        found = json.loads(terminal.run("doctor", "--json").stdout)
        return {check["name"] for check in found["checks"] if check["status"] == "wrong"}

    assert look() == {"database", "MCP far"}  # it must be migrated; and nobody listens there
    assert terminal.run("migrate").returncode == 0
    assert look() == {"MCP far"}


@pytest.mark.parametrize(("backend", "name"), BACKUPS)
async def test_backups_restore_into_an_empty_place(request, tmp_path, backend, name):
    place = DATA / USED / backend
    facts = json.loads((place / "facts.json").read_text())
    settings = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "store_encryption": False}
    if backend == "postgres":
        settings["database_url"] = await asyncio.to_thread(request.getfixturevalue, "postgres_url")
    shutil.copytree(place / "config", tmp_path / "config", ignore=shutil.ignore_patterns("*.toml"))

    def find_keys(is_locked):
        assert is_locked == (name == "passphrase")
        if name == "passphrase":
            return [Passphrase(facts["passphrase"])]
        return list(read_identities(facts["identity"])) if name == "recipient" else []

    options = RestoreOptions(find_keys=find_keys)
    result = await asyncio.to_thread(
        restore_backup, Settings.model_validate(settings), place / f"backups/{name}.age", options
    )
    assert result.plan.restored.agents == 6
    assert [person.user.name for person in result.plan.restored.people] == ["Owner", "Grace"]
    stopped_at = datetime.fromisoformat(facts["stopped_at"])
    async with running_old_server(settings | {"token": facts["token"]}, stopped_at) as server:
        server.rest.headers["Authorization"] = f"Bearer {facts['token']}"
        assert (await get(server, f"/sessions/{facts['session_id']}"))["title"] == "The garden"
        agent = facts["agent_id"]
        assert (await get(server, f"/agents/{agent}/db/verify"))["intact"]
        assert [table["name"] for table in (await get(server, f"/agents/{agent}/db"))["tables"]] == ["prices"]
        plan = await folder_of(server, agent) / "uploads" / facts["session_id"] / "plan.txt"
        assert plan.read_bytes() == b"Tomatoes"
        async with server.client(facts["read_token"]) as reader:
            assert (await reader.get("/me")).status_code == 200
