"""Decisions about a due wake: hold, defer, run, catch up, or record as missed."""

from dataclasses import replace
from datetime import time

import pytest

from harness import DAY, HOUR, MINUTE, NOON, SECOND
from wakeful.core import ids
from wakeful.core.types import FOREVER, Pause, Rules
from wakeful.timing import fire_rule
from wakeful.timing.bounds import PRESETS
from wakeful.timing.fire_rule import Facts
from wakeful.timing.lifecycle import create

RULES = Rules()
QUIET = replace(PRESETS["reactive"], quiet_from=time(11), quiet_to=time(14))


def make_wake(**changes):
    """A person's recall for noon, once unless it has an interval."""
    fields = {"kind": "recall", "session_id": "session", "scheduled_by": "user", "at": NOON}
    fields["call_type"] = "recurring" if "every" in changes else "once"
    created = {key: changes.pop(key) for key in [*changes] if key in fields or key in CREATED_WITH}
    wake = create(
        agent_id="agent",
        user_id="user",
        instructions="Read notes.txt.",
        timezone="UTC",
        now=NOON - HOUR,
        rules=RULES,
        **(fields | created),
    )
    return replace(wake, **changes)


CREATED_WITH = {"every", "on_miss", "max_runs", "until", "priority", "booked_by_run", "comment"}


def next_run(**changes):
    return make_wake(kind="next_run", scheduled_by="agent", **changes)


def facts(**known):
    return Facts(agent_timezone="UTC", **known)


def paused(start, end):
    return [Pause(id="p", user_id="user", agent_id="agent", started_at=start, until=end, reason="")]


def fire(wake, now=NOON, **known):
    return fire_rule.fire(wake, facts(**known), now, RULES)


def codes(verdict):
    return [decision.code for decision in verdict.decisions]


# ── The plain course ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_once_wake_becomes_one_queued_run_named_after_its_instant():
    wake = make_wake()
    verdict = fire(wake)
    [run] = verdict.runs
    assert run.id == ids.run_id(wake.id, NOON)
    assert (run.status, run.nominal_at, run.covers, run.session_id) == ("queued", NOON, 1, "session")
    assert (verdict.wake.status, verdict.decisions, verdict.sessions) == ("queued", (), ())


def test_a_recurring_wake_stays_pending_and_goes_to_its_next_instant():
    verdict = fire(make_wake(every=HOUR))
    assert (verdict.wake.status, verdict.wake.nominal_at, verdict.wake.attempt_at) == (
        "pending",
        NOON + HOUR,
        NOON + HOUR,
    )


@pytest.mark.parametrize(("kind", "scheduled_by"), [("session", "user"), ("next_run", "agent")])
def test_a_wake_that_gets_a_fresh_session_says_where_it_came_from(kind, scheduled_by):
    wake = make_wake(kind=kind, scheduled_by=scheduled_by, comment="Weekly look")
    verdict = fire(wake)
    [run], [session] = verdict.runs, verdict.sessions
    assert run.session_id == session.id == verdict.wake.created_session_id != "session"
    assert (session.origin_session_id, session.origin_wake_id, session.origin_label) == (
        "session",
        wake.id,
        "Weekly look",
    )


@pytest.mark.parametrize("gone", ["user_gone", "agent_gone"])
def test_a_wake_whose_user_or_agent_is_gone_is_cancelled(gone):
    verdict = fire(make_wake(every=HOUR), gone=gone)
    assert (verdict.wake.status, verdict.wake.reason, verdict.runs) == ("cancelled", gone, ())


# ── Holds ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("known", "until", "reason"),
    [
        pytest.param({"pauses": paused(NOON - HOUR, NOON + HOUR)}, NOON + HOUR, "paused", id="paused"),
        pytest.param({"pauses": paused(NOON, FOREVER)}, FOREVER, "paused", id="paused until someone resumes"),
        pytest.param({"bounds": QUIET}, NOON + 2 * HOUR, "quiet_hours", id="quiet hours"),
        pytest.param(
            {"bounds": replace(QUIET, quiet_from=None, quiet_to=None, days=frozenset({1}))},
            NOON + 12 * HOUR,
            "day_not_allowed",
            id="a day that is not allowed",
        ),
        pytest.param({"bounds": PRESETS["reactive"], "used_today": 48}, NOON + 12 * HOUR, "daily_cap", id="daily cap"),
        pytest.param(
            {"started_lately": 60, "first_lately": NOON - 40 * MINUTE}, NOON + 20 * MINUTE, "brake", id="runaway brake"
        ),
        pytest.param(
            {"bounds": QUIET, "pauses": paused(NOON, NOON + HOUR)},
            NOON + 2 * HOUR,
            "paused",
            id="one hold after another",
        ),
    ],
)
def test_a_wake_that_may_not_run_waits_for_the_first_allowed_instant(known, until, reason):
    verdict = fire(next_run(), **known)
    assert (verdict.wake.attempt_at, verdict.wake.held_by, verdict.wake.status) == (until, reason, "pending")
    assert (verdict.wake.nominal_at, verdict.runs, codes(verdict)) == (NOON, (), [reason])


def test_a_hold_that_goes_on_is_told_once():
    held = fire(make_wake(), pauses=paused(NOON, NOON + HOUR)).wake
    again = fire(held, NOON + MINUTE, pauses=paused(NOON, NOON + 3 * HOUR))
    assert (again.wake.attempt_at, again.decisions) == (NOON + 3 * HOUR, ())


def test_a_person_is_not_held_by_the_brake():
    assert fire(make_wake(), started_lately=60, first_lately=NOON - MINUTE).runs


def test_the_brake_tells_the_person():
    notice = fire(next_run(), started_lately=60, first_lately=NOON - MINUTE).notice
    assert notice is not None
    assert (notice.code, notice.user_id, notice.agent_id) == ("brake", "user", "agent")


# ── Missed or not ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("late", "is_missed"), [(0 * MINUTE, False), (5 * MINUTE, False), (5 * MINUTE + SECOND, True), (DAY, True)]
)
def test_a_wake_is_missed_when_it_is_found_later_than_the_grace(late, is_missed):
    assert fire(make_wake(), NOON + late).wake.is_missed is is_missed


@pytest.mark.parametrize(
    ("known", "free_at"),
    [
        pytest.param({"pauses": paused(NOON - HOUR, NOON + HOUR)}, NOON + HOUR, id="paused"),
        pytest.param({"bounds": QUIET}, NOON + 2 * HOUR, id="quiet hours"),
    ],
)
@pytest.mark.parametrize(("late", "is_missed"), [(5 * MINUTE, False), (6 * MINUTE, True)])
def test_lateness_counts_from_the_end_of_what_held_it(known, free_at, late, is_missed):
    """The engine was away during the hold, so that the wake is first looked at after it."""
    assert fire(next_run(), free_at + late, **known).wake.is_missed is is_missed


@pytest.mark.parametrize("held_by", ["paused", "quiet_hours", "daily_cap", "brake", "backoff", "error"])
def test_time_spent_in_a_hold_does_not_make_a_wake_missed(held_by):
    held = make_wake(held_by=held_by, attempt_at=NOON + 9 * HOUR)
    assert not fire(held, NOON + 9 * HOUR + MINUTE).wake.is_missed
    assert fire(held, NOON + 9 * HOUR + 6 * MINUTE).wake.is_missed


def test_missed_is_judged_once():
    deferred = fire(make_wake(), NOON + MINUTE, busy_run_id="talk").wake
    assert not fire(deferred, NOON + DAY).wake.is_missed


@pytest.mark.parametrize(
    ("on_miss", "expected"),
    [
        ("skip", [("skipped", "missed", 3), ("queued", None, 1)]),
        ("run_once", [("queued", "missed", 4)]),
        ("run_catchup", [("queued", "missed", 1)] * 3 + [("queued", None, 1)]),
    ],
)
def test_a_run_is_marked_missed_only_if_it_makes_up_for_a_missed_instant(on_miss, expected):
    verdict = fire(make_wake(every=HOUR, on_miss=on_miss), NOON + 3 * HOUR + MINUTE)
    assert [(run.status, run.reason, run.covers) for run in verdict.runs] == expected
    assert verdict.decisions[0].detail["count"] == 3


def test_a_missed_once_wake_that_asked_to_be_skipped_ends_skipped():
    verdict = fire(next_run(), NOON + HOUR)
    assert (verdict.wake.status, verdict.wake.reason) == ("skipped", "missed")
    [row] = verdict.runs
    assert (row.status, row.reason, row.covers, row.finished_at) == ("skipped", "missed", 1, NOON + HOUR)


# ── A busy session ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_recall_in_a_busy_session_is_put_off_and_keeps_its_instant():
    verdict = fire(make_wake(), busy_run_id="talk")
    deferred = verdict.wake
    assert (deferred.attempt_at, deferred.nominal_at, deferred.deferrals) == (NOON + MINUTE, NOON, 1)
    assert (deferred.status, verdict.runs, codes(verdict)) == ("pending", (), ["deferred"])


def test_a_recall_queues_after_ten_deferrals():
    verdict = fire(
        make_wake(deferrals=10, first_due_at=NOON, held_by="deferred"), NOON + 10 * MINUTE, busy_run_id="talk"
    )
    assert (verdict.wake.status, len(verdict.runs), codes(verdict)) == ("queued", 1, ["queued_while_busy"])


def test_a_deferred_recall_that_finds_its_session_free_is_not_said_to_have_queued_while_busy():
    verdict = fire(make_wake(deferrals=1, first_due_at=NOON, held_by="deferred"), NOON + MINUTE)
    assert (verdict.wake.status, "queued_while_busy" in codes(verdict)) == ("queued", False)


def test_a_recall_booked_by_the_busy_run_queues_behind_it():
    assert fire(make_wake(booked_by_run="talk"), busy_run_id="talk").wake.status == "queued"


@pytest.mark.parametrize("kind", ["message", "session", "next_run"])
def test_only_recalls_are_put_off(kind):
    assert fire(make_wake(kind=kind), busy_run_id="talk").wake.status == "queued"


# ── An earlier occurrence is unfinished ─────────────────────────────────────────────────────────────────────────────


def test_an_instant_that_comes_while_its_predecessor_runs_waits_in_a_row_of_its_own():
    verdict = fire(make_wake(every=MINUTE), NOON + 2 * MINUTE, busy_run_id="before", running_run_id="before")
    [run] = verdict.runs
    assert (run.status, run.reason, run.nominal_at, run.covers) == ("queued", "overlap", NOON, 3)
    assert verdict.wake.nominal_at == NOON + 3 * MINUTE


def test_further_instants_are_folded_into_the_row_that_waits():
    verdict = fire(make_wake(every=MINUTE), NOON + MINUTE, waiting_run_id="before")
    assert (verdict.runs, verdict.fold.into, verdict.fold.run.covers) == ((), "before", 2)
    assert codes(verdict) == ["folded"]


# ── Low priority ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_low_priority_gives_way_to_a_user_who_talks():
    verdict = fire(next_run(priority="low"), is_user_talking=True)
    assert (verdict.wake.status, verdict.wake.reason) == ("skipped", "user_active")
    assert [(run.status, run.reason) for run in verdict.runs] == [("skipped", "user_active")]


def test_normal_priority_does_not():
    assert fire(next_run(), is_user_talking=True).wake.status == "queued"


# ── The end of a recurrence ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_last_run_of_so_many_ends_the_wake():
    verdict = fire(make_wake(every=HOUR, max_runs=3, runs_started=2))
    assert (verdict.wake.status, verdict.wake.reason, len(verdict.runs)) == ("fired", "max_runs", 1)


def test_catching_up_stays_within_so_many_runs():
    wake = make_wake(every=HOUR, on_miss="run_catchup", max_runs=5, runs_started=2)
    verdict = fire(wake, NOON + 7 * HOUR)
    assert [run.covers for run in verdict.runs] == [1, 1, 6]
    assert verdict.wake.reason == "max_runs"


def test_the_last_instant_before_the_end_ends_the_wake():
    verdict = fire(make_wake(every=HOUR, until=NOON + 30 * MINUTE))
    assert (verdict.wake.status, verdict.wake.reason, len(verdict.runs)) == ("fired", "until", 1)


def test_catching_up_does_not_outrun_the_brake():
    wake = make_wake(every=HOUR, on_miss="run_catchup", scheduled_by="agent")
    verdict = fire(wake, NOON + 7 * HOUR, started_lately=57, first_lately=NOON + 7 * HOUR - MINUTE)
    assert [run.covers for run in verdict.runs] == [1, 1, 6]
