"""Moving planned times when the rules of a time zone change."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from harness import DAY, HOUR, NOON
from wakeful.core.types import Wake
from wakeful.core.values import replace
from wakeful.core.zones import Offsets, load_zone
from wakeful.timing import replan

BERLIN = "Europe/Berlin"
NINE = datetime(2026, 3, 3, 8, tzinfo=UTC)  # in Berlin, the day after NOON


def plus(hours: float) -> Offsets:
    """The rules of a zone that is always so far ahead of UTC."""
    return replan.offsets_of(timezone(timedelta(hours=hours)), 2025)


def planned(at: datetime, cron: str | None = "0 9 * * *", **changes) -> Wake:
    """A wake that was planned for a time, by rules that are no longer known."""
    wake = Wake(
        id="w",
        kind="recall",
        agent_id="a",
        user_id="u",
        session_id="s",
        slot=None,
        call_type="recurring" if cron else "once",
        cron=cron,
        timezone=BERLIN,
        nominal_at=at,
        attempt_at=at,
        instructions="Look.",
        scheduled_by="user",
        created_at=NOON - DAY,
        updated_at=NOON - DAY,
    )
    return replace(wake, **changes)


@pytest.mark.parametrize(
    ("wake", "was", "at"),
    [
        pytest.param(planned(NINE), plus(1), NINE, id="the same rules"),
        pytest.param(planned(NINE - HOUR), plus(2), NINE, id="it would be an hour early"),
        pytest.param(planned(NINE + HOUR), plus(0), NINE, id="it would be an hour late"),
        pytest.param(planned(NOON - 5 * HOUR), plus(2), NOON - 4 * HOUR, id="due in the past, still once"),
        pytest.param(planned(NINE + HOUR, "0 9-17 * * *"), plus(0), NINE, id="a time of the rule by both"),
        pytest.param(planned(NOON + HOUR, "0 * * * *"), plus(2), NOON + HOUR, id="every hour stays even"),
        pytest.param(planned(NOON + HOUR / 2, "0 * * * *"), plus(1.5), NOON + HOUR, id="half an hour, every hour"),
        pytest.param(planned(NOON - HOUR / 2, "0 * * * *"), plus(1.5), NOON - HOUR / 2, id="every hour, due already"),
        pytest.param(planned(NINE - HOUR, None, wall_clock="2026-03-03T09:00:00"), plus(2), NINE, id="once"),
        pytest.param(planned(NINE - HOUR, until=NINE - HOUR / 2), plus(2), NINE - HOUR, id="not beyond its end"),
        pytest.param(planned(NINE - HOUR, first_due_at=NOON), plus(2), NINE - HOUR, id="deferred at its time"),
        pytest.param(planned(NINE + 20 * 365 * DAY), plus(2), NINE + 20 * 365 * DAY, id="beyond what was saved"),
        pytest.param(planned(NINE - 900 * DAY), plus(2), NINE - 900 * DAY, id="before what was saved"),
    ],
)
def test_a_planned_time_keeps_its_wall_clock_time(wake, was, at):
    after = replan.replan_after_zone_change(wake, was, (), NOON)
    assert (after.nominal_at, after.attempt_at) == (at, at)


@pytest.mark.parametrize(("held_until", "attempt_at"), [(NINE - HOUR / 2, NINE), (NINE + DAY, NINE + DAY)])
def test_a_held_wake_stays_held_and_is_not_tried_before_its_time(held_until, attempt_at):
    wake = planned(NINE - HOUR, attempt_at=held_until, held_by="backoff")
    after = replan.replan_after_zone_change(wake, plus(2), (), NOON)
    assert (after.nominal_at, after.attempt_at, after.held_by) == (NINE, attempt_at, "backoff")


def test_an_instant_that_has_a_run_already_is_not_taken_for_it():
    """A run's id is made from its planned time."""
    after = replan.replan_after_zone_change(planned(NINE - HOUR), plus(2), {NINE}, NOON)
    assert after.nominal_at == NINE + timedelta(microseconds=1)


def test_offsets_are_those_of_the_zone_around_each_clock_change():
    found = replan.offsets_of(load_zone(BERLIN), 2026)
    assert found[:3] == (
        (datetime(2026, 1, 1, tzinfo=UTC), HOUR),
        (datetime(2026, 3, 29, 1, tzinfo=UTC), 2 * HOUR),
        (datetime(2026, 10, 25, 1, tzinfo=UTC), HOUR),
    )
