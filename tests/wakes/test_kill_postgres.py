"""Real processes on PostgreSQL: nodes killed, stopped and blocked, the server restarted, LISTEN cut off."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

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
from harness import Harness

pytestmark = pytest.mark.crash

KILLS = 500 if IS_LONG else 12
WAKES = 10_000 if IS_LONG else 240
MANY = 5_000 if IS_LONG else 500
LISTENING = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"


@pytest.fixture
def harness(tmp_path, postgres_url):
    harness = CrashHarness(tmp_path, postgres_url)
    yield harness
    harness.clean_up()


# ── SIGKILL ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_nodes_killed_in_turns_lose_nothing_and_do_nothing_twice(harness):
    chance = random.Random(3)
    harness.book(book_many(WAKES, seconds=KILLS * 0.5, seed=3))
    nodes = [harness.start(), harness.start()]
    kills = 0
    for number in count():
        harness.let_work(nodes[number % 2], chance)
        kills += kill(nodes[number % 2]) == -9
        if kills == KILLS:
            break
        nodes[number % 2] = harness.start()
    with harness.running():
        harness.wait_until_done()
    check_everything_happened_once(harness, WAKES)
    assert sum(run.attempt > 1 for run in harness.runs()) > KILLS / 2, "hardly anything was interrupted"
    assert any(line["steps"] for line in harness.lines("start")), "no attempt went on from a saved step"


def test_what_was_acknowledged_survives_a_kill(harness):
    check_nothing_acknowledged_is_lost(harness, rounds=50 if IS_LONG else 5, seed=4)


def test_a_dead_nodes_work_is_taken_over_from_its_last_saved_step(harness):
    nodes = [harness.start(lingers=60), harness.start(lingers=60)]
    harness.wait_for("up", count=2)
    harness.book(book_one)
    harness.wait_for("step", count=2)
    [begun] = harness.lines("start")
    nodes.sort(key=lambda node: node.pid != begun["pid"])
    kill(nodes[0])
    harness.wait_for("start", nodes[1])
    [line] = harness.lines("start", nodes[1])
    assert (line["steps"], line["attempt"]) == (list(STEPS), 2)
    assert stop(nodes[1]) == 0
    with harness.running():
        harness.wait_until_done()
    check_everything_happened_once(harness, 1)


# ── SIGSTOP ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_node_that_stood_still_cannot_finish_what_another_took_over(harness):
    harness.book(book_one)
    with harness.running(blocks=1) as first:
        harness.wait_for("step", count=2)
        with harness.running(lingers=2 * LEASE) as second:
            pause(first)
            began = time.monotonic()
            harness.wait_for("start", second)
            time.sleep(max(0, 2 * LEASE - (time.monotonic() - began)))
            go_on(first)  # while the other executes runs
            harness.wait_until(lambda: "stale finish refused" in harness.log(), "the refusal", 60)
            taken = harness.run()
            harness.wait_until_done()
    assert (taken.status, taken.fence) == ("running", 2)
    assert [(change["fence"], change["owner"]) for change in harness.changes(*FINAL)] == [(2, taken.owner)]
    assert [line["attempt"] for line in harness.lines("start", first)] == [1]
    check_everything_happened_once(harness, 1)


# ── SIGTERM ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_told_to_go_it_gives_back_what_is_unfinished_and_another_node_goes_on_at_once(harness):
    harness.book(book_one)
    first = harness.start(lingers=60)
    harness.wait_for("step", first, count=2)
    with harness.running() as second:
        assert stop(first) == 0
        harness.wait_for("start", second)
        harness.wait_until_done()
    [line] = harness.lines("start", second)
    assert (line["steps"], line["attempt"]) == (list(STEPS), 1)  # released: an expired lease is a second attempt
    check_everything_happened_once(harness, 1)


# ── The heartbeat ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_event_loop_blocked_for_ten_seconds_keeps_its_lease(harness):
    harness.book(book_one)
    with harness.running(blocks=10):
        harness.wait_for("step", count=2)
        with harness.running():
            harness.wait_until_done()
    check_everything_happened_once(harness, 1)
    run = harness.run()
    assert (run.attempt, run.fence) == (1, 1)
    assert run.finished_at - run.started_at >= 10_000_000  # microseconds


def test_an_event_loop_blocked_for_longer_than_that_is_taken_for_dead(harness):
    harness.book(book_one)
    give_up = 1
    with harness.running(blocks=LEASE + 4, give_up_after=give_up) as first:
        harness.wait_for("step", count=2)
        with harness.running(lingers=2 * LEASE) as second:
            harness.wait_for("start", second, seconds=give_up + LEASE + 5)
            harness.wait_for("end", first)  # awake again, it does not know yet
            assert not harness.lines("end", second)
            harness.wait_until_done()
    [end] = harness.lines("end", second)
    assert harness.run().finished_at > (end["at"] - 0.1) * 1_000_000, "the stale attempt was let in"
    assert [change["fence"] for change in harness.changes(*FINAL)] == [2]
    check_everything_happened_once(harness, 1)


# ── Two nodes ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_nodes_share_the_work_and_neither_does_the_others(harness):
    harness.book(book_many(MANY, seconds=4, seed=5))
    with harness.running(), harness.running():
        harness.wait_until_done()
    check_everything_happened_once(harness, MANY)
    claims = harness.changes("running")
    assert len(claims) == len(harness.runs()), "claimed twice"
    shares = Counter(claim["owner"] for claim in claims)
    assert len(shares) == 2
    assert min(shares.values()) > len(claims) / 10


# ── The server and its news ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_server_that_is_restarted_in_the_middle_costs_nothing(tmp_path, own_server):
    url, control = own_server
    harness = CrashHarness(tmp_path, url)
    try:
        restarts = 20 if IS_LONG else 2
        wakes = 100 * restarts
        harness.book(book_many(wakes, seconds=restarts * 2, seed=6))
        with harness.running(), harness.running():
            for _ in range(restarts):
                time.sleep(2)
                # As after a power failure: nobody is asked, nothing is flushed, the log is replayed.
                control("-m", "immediate", "restart")
            harness.wait_until_done()
        check_everything_happened_once(harness, wakes)
    finally:
        harness.clean_up()


def test_told_to_go_while_the_server_is_away_it_goes(tmp_path, own_server):
    url, control = own_server
    harness = CrashHarness(tmp_path, url)
    try:
        harness.book(book_one)
        process = harness.start(lingers=60)
        harness.wait_for("step", count=2)
        control("-m", "immediate", "stop")
        assert stop(process, seconds=20) == 0
        control("restart")
        with harness.running():
            harness.wait_until_done()
        check_everything_happened_once(harness, 1)
        assert harness.run().attempt == 2  # nobody was there to give it back to, so its lease ran out
    finally:
        harness.clean_up()


def test_wakes_fire_although_the_news_is_cut_off_again_and_again(tmp_path, postgres_url):
    """A node that misses notifications looks at the tables when it listens again."""
    harness = CrashHarness(tmp_path, postgres_url, lease_seconds=60)  # so that nobody looks sooner for another reason
    try:
        book_while_nobody_can_listen(harness)
    finally:
        harness.clean_up()


def book_while_nobody_can_listen(harness: CrashHarness) -> None:
    is_over, may_cut = threading.Event(), threading.Event()

    def cut_off() -> None:
        while not is_over.wait(0.02):
            if not may_cut.is_set():
                continue
            cut.append(len(harness.query(f"SELECT pg_terminate_backend(pid) FROM ({LISTENING}) AS listening")))

    cut: list[int] = []
    with harness.running(), harness.running():
        thread = threading.Thread(target=cut_off)
        thread.start()
        try:
            for seed in range(5):
                may_cut.clear()  # the node that books has to hear itself once, or it does not start
                harness.book(partial(cut_and_book, may_cut, book_many(40, seconds=0.5, seed=seed)))
            harness.wait_until_done(seconds=20)
        finally:
            is_over.set()
            thread.join()
    check_everything_happened_once(harness, 200)
    assert sum(cut) > 5, "nobody was cut off"


async def cut_and_book(may_cut: threading.Event, book: Callable[[Harness], Any], node: Harness) -> None:
    may_cut.set()
    await book(node)
