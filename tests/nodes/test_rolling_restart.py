"""Real processes on PostgreSQL that are restarted one after the other, while wakes fire."""

import pytest

from crash.crash_harness import CrashHarness, book_many, check_everything_happened_once, stop

pytestmark = pytest.mark.crash

WAKES = 80


@pytest.fixture
def crash(tmp_path, postgres_url):
    crash = CrashHarness(tmp_path, postgres_url)
    yield crash
    crash.clean_up()


def test_a_rolling_restart_loses_no_run_and_does_none_twice(crash, tmp_path):
    folders = [{"data_dir": tmp_path / name, "node_name": name} for name in ("one", "two")]
    nodes = [crash.start(folder, pause=0.05) for folder in folders]
    for node in nodes:
        crash.wait_for("up", node)
    crash.book(book_many(WAKES, seconds=6, seed=5))
    for number, folder in enumerate(folders * 2):
        crash.wait_for("start", count=10 * (number + 1))
        assert stop(nodes[number % 2], 30) == 0
        nodes[number % 2] = crash.start(folder, pause=0.05)
        crash.wait_for("up", nodes[number % 2])
    crash.wait_until_done()
    check_everything_happened_once(crash, WAKES)
    assert {run.node for run in crash.runs()} == {"one", "two"}
    assert {run.attempt for run in crash.runs()} == {1}  # handing back does not count as an attempt
