"""A running server is backed up over REST, and restored elsewhere, paused."""

import asyncio
import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

import forked_process
from backup_place import IDENTITY, back_up, old_backup, restore
from fixtures.stores import IS_LONG
from live_server import TOKEN, running_server
from openai_server import say
from terminal import a_terminal, typed
from wakeful.backup.backup_file import BackupFile
from wakeful.config.settings import Settings


@pytest.fixture
async def server(backend_settings):
    async with running_server(backend_settings, always=say("Noted.")) as server:
        yield server


@pytest.fixture
def elsewhere(backend_settings, tmp_path, request):
    """Another place with the same device key."""
    place = backend_settings | {"data_dir": tmp_path / "elsewhere", "token": TOKEN}
    if "database_url" in backend_settings:
        place["database_url"] = request.getfixturevalue("postgres_url")
    return place


async def wakeful(server, tmp_path, *words):
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    environment = plain | {"WAKEFUL_URL": server.address, "WAKEFUL_TOKEN": TOKEN}
    return await asyncio.to_thread(forked_process.run, words, environment, tmp_path / "errors")


async def fill(server):
    """Let a server have a session, a wake, a database, files and a link."""
    [agent] = (await server.call("GET", "/agents"))["agents"]
    session = await server.session("Plumber")
    async with server.watch(session) as client:
        await client.ask("The plumber comes on Friday.")
    wake = await server.book(session, call_type="once", at=server.node.clock.now() + timedelta(days=1))
    asked = {"table": "notes", "text": "note\nbuy milk"}
    await server.call("POST", f"/agents/{agent['id']}/db/import", json=asked)
    sent = [("files", ("plan.txt", b"the plan", "text/plain"))]
    [upload] = (await server.call("POST", f"/sessions/{session}/uploads", files=sent))["files"]
    if not server.node.store.is_shared:  # on PostgreSQL links are kept by the home, and tested there
        workspace = server.node.services.workspace_of(agent["id"])
        (workspace / "passwd").symlink_to("/etc/passwd")
        os.mkfifo(workspace / "pipe")
    return agent["id"], session, wake, upload


async def read_upload(server, agent_id, upload):
    await server.node.services.data.files.bring_files(agent_id)
    return (server.node.services.workspace_of(agent_id) / upload["path"]).read_bytes()


async def test_everything_of_a_running_server_is_restored_elsewhere_and_paused(server, elsewhere, tmp_path):
    agent_id, session, wake, upload = await fill(server)
    before = await server.messages(session)
    file = tmp_path / "all.age"
    done = await wakeful(server, tmp_path, "backup", str(file), "--to", IDENTITY.recipient)
    assert done.returncode == 0, done.stderr
    assert "and read it back" in done.stdout
    assert file.stat().st_mode & 0o777 == 0o600
    settings = Settings.model_validate(elsewhere)
    result = await asyncio.to_thread(restore, settings, file)
    assert [person.user.name for person in result.plan.restored.people] == ["Owner"]
    assert [each.id for each in result.plan.restored.next_wakes] == [wake.id]
    async with running_server(elsewhere) as restored:
        assert await restored.messages(session) == before
        rows = await restored.call("GET", f"/agents/{agent_id}/db/tables/notes/rows")
        assert "buy milk" in str(rows["rows"])
        assert await read_upload(restored, agent_id, upload) == b"the plan"
        pause = await restored.call("GET", "/pause")
        assert "Restored from a backup of " in str(pause)
        if not restored.node.store.is_shared:
            workspace = restored.node.services.workspace_of(agent_id)
            assert (workspace / "passwd").readlink().as_posix() == "/etc/passwd"
            assert not (workspace / "pipe").exists()
            assert result.plan.left_out == [f"agents/{agent_id}/workspace/pipe"]


async def test_a_backup_is_of_one_moment_though_writes_go_on(server, elsewhere, tmp_path):
    agent_id, *_ = await fill(server)
    asked = {"table": "large", "text": "\n".join(["text", *["x" * 10_000] * 300])}
    await server.call("POST", f"/agents/{agent_id}/db/import", json=asked)
    file = BackupFile(tmp_path / "all.age", [IDENTITY.recipient])
    with file:
        caller = await server.node.services.accounts.identify(TOKEN)
        pieces = server.node.services.backups.begin(caller)
        file.write(await anext(pieces))
        file.write(await anext(pieces))  # a part of a database or of the tables, which is larger
        later = await server.session("Later")
        rows = f"/agents/{agent_id}/db/tables/notes/rows"
        for number in range(3):
            await server.call("POST", rows, json={"rows": [{"note": f"later {number}"}]})
        if not server.node.store.is_shared:
            await server.node.store.checkpoint()
        async for piece in pieces:
            file.write(piece)
        await asyncio.to_thread(file.finish)
    await asyncio.to_thread(restore, Settings.model_validate(elsewhere), file.path)
    assert "later 2" in str(await server.call("GET", rows))
    async with running_server(elsewhere) as restored:
        found = str(await restored.call("GET", rows))
        assert ("buy milk" in found, "later" in found) == (True, False)
        assert later not in str(await restored.call("GET", "/sessions"))


async def test_a_client_that_goes_away_in_the_middle_leaves_nothing_locked(server):
    agent_id, *_ = await fill(server)
    asked = {"table": "large", "text": "\n".join(["text", *["x" * 10_000] * 300])}
    await server.call("POST", f"/agents/{agent_id}/db/import", json=asked)
    caller = await server.node.services.accounts.identify(TOKEN)
    for turns in range(1, 40, 3):
        pieces = server.node.services.backups.begin(caller)

        async def read_all(pieces=pieces):
            async for _ in pieces:
                pass

        reading = asyncio.create_task(read_all())
        for _ in range(turns):
            await asyncio.sleep(0.001)
        reading.cancel()
        [result] = await asyncio.gather(reading, return_exceptions=True)
        assert result is None or isinstance(result, asyncio.CancelledError), result
        await pieces.aclose()
    if not server.node.store.is_shared:  # a read transaction that was left would keep the journal from being emptied
        await server.session("Later")
        await server.node.store.checkpoint()
        assert (server.node.settings.data_dir / "wakeful.sqlite-wal").stat().st_size == 0
    assert (await server.rest.post("/backups")).status_code == 200


@pytest.mark.skipif(not IS_LONG, reason="long")
async def test_a_passphrase_is_asked_for_on_the_terminal(tmp_path):
    with a_terminal(tmp_path) as terminal:
        environment = terminal.environment
        async with typed("backup", str(tmp_path / "p.age"), environment=environment) as command:
            await command.until("Passphrase: ")
            command.enter("too short")
            await command.until("Repeat for confirmation: ")
            command.enter("too short")
            await command.until("at least 10")
            await command.until("Passphrase: ")
            command.enter("a long enough one")
            await command.until("Repeat for confirmation: ")
            command.enter("a long enough one")
            await command.until("encrypted to the passphrase")
            assert await command.code() == 0
            assert "a long enough one" not in command.shown
    elsewhere = environment | {"WAKEFUL_DATA_DIR": str(tmp_path / "elsewhere")}
    for words, said in (("another one", "does not open"), ("a long enough one", "Do you know all these people")):
        async with typed("restore", str(tmp_path / "p.age"), environment=elsewhere) as command:
            await command.until("Passphrase of the backup: ")
            command.enter(words)
            await command.until(said)
            if words == "a long enough one":
                command.enter("y")
                await command.until("Everything is paused")
            assert await command.code() == (0 if words == "a long enough one" else 1)


@pytest.fixture
def foreign(tmp_path):
    """The words that restore a backup with keys whose settings name a program, and the variables of an empty place."""
    old, _ = old_backup(tmp_path / "old")
    toml = 'shell_unconfined = true\n[mcp."\\u001b[2J"]\ncommand = ["sh", "-c", "evil"]\n'
    file = tmp_path / "foreign.age"
    (old.settings["config_dir"] / "wakeful.toml").write_text(toml)
    back_up(Settings.model_validate(old.settings), file, with_keys=True)
    (tmp_path / "identity").write_text(IDENTITY.text)
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    places = {"WAKEFUL_DATA_DIR": str(tmp_path / "data"), "WAKEFUL_CONFIG_DIR": str(tmp_path / "config")}
    return ("restore", str(file), "--identity", str(tmp_path / "identity")), plain | places


def is_untouched(environment):
    names = ("WAKEFUL_DATA_DIR", "WAKEFUL_CONFIG_DIR")
    return not any(path.name != "wakeful.lock" for name in names for path in Path(environment[name]).glob("*"))


def test_without_a_terminal_a_backup_of_unknown_origin_needs_trust(foreign, tmp_path):
    words, environment = foreign
    refused = forked_process.run((*words, "--yes"), environment, tmp_path / "errors")
    assert refused.returncode == 2
    assert "Nobody can tell who made this backup" in refused.stderr
    assert "  shell_unconfined = true\n" in refused.stderr
    assert '  mcp.\\x1b[2J.command = ["sh", "-c", "evil"]\n' in refused.stderr
    assert "--trust-settings" in refused.stderr
    assert "\x1b[2J" not in refused.stderr + refused.stdout
    assert is_untouched(environment)
    done = forked_process.run((*words, "--yes", "--trust-settings", "--json"), environment, tmp_path / "errors")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["is_proven"] is False
    assert "shell_unconfined" in Path(environment["WAKEFUL_CONFIG_DIR"], "wakeful.toml").read_text()


async def test_on_a_terminal_a_person_is_asked_whether_to_trust_a_backup_of_unknown_origin(foreign):
    words, environment = foreign
    for answer in ("n", "y"):
        async with typed(*words, "--yes", environment=environment) as command:
            await command.until("Nobody can tell who made this backup")
            await command.until("shell_unconfined = true")
            await command.until("Do you trust")
            assert is_untouched({**environment, "WAKEFUL_DATA_DIR": environment["WAKEFUL_CONFIG_DIR"]})
            command.enter(answer)
            if answer == "y":
                await command.until("Everything is paused")
            assert await command.code() == (1 if answer == "n" else 0)
        assert is_untouched(environment) == (answer == "n")


async def test_only_owners_with_the_scope_admin_may_back_up_and_one_at_a_time(server):
    made = await server.call("POST", "/tokens", json={"name": "t", "scope": "schedule"})
    for token, code in ((made["secret"], "scope_too_small"), (await server.add_user(), "owners_only")):
        async with server.client(token) as client:
            answer = await client.post("/backups")
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, code)
    caller = await server.node.services.accounts.identify(TOKEN)
    running = server.node.services.backups.begin(caller)
    await anext(running)
    answer = await server.rest.post("/backups")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "backup_running")
    await running.aclose()
    answer = await server.rest.post("/backups")
    assert answer.content.endswith(bytes(1024))  # the end of a tar file
    key = (server.node.settings.config_dir / "device.key").read_bytes().strip()
    assert key not in answer.content
    assert bytes.fromhex(key.decode()) not in answer.content
