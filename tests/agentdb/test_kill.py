"""Killed in the middle of a write, an agent's database holds all of it or nothing; real processes, real kills."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from databases import Database
from wakeful.agentdb.connection import Request
from wakeful.agentdb.engine import DatabaseEngine, WorkerBroke

pytestmark = pytest.mark.crash

BATCH = 400
QUOTA = 64 * 1024 * 1024

SERVER = """
import asyncio, sys
from wakeful.agentdb.engine import DatabaseEngine
from wakeful.agentdb.connection import Request

async def main():
    engine = DatabaseEngine(1)
    rows = [{"title": "x" * 200}] * int(sys.argv[3])
    while True:
        request = Request(op="insert", path=sys.argv[1], key=sys.argv[2], seconds=30, quota=2**26,
                          at="2026-03-02T12:00:00+00:00", actor="agent", run_id="r",
                          args={"table": "tasks", "rows": rows})
        await engine.ask(request)
        print(*engine.pids, flush=True)

asyncio.run(main())
"""


@pytest.fixture
def database(tmp_path):
    database = Database(tmp_path / "db.sqlite", quota=QUOTA).with_tasks()
    database.close()
    yield database
    database.close()


def check_whole(database: Database) -> int:
    """See that the file is sound and holds whole batches, each row with its entry; return how many batches."""
    [[count]] = database.query("SELECT count(*) FROM tasks")
    inserted = [change for change in database.changes() if change["op"] == "insert"]
    assert count % BATCH == 0
    assert len(inserted) == count
    assert database.ask("verify") == {"intact": True, "broken_at": None, "is_cut_off": False}
    database.close()
    return count // BATCH


@pytest.mark.parametrize("after", [0.0, 0.005, 0.02, 0.05, 0.1])
async def test_a_worker_killed_in_the_middle_of_a_write_leaves_all_or_nothing(database, after):
    engine = DatabaseEngine(1)
    request = Request(
        op="insert",
        path=str(database.path),
        key=database.key.hex(),
        seconds=30,
        quota=QUOTA,
        at=database.at,
        actor="agent",
        run_id="r",
        args={"table": "tasks", "rows": [{"title": "x" * 200}] * BATCH},
    )
    answered = 0
    try:
        for _ in range(3):
            with contextlib.suppress(WorkerBroke):  # the worker killed below may not have been reaped yet
                await engine.ask(request)
                answered += 1
            writing = asyncio.ensure_future(engine.ask(request))
            await asyncio.sleep(after)
            for pid in engine.pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(WorkerBroke):
                await writing
                answered += 1
    finally:
        await engine.aclose()
    assert answered <= check_whole(database) <= 6


@pytest.mark.parametrize("after", [0.01, 0.07, 0.15])
def test_a_server_killed_in_the_middle_of_a_write_loses_nothing_it_has_answered(database, after):
    command = [sys.executable, "-c", SERVER, str(database.path), database.key.hex(), str(BATCH)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        pids = server.stdout.readline().split()
        time.sleep(after)
        server.kill()
        answered = 1 + len(server.stdout.readlines())
    wait_until_gone(pids)
    assert check_whole(database) >= answered


def wait_until_gone(pids: list[str]) -> None:
    """Wait for workers whose server is dead: they end what they do, and then themselves."""
    end = time.monotonic() + 30
    while any(_is_alive(pid) for pid in pids):
        assert time.monotonic() < end, "a worker outlived its server"
        time.sleep(0.02)


def _is_alive(pid: str) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return " Z " not in Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    return False
