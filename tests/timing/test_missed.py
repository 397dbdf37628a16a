"""Division of the planned instants up to now into run and missed, by `on_miss`."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import DAY, HOUR, MINUTE, NOON, SECOND
from wakeful.core.types import Rules
from wakeful.timing.lifecycle import create
from wakeful.timing.recurrence import Grid, Lateness, Piece, divide_missed, join_missed

GRACE, MOST = 5 * MINUTE, 10


def make_wake(on_miss="run_once", *, every=HOUR, missed_at=None, **changes):
    """A wake planned for noon; `missed_at`: when it was found due, and too late."""
    wake = create(
        kind="recall",
        agent_id="agent",
        user_id="user",
        session_id="session",
        call_type="once" if every is None else "recurring",
        every=every,
        at=NOON,
        instructions="Read notes.txt.",
        timezone="UTC",
        scheduled_by="user",
        on_miss=on_miss,
        now=NOON - HOUR,
        rules=Rules(),
    )
    return replace(wake, is_missed=missed_at is not None, first_due_at=missed_at, **changes)


def plan(wake, now, most=MOST):
    lateness = Lateness(wake.first_due_at or now, is_missed=wake.is_missed, grace=GRACE)
    return divide_missed(wake, lateness, now, most=most)


def test_an_instant_on_time_is_one_run_and_the_next_is_on_the_grid():
    result = plan(make_wake(), NOON + SECOND)
    assert result.runs == (Piece(NOON, 1),)
    assert (result.skipped, result.missed, result.next_at) == ((), 0, NOON + HOUR)


@pytest.mark.parametrize("on_miss", ["skip", "run_once", "run_catchup"])
def test_instants_that_waited_without_being_missed_share_one_run(on_miss):
    result = plan(make_wake(on_miss, every=MINUTE), NOON + 4 * MINUTE)
    assert result.runs == (Piece(NOON, 5),)
    assert (result.skipped, result.missed, result.next_at) == ((), 0, NOON + 5 * MINUTE)


def test_skip_records_what_was_missed_in_one_row_and_runs_what_is_within_the_grace():
    now = NOON + 3 * HOUR + GRACE
    result = plan(make_wake("skip", missed_at=now), now)
    assert result.skipped == (Piece(NOON, 3),)
    assert result.runs == (Piece(NOON + 3 * HOUR, 1),)
    assert (result.missed, result.next_at) == (3, NOON + 4 * HOUR)


def test_skip_runs_nothing_when_even_the_last_instant_is_past_the_grace():
    now = NOON + 3 * HOUR + GRACE + SECOND
    result = plan(make_wake("skip", missed_at=now), now)
    assert (result.skipped, result.runs) == ((Piece(NOON, 4),), ())
    assert (result.missed, result.next_at) == (4, NOON + 4 * HOUR)


def test_run_once_covers_everything_with_one_run_and_counts_what_was_missed():
    now = NOON + 3 * HOUR + MINUTE
    result = plan(make_wake("run_once", missed_at=now), now)
    assert (result.skipped, result.runs) == ((), (Piece(NOON, 4),))
    assert (result.missed, result.next_at) == (3, NOON + 4 * HOUR)


def test_run_catchup_runs_one_per_instant_oldest_first():
    now = NOON + 3 * HOUR + MINUTE
    result = plan(make_wake("run_catchup", missed_at=now), now)
    assert result.runs == tuple(Piece(NOON + number * HOUR, 1) for number in range(4))
    assert (result.skipped, result.missed) == ((), 3)


def test_run_catchup_folds_the_rest_into_the_last_of_its_ten():
    now = NOON + DAY
    result = plan(make_wake("run_catchup", missed_at=now), now)
    assert [piece.covers for piece in result.runs] == [1] * 9 + [16]
    assert result.runs[-1].first == NOON + 9 * HOUR


def test_a_wake_that_waited_on_after_it_was_judged_takes_the_later_instants_along():
    """Judged missed at three, deferred until half past four."""
    wake = make_wake("skip", missed_at=NOON + 3 * HOUR)
    result = plan(wake, NOON + 4 * HOUR + 30 * MINUTE)
    assert result.skipped == (Piece(NOON, 3),)
    assert result.runs == (Piece(NOON + 3 * HOUR, 2),)


@pytest.mark.parametrize(
    ("on_miss", "skipped", "runs"),
    [
        ("skip", (Piece(NOON, 1),), ()),
        ("run_once", (), (Piece(NOON, 1),)),
        ("run_catchup", (), (Piece(NOON, 1),)),
    ],
)
def test_a_missed_once_wake_is_skipped_or_run_as_it_asked(on_miss, skipped, runs):
    now = NOON + DAY
    result = plan(make_wake(on_miss, every=None, missed_at=now), now)
    assert (result.skipped, result.runs) == (skipped, runs)
    assert (result.missed, result.next_at) == (1, None)


@pytest.mark.parametrize(
    ("until", "count", "next_at"),
    [
        pytest.param(NOON + 2 * HOUR, 3, None, id="an end on the grid is the last instant"),
        pytest.param(NOON + 2 * HOUR - SECOND, 2, None, id="an end before an instant leaves it out"),
        pytest.param(NOON + 4 * HOUR, 4, NOON + 4 * HOUR, id="the end is still ahead"),
    ],
)
@pytest.mark.parametrize("on_miss", ["skip", "run_once", "run_catchup"])
def test_nothing_is_planned_after_the_end(on_miss, until, count, next_at):
    now = NOON + 3 * HOUR + 30 * MINUTE
    result = plan(make_wake(on_miss, until=until, missed_at=now), now)
    assert sum(piece.covers for piece in (*result.skipped, *result.runs)) == count
    assert result.next_at == next_at


def test_pieces_that_follow_each_other_join_into_one():
    assert join_missed([Piece(NOON, 1), Piece(NOON + HOUR, 4)]) == Piece(NOON, 5)


@given(
    every=st.integers(10, 5_000).map(lambda seconds: timedelta(seconds=seconds)),
    judged_after=st.integers(0, 100_000),
    waited=st.integers(0, 10_000),
    ends_after=st.none() | st.integers(0, 120_000),
    most=st.integers(1, 12),
    on_miss=st.sampled_from(["skip", "run_once", "run_catchup"]),
)
def test_every_instant_is_in_exactly_one_piece(every, judged_after, waited, ends_after, most, on_miss):
    judged_at = NOON + judged_after * SECOND
    now = judged_at + waited * SECOND
    until = None if ends_after is None else NOON + ends_after * SECOND
    missed_at = judged_at if judged_at - NOON > GRACE else None
    wake = make_wake(on_miss, every=every, missed_at=missed_at, until=until)
    result = plan(wake, now, most)

    planned = []
    at = NOON
    while at <= now and (until is None or at <= until):
        planned.append(at)
        at += every
    covered = []
    for piece in (*result.skipped, *result.runs):
        covered += Grid.of(wake).times_from(piece.first, piece.covers)
    assert covered == planned
    assert result.next_at == (None if until is not None and at > until else at)
    assert len(result.runs) <= most
    if on_miss == "skip" and missed_at is not None:
        assert all(judged_at - piece.first <= GRACE for piece in result.runs)
