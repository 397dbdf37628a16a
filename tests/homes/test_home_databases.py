"""Nodes on one PostgreSQL with separate disks: an agent's database is in PostgreSQL, and each disk is a cache."""

import asyncio
import gc

import pytest

from harness import HOUR, MINUTE, Harness, doing, run_tidy_jobs
from wakeful.agentdb.errors import DatabaseUnreadable, DataConflict
from wakeful.app.building import build
from wakeful.config.settings import Settings
from wakeful.core.errors import Unavailable
from wakeful.core.records import HomeTaken
from wakeful.database.files import By
from wakeful.datadir.device_key import rotate_device_key

COLUMNS = [{"name": "title", "type": "text", "unique": True}]


@pytest.fixture
async def agent(harness):
    agent = await harness.add_agent(toolsets=("database",))
    await run(harness.node, agent, "create_table", name="tasks", purpose="x", columns=COLUMNS)
    return agent


async def run(node, agent, op, *, run_id=None, **args):
    by = By(agent=agent) if run_id is None else By(agent=agent, actor="agent", run_id=run_id)
    return await node.services.data.run(by, op, **args)


async def add(node, agent, *titles, run_id=None):
    return await run(node, agent, "insert", run_id=run_id, table="tasks", rows=[{"title": each} for each in titles])


async def titles(node, agent):
    return [row[0] for row in (await run(node, agent, "query", sql="SELECT title FROM tasks ORDER BY title"))["rows"]]


async def is_intact(node, agent):
    return (await run(node, agent, "verify"))["intact"]


def cache_of(tmp_path, name, agent):
    [path] = (tmp_path / name / "caches").glob(f"*/{agent.id}/db.sqlite")
    return path


# ── One memory ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_every_node_reads_and_writes_the_same_rows(harness, there, agent):
    here = harness.node
    await add(here, agent, "a")
    assert await titles(there, agent) == ["a"]
    await add(there, agent, "b")
    await add(here, agent, "c")
    await add(there, agent, "d")
    assert await titles(here, agent) == await titles(there, agent) == ["a", "b", "c", "d"]
    assert await is_intact(here, agent)
    assert await is_intact(there, agent)


async def test_of_two_nodes_that_create_the_database_at_once_none_loses_anything(harness, there):
    agents = [await harness.add_agent(toolsets=("database",)) for _ in range(5)]
    made = [(node, name) for node, name in ((harness.node, "one"), (there, "two"))]
    await asyncio.gather(
        *[
            run(node, agent, "create_table", name=name, purpose="x", columns=COLUMNS)
            for agent in agents
            for node, name in made
        ]
    )
    for agent in agents:
        for node in (harness.node, there):
            found = await run(node, agent, "schema")
            assert sorted(table["name"] for table in found["tables"]) == ["one", "two"]
            assert await is_intact(node, agent)


async def test_writes_on_two_nodes_at_once_are_all_there(harness, there, agent):
    expected = sorted(f"{name}{number}" for name in ("here", "there") for number in range(8))
    await asyncio.gather(
        *[add(node, agent, f"{name}{n}") for n in range(8) for node, name in ((harness.node, "here"), (there, "there"))]
    )
    assert await titles(harness.node, agent) == await titles(there, agent) == expected
    assert await is_intact(there, agent)


async def test_a_node_that_starts_anew_has_everything(harness, agent, tmp_path):
    await add(harness.node, agent, "a", "b")
    late = harness.another_node(data_dir=tmp_path / "late")
    async with late.opened():
        assert await titles(late, agent) == ["a", "b"]
        await add(late, agent, "c")
    async with harness.another_node(data_dir=tmp_path / "late").opened():
        pass
    assert await titles(harness.node, agent) == ["a", "b", "c"]


async def test_nodes_on_one_directory_have_caches_of_their_own(harness, agent, tmp_path):
    second = harness.another_node()
    async with second.opened():
        await add(second, agent, "a")
        assert await titles(harness.node, agent) == ["a"]
        assert len(list((tmp_path / "here" / "caches").glob(f"*/{agent.id}/db.sqlite"))) == 2


async def test_a_look_creates_nothing(harness, there, postgres):
    agent = await harness.add_agent(toolsets=("database",))
    assert await there.services.data.files.state(agent) == "none"
    assert (await run(there, agent, "schema"))["tables"] == []
    assert await postgres.fetch("SELECT 1 FROM homes WHERE agent_id = $1", agent.id) == []


async def test_a_refused_write_changes_nothing_anywhere(harness, there, agent):
    await add(harness.node, agent, "a")
    with pytest.raises(DataConflict):
        await add(there, agent, "a")
    assert await titles(harness.node, agent) == ["a"]


async def test_a_refused_write_whose_caller_is_gone_is_logged_without_a_traceback(harness, agent, monkeypatch, caplog):
    await add(harness.node, agent, "a")
    engine, is_asked, may_answer = harness.node.services.data.files.engine, asyncio.Event(), asyncio.Event()
    ask = engine.ask

    async def answer_late(request, *more):
        is_asked.set()
        await may_answer.wait()
        return await ask(request, *more)

    monkeypatch.setattr(engine, "ask", answer_late)
    caller = asyncio.create_task(add(harness.node, agent, "a"))
    await is_asked.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    may_answer.set()
    await harness.node.services.data.files.aclose()
    gc.collect()
    assert "not done, and its caller is gone" in caplog.text
    assert "Traceback" not in caplog.text


# ── The fence ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_write_that_another_node_comes_before_is_done_on_the_new_state(harness, there, agent, monkeypatch):
    """The home is taken after the local commit, before its pages are saved."""
    engine, tries = harness.node.services.data.files.engine, []
    ask = engine.ask

    async def answer_late(request, *more):
        answer = await ask(request, *more)
        tries.append(request.op)
        if tries == ["insert"]:
            await add(there, agent, "first")
        return answer

    monkeypatch.setattr(engine, "ask", answer_late)
    await add(harness.node, agent, "second")
    assert tries == ["insert", "insert"]
    assert await titles(there, agent) == await titles(harness.node, agent) == ["first", "second"]
    assert await is_intact(there, agent)


async def test_a_run_that_another_node_has_taken_over_cannot_write(harness, there, agent, postgres):
    wake = await harness.book(agent=agent, at=harness.clock.now() + MINUTE)
    harness.clock.advance(MINUTE)
    refused = []

    async def write_late(taken):
        await add(harness.node, agent, "in time", run_id=taken.id)
        await postgres.execute("UPDATE runs SET owner = 'another', fence = fence + 1 WHERE id = $1", taken.id)
        await postgres.execute("UPDATE homes SET holder = 'another', fence = fence + 1")
        try:
            await add(harness.node, agent, "too late", run_id=taken.id)
        except HomeTaken as error:
            refused.append(error)

    harness.executor.by_wake[wake.id] = doing(write_late)
    await harness.turn()
    assert refused
    assert await titles(there, agent) == ["in time"]


async def test_a_run_goes_to_the_node_that_has_the_home_and_takes_it_from_a_dead_one(harness, there, agent):
    await add(there, agent, "a")
    await there.services.directories.arrive()  # it lives
    wakes = [await harness.book(agent=agent, at=harness.clock.now() + number * MINUTE) for number in (1, 2)]
    harness.clock.advance(MINUTE)
    await harness.node.services.directories.arrive()
    await there.services.directories.arrive()
    await harness.turn()
    assert [ran.run.wake_id for ran in harness.executor.ran] == []  # it is left to the other node
    await there.engine.runner.turn()
    await there.engine.runner.idle()
    assert [ran.run.wake_id for ran in harness.executor.ran] == [wakes[0].id]
    harness.clock.advance(HOUR)  # there is no heartbeat any more
    await harness.turn()
    assert [ran.run.wake_id for ran in harness.executor.ran] == [wake.id for wake in wakes]


async def test_a_live_node_that_does_not_claim_in_time_loses_the_run(harness, there, agent):
    await add(there, agent, "a")
    await harness.book(agent=agent, at=harness.clock.now() + MINUTE)
    harness.clock.advance(MINUTE)
    await harness.turn()
    harness.clock.advance(MINUTE / 60)
    await there.services.directories.arrive()
    await harness.turn()
    assert len(harness.executor.ran) == 1


# ── Operations across nodes ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_new_key_reaches_every_node_and_its_snapshots(harness, there, agent):
    for node, column in ((harness.node, "note"), (there, "hours")):
        await add(node, agent, column)
        up_sql = f"ALTER TABLE tasks ADD COLUMN {column} TEXT"
        await run(node, agent, "migrate", purpose="p", up_sql=up_sql, down_sql="SELECT 1")
        harness.clock.advance(MINUTE)
    await there.services.data.files.rotate_key(By(agent=agent))
    assert await titles(harness.node, agent) == ["hours", "note"]
    await add(harness.node, agent, "c")
    last, first = await run(harness.node, agent, "snapshots")
    assert (await run(there, agent, "snapshots")) == [last, first]
    recovered = {"snapshot": first["name"], "table": "tasks", "new_name": "old_tasks"}
    assert (await run(harness.node, agent, "recover", **recovered))["recovered"] == 1
    assert await titles(there, agent) == ["c", "hours", "note"]
    assert await is_intact(there, agent)


async def test_a_run_is_undone_on_another_node(harness, there, agent):
    wake = await harness.book(agent=agent, at=harness.clock.now() + MINUTE)
    harness.clock.advance(MINUTE)
    harness.executor.by_wake[wake.id] = doing(lambda taken: add(harness.node, agent, "a", run_id=taken.id))
    await harness.turn()
    [ran] = harness.executor.ran
    assert (await there.services.data.undo_run(ran.run.id, harness.user.id))["undone"] == 1
    assert await titles(harness.node, agent) == []


async def test_an_erased_database_is_gone_everywhere(harness, there, agent, postgres, tmp_path):
    await add(there, agent, "a")
    up_sql = "ALTER TABLE tasks ADD COLUMN note TEXT"
    await run(there, agent, "migrate", purpose="p", up_sql=up_sql, down_sql="SELECT 1")
    assert await titles(harness.node, agent) == ["a"]
    await harness.node.services.data.files.erase(agent)
    for table in ("home_pages", "home_blobs", "home_files"):
        assert await postgres.fetchval(f"SELECT count(*) FROM {table}") == 0
    assert await postgres.fetchval("SELECT database_key FROM homes") is None
    assert await there.services.data.files.state(agent) == "none"
    assert list(tmp_path.glob("*/caches/*/*/db.*")) == []
    await run(there, agent, "create_table", name="tasks", purpose="x", columns=COLUMNS)
    assert await titles(harness.node, agent) == []


async def test_a_deleted_agent_leaves_nothing(harness, there, agent, postgres, tmp_path):
    await add(there, agent, "a")
    await harness.node.agents.delete(agent.id, harness.user.id)
    assert await postgres.fetchval("SELECT count(*) FROM home_pages") == 0
    await run_tidy_jobs(there)
    assert list(tmp_path.glob("*/caches/*/*/db.*")) == []


async def test_a_large_import_and_its_deletion_reach_the_other_node(harness, there, agent, postgres):
    text = "title\n" + "".join(f"{number:06}-{'x' * 150}\n" for number in range(10_000))
    await run(harness.node, agent, "import", table="tasks", text=text, format="csv")
    assert await postgres.fetchval("SELECT count(*) FROM home_pages") > 600
    counted = await run(there, agent, "query", sql="SELECT count(*) FROM tasks")
    assert counted["rows"] == [[10_000]]
    await run(there, agent, "migrate", purpose="p", up_sql="DROP TABLE tasks", down_sql="SELECT 1")
    assert (await run(harness.node, agent, "schema"))["tables"] == []
    assert await is_intact(harness.node, agent)


async def test_a_full_database_makes_room_on_any_node(harness, there):
    """Space is reclaimed in transactions of its own, with checkpoints between them, before the write itself."""
    agent = await harness.add_agent(toolsets=("database",), database_mb=1)
    await run(harness.node, agent, "create_table", name="tasks", purpose="x", columns=COLUMNS)
    for node, number in ((harness.node, 1), (there, 2), (harness.node, 3), (there, 4), (harness.node, 5)):
        await add(node, agent, *(f"{number}-{row}-{'x' * 1_000}" for row in range(60)))
        where = {"table": "tasks", "where": {"title": {"like": f"{number}-%"}}}
        await run(node, agent, "delete", **where)
    for node in (harness.node, there):
        assert await is_intact(node, agent)
        assert await titles(node, agent) == []


# ── Damage ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["deleted", "emptied", "spoiled", "without its journal"])
async def test_a_damaged_cache_is_brought_again(harness, agent, tmp_path, how):
    await add(harness.node, agent, "a")
    path = cache_of(tmp_path, "here", agent)
    match how:
        case "deleted":
            path.unlink()
        case "emptied":
            path.write_bytes(b"")
        case "spoiled":
            await harness.node.services.data.files.engine.close_file(str(path))
            path.with_name("db.sqlite-wal").unlink()
            path.write_bytes(bytes(len(path.read_bytes())))
        case _:
            path.with_name("db.sqlite-wal").unlink()
    for title in ("b", "c"):
        try:
            await add(harness.node, agent, title)
        except Unavailable:  # it says so, and nothing of it was saved
            await add(harness.node, agent, title)
    assert await titles(harness.node, agent) == ["a", "b", "c"]
    assert await is_intact(harness.node, agent)


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM home_pages WHERE page_no = 2",
        "UPDATE home_pages SET bytes = set_byte(bytes, 99, get_byte(bytes, 99) # 255) WHERE page_no = 1",
    ],
)
async def test_a_database_with_damaged_pages_is_put_into_quarantine_and_never_read_in_part(
    harness, there, agent, postgres, damage, is_written
):
    await add(harness.node, agent, "a")
    await postgres.execute(damage)
    with pytest.raises(DatabaseUnreadable, match="quarantine"):
        await (add(there, agent, "lost") if is_written else titles(there, agent))
    [notice] = [each for each in await harness.notices() if each.code == "database_unreadable"]
    assert "quarantine/" in notice.body
    assert await there.services.data.files.state(agent) == "none"
    kept = there.services.workspace_of(agent.id).parent / "quarantine"
    assert {path.name for path in kept.glob("*/*")} >= {"db.sqlite", "db.key"}
    saved = (
        "SELECT count(*) FROM home_files WHERE path LIKE 'quarantine/%/db.key' OR path LIKE 'quarantine/%/db.sqlite'"
    )
    assert await postgres.fetchval(saved) == 2
    await run(harness.node, agent, "create_table", name="tasks", purpose="x", columns=COLUMNS)
    await add(harness.node, agent, "b")
    assert await titles(there, agent) == ["b"]
    assert len([each for each in await harness.notices() if each.code == "database_unreadable"]) == 1


async def test_an_older_page_here_does_not_stand_in_for_one_that_postgresql_lost(harness, there, agent, postgres):
    await add(harness.node, agent, "a")
    assert await titles(there, agent) == ["a"]
    await add(harness.node, agent, "b")
    newest = (
        "(SELECT page_no FROM home_pages WHERE seq = (SELECT max(seq) FROM home_pages) ORDER BY page_no DESC LIMIT 1)"
    )
    await postgres.execute(f"DELETE FROM home_pages WHERE page_no = {newest}")
    with pytest.raises(DatabaseUnreadable, match="quarantine"):
        await titles(there, agent)


async def test_tables_of_a_damaged_database_that_can_be_read_are_exported(harness, there, agent, postgres):
    await run(harness.node, agent, "create_table", name="large", purpose="x", columns=COLUMNS)
    rows = [{"title": f"{number}-{'x' * 3_000}"} for number in range(30)]
    await run(harness.node, agent, "insert", table="large", rows=rows)
    await add(harness.node, agent, "a")
    before = await postgres.fetchval("SELECT count(*) FROM home_pages")
    await run(harness.node, agent, "insert", table="large", rows=[{"title": "y" * 9_000}])
    flip = "UPDATE home_pages SET bytes = set_byte(bytes, 99, get_byte(bytes, 99) # 255)"
    await postgres.execute(f"{flip} WHERE page_no > {before}")  # of that row
    with pytest.raises(DatabaseUnreadable, match="quarantine"):
        await run(there, agent, "query", sql="SELECT sum(length(title)), max(title) FROM large")
    await harness.node.services.data.files.bring_files(agent.id)
    exported = list(harness.node.services.workspace_of(agent.id).glob("damaged-database-*/*.csv"))
    assert [path.name for path in exported] == ["tasks.csv"]
    assert b"a" in exported[0].read_bytes()
    [notice] = [each for each in await harness.notices() if each.code == "database_unreadable"]
    assert "tasks" in notice.body
    assert "large" not in notice.body


# ── Keys ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_rotated_device_key_opens_the_homes(tmp_path, swept_postgres_url):
    settings = {"data_dir": tmp_path / "here", "config_dir": tmp_path / "config", "database_url": swept_postgres_url}
    async with Harness(settings).opened() as harness:
        agent = await harness.add_agent(toolsets=("database",))
        await run(harness.node, agent, "create_table", name="tasks", purpose="x", columns=COLUMNS)
        await add(harness.node, agent, "a")
        up_sql = "ALTER TABLE tasks ADD COLUMN note TEXT"
        await run(harness.node, agent, "migrate", purpose="p", up_sql=up_sql, down_sql="SELECT 1")
    await asyncio.to_thread(rotate_device_key, Settings.model_validate(settings))
    node = build(Settings.model_validate(settings), executor=harness.executor, clock=harness.clock)
    async with node.opened():
        assert await titles(node, agent) == ["a"]
        assert len(await run(node, agent, "snapshots")) == 1
        await add(node, agent, "b")
