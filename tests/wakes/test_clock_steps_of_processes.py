"""Real processes whose clock is set while their runs execute, and processes that were down for a month."""

import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crash.crash_harness import IS_LONG, LEASE, CrashHarness
from crash.node_process import STEPS
from harness import HOUR, MINUTE, SECOND, Harness

pytestmark = pytest.mark.crash

HOURS, DAYS = 3_600.0, 86_400.0
WAKES = 400 if IS_LONG else 10
CHATS = 40 if IS_LONG else 2
ABSENCE = 30 * DAYS
MICROSECONDS = 1_000_000
FAULTS = ("lost", "doubled", "incomplete", "cut_off", "begun_again")


@pytest.fixture(params=["sqlite", "postgres"])
def crash(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    crash = CrashHarness(tmp_path, url, max_attempts=3)
    yield crash
    crash.clean_up()


@pytest.fixture
def clock(tmp_path) -> Path:
    """The file that says by how many seconds the clock of a process was set."""
    return set_clock(tmp_path / "clock", 0)


def set_clock(file: Path, seconds: float) -> Path:
    draft = file.with_suffix(".new")  # exchanged at once: nobody reads half a number
    draft.write_text(str(seconds))
    return draft.replace(file)


def ledger(crash: CrashHarness, what: str, **more: Any) -> Counter[str]:
    """Count what became of everything that was to happen once, print it, and check that nothing went wrong."""
    runs, steps = crash.runs(), crash.steps()
    fired = {run.wake_id for run in runs}
    done = [run for run in runs if run.status == "success"]
    counted = Counter(
        fired=len(runs),
        done=len(done),
        lost=sum(wake.id not in fired for wake in crash.wakes()),
        doubled=sum(len(each) > len(set(each)) for each in steps.values()),
        incomplete=sum(tuple(steps.get(run.id, ())) != STEPS for run in done),
        cut_off=sum(run.attempt > 1 for run in runs),
        begun_again=sum(line["attempt"] > 1 for line in crash.lines("start")),
    )
    others = Counter((run.status, run.reason) for run in runs if run.status != "success")
    print(f"\n{what}: {dict(counted)} others: {dict(others)} {more}")
    assert not any(counted[fault] for fault in FAULTS)
    assert set(others) <= {("queued", None)}  # put back by a graceful stop
    return counted


def test_steps_of_the_clock_cut_off_no_run(crash, clock):
    """Each step comes while runs execute, and lasts longer than it takes to take over a dead node's runs."""
    chance = random.Random(7)

    async def arrange(harness: Harness) -> None:
        for number in range(CHATS):
            await harness.node.runs.ask((await harness.session()).id, harness.user.id, f"Hello {number}?")
        for number in range(WAKES):
            await harness.book(at=harness.clock.now() + (number % 2) * SECOND)

    crash.book(arrange)
    begin = [crash.start(lingers=1.2, clock=clock) for _ in range(2 if crash.settings.get("database_url") else 1)]
    for process in begin:
        crash.wait_for("up", process)
    shifts = [HOURS, DAYS, -HOURS]
    if IS_LONG:
        shifts = [chance.choice([HOURS, DAYS, -HOURS, -DAYS, 0.0, 30 * DAYS, 40.0]) for _ in range(24)] + [0.0]
    set_at = []
    for shift in shifts:
        set_clock(clock, shift)
        set_at.append(time.time())
        time.sleep(LEASE * (chance.uniform(0.3, 2.5) if IS_LONG else 0.5))
    set_clock(clock, DAYS)  # so that nothing waits for a time that the clock has not come to
    crash.wait_until_done()
    ends = {line["run"]: line["at"] for line in crash.lines("end")}
    through = sum(
        any(line["at"] < at < ends.get(line["run"], time.time()) for at in set_at) for line in crash.lines("start")
    )
    counted = ledger(crash, "clock steps", steps=len(shifts) + 1, runs_through_a_step=through)
    assert through > WAKES / 4, "hardly a run was executing when the clock was set"
    assert counted["fired"] == counted["done"] == WAKES + CHATS
    assert "Traceback" not in crash.log()


def test_a_month_away_is_counted_exactly_and_at_once(crash, clock):
    rules = 20

    async def arrange(harness: Harness) -> None:
        for _ in range(rules):
            await harness.book(call_type="recurring", cron="* * * * *", timezone="Europe/Berlin")
        await harness.book(at=harness.clock.now() + HOUR)

    crash.book(arrange)
    first = {wake.id: wake.nominal_at for wake in crash.wakes()}
    set_clock(clock, ABSENCE)
    with crash.running(clock=clock):
        began = time.monotonic()
        crash.wait_for("end", count=rules + 1, seconds=60)
        took = time.monotonic() - began
    runs = {run.wake_id: run for run in reversed(crash.runs())}  # the earliest of each
    for wake in crash.wakes():
        run = runs[wake.id]
        assert run.nominal_at == first[wake.id]
        if wake.call_type == "recurring":
            last = (run.queued_at // (60 * MICROSECONDS)) * 60 * MICROSECONDS
            assert run.covers == (last - first[wake.id]) // (60 * MICROSECONDS) + 1
    ledger(crash, "a month away", rules=rules, seconds_until_all_had_run=round(took, 2))
    assert "Traceback" not in crash.log()


@pytest.mark.skipif(not IS_LONG, reason="upkeep looks once a minute")
def test_a_start_in_2098_and_an_hour_back_leave_no_recurring_wake_silent(crash, clock):
    async def arrange(harness: Harness) -> None:
        at = harness.clock.now() + SECOND
        await harness.book(call_type="recurring", every=5 * SECOND, at=at, max_runs=1_000)
        await harness.book(call_type="recurring", cron="* * * * *", timezone="Europe/Berlin")
        await harness.book(call_type="recurring", every=MINUTE, at=at)

    crash.book(arrange)
    silent = {}
    for name, before in (("2098", 26_000 * DAYS), ("an hour back", HOURS)):
        set_clock(clock, before)
        with crash.running(clock=clock):
            crash.wait_for("end", count=len(crash.lines("end")) + 3)
        set_clock(clock, 0)
        began, seen = time.time(), len(crash.lines("start"))
        with crash.running(clock=clock):
            crash.wait_for("start", count=seen + 6, seconds=200)
            crash.wait_for("end", count=len(crash.lines("start")))
        silent[name] = round(crash.lines("start")[seen]["at"] - began, 1)
        late = [wake for wake in crash.wakes() if wake.nominal_at > (time.time() + 2 * 60) * MICROSECONDS]
        # A cron time that had fired under the wrong clock does not fire again, an hour long.
        assert [wake.cron for wake in late] == ["* * * * *"] * (name == "an hour back" and len(late))
    told = crash.query("SELECT title FROM notifications WHERE code = 'replanned'")
    assert told
    ledger(crash, "corrected", seconds_until_the_first=silent, notices=len(told))
    assert "Traceback" not in crash.log()
