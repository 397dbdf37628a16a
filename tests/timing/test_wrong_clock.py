"""Wakes and pauses that were written while the clock was ahead of what it shows now."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import DAY, HOUR, MINUTE, NOON, SECOND
from wakeful.core import identity
from wakeful.core.types import FOREVER, Channel, Pause, Rules, User
from wakeful.outgoing import rules as outgoing_rules
from wakeful.timing import lifecycle
from wakeful.timing.fire_rule import Facts, fire
from wakeful.timing.lifecycle import create
from wakeful.timing.recurrence import Grid
from wakeful.timing.replan import replan_after_wrong_clock, restart_pause

RULES = [{"every": 10 * SECOND}, {"every": HOUR}, {"every": 7 * DAY}, {"cron": "* * * * *"}, {"cron": "30 2 * * 1"}]
AGES = [MINUTE, HOUR, DAY, 26_000 * DAY]


def make(*, at=NOON, now=NOON, **rule):
    wake = create(
        kind="recall",
        agent_id="agent",
        user_id="user",
        session_id="session",
        call_type="recurring" if rule else "once",
        at=at,
        instructions="Read notes.txt.",
        timezone="Europe/Berlin",
        scheduled_by="user",
        now=now,
        rules=Rules(),
        **rule,
    )
    return replace(wake, updated_at=now)


def fired_at(wake, now):
    """Return what firing makes of a wake."""
    return fire(wake, Facts(agent_timezone="UTC"), now, Rules())


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("ahead", AGES, ids=str)
def test_a_recurring_wake_comes_at_most_one_period_after_the_clock_was_put_right(rule, ahead):
    wake = make(**rule)
    verdict = fired_at(wake, max(NOON + ahead, wake.nominal_at))
    right = replan_after_wrong_clock(
        verdict.wake, {run.nominal_at for run in verdict.runs if run.nominal_at > NOON}, NOON
    )
    grid = Grid.of(wake)
    if wake.every is not None:
        assert NOON < right.nominal_at <= NOON + wake.every + MINUTE
    else:  # the instants ahead that have fired are left out
        first = grid.next_after(NOON, after=NOON)
        assert right.nominal_at in grid.times_from(first, 2)
    assert right.attempt_at == right.nominal_at
    assert right.updated_at == NOON


@given(
    every=st.integers(10, 100_000).map(lambda seconds: timedelta(seconds=seconds)),
    back=st.lists(st.integers(60, 500_000).map(lambda seconds: timedelta(seconds=seconds)), min_size=1, max_size=4),
)
def test_however_often_the_clock_goes_back_no_interval_instant_has_the_same_name_twice(every, back):
    now, names, fired = NOON, set(), set()
    wake = make(every=every)
    for step in back:
        for _ in range(20):
            now = max(now, wake.nominal_at)
            verdict = fired_at(wake, now)
            wake = verdict.wake
            for run in verdict.runs:
                assert run.id not in names
                names.add(run.id)
                fired.add(run.nominal_at)
        now -= step
        wake = replan_after_wrong_clock(wake, {at for at in fired if at > now}, now)
        assert wake.nominal_at <= now + every + MINUTE + SECOND


def test_a_few_seconds_back_leave_an_interval_where_it_is():
    wake = fired_at(make(every=HOUR), NOON).wake
    assert replan_after_wrong_clock(wake, {NOON}, NOON - 20 * SECOND).nominal_at == NOON + HOUR


def test_a_cron_time_that_comes_again_does_not_fire_again():
    wake = make(cron="*/10 * * * *")
    fired = set()
    for number in range(1, 7):
        verdict = fired_at(wake, NOON + number * 10 * MINUTE)
        wake, fired = verdict.wake, fired | {run.nominal_at for run in verdict.runs}
    assert replan_after_wrong_clock(wake, fired, NOON).nominal_at == NOON + 70 * MINUTE


@pytest.mark.parametrize(
    "wake",
    [
        pytest.param(make(every=5 * MINUTE, at=NOON + DAY), id="the first time"),
        pytest.param(lifecycle.skip(make(every=5 * MINUTE, at=NOON + 4 * MINUTE), NOON).wake, id="one left out"),
        pytest.param(
            lifecycle.edit(make(every=5 * MINUTE), {"nominal_at": NOON + 3 * HOUR}, NOON, Rules()),
            id="another next time",
        ),
        pytest.param(make(cron="0 9 * * *", at=NOON + 10 * DAY), id="a rule from a day on"),
        pytest.param(make(at=NOON + HOUR), id="once"),
    ],
)
def test_a_time_that_someone_asked_for_stays(wake):
    assert replan_after_wrong_clock(wake, set(), NOON - HOUR).nominal_at == wake.nominal_at
    assert replan_after_wrong_clock(wake, set(), NOON - HOUR).attempt_at == wake.nominal_at


def test_a_once_wake_of_2098_stays_but_what_held_it_is_let_go():
    wake = replace(
        make(at=NOON + HOUR),
        attempt_at=NOON + 26_000 * DAY,
        held_by="deferred",
        first_due_at=NOON + 26_000 * DAY,
        is_missed=True,
        updated_at=NOON + 26_000 * DAY,
    )
    right = replan_after_wrong_clock(wake, set(), NOON)
    assert (right.nominal_at, right.attempt_at) == (NOON + HOUR, NOON + HOUR)
    assert (right.first_due_at, right.is_missed) == (None, False)
    assert replan_after_wrong_clock(wake, set(), NOON + 2 * HOUR).attempt_at == NOON + 2 * HOUR


@pytest.mark.parametrize(("lasts", "until"), [(2 * HOUR, NOON + 2 * HOUR), (None, FOREVER)])
def test_a_pause_of_2098_lasts_as_long_as_it_was_to_last(lasts, until):
    began = NOON + 26_000 * DAY
    pause = Pause(
        id="1", user_id="user", agent_id=None, started_at=began, until=began + lasts if lasts else FOREVER, reason=""
    )
    right = restart_pause(pause, NOON)
    assert (right.started_at, right.until) == (NOON, until)


def test_an_hour_of_2098_uses_up_no_channel():
    far = NOON + 26_000 * DAY
    channel = Channel(
        id="1", user_id="user", name="phone", url="", shown="", hour_from=far, hour_count=outgoing_rules.PER_HOUR,
        created_at=NOON, updated_at=NOON,
    )  # fmt: skip
    assert outgoing_rules.count_message(channel, far) is None
    assert outgoing_rules.count_message(channel, NOON).hour_count == 1


def test_a_login_of_2098_is_not_a_fresh_one():
    user = User(id="1", name="Ada", role="owner", created_at=NOON)
    caller = identity.Identity(
        user=user, scope="admin", token_id="1", kind="browser", logged_in_at=NOON + 26_000 * DAY
    )  # fmt: skip
    with pytest.raises(identity.LoginTooOld):
        identity.check_fresh(caller, NOON)
