"""Wakes missed while the engine was down: exact rows, by recurrence and `on_miss`."""

import pytest

from harness import DAY, HOUR, MINUTE, NOON, SECOND
from wakeful.timing.recurrence import Grid

pytestmark = pytest.mark.both_stores

MORNING_AFTER = NOON + DAY + 2 * MINUTE
RHYTHMS = {
    "every minute": {"every": MINUTE, "at": NOON + MINUTE},
    "hourly": {"every": HOUR, "at": NOON + HOUR},
    "yearly": {"cron": "0 18 2 3 *", "timezone": "UTC"},
}
ASLEEP_FOR_A_DAY = {  # what is within five minutes of its instant simply runs
    ("every minute", "skip"): [("skipped", "missed", 1436), ("success", None, 6)],
    ("every minute", "run_once"): [("success", "missed", 1442)],
    ("every minute", "run_catchup"): [("success", "missed", 1)] * 9 + [("success", "missed", 1433)],
    ("hourly", "skip"): [("skipped", "missed", 23), ("success", None, 1)],
    ("hourly", "run_once"): [("success", "missed", 24)],
    ("hourly", "run_catchup"): [("success", "missed", 1)] * 9 + [("success", "missed", 15)],
    ("yearly", "skip"): [("skipped", "missed", 1)],
    ("yearly", "run_once"): [("success", "missed", 1)],
    ("yearly", "run_catchup"): [("success", "missed", 1)],
}


def told(runs):
    return [(run.status, run.reason, run.covers) for run in runs]


@pytest.mark.parametrize(("rhythm", "on_miss"), ASLEEP_FOR_A_DAY)
async def test_a_laptop_that_slept_for_a_day(harness, rhythm, on_miss):
    wake = await harness.book(call_type="recurring", on_miss=on_miss, **RHYTHMS[rhythm])
    await harness.turn()
    await harness.turn_at(MORNING_AFTER)
    runs = await harness.runs_of(wake)
    assert told(runs) == ASLEEP_FOR_A_DAY[rhythm, on_miss]

    # Every planned instant is in one row, none in two, and the wake goes on behind them on the same grid.
    grid = Grid.of(wake)
    planned = grid.span(wake.nominal_at, MORNING_AFTER)
    covered = [at for run in runs for at in grid.times_from(run.nominal_at, run.covers)]
    assert covered == grid.times_from(wake.nominal_at, planned.count)
    after = await harness.wake(wake)
    assert (after.status, after.nominal_at) == ("pending", planned.next)


async def test_catching_up_goes_from_the_oldest_to_the_newest(harness):
    await harness.book(call_type="recurring", on_miss="run_catchup", every=HOUR, at=NOON + HOUR)
    await harness.turn_at(NOON + 4 * HOUR)
    assert [ran.run.nominal_at for ran in harness.executor.ran] == [NOON + number * HOUR for number in (1, 2, 3, 4)]


async def test_after_the_sleep_the_plain_course_goes_on(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON + HOUR)
    await harness.turn_at(MORNING_AFTER)
    await harness.turn_at(NOON + DAY + HOUR)
    assert told(await harness.runs_of(wake))[1:] == [("success", None, 1)]


@pytest.mark.parametrize(
    ("kind", "late", "expected", "status"),
    [
        pytest.param("recall", 5 * MINUTE, ("success", None, 1), "fired", id="a recall within the grace"),
        pytest.param("recall", 5 * MINUTE + SECOND, ("success", "missed", 1), "fired", id="a recall past it"),
        pytest.param("message", DAY, ("success", "missed", 1), "fired", id="a message past it"),
        pytest.param("session", DAY, ("success", "missed", 1), "fired", id="a session past it"),
        pytest.param("next_run", 5 * MINUTE, ("success", None, 1), "fired", id="a next run within the grace"),
        pytest.param("next_run", 5 * MINUTE + SECOND, ("skipped", "missed", 1), "skipped", id="a next run past it"),
    ],
)
async def test_what_each_kind_does_by_default_when_it_is_late(harness, kind, late, expected, status):
    wake = await harness.book(kind=kind, at=NOON + HOUR)
    await harness.turn_at(NOON + HOUR + late)
    assert told(await harness.runs_of(wake)) == [expected]
    assert (await harness.wake(wake)).status == status


async def test_a_recurrence_that_ended_during_the_sleep_still_accounts_for_its_instants(harness):
    wake = await harness.book(
        call_type="recurring", every=HOUR, at=NOON + HOUR, until=NOON + 6 * HOUR + MINUTE, on_miss="run_once"
    )
    await harness.turn_at(MORNING_AFTER)
    assert told(await harness.runs_of(wake)) == [("success", "missed", 6)]
    ended = await harness.wake(wake)
    assert (ended.status, ended.reason) == ("fired", "until")


async def test_catching_up_counts_towards_so_many_runs(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON + HOUR, max_runs=3, on_miss="run_catchup")
    await harness.turn_at(NOON + 10 * HOUR)
    assert told(await harness.runs_of(wake)) == [("success", "missed", 1)] * 2 + [("success", "missed", 8)]
    assert (await harness.wake(wake)).reason == "max_runs"


async def test_waiting_in_the_queue_never_makes_a_run_missed(harness):
    """Found in time; then all three slots are taken for an hour."""
    harness.executor.default = gate = harness.gate()
    for _ in range(3):
        await harness.book(kind="session", at=NOON + MINUTE)
    wake = await harness.book(at=NOON + 2 * MINUTE)
    await harness.turn_at(NOON + MINUTE)
    await harness.turn_at(NOON + 2 * MINUTE)
    harness.clock.set(NOON + HOUR)
    harness.executor.default = None
    await harness.let_through(gate)
    await harness.work()
    [run] = await harness.runs_of(wake)
    assert (run.status, run.reason, run.started_at) == ("success", None, NOON + HOUR)


async def test_the_decision_tells_policy_lateness_and_count(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON + HOUR, on_miss="skip")
    await harness.turn_at(NOON + 3 * HOUR + 2 * MINUTE)
    [missed] = [decision for decision in await harness.why(wake) if decision.code == "missed"]
    assert missed.detail == {"policy": "skip", "late_seconds": 2 * 3600 + 120, "count": 2}
