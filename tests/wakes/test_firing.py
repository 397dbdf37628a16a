"""A due wake becomes a run: at its instant, once, and a failing wake does not stop the others."""

from datetime import timedelta

import pytest

from harness import HOUR, MINUTE, NOON, SECOND

pytestmark = pytest.mark.both_stores

MOMENT = timedelta(microseconds=1)


@pytest.fixture
def backend_settings(backend_settings):
    return backend_settings | {"claim_batch": 8}


async def test_a_wake_fires_at_its_instant_and_never_early(harness):
    wake = await harness.book(at=NOON + HOUR)
    await harness.turn_at(NOON + HOUR - MOMENT)
    assert await harness.runs_of(wake) == []
    await harness.turn_at(NOON + HOUR)
    [run] = await harness.runs_of(wake)
    assert (run.status, run.nominal_at, run.started_at, run.covers) == ("success", NOON + HOUR, NOON + HOUR, 1)


async def test_the_scheduler_sleeps_exactly_until_the_next_instant(harness):
    await harness.book(at=NOON + 20 * SECOND + MOMENT)
    await harness.book(at=NOON + 10 * SECOND + MOMENT)
    assert await harness.turn() == NOON + 10 * SECOND + MOMENT


async def test_the_scheduler_looks_up_twice_a_minute_at_least(harness):
    await harness.book(at=NOON + HOUR)
    assert await harness.turn() == NOON + 30 * SECOND


async def test_a_once_wake_is_queued_then_running_then_fired(harness):
    wake = await harness.book(at=NOON + MINUTE)
    gate = harness.executor.by_wake[wake.id] = harness.gate()
    harness.clock.set(NOON + MINUTE)
    await harness.node.engine.scheduler.turn()
    seen = [(await harness.wake(wake)).status]
    await harness.work()
    seen.append((await harness.wake(wake)).status)
    await harness.let_through(gate)
    seen.append((await harness.wake(wake)).status)
    assert seen == ["queued", "running", "fired"]


async def test_a_recurring_wake_stays_pending_and_has_moved_on_before_its_run_begins(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON + HOUR)
    gate = harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn_at(NOON + HOUR)
    during = await harness.wake(wake)
    assert (during.status, during.nominal_at) == ("pending", NOON + 2 * HOUR)
    await harness.let_through(gate)
    assert await harness.wake(wake) == during


async def test_every_instant_of_a_recurring_wake_is_run_once(harness):
    wake = await harness.book(call_type="recurring", every=10 * SECOND, at=NOON + 10 * SECOND)
    await harness.live_until(NOON + 2 * MINUTE)
    runs = await harness.runs_of(wake)
    assert [run.nominal_at for run in runs] == [NOON + number * 10 * SECOND for number in range(1, 13)]
    assert all(run.started_at == run.nominal_at and run.covers == 1 for run in runs)


async def test_more_wakes_than_fit_into_a_batch_all_fire_in_one_turn(harness):
    booked = [await harness.book(at=NOON + MINUTE) for _ in range(harness.node.settings.claim_batch + 6)]
    harness.clock.set(NOON + MINUTE)
    await harness.node.engine.scheduler.turn()
    assert {(await harness.wake(wake)).status for wake in booked} == {"queued"}


async def test_a_clock_that_goes_back_an_hour_fires_nothing_twice_and_loses_nothing(harness):
    once = await harness.book(at=NOON + 10 * MINUTE)
    hourly = await harness.book(call_type="recurring", every=20 * MINUTE, at=NOON + 20 * MINUTE)
    later = await harness.book(at=NOON + 70 * MINUTE)
    await harness.turn_at(NOON + 10 * MINUTE)
    await harness.turn_at(NOON + 45 * MINUTE)
    for minutes in range(-15, 81, 5):
        await harness.turn_at(NOON + minutes * MINUTE)
    assert [run.nominal_at for run in await harness.runs_of(once)] == [NOON + 10 * MINUTE]
    assert [(run.nominal_at, run.covers) for run in await harness.runs_of(hourly)] == [
        (NOON + 20 * MINUTE, 2),
        (NOON + 60 * MINUTE, 1),
        (NOON + 80 * MINUTE, 1),
    ]
    assert [run.started_at for run in await harness.runs_of(later)] == [NOON + 70 * MINUTE]


@pytest.mark.parametrize("kind", ["session", "next_run"])
async def test_a_fresh_session_is_opened_that_says_where_it_comes_from(harness, kind):
    origin = await harness.session()
    wake = await harness.book(kind=kind, session=origin, at=NOON + MINUTE, comment="Look again")
    await harness.turn_at(NOON + MINUTE)
    [run] = await harness.runs_of(wake)
    fresh = await harness.node.store.read(lambda tx: tx.sessions.get(run.session_id, harness.user.id))
    assert (fresh.origin_session_id, fresh.origin_wake_id, fresh.origin_label) == (origin.id, wake.id, "Look again")
    assert (await harness.wake(wake)).created_session_id == run.session_id != origin.id


@pytest.mark.parametrize("kind", ["recall", "message"])
async def test_a_recall_and_a_message_land_in_their_session(harness, kind):
    session = await harness.session()
    wake = await harness.book(kind=kind, session=session, at=NOON + MINUTE)
    await harness.turn_at(NOON + MINUTE)
    [run] = await harness.runs_of(wake)
    assert (run.session_id, (await harness.wake(wake)).created_session_id) == (session.id, None)


async def test_a_wake_of_a_user_who_is_gone_is_cancelled(harness):
    wake = await harness.book(at=NOON + MINUTE)
    await harness.node.store.write(lambda tx: tx.agents.delete_user(harness.user.id, NOON))
    await harness.turn_at(NOON + MINUTE)
    ended = await harness.wake(wake)
    assert (ended.status, ended.reason, await harness.runs_of(wake)) == ("cancelled", "user_gone", [])


async def test_so_many_runs_end_a_recurrence(harness):
    wake = await harness.book(call_type="recurring", every=MINUTE, at=NOON + MINUTE, max_runs=2)
    await harness.live_until(NOON + 5 * MINUTE)
    ended = await harness.wake(wake)
    assert (ended.status, ended.reason, len(await harness.runs_of(wake))) == ("fired", "max_runs", 2)


async def test_a_recurrence_ends_with_the_last_instant_not_after_its_end(harness):
    wake = await harness.book(call_type="recurring", every=MINUTE, at=NOON + MINUTE, until=NOON + 3 * MINUTE)
    await harness.live_until(NOON + 5 * MINUTE)
    ended = await harness.wake(wake)
    assert (ended.status, ended.reason, len(await harness.runs_of(wake))) == ("fired", "until", 3)


# ── A wake that cannot be decided about ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def broken(harness):
    """A wake whose rule has become nonsense, due before all others."""
    wake = await harness.book(call_type="recurring", cron="* * * * *")
    await harness.sql(f"UPDATE wakes SET cron = 'nonsense' WHERE id = '{wake.id}'")
    return wake


async def test_a_wake_that_cannot_be_decided_about_does_not_hold_up_the_others(harness, broken):
    others = [await harness.book(at=NOON + MINUTE + number * SECOND) for number in range(4)]
    await harness.turn_at(NOON + 2 * MINUTE)
    await harness.turn()
    assert [(await harness.wake(wake)).status for wake in others] == ["fired"] * 4


async def test_it_is_set_aside_with_a_notice_and_tried_again(harness, broken):
    until = await harness.turn_at(NOON + MINUTE)
    aside = await harness.wake(broken)
    assert (aside.status, aside.held_by, aside.attempt_at) == ("pending", "error", NOON + 6 * MINUTE)
    assert (aside.nominal_at, until) == (NOON + MINUTE, NOON + 90 * SECOND)
    assert [(notice.code, notice.wake_id) for notice in await harness.notices()] == [("unfirable", broken.id)]


async def test_while_it_stays_aside_nothing_is_told_again(harness, broken):
    for minutes in (1, 6, 11, 16):
        await harness.turn_at(NOON + minutes * MINUTE)
    assert len(await harness.notices()) == 1
    assert [decision.code for decision in await harness.why(broken)] == ["booked", "error"]


async def test_once_released_it_fires_and_covers_what_it_held_up(harness, broken):
    await harness.turn_at(NOON + MINUTE)
    await harness.sql(f"UPDATE wakes SET cron = '* * * * *' WHERE id = '{broken.id}'")
    await harness.turn_at(NOON + 6 * MINUTE)
    [run] = await harness.runs_of(broken)
    assert (run.status, run.reason, run.covers) == ("success", None, 6)
    released = await harness.wake(broken)
    assert (released.held_by, released.error) == (None, None)


async def test_a_zone_that_is_gone_is_as_bad_as_a_broken_rule(harness):
    wake = await harness.book(call_type="recurring", cron="* * * * *")
    await harness.sql(f"UPDATE wakes SET timezone = 'Europe/Atlantis' WHERE id = '{wake.id}'")
    await harness.turn_at(NOON + MINUTE)
    assert "Atlantis" in (await harness.wake(wake)).error


async def test_a_row_that_cannot_be_read_does_not_hold_up_the_others(harness):
    unreadable = await harness.book(at=NOON + MINUTE)
    other = await harness.book(at=NOON + MINUTE + SECOND)
    await harness.sql(f"UPDATE wakes SET context_views = '[oops' WHERE id = '{unreadable.id}'")
    await harness.turn_at(NOON + 2 * MINUTE)
    await harness.turn()
    assert (await harness.wake(other)).status == "fired"


# ── The liveness audit ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def audit(harness):
    return harness.node.engine.upkeep.audit


async def test_the_audit_is_content_when_all_promises_are_kept(harness, audit):
    await harness.book(call_type="recurring", every=10 * SECOND, at=NOON + 10 * SECOND)
    await harness.live_until(NOON + 5 * MINUTE)
    assert (await audit()).is_good


async def test_after_a_suspend_the_audit_waits_until_the_scheduler_could_look(harness, audit):
    """Its timer counts the time awake: it may be the first to look after the resume."""
    await harness.book(at=NOON + HOUR)
    assert (await audit()).is_good
    harness.clock.suspend(8 * HOUR)
    harness.clock.advance(13 * SECOND)
    assert (await audit()).is_good
    harness.clock.advance(MINUTE)
    assert not (await audit()).is_good


async def test_the_audit_sees_a_wake_that_nobody_decides_about(harness, audit):
    wake = await harness.book(at=NOON)
    harness.clock.set(NOON + MINUTE)
    assert (await audit()).is_good
    harness.clock.set(NOON + MINUTE + SECOND)
    assert (await audit()).overdue_wakes == (wake.id,)


async def test_the_audit_sees_a_run_whose_owner_is_gone(harness, audit):
    wake = await harness.book(at=NOON)
    harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    await harness.crash()
    harness.clock.set(NOON + 91 * SECOND)
    [run] = await harness.runs_of(wake)
    assert (await audit()).stuck_runs == (run.id,)


async def test_the_audit_sees_a_wake_whose_run_has_vanished(harness, audit):
    wake = await harness.book(at=NOON)
    await harness.node.engine.scheduler.turn()
    await harness.sql(f"DELETE FROM runs WHERE wake_id = '{wake.id}'")
    harness.clock.set(NOON + 2 * MINUTE)
    assert (await audit()).orphaned_wakes == (wake.id,)
