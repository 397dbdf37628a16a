"""Real processes on PostgreSQL with separate data directories: the one that has an agent's memory is killed."""

import pytest

from crash.crash_harness import LEASE, CrashHarness, book_one, check_everything_happened_once, kill
from crash.node_process import STEPS


@pytest.fixture
def crash(tmp_path, postgres_url):
    crash = CrashHarness(tmp_path, postgres_url)
    yield crash
    crash.clean_up()


async def book_with_memory(harness):
    """Book a wake of an agent that has a file in the scene's own data directory."""
    await harness.node.services.directories.bind(harness.agent.id)
    await book_one(harness)


def test_a_run_of_a_killed_node_waits_for_its_directory_and_goes_on_from_its_last_step(crash, tmp_path):
    other = crash.start({"data_dir": tmp_path / "other"})
    crash.wait_for("up", other)
    crash.book(book_with_memory)
    bound = crash.start(lingers=60)
    crash.wait_for("step", bound, count=2)
    kill(bound)
    crash.wait_until(lambda: crash.run().reason == "memory_elsewhere", "the hold", 3 * LEASE + 10)
    assert crash.run().status == "queued"
    assert len(crash.query("SELECT 1 FROM notifications WHERE code = 'memory_elsewhere'")) == 1
    assert not crash.lines("start", other)
    with crash.running() as back:
        crash.wait_until_done()
        [line] = crash.lines("start", back)
    assert line["steps"] == list(STEPS)
    assert not crash.lines("start", other)
    check_everything_happened_once(crash, 1)


def test_an_agent_without_files_is_taken_over_by_a_node_with_another_directory(crash, tmp_path):
    first = crash.start(lingers=60)
    crash.wait_for("up", first)
    crash.book(book_one)
    crash.wait_for("step", first, count=2)
    other = crash.start({"data_dir": tmp_path / "other"})
    crash.wait_for("up", other)
    kill(first)
    crash.wait_for("start", other, seconds=LEASE + 5)
    crash.wait_until_done()
    check_everything_happened_once(crash, 1)
