"""Changes of a wake: edit, skip, run now, back-off, end."""

from dataclasses import replace

import pytest

from harness import DAY, HOUR, MINUTE, NOON, SECOND
from wakeful.core import ids
from wakeful.core.errors import Invalid
from wakeful.core.types import FOREVER, Rules
from wakeful.timing import lifecycle
from wakeful.timing.lifecycle import WakeFiresOnce, WakeNotLive, create

RULES = Rules()
DEFAULTS = {
    "kind": "recall",
    "agent_id": "agent",
    "user_id": "user",
    "session_id": "session",
    "call_type": "once",
    "instructions": "Read notes.txt.",
    "timezone": "UTC",
    "scheduled_by": "user",
    "now": NOON,
    "rules": RULES,
}


def make(**request):
    return create(**(DEFAULTS | request))


HOURLY = make(call_type="recurring", every=HOUR, at=NOON + HOUR)
ONCE = make(at=NOON + HOUR)
NINE = make(call_type="recurring", cron="0 9 * * *")


# ── Skipping ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("now", "due", "covers"),
    [
        pytest.param(NOON, NOON + 2 * HOUR, 1, id="early"),
        pytest.param(NOON + HOUR, NOON + 2 * HOUR, 1, id="at the very instant"),
        pytest.param(NOON + 8 * HOUR + MINUTE, NOON + 9 * HOUR, 8, id="after a long sleep, still on the grid"),
    ],
)
def test_skip_moves_to_the_next_time_and_never_into_the_past(now, due, covers):
    verdict = lifecycle.skip(HOURLY, now)
    assert verdict.wake.nominal_at == verdict.wake.attempt_at == due
    [row] = verdict.runs
    assert (row.status, row.reason, row.nominal_at, row.covers) == (
        "skipped",
        "skipped_by_request",
        NOON + HOUR,
        covers,
    )


def test_skipping_the_last_instant_ends_the_wake():
    ended = lifecycle.skip(replace(HOURLY, until=NOON + HOUR), NOON).wake
    assert (ended.status, ended.reason) == ("fired", "until")


def test_skip_takes_no_run_of_so_many():
    assert lifecycle.skip(replace(HOURLY, max_runs=1), NOON).wake.status == "pending"


def test_skip_needs_a_recurring_wake():
    with pytest.raises(WakeFiresOnce):
        lifecycle.skip(ONCE, NOON)


# ── Editing ─────────────────────────────────────────────────────────────────────────────────────────────────────────

OVERDUE = replace(  # due at one, and put off since
    HOURLY, attempt_at=NOON + 65 * MINUTE, first_due_at=NOON + HOUR, held_by="deferred", deferrals=5
)


def edit(wake, now=NOON, **changes):
    return lifecycle.edit(wake, changes, now, RULES)


def test_a_new_time_starts_afresh():
    edited = edit(OVERDUE, NOON + 61 * MINUTE, nominal_at=NOON + 2 * HOUR)
    assert edited.nominal_at == edited.attempt_at == NOON + 2 * HOUR
    assert (edited.first_due_at, edited.held_by, edited.deferrals) == (None, None, 0)


def test_a_new_time_in_the_past_means_now():
    assert edit(ONCE, nominal_at=NOON - DAY).nominal_at == NOON


def test_a_new_cron_rule_counts_from_now():
    assert edit(NINE, cron="30 13 * * *").nominal_at == NOON + 90 * MINUTE


def test_a_new_zone_moves_a_cron_rule():
    assert edit(NINE, timezone="America/New_York").nominal_at == NOON + 2 * HOUR


def test_a_new_time_for_a_cron_rule_means_not_before():
    assert edit(NINE, nominal_at=NOON + 3 * DAY).nominal_at == NOON + 4 * DAY - 3 * HOUR


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"instructions": "Read plan.txt."}, id="instructions"),
        pytest.param({"until": NOON + DAY}, id="until"),
        pytest.param({"max_runs": 7}, id="max_runs"),
    ],
)
@pytest.mark.parametrize("rule", [{}, {"every": None, "cron": "0 * * * *"}], ids=["interval", "cron"])
def test_a_change_that_is_not_about_the_times_keeps_them(changes, rule):
    """The instant that waits keeps its place, and the grid is not moved to now."""
    before = replace(OVERDUE, **rule)
    edited = edit(before, NOON + 61 * MINUTE, **changes)
    assert replace(before, **changes, updated_at=edited.updated_at, seen_at=edited.seen_at) == edited


def test_a_cron_rule_instead_of_an_interval():
    assert edit(HOURLY, every=None, cron="0 9 * * *").nominal_at == NOON + 21 * HOUR


@pytest.mark.parametrize(
    ("wake", "changes", "field"),
    [
        (ONCE, {"instructions": ""}, "instructions"),
        (HOURLY, {"every": SECOND}, "interval_seconds"),
        (HOURLY, {"cron": "0 9 * * *"}, "interval_seconds"),
        (HOURLY, {"until": NOON}, "until"),
        (HOURLY, {"max_runs": 0}, "max_runs"),
        (replace(HOURLY, runs_started=5), {"max_runs": 5}, "max_runs"),
    ],
)
def test_an_edit_is_checked_like_a_new_wake(wake, changes, field):
    with pytest.raises(Invalid) as refusal:
        edit(wake, **changes)
    assert refusal.value.field == field


@pytest.mark.parametrize("status", ["queued", "running", "fired", "cancelled"])
def test_only_a_pending_wake_can_be_edited_or_run_by_hand(status):
    wake = replace(ONCE, status=status)
    with pytest.raises(WakeNotLive):
        edit(wake, comment="x")
    with pytest.raises(WakeNotLive):
        lifecycle.run_now(wake, NOON)


# ── Run now ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_run_now_uses_up_a_once_wake():
    verdict = lifecycle.run_now(ONCE, NOON)
    [run] = verdict.runs
    assert (run.trigger, run.covers, run.nominal_at, run.id) == (
        "run_now",
        1,
        NOON + HOUR,
        ids.run_id(ONCE.id, NOON + HOUR),
    )
    assert verdict.wake.status == "queued"


def test_run_now_of_a_recurring_wake_is_an_extra_run():
    verdict = lifecycle.run_now(HOURLY, NOON)
    [run] = verdict.runs
    assert (run.trigger, run.covers, run.nominal_at) == ("run_now", 0, NOON)
    assert (verdict.wake.nominal_at, verdict.wake.runs_started) == (NOON + HOUR, 0)


def test_two_extra_runs_are_two():
    assert lifecycle.run_now(HOURLY, NOON).runs[0].id != lifecycle.run_now(HOURLY, NOON).runs[0].id


# ── Failing and ending ──────────────────────────────────────────────────────────────────────────────────────────────


def failed(times, wake=HOURLY, now=NOON + MINUTE):
    return lifecycle.back_off(replace(wake, failures=times - 1), now, RULES)


@pytest.mark.parametrize(
    ("times", "comes_back"),
    [
        pytest.param(4, NOON + HOUR, id="four times: as planned"),
        pytest.param(5, NOON + MINUTE + 2 * HOUR, id="five times: twice the interval"),
        pytest.param(6, NOON + MINUTE + 4 * HOUR, id="six times: four times the interval"),
        pytest.param(9, NOON + MINUTE + DAY, id="never more than a day"),
        pytest.param(5_000, NOON + MINUTE + DAY, id="however often"),
    ],
)
def test_repeated_failure_brings_a_wake_back_later_each_time(times, comes_back):
    wake = failed(times)
    assert (wake.failures, wake.attempt_at, wake.nominal_at) == (times, comes_back, NOON + HOUR)
    assert wake.held_by == (None if times < 5 else "backoff")


def test_back_off_never_comes_before_the_next_planned_instant():
    weekly = make(call_type="recurring", every=7 * DAY, at=NOON + 7 * DAY)
    assert failed(5, weekly).attempt_at == NOON + 7 * DAY


def test_back_off_does_not_inherit_the_end_of_a_pause():
    """A pause without end that is lifted must find nothing left that waits for the year 9999."""
    held = replace(HOURLY, attempt_at=FOREVER, held_by="paused")
    assert failed(5, held, NOON + HOUR).attempt_at == NOON + 3 * HOUR


def test_a_wake_that_has_ended_is_not_brought_back():
    ended = failed(5, replace(HOURLY, status="cancelled"))
    assert (ended.status, ended.attempt_at) == ("cancelled", NOON + HOUR)


@pytest.mark.parametrize("status", ["pending", "queued"])
def test_a_live_wake_can_be_cancelled(status):
    ended = lifecycle.cancel(replace(ONCE, status=status), "no longer needed", NOON)
    assert (ended.status, ended.reason, ended.is_live) == ("cancelled", "no longer needed", False)


@pytest.mark.parametrize(("status", "advice"), [("running", "Stop its run"), ("fired", "Book a new one")])
def test_a_wake_that_is_no_longer_live_cannot_be_cancelled(status, advice):
    with pytest.raises(WakeNotLive, match=advice):
        lifecycle.cancel(replace(ONCE, status=status), None, NOON)
