"""Agents whose files an earlier version has left in a data directory wait until its node has moved them."""

import asyncio
import json
import sqlite3

import asyncpg
import pytest

from harness import HOUR, MINUTE, SECOND, Harness
from wakeful.app.building import build
from wakeful.config.settings import Settings
from wakeful.core.device_key import load_device_key, to_recovery_key
from wakeful.core.errors import Conflict, Unavailable
from wakeful.core.records import MemoryElsewhere
from wakeful.database.files import By
from wakeful.datadir.device_key import restore_device_key, rotate_device_key

COLUMNS = [{"name": "title", "type": "text"}]
LEASE = 30 * SECOND


@pytest.fixture
async def harness(tmp_path, swept_postgres_url):
    """A world whose own node is here; `there` makes nodes on another disk."""
    settings = {"data_dir": tmp_path / "here", "config_dir": tmp_path / "config", "database_url": swept_postgres_url}
    harness = Harness(settings)
    async with harness.node.opened():
        await harness.settle_in()
        yield harness


@pytest.fixture
async def there(harness, tmp_path):
    """A node with a data directory of its own."""
    node = harness.another_node(data_dir=tmp_path / "there")
    async with node.opened():
        yield node


async def make_table(node, agent):
    return await node.services.data.run(By(agent=agent), "create_table", name="tasks", purpose="x", columns=COLUMNS)


async def agent_of(node, harness, **changes):
    """Add an agent and bind it to a node's data directory, as an earlier version did with its first file."""
    agent = await harness.add_agent(toolsets=("database",), **changes)
    directory = node.services.directories.id
    await node.store.write(lambda tx: tx.directories.bind(agent.id, directory))
    return agent


async def turn(node):
    await node.engine.scheduler.turn()
    await node.engine.runner.turn()
    await node.engine.runner.idle()


# ── One memory ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_second_node_makes_no_second_database(harness, there, tmp_path):
    agent = await agent_of(harness.node, harness)
    for ask in (
        make_table(there, agent),
        there.services.data.run(By(agent=agent), "schema"),
        there.services.data.run(By(agent=agent), "query", sql="SELECT 1"),
        there.services.data.files.state(agent),
        there.services.data.files.rotate_key(By(agent=agent)),
        there.services.data.files.erase(agent),
        there.services.data.files.bring_files(agent.id),
        there.services.data.files.save_files(agent.id),
    ):
        with pytest.raises(MemoryElsewhere, match="here"):
            await ask
    assert list((tmp_path / "there" / "agents").iterdir()) == []


# ── Claiming ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_goes_to_a_node_with_its_agents_directory(harness, there):
    bound, free = await agent_of(harness.node, harness), await harness.add_agent()
    wakes = [await harness.book(agent=agent, at=harness.clock.now() + MINUTE) for agent in (bound, free)]
    harness.clock.advance(MINUTE)
    await turn(there)
    assert [ran.run.wake_id for ran in harness.executor.ran] == [wakes[1].id]
    await turn(harness.node)
    assert [ran.run.wake_id for ran in harness.executor.ran] == [wakes[1].id, wakes[0].id]


async def test_a_message_goes_to_a_node_with_its_agents_directory(harness, there):
    agent = await agent_of(harness.node, harness)
    await harness.node.services.directories.arrive()
    session = await harness.session(agent)
    run = await there.runs.ask(session.id, harness.user.id, "Hello")
    await turn(there)
    assert (await harness.run(run.id)).status == "queued"
    await turn(harness.node)
    assert (await harness.run(run.id)).status == "success"


async def test_a_node_on_the_same_directory_takes_over(harness, there):
    agent = await agent_of(harness.node, harness)
    wake = await harness.book(agent=agent, at=harness.clock.now() + MINUTE)
    harness.clock.advance(MINUTE)
    second = harness.another_node()
    async with second.opened():
        await turn(second)
    assert [run.status for run in await harness.runs_of(wake)] == ["success"]


async def test_a_session_is_not_handed_over_in_mid_run_to_an_agent_whose_memory_is_elsewhere(harness, there):
    other = await agent_of(there, harness, name="Other")
    agent = await harness.add_agent(profiles=(other.id,))
    session = await harness.session(agent)
    run = await harness.node.runs.ask(session.id, harness.user.id, "Hello")
    with pytest.raises(MemoryElsewhere, match="there"):
        await harness.node.services.profiles.switch(run, agent, "Other", ())
    assert (await harness.node.sessions.get(session.id, harness.user.id)).agent_id == agent.id


# ── Held ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def away(harness, there):
    """An agent whose directory had a node, which is gone."""
    agent = await agent_of(there, harness)
    await there.services.directories.arrive()
    await there.services.directories.leave()
    return agent


async def codes(harness):
    return [notice.code for notice in await harness.notices()]


async def test_a_wake_whose_directory_is_away_is_held_and_runs_when_it_is_back(harness, there, away):
    wake = await harness.book(agent=away, at=harness.clock.now() + HOUR, on_miss="skip")
    harness.clock.advance(HOUR)
    await harness.turn()
    for _ in range(3):
        await harness.hold_runs()
    [run] = await harness.runs_of(wake)
    assert (run.status, run.reason) == ("queued", "memory_elsewhere")
    assert await codes(harness) == ["memory_elsewhere"]
    assert [said.code for said in await harness.why(wake)].count("memory_elsewhere") == 1
    assert harness.node.engine.readiness().is_ready
    [held] = harness.node.engine.held()
    assert (held["reason"], held["directory"], held["agents"]) == (
        "memory_elsewhere",
        there.services.directories.id,
        1,
    )
    harness.clock.advance(5 * HOUR)
    await harness.turn()
    assert not harness.executor.ran

    await there.services.directories.arrive()
    await turn(there)
    [run] = await harness.runs_of(wake)
    assert (run.status, run.reason, run.covers) == ("success", None, 1)
    assert (await harness.wake(wake)).status == "fired"
    await harness.hold_runs()
    assert harness.node.engine.held() == []


async def test_a_recurring_wake_that_is_held_waits_in_one_row_and_is_told_once(harness, there, away):
    wake = await harness.book(agent=away, call_type="recurring", every=HOUR, at=harness.clock.now() + HOUR)
    for _ in range(4):
        harness.clock.advance(HOUR)
        await harness.turn()
        await harness.hold_runs()
    [run] = await harness.runs_of(wake)
    assert (run.status, run.reason, run.covers) == ("queued", "memory_elsewhere", 4)
    assert await codes(harness) == ["memory_elsewhere"]
    assert [said.code for said in await harness.why(wake)].count("memory_elsewhere") == 1


async def test_each_time_the_directory_goes_away_there_is_a_notice(harness, there, away):
    for _ in range(2):
        await harness.book(agent=away, at=harness.clock.now() + HOUR)
        harness.clock.advance(HOUR)
        await harness.turn()
        await harness.hold_runs()
        await there.services.directories.arrive()
        await turn(there)
        await there.services.directories.leave()
    assert await codes(harness) == ["memory_elsewhere"] * 2


async def test_a_restart_of_a_node_is_no_absence(harness, there, away):
    await harness.book(agent=away, at=harness.clock.now() + SECOND)
    await there.services.directories.arrive()
    await there.services.directories.leave()
    harness.clock.advance(20 * SECOND)
    await harness.turn()
    await harness.hold_runs()
    assert await codes(harness) == []


async def test_a_person_is_told_at_once_that_the_agent_cannot_be_reached(harness, there, away):
    session = await harness.session(away)
    wake = await harness.book(agent=away)
    for ask in (
        harness.node.runs.ask(session.id, harness.user.id, "Hello"),
        harness.node.wakes.run_now(wake.id, harness.user.id),
    ):
        with pytest.raises(MemoryElsewhere, match=r"there.*Start the node with that data directory"):
            await ask
    assert (await harness.wake(wake)).status == "pending"
    await there.services.directories.arrive()
    await harness.node.runs.ask(session.id, harness.user.id, "Hello")


async def test_a_message_that_waits_for_a_directory_ends_after_ten_minutes_and_can_be_continued(harness, there, away):
    session = await harness.session(away)
    await there.services.directories.arrive()
    run = await harness.node.runs.ask(session.id, harness.user.id, "Hello")
    await there.services.directories.leave()
    harness.clock.advance(9 * MINUTE)
    await harness.hold_runs()
    assert (await harness.run(run.id)).status == "queued"
    harness.clock.advance(2 * MINUTE)
    await harness.hold_runs()
    ended = await harness.run(run.id)
    assert (ended.status, ended.reason) == ("interrupted", "memory_elsewhere")
    assert "Start the node" in (ended.error or "")
    with pytest.raises(MemoryElsewhere):
        await harness.node.runs.go_on(run.id, harness.user.id)
    await there.services.directories.arrive()
    await harness.node.runs.go_on(run.id, harness.user.id)
    await turn(there)
    assert (await harness.run(run.id)).status == "success"


async def test_what_is_held_holds_up_nobody_else(harness, there, away):
    """After a crash runs come back one at a time, and one that cannot come back must not be waited for."""
    wakes = [
        await harness.book(agent=agent, at=harness.clock.now() + MINUTE) for agent in (away, await harness.add_agent())
    ]
    harness.clock.advance(MINUTE)
    await harness.node.engine.scheduler.turn()
    await harness.sql("UPDATE runs SET is_resuming = 1, started_at = queued_at, fence = 1")
    await harness.hold_runs()
    await harness.work()
    assert [ran.run.wake_id for ran in harness.executor.ran] == [wakes[1].id]


async def test_a_low_run_that_is_held_is_not_dropped_for_want_of_a_slot(harness, there, away):
    wake = await harness.book(agent=away, at=harness.clock.now() + MINUTE, priority="low")
    harness.clock.advance(MINUTE)
    await harness.turn()
    harness.clock.advance(HOUR)
    assert await harness.node.engine.firing.shed_low() == []
    assert [run.status for run in await harness.runs_of(wake)] == ["queued"]


# ── The id of a directory ───────────────────────────────────────────────────────────────────────────────────────────


async def test_a_data_directory_has_one_id_for_ever(backend_settings):
    found = set()
    for _ in range(2):
        node = build(Settings.model_validate(backend_settings))
        async with node.opened():
            found.add(node.services.directories.id)
    file = backend_settings["data_dir"] / "directory.json"
    assert found == {json.loads(file.read_text())["id"]}
    assert file.stat().st_mode & 0o777 == 0o600


async def test_two_nodes_that_start_at_once_have_one_id(tmp_path, swept_postgres_url):
    settings = {"data_dir": tmp_path, "config_dir": tmp_path / "config", "database_url": swept_postgres_url}
    nodes = [build(Settings.model_validate(settings)) for _ in range(4)]

    async def enter(node):
        async with node.opened():
            return node.services.directories.id

    assert len(set(await asyncio.gather(*map(enter, nodes)))) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agents", "caches", "config", "directory.json"]


async def test_an_id_that_cannot_be_read_is_named(backend_settings):
    backend_settings["data_dir"].mkdir()
    (backend_settings["data_dir"] / "directory.json").write_text("nonsense")
    with pytest.raises(Unavailable, match=r"directory\.json.*Restore it"):
        async with build(Settings.model_validate(backend_settings)).opened():
            pass


# ── Device keys ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def start(settings):
    async with build(settings).opened():
        pass


@pytest.fixture
async def settings(harness):
    """The settings of a node that has a database."""
    await make_table(harness.node, await harness.add_agent(toolsets=("database",)))
    return harness.node.settings


async def test_a_node_with_another_device_key_does_not_start_on_the_same_directory(settings, tmp_path):
    other = settings.model_copy(update={"config_dir": tmp_path / "other-config"})
    with pytest.raises(Unavailable, match=r"device key.*wakeful key restore"):
        await start(other)
    await asyncio.to_thread(restore_device_key, other, to_recovery_key(load_device_key(settings.config_dir)))
    await start(other)
    assert load_device_key(other.config_dir).hex() not in (settings.data_dir / "directory.json").read_text()


async def test_a_lost_file_is_no_way_past_the_comparison(settings, tmp_path):
    file = settings.data_dir / "directory.json"
    file.write_text(json.dumps({"id": json.loads(file.read_text())["id"]}))
    with pytest.raises(Unavailable, match="wakeful key restore"):
        await start(settings.model_copy(update={"config_dir": tmp_path / "other-config"}))
    await start(settings)


async def test_a_rotation_keeps_the_comparison_in_step(settings):
    await asyncio.to_thread(rotate_device_key, settings)
    await start(settings)
    [old] = settings.config_dir.glob("device.key.*.old")
    (settings.config_dir / "device.key").unlink()
    old.rename(settings.config_dir / "device.key")
    with pytest.raises(Unavailable, match="wakeful key restore"):
        await start(settings)


async def test_a_running_node_with_the_old_key_is_noticed(harness, settings):
    await harness.node.services.directories.arrive()
    await asyncio.to_thread(rotate_device_key, settings)
    with pytest.raises(Unavailable, match="running node"):
        async with harness.another_node().opened():
            pass
    await harness.node.services.directories.leave()
    async with harness.another_node().opened():
        pass


async def test_a_lost_key_can_be_given_up_and_put_back(settings, tmp_path):
    right = to_recovery_key(load_device_key(settings.config_dir))
    lost = settings.model_copy(update={"config_dir": tmp_path / "new-config"})
    file = settings.data_dir / "directory.json"
    file.write_text(json.dumps({"id": json.loads(file.read_text())["id"], "device_key": None}))
    await start(lost)
    with pytest.raises(Unavailable, match="wakeful key restore"):
        await start(settings)
    with pytest.raises(Conflict, match="opens none"):
        await asyncio.to_thread(restore_device_key, lost, to_recovery_key(bytes(32)))
    await asyncio.to_thread(restore_device_key, lost, right)
    await start(lost)
    await start(settings)


# ── A store that was left behind ────────────────────────────────────────────────────────────────────────────────────


async def test_an_empty_postgresql_beside_a_full_embedded_store_is_refused(tmp_path, postgres_url):
    embedded = Settings.model_validate({"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"})
    await start(embedded)
    shared = Settings.model_validate(
        {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "database_url": postgres_url}
    )
    with pytest.raises(Unavailable, match=r"wakeful\.sqlite.*WAKEFUL_DATABASE_URL.*serve --new"):
        await start(shared)
    connection = await asyncpg.connect(postgres_url)
    assert await connection.fetchval("SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'") == 0
    await connection.close()
    await start(embedded)
    (tmp_path / "data" / "wakeful.sqlite").rename(tmp_path / "old.sqlite")
    await start(shared)


async def test_a_postgresql_with_agents_in_it_starts_beside_any_store(harness, tmp_path):
    sqlite3.connect(tmp_path / "here" / "wakeful.sqlite").execute("CREATE TABLE t (x)").connection.close()
    async with harness.another_node().opened():
        pass


async def test_tables_without_agents_are_as_empty_as_none(tmp_path, swept_postgres_url):
    settings = {"data_dir": tmp_path, "config_dir": tmp_path / "config", "database_url": swept_postgres_url}
    await start(Settings.model_validate(settings))
    (tmp_path / "wakeful.sqlite").write_bytes(b"content")
    with pytest.raises(Unavailable, match="is empty"):
        await start(Settings.model_validate(settings))
