"""The service of agents' databases: ownership, notifications, keys."""

import asyncio

import pytest

from databases import fingerprints
from wakeful.agentdb import file, history
from wakeful.agentdb.errors import DatabaseLocked, DatabaseUnreadable, DataNotFound, QuotaReached
from wakeful.agentdb.keys import AgentKeys
from wakeful.core.errors import Forbidden, Invalid, NotFound
from wakeful.core.hub import user_topic
from wakeful.core.types import User
from wakeful.database.files import By

pytestmark = pytest.mark.both_stores

COLUMNS = [{"name": "title", "type": "text"}]

# On a shared store the files are caches, which are brought again; tests/homes has their tests.
on_files = pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True)


@pytest.fixture
async def by(harness):
    agent = await harness.add_agent(toolsets=("database",))
    return By(agent=agent, actor="agent", run_id="run-1")


@pytest.fixture
def data(harness):
    return harness.node.services.data


@pytest.fixture
async def tasks(data, by):
    await data.run(by, "create_table", name="tasks", purpose="What is to be done.", columns=COLUMNS)
    await data.run(by, "insert", table="tasks", rows=[{"title": "a"}, {"title": "b"}])
    return by


def folder(harness, by):
    return harness.node.services.workspace_of(by.agent.id).parent


async def test_looking_makes_nothing(harness, data, by):
    assert (await data.run(by, "schema"))["tables"] == []
    assert await data.run(by, "list_views") == []
    assert await data.run(by, "changelog") == {"changes": [], "is_more": False}
    with pytest.raises(DataNotFound, match="db_create_table"):
        await data.run(by, "query", sql="SELECT * FROM tasks")
    with pytest.raises(DataNotFound):
        await data.run(by, "insert", table="tasks", rows=[{"title": "a"}])
    assert await data.files.state(by.agent) == "none"
    assert not folder(harness, by).exists()


async def test_the_first_table_makes_the_file_and_its_key(harness, data, tasks):
    assert {path.name for path in folder(harness, tasks).iterdir()} >= {"db.sqlite", "db.key"}
    assert await data.files.state(tasks.agent) == "open"
    assert (await data.run(tasks, "query", sql="SELECT title FROM tasks"))["rows"] == [["a"], ["b"]]


async def test_only_its_owner_gets_at_it(harness, data, tasks):
    assert (await data.person(tasks.agent.id, harness.user.id)).agent.id == tasks.agent.id
    with pytest.raises(NotFound):
        await data.person(tasks.agent.id, "someone else")


async def test_agents_do_not_see_each_others(harness, data, tasks):
    other = By(agent=await harness.add_agent(toolsets=("database",)), actor="agent", run_id="run-1")
    assert (await data.run(other, "schema"))["tables"] == []
    await data.run(other, "create_table", name="tasks", purpose="x", columns=COLUMNS)
    assert (await data.run(other, "query", sql="SELECT count(*) FROM tasks"))["rows"] == [[0]]


async def test_those_who_listen_are_told_that_a_write_is_under_way_and_done(harness, data, by):
    feed, hub = harness.node.services.feed, harness.node.services.hub
    for table in ("one", "two", "three"):
        feed.last_seq(harness.user.id)
        with hub.subscribe(user_topic(harness.user.id)) as listening:
            await data.run(by, "create_table", name=table, purpose="x", columns=COLUMNS)
            await data.run(by, "insert", table=table, rows=[{"title": "a"}])
            is_behind, frames = listening.is_behind, [frame.text for frame in listening.drain()]
        if not is_behind:  # else the store, just connected, has announced LookAgain
            break
    flown = [(frame.count('"in_flight":1'), frame.count('"last_change"')) for frame in frames if "db_update" in frame]
    assert flown == [(1, 0), (0, 1), (1, 0), (0, 1)]
    assert data.files.in_flight(by.agent.id) == 0


async def test_writes_to_one_file_wait_for_each_other_and_all_get_through(data, tasks):
    await asyncio.gather(
        *(data.run(tasks, "insert", table="tasks", rows=[{"title": str(number)}]) for number in range(20))
    )
    assert (await data.run(tasks, "query", sql="SELECT count(*) FROM tasks"))["rows"] == [[22]]
    assert (await data.run(tasks, "verify"))["intact"]


async def test_a_full_database_warns_its_owner_once(harness, data, by):
    by = By(
        agent=await harness.node.agents.change(by.agent.id, harness.user, lambda _: {"database_mb": 1}), actor="agent"
    )
    await data.run(by, "create_table", name="tasks", purpose="x", columns=COLUMNS)

    async def fill():
        while True:
            await data.run(by, "insert", table="tasks", rows=[{"title": "x" * 20_000}])

    with pytest.raises(QuotaReached, match="db_delete"):
        await fill()
    [notice] = [notice for notice in await harness.notices() if notice.code == "storage_low"]
    assert (notice.agent_id, notice.user_id) == (by.agent.id, harness.user.id)


async def test_without_its_key_it_is_locked_and_nothing_is_touched(harness, data, tasks):
    key = folder(harness, tasks) / "db.key"
    kept = key.read_bytes()
    key.unlink()
    before = fingerprints(folder(harness, tasks))
    for asking in (
        data.run(tasks, "query", sql="SELECT 1"),
        data.run(tasks, "insert", table="tasks", rows=[{"title": "c"}]),
        data.run(tasks, "verify"),
    ):
        with pytest.raises(DatabaseLocked, match="locked"):
            await asking
    assert await data.files.state(tasks.agent) == "locked"
    assert await data.names(tasks.agent) == ([], {})
    assert fingerprints(folder(harness, tasks)) == before
    key.write_bytes(kept)
    assert (await data.run(tasks, "query", sql="SELECT count(*) FROM tasks"))["rows"] == [[2]]


@on_files
async def test_a_damaged_file_is_put_aside_and_the_agent_can_begin_anew(harness, data, tasks):
    await data.files.engine.close_file(str(folder(harness, tasks) / "db.sqlite"))
    damaged = b"garbage " * 1000
    (folder(harness, tasks) / "db.sqlite").write_bytes(damaged)
    with pytest.raises(DatabaseUnreadable, match="put aside") as refused:
        await data.run(tasks, "query", sql="SELECT 1")
    told = [str(refused.value), *(notice.body for notice in await harness.notices())]
    assert not any(str(harness.settings["data_dir"]) in each for each in told)
    [aside] = (folder(harness, tasks) / "quarantine").iterdir()
    assert (aside / "db.sqlite").read_bytes() == damaged
    assert (aside / "db.key").exists()
    assert "database_unreadable" in {notice.code for notice in await harness.notices()}
    await data.run(tasks, "create_table", name="tasks", purpose="x", columns=COLUMNS)
    assert (await data.run(tasks, "query", sql="SELECT count(*) FROM tasks"))["rows"] == [[0]]


async def test_a_key_is_rotated(harness, data, tasks):
    old = data.files.vault.open(tasks.agent.id).current
    await data.run(tasks, "migrate", purpose="x", up_sql="CREATE TABLE more (a)", down_sql="")
    await data.files.rotate_key(tasks)
    assert data.files.vault.open(tasks.agent.id).current != old
    assert data.files.vault.open(tasks.agent.id).previous is None
    assert (await data.run(tasks, "query", sql="SELECT count(*) FROM tasks"))["rows"] == [[2]]
    await data.run(tasks, "insert", table="tasks", rows=[{"title": "c"}])


@pytest.mark.parametrize("is_rekeyed", [False, True], ids=["before the file has it", "after the file has it"])
async def test_a_rotation_that_was_cut_off_locks_nobody_out(harness, data, tasks, is_rekeyed):
    path = folder(harness, tasks) / "db.sqlite"
    old, new = data.files.vault.open(tasks.agent.id).current, bytes(32)
    data.files.vault.save(tasks.agent.id, AgentKeys(current=new, previous=old))
    await data.files.engine.close_file(str(path))
    if is_rekeyed:
        file.change_key(path, old, new)
    assert (await data.run(tasks, "query", sql="SELECT count(*) FROM tasks"))["rows"] == [[2]]
    assert await data.files.state(tasks.agent) == "open"


async def test_deleting_an_agent_destroys_its_database(harness, data, tasks):
    await data.run(tasks, "migrate", purpose="x", up_sql="CREATE TABLE more (a)", down_sql="")
    await harness.node.agents.delete(tasks.agent.id, harness.user.id)
    assert [path for path in folder(harness, tasks).rglob("*") if path.is_file()] == []


@on_files
async def test_a_runs_writes_are_undone_by_its_user_only(harness, data, by):
    session = await harness.session(by.agent)
    run = await harness.node.runs.ask(session.id, harness.user.id, "Hello")
    mine = By(agent=by.agent, actor="agent", run_id=run.id)
    await data.run(by, "create_table", name="tasks", purpose="x", columns=COLUMNS)
    await data.run(by, "insert", table="tasks", rows=[{"title": "a"}])
    await data.run(mine, "update", table="tasks", set={"title": "b"}, where={"id": 1})
    with pytest.raises(NotFound):
        await data.undo_run(run.id, "someone else")
    assert (await data.undo_run(run.id, harness.user.id))["undone"] == 1
    assert (await data.run(by, "query", sql="SELECT title FROM tasks"))["rows"] == [["a"]]


async def test_names_are_those_of_an_agent_that_has_the_toolset(harness, data, tasks):
    await data.run(tasks, "define_view", name="all_tasks", sql="SELECT * FROM tasks")
    await data.run(
        tasks, "define_view", name="one", sql="SELECT * FROM tasks WHERE id = :id", parameters=[{"name": "id"}]
    )
    assert await data.names(tasks.agent) == (["tasks"], {"all_tasks": [], "one": ["id"]})
    off = await harness.node.agents.change(tasks.agent.id, harness.user, lambda _: {"toolsets": ()})
    assert await data.names(off) == ([], {})


@on_files
async def test_a_rotation_cut_off_among_the_snapshots_is_finished_with_the_next_request(harness, data, tasks):
    for number in range(3):
        await data.run(tasks, "migrate", purpose="x", up_sql=f"CREATE TABLE t{number} (a)", down_sql="")
    path = folder(harness, tasks) / "db.sqlite"
    copies = history.snapshots_of(path)
    old, new = data.files.vault.open(tasks.agent.id).current, bytes(range(32))
    # As a crash leaves it: both keys are kept, one copy has the new one, the others and the file the old one.
    data.files.vault.save(tasks.agent.id, AgentKeys(current=new, previous=old))
    file.change_key(copies[0], old, new)
    assert (await data.run(tasks, "query", sql="SELECT count(*) FROM tasks"))["rows"] == [[2]]
    assert data.files.vault.open(tasks.agent.id) == AgentKeys(current=new)
    assert [file.opens(each, new) for each in (*copies, path)] == [True] * 4
    await data.files.rotate_key(tasks)
    newest = data.files.vault.open(tasks.agent.id).current
    assert [file.opens(each, newest) for each in (*copies, path)] == [True] * 4


async def test_what_a_crash_left_of_a_deleted_agents_database_is_erased_at_the_next_start(harness, data, tasks):
    other = By(agent=await harness.add_agent(toolsets=("database",)), actor="agent")
    await data.run(other, "create_table", name="tasks", purpose="x", columns=COLUMNS)

    async def work(tx):
        await tx.agents.delete(tasks.agent.id, harness.clock.now())

    await harness.node.store.write(work)  # and here the server dies, before the files are gone
    assert (folder(harness, tasks) / "db.key").exists()
    await data.files.finish_erasing()
    assert [path for path in folder(harness, tasks).rglob("*") if path.is_file()] == []
    assert (await data.run(other, "query", sql="SELECT count(*) FROM tasks"))["rows"] == [[0]]


@on_files
async def test_a_changelog_that_was_cut_off_is_noticed_and_a_new_one_is_not(harness, data, tasks):
    assert (await data.run(tasks, "verify"))["intact"]
    await data.files.heads.aclose()  # as a stop of the server does
    path = folder(harness, tasks) / "db.sqlite"
    await data.files.engine.close_file(str(path))
    forger = file.connect(str(path), data.files.vault.open(tasks.agent.id).current)
    forger.execute("DELETE FROM _changelog WHERE id = (SELECT max(id) FROM _changelog)")
    forger.close()
    assert await data.run(tasks, "verify") == {"intact": False, "broken_at": 3, "is_cut_off": True}
    path.rename(path.with_name("elsewhere"))
    with pytest.raises(DatabaseUnreadable, match="is missing"):
        await data.run(tasks, "verify")
    await data.files.erase(tasks.agent)
    await data.run(tasks, "create_table", name="tasks", purpose="x", columns=COLUMNS)
    assert (await data.run(tasks, "verify"))["intact"]


async def test_an_agent_can_have_a_quota_of_its_own(harness, data, tasks):
    assert (await data.run(tasks, "schema"))["storage"]["quota_bytes"] == 100 * 1024 * 1024
    small = By(agent=await harness.node.agents.change(tasks.agent.id, harness.user, lambda _: {"database_mb": 1}))
    assert (await data.run(small, "schema"))["storage"]["quota_bytes"] == 1024 * 1024
    with pytest.raises(QuotaReached, match="1,048,576"):
        await data.run(small, "insert", table="tasks", rows=[{"title": "x" * 400_000}] * 3)
    plain = User(id=harness.user.id, name="Ada", role="user", created_at=harness.user.created_at)
    with pytest.raises(Forbidden, match="101 MB"):
        await harness.node.agents.change(tasks.agent.id, plain, lambda _: {"database_mb": 101})
    with pytest.raises(Invalid, match="got 0"):
        await harness.node.agents.change(tasks.agent.id, harness.user, lambda _: {"database_mb": 0})
