"""The file of an agent's database is emptied, cut or gone: its user gets a notice, and nothing of it is deleted."""

import os
import shutil

import pytest

from wakeful.agentdb.errors import DatabaseUnreadable, DataNotFound
from wakeful.agentdb.keys import AgentKeys
from wakeful.database.files import By
from wakeful.database.service import DatabasePrompt

COLUMNS = [{"name": "title", "type": "text"}]


@pytest.fixture
def data(harness):
    return harness.node.services.data


@pytest.fixture
async def by(harness, data):
    """An agent with a table, rows and a snapshot, as they are after a crash: the last rows are in the journal."""
    by = By(agent=await harness.add_agent(toolsets=("database",)), actor="agent", run_id="run-1")
    await data.run(by, "create_table", name="tasks", purpose="What is to be done.", columns=COLUMNS)
    await data.run(by, "insert", table="tasks", rows=[{"title": "a"}])
    await data.run(by, "migrate", purpose="x", up_sql="CREATE TABLE more (a)", down_sql="")  # takes the snapshot
    await data.run(by, "insert", table="tasks", rows=[{"title": "b"}, {"title": "c"}])
    await data.files.heads.aclose()  # a second later they are saved
    folder = folder_of(harness, by)
    shutil.copytree(folder, folder.with_name("copy"))
    await data.files.engine.close_file(str(folder / "db.sqlite"))
    shutil.rmtree(folder)
    folder.with_name("copy").rename(folder)
    assert (folder / "db.sqlite-wal").stat().st_size
    data.files.prepared.clear()  # as after a start
    return by


# On a shared store the files are caches, whose damage is in tests/homes.
pytestmark = pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True)


def folder_of(harness, by):
    return harness.node.settings.data_dir / "agents" / by.agent.id


async def told(harness):
    return [notice for notice in await harness.notices() if notice.code.startswith("database_")]


async def test_an_empty_file_with_a_journal_is_set_aside_whole(harness, data, by):
    folder = folder_of(harness, by)
    journal, key = (folder / "db.sqlite-wal").read_bytes(), (folder / "db.key").read_bytes()
    os.truncate(folder / "db.sqlite", 0)
    with pytest.raises(DatabaseUnreadable, match=r"is empty \(0 bytes\).*put aside.*nothing was deleted"):
        await data.run(by, "query", sql="SELECT title FROM tasks")
    [aside] = (folder / "quarantine").iterdir()
    assert (aside / "db.sqlite").read_bytes() == b""
    assert (aside / "db.sqlite-wal").read_bytes() == journal
    assert (aside / "db.key").read_bytes() == key
    [notice] = await told(harness)
    assert notice.code == "database_unreadable"
    assert (notice.user_id, notice.agent_id) == (harness.user.id, by.agent.id)
    assert f" {aside.relative_to(harness.node.settings.data_dir)} in the data directory" in notice.body
    with pytest.raises(DataNotFound):
        await data.run(by, "query", sql="SELECT title FROM tasks")
    await data.run(by, "create_table", name="tasks", purpose="x", columns=COLUMNS)
    assert (await data.run(by, "query", sql="SELECT count(*) FROM tasks"))["rows"] == [[0]]
    assert len(await told(harness)) == 1


@pytest.mark.parametrize("what", ["file", "folder"])
async def test_a_database_that_is_missing_is_missed(harness, data, by, what):
    folder = folder_of(harness, by)
    if what == "folder":
        shutil.rmtree(folder)
    else:
        (folder / "db.sqlite").unlink()
    with pytest.raises(DatabaseUnreadable, match="is missing"):
        await data.run(by, "create_table", name="tasks", purpose="x", columns=COLUMNS)
    assert not (folder / "db.sqlite").exists()
    [notice] = await told(harness)
    assert "is missing" in notice.body
    await data.run(by, "create_table", name="tasks", purpose="x", columns=COLUMNS)
    assert len(await told(harness)) == 1


async def test_a_rotation_that_was_cut_off_does_not_open_an_empty_file(harness, data, by):
    folder = folder_of(harness, by)
    vault = data.files.vault
    vault.save(by.agent.id, AgentKeys(current=bytes(32), previous=vault.open(by.agent.id).current))
    journal = (folder / "db.sqlite-wal").read_bytes()
    os.truncate(folder / "db.sqlite", 0)
    with pytest.raises(DatabaseUnreadable, match="0 bytes"):
        await data.run(by, "query", sql="SELECT title FROM tasks")
    [aside] = (folder / "quarantine").iterdir()
    assert (aside / "db.sqlite-wal").read_bytes() == journal


async def test_an_empty_file_without_a_journal_is_told_if_it_had_content(harness, data, by):
    folder = folder_of(harness, by)
    (folder / "db.sqlite-wal").unlink()
    os.truncate(folder / "db.sqlite", 0)
    with pytest.raises(DatabaseUnreadable, match="0 bytes"):
        await data.run(by, "insert", table="tasks", rows=[{"title": "d"}])
    assert len(await told(harness)) == 1


async def test_an_empty_file_that_never_had_content_is_begun(harness, data):
    """A crash came after the file was made, and before anything was in it."""
    by = By(agent=await harness.add_agent(toolsets=("database",)))
    data.files.vault.make(by.agent.id)
    (folder_of(harness, by) / "db.sqlite").touch()
    await data.run(by, "create_table", name="tasks", purpose="x", columns=COLUMNS)
    assert await told(harness) == []


async def test_a_file_that_was_cut_in_half_is_set_aside(harness, data, by):
    folder = folder_of(harness, by)
    (folder / "db.sqlite-wal").unlink()
    os.truncate(folder / "db.sqlite", (folder / "db.sqlite").stat().st_size // 2)
    with pytest.raises(DatabaseUnreadable, match="is damaged"):
        await data.run(by, "query", sql="SELECT title FROM tasks")
    [notice] = await told(harness)
    assert notice.code == "database_unreadable"


async def test_tables_come_back_from_a_snapshot(harness, data, by):
    os.truncate(folder_of(harness, by) / "db.sqlite", 0)
    with pytest.raises(DatabaseUnreadable):
        await data.run(by, "query", sql="SELECT title FROM tasks")
    [snapshot] = await data.run(by, "snapshots")
    await data.run(by, "recover", snapshot=snapshot["name"], table="tasks", new_name=None)
    assert (await data.run(by, "query", sql="SELECT title FROM tasks"))["rows"] == [["a"]]


@pytest.mark.parametrize("cut", ["missing", "half"])
async def test_a_journal_that_was_cut_is_told_once(harness, data, by, cut):
    journal = folder_of(harness, by) / "db.sqlite-wal"
    if cut == "missing":
        journal.unlink()
    else:
        os.truncate(journal, journal.stat().st_size // 2)
    for _ in range(2):
        await data.run(by, "query", sql="SELECT title FROM tasks")
        data.files.prepared.clear()
    [notice] = await told(harness)
    assert notice.code == "database_behind"
    assert "db.sqlite-wal" in notice.body
    assert (await data.run(by, "verify"))["is_cut_off"]


async def test_a_whole_file_is_not_complained_about(harness, data, by):
    assert (await data.run(by, "query", sql="SELECT title FROM tasks"))["rows"] == [["a"], ["b"], ["c"]]
    assert await told(harness) == []


async def test_a_prompt_says_that_the_database_is_lost(harness, data, by):
    shutil.rmtree(folder_of(harness, by))
    [line] = await DatabasePrompt(data.files, harness.clock).describe(by.agent)
    assert "is missing" in line
    assert len(await told(harness)) == 1
