"""Nodes on PostgreSQL that stop inside a transaction, or whose line falls silent at a COMMIT, are taken over."""

import time
from multiprocessing.process import BaseProcess

import pytest

from crash.crash_harness import IS_LONG, LEASE, CrashHarness, book_one, check_everything_happened_once, go_on
from harness import Harness
from network.silent_line import Lost, SilentLine

pytestmark = pytest.mark.crash

FREEZES = (*[LEASE] * 10, 30, 30) if IS_LONG else (LEASE,)  # leases, each for one round
SILENCES = (*[LEASE] * 3, 30) if IS_LONG else (LEASE,)
PATIENCE = 65  # seconds after the lease; what goes on later than this is stuck

FIRE = ("due_wakes", "move_wakes", "add_runs") if IS_LONG else ("move_wakes",)
CLAIM = ("claim_runs",)
SAVE = ("holds_lease", "take_positions", "add_message") if IS_LONG else ("take_positions",)
FINISH = ("finish_runs", "mark_wakes_finished", "hold_sessions") if IS_LONG else ("finish_runs", "mark_wakes_finished")
MOMENTS = (*FIRE, *CLAIM, *SAVE, *FINISH)


@pytest.fixture
def crash(lease, tmp_path, postgres_url):
    crash = CrashHarness(tmp_path, postgres_url, lease_seconds=lease)
    yield crash
    crash.clean_up()


def book(wakes: int):
    async def arrange(harness: Harness) -> None:
        for _ in range(wakes):
            await book_one(harness)

    return arrange


def book_until_frozen(crash: CrashHarness, nodes: int) -> int:
    """Book wakes until each node has met its moment, and return how many. One that is to freeze while it fires meets no
    wake as long as others fire them all; in the end it is the only one left to do so."""
    wakes = 2 * nodes
    crash.book(book(wakes))
    end = time.monotonic() + 60
    while len(crash.lines("frozen")) < nodes:
        assert time.monotonic() < end, f"{len(crash.lines('frozen'))} of {nodes} nodes froze; {crash.log()[-2000:]}"
        time.sleep(1)
        crash.book(book(1))
        wakes += 1
    return wakes


def takeovers(crash: CrashHarness, frozen: list[BaseProcess], rescuer: BaseProcess) -> list[float]:
    """Return the seconds from each freeze until another node went on with what the frozen one held."""
    owners = {line["owner"]: line["pid"] for line in crash.lines("up")}
    frozen_at = {line["pid"]: line["at"] for line in crash.lines("frozen")}
    held = {
        change["run_id"]: frozen_at[owners[change["owner"]]]
        for change in crash.changes("running")
        if owners[change["owner"]] in {process.pid for process in frozen}
    }
    begun: dict[str, float] = {}
    for line in crash.lines("start", rescuer):
        begun.setdefault(line["run"], line["at"])
    return [begun[run_id] - at for run_id, at in held.items() if run_id in begun]


# ── SIGSTOP between two statements ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lease", FREEZES)
def test_nodes_frozen_inside_their_transactions_are_taken_over(crash, lease):
    one_each = {"max_headless_runs": 1}
    frozen = [crash.start(one_each, freezes_after=moment) for moment in MOMENTS]
    crash.wait_for("up", count=len(frozen))
    wakes = book_until_frozen(crash, len(frozen))
    last = max(line["at"] for line in crash.lines("frozen"))
    with crash.running() as rescuer:
        crash.wait_until_done(seconds=lease + PATIENCE)
        done = time.time() - last
        took = takeovers(crash, frozen, rescuer)
        for process in frozen:  # awake again, each finds its transaction gone and its lease lost
            go_on(process)
    crash.book(book(len(frozen)))  # and works on, without the other node
    crash.wait_until_done()
    assert len(took) >= len(SAVE + FINISH)  # one frozen while it claims has nothing yet
    check_everything_happened_once(crash, wakes + len(frozen))
    print(
        f"lease {lease} s: {len(frozen)} nodes frozen, {len(took)} runs taken over, longest {max(took):.1f} s, "
        f"{wakes} wakes done {done:.1f} s after the last freeze; 0 lost, doubled, early or failed"
    )


# ── A line that falls silent at a COMMIT ────────────────────────────────────────────────────────────────────────────

LINES = [
    pytest.param(mark, lost, takes_all, id=f"{name}, {lost} lost, {'whole line' if takes_all else 'one connection'}")
    for name, mark in (("save", b"step 2"), ("finish", b'"success"'))
    for lost in ("commit", "answer")
    for takes_all in (True, False)
]
SHORT = LINES[1:2] + LINES[4:5]  # a save by the same node, a finish by another


@pytest.mark.parametrize("lease", SILENCES)
@pytest.mark.parametrize(("mark", "lost", "takes_all"), LINES if IS_LONG else SHORT)
def test_a_commit_on_a_line_that_falls_silent(crash, lease, mark: bytes, lost: Lost, takes_all: bool):
    line = SilentLine(crash.settings["database_url"], mark, lost, takes_all=takes_all)
    with line.running():
        first = crash.start({"database_url": line.url}, pause=0.2)
        crash.wait_for("up", first)
        crash.book(book_one)
        assert line.fell_silent.wait(20)
        silent_at = time.monotonic()
        with crash.running() as second:
            crash.wait_until_done(seconds=lease + PATIENCE)
            took = time.monotonic() - silent_at
        by = "another node" if crash.lines("start", second) else "the same node"
        check_everything_happened_once(crash, 1)
        print(f"lease {lease} s, {lost} lost: done by {by} after {took:.1f} s; 0 lost, doubled, early or failed")
