"""The journal (WAL) beside an agent's file: emptied into the file after a while, and gone after a graceful stop."""

import asyncio
import os
import shutil
import signal
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from databases import AT, KEY, QUOTA, TASKS
from harness import eventually
from wakeful.agentdb import file
from wakeful.agentdb.connection import MAX_OPEN, Request
from wakeful.agentdb.engine import STOPPING, DatabaseEngine, WorkerBroke

BOMB = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"


def request(path: Path, op: str, *, seconds: float = 5.0, **args: object) -> Request:
    return Request(op=op, path=str(path), key=KEY.hex(), seconds=seconds, quota=QUOTA, at=AT, actor="agent", args=args)


async def made(engine: DatabaseEngine, path: Path, rows: int = 3) -> None:
    await engine.ask(request(path, "create_table", **TASKS))
    await engine.ask(request(path, "insert", table="tasks", rows=[{"title": f"Task {n}"} for n in range(rows)]))


def journal_of(path: Path) -> int:
    """Return how many bytes stand in the journal; 0 if there is none."""
    journal = path.with_name(path.name + "-wal")
    return journal.stat().st_size if journal.exists() else 0


def rows_in_file_alone(path: Path, folder: Path) -> int:
    """Count the rows in a copy of the file without anything beside it."""
    copy = Path(shutil.copy(path, folder / "copy.sqlite"))
    with closing(file.open_copy(copy, KEY)) as raw:
        return raw.execute("SELECT count(*) FROM tasks").get


async def test_after_a_graceful_stop_everything_is_in_the_file(tmp_path):
    engine = DatabaseEngine(1)
    for name in ("a", "b"):
        await made(engine, tmp_path / name)
    assert journal_of(tmp_path / "a") > 0
    await engine.aclose()
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}, "a journal was left"
    assert rows_in_file_alone(tmp_path / "a", tmp_path) == rows_in_file_alone(tmp_path / "b", tmp_path) == 3


async def test_a_worker_at_a_long_query_is_interrupted_and_closes_its_files_too(tmp_path):
    engine = DatabaseEngine(1)
    await made(engine, tmp_path / "a")
    asking = asyncio.ensure_future(engine.ask(request(tmp_path / "a", "query", sql=BOMB, seconds=100)))
    await asyncio.sleep(0.1)
    async with asyncio.timeout(50):  # much sooner than the query would end
        await engine.aclose()
    with pytest.raises(WorkerBroke, match="shutting down"):
        await asking
    assert {path.name for path in tmp_path.iterdir()} == {"a"}
    assert rows_in_file_alone(tmp_path / "a", tmp_path) == 3


async def test_a_worker_that_does_not_react_holds_the_stop_up_for_two_seconds(tmp_path):
    engine = DatabaseEngine(1)
    await made(engine, tmp_path / "a")
    [pid] = engine.pids
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    await engine.aclose()
    assert time.monotonic() - began >= STOPPING
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_file_that_is_pushed_out_by_others_is_closed_with_its_journal(tmp_path):
    engine = DatabaseEngine(1)
    for number in range(MAX_OPEN + 1):
        await made(engine, tmp_path / str(number))
    assert not journal_of(tmp_path / "0")
    assert rows_in_file_alone(tmp_path / "0", tmp_path) == 3
    await engine.aclose()


async def test_a_file_that_stays_open_has_its_journal_emptied_after_a_while(tmp_path):
    engine = DatabaseEngine(1, journal_seconds=0.2)
    await made(engine, tmp_path / "a")

    async def is_empty() -> bool:
        return not journal_of(tmp_path / "a")

    await eventually(is_empty, 10)
    assert rows_in_file_alone(tmp_path / "a", tmp_path) == 3
    assert (await engine.ask(request(tmp_path / "a", "query", sql="SELECT count(*) FROM tasks"))).result["rows"] == [
        [3]
    ]
    await engine.aclose()


async def test_a_worker_that_is_always_busy_empties_journals_too(tmp_path):
    engine = DatabaseEngine(1, journal_seconds=0.2)
    await made(engine, tmp_path / "a")
    async with asyncio.timeout(10):
        while journal_of(tmp_path / "a"):
            await engine.ask(request(tmp_path / "a", "query", sql="SELECT 1"))
    assert rows_in_file_alone(tmp_path / "a", tmp_path) == 3
    await engine.aclose()


async def test_a_new_key_leaves_no_journal(tmp_path):
    engine = DatabaseEngine(1)
    await made(engine, tmp_path / "a")
    await engine.ask(request(tmp_path / "a", "rekey", new_key=bytes(32).hex()))
    assert not journal_of(tmp_path / "a")
    await engine.ask(
        replace(request(tmp_path / "a", "insert", table="tasks", rows=[{"title": "x"}]), key=bytes(32).hex())
    )
    await engine.aclose()
    assert {path.name for path in tmp_path.iterdir()} == {"a"}
