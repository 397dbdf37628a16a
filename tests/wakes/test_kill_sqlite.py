"""Real processes on the embedded store: killed, stopped, blocked, and terminated."""

import os
import random
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from crash.crash_harness import (
    FINAL,
    IS_LONG,
    LEASE,
    CrashHarness,
    book_many,
    book_one,
    check_everything_happened_once,
    check_nothing_acknowledged_is_lost,
    go_on,
    kill,
    pause,
    stop,
)
from crash.node_process import STEPS

pytestmark = pytest.mark.crash

KILLS = 500 if IS_LONG else 12
WAKES = 10_000 if IS_LONG else 240


@pytest.fixture
def crash(tmp_path):
    crash = CrashHarness(tmp_path)
    yield crash
    crash.clean_up()


# ── SIGKILL ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_killed_again_and_again_nothing_is_lost_and_nothing_happens_twice(crash):
    chance = random.Random(1)
    crash.book(book_many(WAKES, seconds=KILLS * 0.5, seed=1))
    kills = 0
    while kills < KILLS:
        process = crash.start()
        crash.let_work(process, chance)
        kills += kill(process) == -9
    with crash.running():
        crash.wait_until_done()
    check_everything_happened_once(crash, WAKES)
    assert sum(run.attempt > 1 for run in crash.runs()) > KILLS / 2, "hardly anything was interrupted"
    assert any(line["steps"] for line in crash.lines("start")), "no attempt went on from a saved step"


def test_what_was_acknowledged_survives_a_kill(crash):
    check_nothing_acknowledged_is_lost(crash, rounds=50 if IS_LONG else 5, seed=2)


def test_a_run_goes_on_at_once_after_a_kill_from_its_last_saved_step(tmp_path):
    crash = CrashHarness(tmp_path, lease_seconds=60)  # no one waits for that: the process that held the store is gone
    try:
        crash.book(book_one)
        first = crash.start(lingers=60)
        crash.wait_for("step", first, count=2)
        kill(first)
        with crash.running() as second:
            crash.wait_until_done(seconds=40)
        [line] = crash.lines("start", second)
        assert (line["steps"], line["attempt"]) == (list(STEPS), 2)
        check_everything_happened_once(crash, 1)
    finally:
        crash.clean_up()


def test_a_run_that_kills_its_process_three_times_is_given_up_and_the_others_are_not(tmp_path):
    crash = CrashHarness(tmp_path, max_attempts=3)
    try:

        async def arrange(harness):
            killer = await harness.book(kind="message", at=harness.clock.now())
            return killer, [await harness.book(call_type="immediate") for _ in range(5)]

        killer, others = crash.book(arrange)
        for _ in range(3):
            process = crash.start(dies=True)
            process.join(30)
            assert process.exitcode == -9
        with crash.running(dies=True):
            crash.wait_until_done()
        rows = {run.wake_id: run for run in crash.runs()}
        ends = {wake.id: (wake.status, wake.reason) for wake in crash.wakes()}
        assert rows[killer.id].status == "interrupted"
        assert rows[killer.id].attempt == 3
        assert ends[killer.id] == ("failed", "interrupted")
        assert crash.query("SELECT code, run_id FROM notifications") == [
            {"code": "interrupted", "run_id": rows[killer.id].id}
        ]
        assert [(rows[wake.id].status, ends[wake.id][0]) for wake in others] == [("success", "fired")] * 5
    finally:
        crash.clean_up()


# ── SIGSTOP ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_process_that_stood_still_goes_on_with_its_own_run(crash):
    crash.book(book_one)
    with crash.running(blocks=1) as process:
        crash.wait_for("step", count=2)
        pause(process)
        time.sleep(2 * LEASE)
        before = crash.run()
        go_on(process)
        crash.wait_until_done()
    assert (before.status, before.fence) == ("running", 1)
    check_everything_happened_once(crash, 1)
    assert [change["fence"] for change in crash.changes(*FINAL)] == [1], "nobody else could have taken it"
    assert [(line["attempt"], line["steps"]) for line in crash.lines("start")] == [(1, [])]


# ── SIGTERM ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_told_to_go_it_gives_back_what_is_unfinished_at_once_and_untried(crash):
    crash.book(book_one)
    process = crash.start(lingers=60)
    crash.wait_for("step", count=2)
    assert stop(process) == 0
    released = crash.run()
    assert (released.status, released.attempt, released.owner, released.lease_until) == ("queued", 0, None, None)
    with crash.running(pause=0.01) as second:
        crash.wait_until_done()
    [line] = crash.lines("start", second)
    assert (line["steps"], line["attempt"]) == (list(STEPS), 1)
    check_everything_happened_once(crash, 1)


def test_told_to_go_again_and_again_it_never_counts_an_attempt(tmp_path):
    crash = CrashHarness(tmp_path, max_attempts=1)
    try:
        crash.book(book_one)
        for number in range(1, 4):
            process = crash.start(lingers=60)
            crash.wait_for("start", count=number)
            assert stop(process) == 0
        with crash.running():
            crash.wait_until_done()
        check_everything_happened_once(crash, 1)
    finally:
        crash.clean_up()


def test_the_server_itself_goes_when_it_is_told_to(tmp_path):
    server = subprocess.Popen(
        [Path(sys.executable).with_name("wakeful"), "serve", "--port", "0"],
        env=os.environ | {"WAKEFUL_DATA_DIR": str(tmp_path / "data"), "WAKEFUL_CONFIG_DIR": str(tmp_path / "config")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with server:
        try:
            address = next(word for word in server.stdout.readline().split() if word.startswith("http"))
            token = (tmp_path / "config" / "token").read_text().strip()
            asked = urllib.request.Request(f"{address}/readyz", headers={"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(asked, timeout=10) as answer:
                assert answer.status == 200
            server.terminate()
            assert server.wait(10) == 0
        finally:
            server.kill()


# ── The heartbeat ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_event_loop_blocked_for_ten_seconds_keeps_its_lease(crash):
    crash.book(book_one)
    with crash.running(blocks=10):
        crash.wait_until_done()
    check_everything_happened_once(crash, 1)
    run = crash.run()
    assert (run.attempt, run.fence) == (1, 1)
    assert run.finished_at - run.started_at >= 10_000_000  # microseconds


def test_an_event_loop_blocked_for_longer_than_that_goes_on_with_the_run(crash):
    crash.book(book_one)
    blocked = LEASE + 4
    with crash.running(blocks=blocked, give_up_after=1):
        crash.wait_until_done()
    check_everything_happened_once(crash, 1)
    assert [change["fence"] for change in crash.changes(*FINAL)] == [1], "nobody else could have taken it"
