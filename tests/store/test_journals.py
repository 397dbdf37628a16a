"""Journals (WAL) are moved into the files they stand beside: now and then, and always at a graceful stop."""

import asyncio
import os
import shutil
import signal
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from harness import Harness, eventually
from wakeful.agentdb import file as files
from wakeful.agentdb.keys import Vault
from wakeful.core.device_key import load_device_key
from wakeful.database.files import By
from wakeful.datadir.files import STORE_FILE

COLUMNS: list[dict[str, Any]] = [{"name": "title", "type": "text"}]


@pytest.fixture
def settings(tmp_path):
    return {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"}


def sizes(data_dir: Path) -> tuple[int, int]:
    """Return the bytes of the store's file and of its journal."""
    journal = data_dir / f"{STORE_FILE}-wal"
    return (data_dir / STORE_FILE).stat().st_size, journal.stat().st_size if journal.exists() else 0


async def test_a_checkpoint_moves_the_stores_journal_into_its_file(settings):
    async with Harness(settings).opened() as harness:
        for _ in range(30):
            await harness.book()
        before, journal = sizes(settings["data_dir"])
        assert journal > 500_000
        await harness.node.engine.upkeep.checkpoint()
        after, journal = sizes(settings["data_dir"])
        assert after > before
        assert journal == 0
        await harness.book()


async def test_the_engine_checkpoints_by_itself(settings, monkeypatch):
    monkeypatch.setattr("wakeful.operations.upkeep.CHECKPOINT_EVERY", timedelta(seconds=0.1))
    harness = Harness(settings)
    async with harness.node.running():
        await harness.settle_in()
        await harness.book()
        async with asyncio.timeout(5):
            while sizes(settings["data_dir"])[1]:  # noqa: ASYNC110  (nobody tells when it is done)
                await asyncio.sleep(0.02)


async def test_bookings_do_not_wait_for_checkpoints(settings):
    async with Harness(settings).opened() as harness:
        is_over = False

        async def checkpoint() -> int:
            count = 0
            while not is_over:
                await harness.node.engine.upkeep.checkpoint()
                count += 1
            return count

        checkpointing = asyncio.create_task(checkpoint())
        booked = [await harness.book() for _ in range(40)]
        is_over = True
        assert await checkpointing > 1
        for wake in booked:
            assert (await harness.wake(wake)).id == wake.id


async def test_a_journal_never_grows_beyond_what_a_commit_checkpoints(settings):
    async with Harness(settings).opened() as harness:
        for _ in range(250):
            await harness.book()
            file, journal = sizes(settings["data_dir"])
            assert journal < 9_000_000
    assert file > 100_000


# ── Agents' databases ───────────────────────────────────────────────────────────────────────────────────────────────


async def write_rows(harness: Harness, count: int) -> None:
    by = By(agent=harness.agent)
    files_ = harness.node.services.data
    await files_.run(by, "create_table", name="tasks", purpose="What is to be done.", columns=COLUMNS, indexes=[])
    await files_.run(by, "insert", table="tasks", rows=[{"title": f"Task {number}"} for number in range(count)])


def file_of(harness: Harness) -> Path:
    return harness.settings["data_dir"] / "agents" / harness.agent.id / "db.sqlite"


def rows_in_file_alone(harness: Harness, folder: Path) -> int:
    """Count the rows in a copy of the file without its journal, opened with its key."""
    device_key = load_device_key(harness.settings["config_dir"])
    key = (
        Vault(lambda each: harness.settings["data_dir"] / "agents" / each, lambda: device_key)
        .open(harness.agent.id)
        .current
    )
    copy = Path(shutil.copy(file_of(harness), folder / "copy.sqlite"))
    with closing(files.open_copy(copy, key)) as raw:
        return raw.execute("SELECT count(*) FROM tasks").get


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def kill_workers(harness: Harness) -> None:
    """Kill the processes that have agents' files open, and wait until the kernel has closed the files."""
    pids = harness.node.services.data.files.engine.pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)

    async def are_gone() -> bool:
        return not any(is_there(pid) for pid in pids)

    await eventually(are_gone)


async def test_after_a_graceful_stop_an_agents_rows_are_in_its_file(settings, tmp_path):
    async with Harness(settings).opened() as harness:
        await write_rows(harness, 3)
    assert sorted(path.name for path in file_of(harness).parent.glob("db.*")) == ["db.key", "db.sqlite"]
    assert rows_in_file_alone(harness, tmp_path) == 3


async def test_a_journal_that_a_killed_worker_left_is_moved_at_the_next_graceful_stop(settings, tmp_path):
    async with Harness(settings).opened() as harness:
        await write_rows(harness, 3)
        await kill_workers(harness)
        with pytest.raises(apsw.Error):
            rows_in_file_alone(harness, tmp_path)
    assert rows_in_file_alone(harness, tmp_path) == 3
    again = Harness(settings)
    again.user, again.agent = harness.user, harness.agent
    async with again.node.opened():
        found = await again.node.services.data.run(
            By(agent=harness.agent), "query", sql="SELECT count(*) FROM tasks", params=None
        )
    assert found["rows"] == [[3]]


async def test_the_journal_of_a_file_without_a_byte_is_not_touched_at_a_stop(settings, tmp_path):
    """SQLite deletes the journal of such a file when it opens it, and it may be all there is."""
    async with Harness(settings).opened() as harness:
        await write_rows(harness, 3)
        await kill_workers(harness)
        os.truncate(file_of(harness), 0)
        journal = file_of(harness).with_name("db.sqlite-wal").read_bytes()
    assert file_of(harness).with_name("db.sqlite-wal").read_bytes() == journal
