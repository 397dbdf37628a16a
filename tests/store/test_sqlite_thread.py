"""Group commit on SQLite: which transactions are committed together."""

import asyncio
import threading

import pytest

from wakeful.store.drivers.sqlite import SqliteDatabase


@pytest.fixture
async def database(tmp_path):
    database = SqliteDatabase(tmp_path / "wakeful.sqlite", key=None)
    await database.open()
    await database.run_script("CREATE TABLE seen (name TEXT)")
    yield database
    await database.close()


def add(name):
    async def work(statements):
        if name is None:
            raise ValueError("broken")
        statements.connection.execute("INSERT INTO seen VALUES (?)", (name,))

    return work


async def names(statements):
    return [name for (name,) in statements.connection.execute("SELECT name FROM seen ORDER BY name")]


async def while_under_way(database, do, *, begun_by, is_synced=True):
    """Let something be asked for in the middle of a transaction of the writer, and count the commits it takes."""
    loop, is_asked, commits, asked = asyncio.get_running_loop(), threading.Event(), [], []

    def ask():
        asked.append(asyncio.ensure_future(do()))
        loop.call_soon(is_asked.set)  # once what it hands to the thread is there

    def note_commit():
        commits.append(1)
        return False

    async def work(statements):
        statements.connection.set_commit_hook(note_commit)
        await begun_by(statements)
        loop.call_soon_threadsafe(ask)
        assert is_told(is_asked)

    await database.write(work, is_synced=is_synced)
    return (await asyncio.gather(*asked, return_exceptions=True))[0], len(commits)


def is_told(event):
    return event.wait(10)


async def test_a_write_that_comes_before_the_commit_is_part_of_it(database):
    _, commits = await while_under_way(database, lambda: database.write(add("late")), begun_by=add("early"))
    assert commits == 1
    assert await database.read(names) == ["early", "late"]


async def test_a_write_that_must_be_on_the_disk_is_no_part_of_one_that_need_not(database):
    _, commits = await while_under_way(
        database, lambda: database.write(add("late")), begun_by=add("early"), is_synced=False
    )
    assert commits == 2


async def test_a_late_write_that_fails_takes_nobody_along(database):
    error, _ = await while_under_way(database, lambda: database.write(add(None)), begun_by=add("early"))
    assert isinstance(error, ValueError)
    assert await database.read(names) == ["early"]


async def test_a_read_sees_what_was_written_before_it_although_another_read_is_under_way(database):
    loop, is_asked, asked = asyncio.get_running_loop(), threading.Event(), []

    async def write_and_ask():
        await database.write(add("new"))
        asked.append(asyncio.ensure_future(database.read(names)))
        loop.call_soon(is_asked.set)

    async def slow_read(statements):
        found = await names(statements)  # from here on it sees no more than this
        asyncio.run_coroutine_threadsafe(write_and_ask(), loop)
        assert is_told(is_asked)
        return found

    assert await database.read(slow_read) == []
    assert await asked[0] == ["new"]
