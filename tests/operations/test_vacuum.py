"""The file of the embedded store gets smaller when much was deleted, in short steps."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forked_process import HELPERS
from harness import Harness, lay_out
from wakeful.operations import storage
from wakeful.operations.storage import Vacuum

pytestmark = pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True)

MB = 1_000_000


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(storage, "_SLACK_BYTES", MB)
    monkeypatch.setattr(storage, "_MIN_VACUUM_REST_SECONDS", 0.0)


@pytest.fixture
async def harness(backend_settings):
    await lay_out(backend_settings)
    async with Harness(backend_settings).opened() as harness:
        yield harness


async def fill(harness, megabytes):
    """Add a table of that size, and delete it again."""
    await harness.sql(
        "CREATE TABLE large (a); INSERT INTO large WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
        f"WHERE i < {megabytes * 250}) SELECT zeroblob(4000) FROM n; DROP TABLE large"
    )
    await harness.node.store.checkpoint()


async def size(harness):
    await harness.node.store.checkpoint()
    return harness.node.store.database.path.stat().st_size


async def test_the_file_gets_smaller_and_keeps_a_reserve(harness):
    await fill(harness, 8)
    assert await size(harness) > 7 * MB
    freed = await Vacuum(harness.node.store, harness.clock).run()
    assert freed > 5 * MB
    assert MB < await size(harness) < 3 * MB
    assert await Vacuum(harness.node.store, harness.clock).run() == 0


async def test_others_write_between_two_steps(harness, monkeypatch):
    await fill(harness, 8)
    waits: list[float] = []

    async def write() -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await harness.session()
            waits.append(loop.time() - began)

    writing = asyncio.create_task(write())
    await Vacuum(harness.node.store, harness.clock).run()
    writing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await writing
    assert len(waits) >= 8  # one in each step, and not one after all of them


async def test_a_file_of_an_earlier_version_is_rewritten_once_and_keeps_its_data(harness):
    database, session = harness.node.store.database, await harness.session()
    await database.close()
    connection = database.connect()  # as an earlier version made it
    connection.pragma("journal_mode", "delete")
    connection.pragma("auto_vacuum", 0)
    connection.execute("VACUUM")
    connection.close()
    await database.open()
    assert not (await harness.node.store.free_pages()).can_cut
    assert await Vacuum(harness.node.store, harness.clock).run() == 0
    await database.enable_vacuum()
    assert (await harness.node.store.free_pages()).can_cut
    found = await harness.node.store.read(lambda tx: tx.sessions.find(session.id))
    assert found.id == session.id
    await fill(harness, 8)
    assert await Vacuum(harness.node.store, harness.clock).run() > 5 * MB


@pytest.mark.parametrize("aim", ["before", "in", "after"])
async def test_killed_at_any_step_the_store_is_whole_and_the_next_start_goes_on(backend_settings, tmp_path, aim):
    program = Path(__file__).parents[1] / "support/killed_vacuum.py"
    python_path = os.pathsep.join([HELPERS, *filter(None, [os.environ.get("PYTHONPATH")])])
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, str(program), str(tmp_path), aim],
        env={**os.environ, "PYTHONPATH": python_path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    harness = Harness(backend_settings)
    async with harness.node.opened():
        store = harness.node.store
        left = (await store.free_pages()).bytes
        assert left > 3 * MB  # it was killed in the middle
        assert await store.database.write(_check) == [("ok",)]
        found = await store.read(lambda tx: tx.sessions.of_user(ended.stdout.strip(), None, None, 100))
        assert len(found) == 50
        assert await Vacuum(store, harness.clock).run() > 0
        assert await store.database.write(_check) == [("ok",)]
        assert (await store.free_pages()).bytes < 2 * MB


async def _check(statements):
    return list(statements.connection.execute("PRAGMA integrity_check"))
