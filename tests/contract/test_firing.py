"""A due wake becomes a run: at its instant, once, and nobody else's trouble stops it."""

from datetime import timedelta

import pytest

from world import HOUR, MINUTE, NOON, SECOND

MOMENT = timedelta(microseconds=1)


@pytest.fixture
def backend_settings(backend_settings):
    return backend_settings | {"claim_batch": 8}


async def test_a_wake_fires_at_its_instant_and_never_early(world):
    wake = await world.book(at=NOON + HOUR)
    await world.turn_at(NOON + HOUR - MOMENT)
    assert await world.runs_of(wake) == []
    await world.turn_at(NOON + HOUR)
    [run] = await world.runs_of(wake)
    assert (run.status, run.nominal_at, run.started_at, run.covers) == ("success", NOON + HOUR, NOON + HOUR, 1)


async def test_the_scheduler_sleeps_exactly_until_the_next_instant(world):
    await world.book(at=NOON + 20 * SECOND + MOMENT)
    await world.book(at=NOON + 10 * SECOND + MOMENT)
    assert await world.turn() == NOON + 10 * SECOND + MOMENT


async def test_the_scheduler_looks_up_twice_a_minute_at_least(world):
    await world.book(at=NOON + HOUR)
    assert await world.turn() == NOON + 30 * SECOND


async def test_a_once_wake_is_queued_then_running_then_fired(world):
    wake = await world.book(at=NOON + MINUTE)
    gate = world.executor.by_wake[wake.id] = world.gate()
    world.clock.set(NOON + MINUTE)
    await world.node.engine.scheduler.turn()
    seen = [(await world.wake(wake)).status]
    await world.work()
    seen.append((await world.wake(wake)).status)
    await world.let_through(gate)
    seen.append((await world.wake(wake)).status)
    assert seen == ["queued", "running", "fired"]


async def test_a_recurring_wake_stays_pending_and_has_moved_on_before_its_run_begins(world):
    wake = await world.book(call_type="recurring", every=HOUR, at=NOON + HOUR)
    gate = world.executor.by_wake[wake.id] = world.gate()
    await world.turn_at(NOON + HOUR)
    during = await world.wake(wake)
    assert (during.status, during.nominal_at) == ("pending", NOON + 2 * HOUR)
    await world.let_through(gate)
    assert await world.wake(wake) == during


async def test_every_instant_of_a_recurring_wake_is_run_once(world):
    wake = await world.book(call_type="recurring", every=10 * SECOND, at=NOON + 10 * SECOND)
    await world.live_until(NOON + 2 * MINUTE)
    runs = await world.runs_of(wake)
    assert [run.nominal_at for run in runs] == [NOON + number * 10 * SECOND for number in range(1, 13)]
    assert all(run.started_at == run.nominal_at and run.covers == 1 for run in runs)


async def test_more_wakes_than_fit_into_a_batch_all_fire_in_one_turn(world):
    booked = [await world.book(at=NOON + MINUTE) for _ in range(world.node.settings.claim_batch + 6)]
    world.clock.set(NOON + MINUTE)
    await world.node.engine.scheduler.turn()
    assert {(await world.wake(wake)).status for wake in booked} == {"queued"}


async def test_a_clock_that_goes_back_an_hour_fires_nothing_twice_and_loses_nothing(world):
    once = await world.book(at=NOON + 10 * MINUTE)
    hourly = await world.book(call_type="recurring", every=20 * MINUTE, at=NOON + 20 * MINUTE)
    later = await world.book(at=NOON + 70 * MINUTE)
    await world.turn_at(NOON + 10 * MINUTE)
    await world.turn_at(NOON + 45 * MINUTE)
    for minutes in range(-15, 81, 5):
        await world.turn_at(NOON + minutes * MINUTE)
    assert [run.nominal_at for run in await world.runs_of(once)] == [NOON + 10 * MINUTE]
    assert [(run.nominal_at, run.covers) for run in await world.runs_of(hourly)] == [
        (NOON + 20 * MINUTE, 2),
        (NOON + 60 * MINUTE, 1),
        (NOON + 80 * MINUTE, 1),
    ]
    assert [run.started_at for run in await world.runs_of(later)] == [NOON + 70 * MINUTE]


@pytest.mark.parametrize("kind", ["session", "next_run"])
async def test_a_fresh_session_is_opened_that_says_where_it_comes_from(world, kind):
    origin = await world.session()
    wake = await world.book(kind=kind, session=origin, at=NOON + MINUTE, comment="Look again")
    await world.turn_at(NOON + MINUTE)
    [run] = await world.runs_of(wake)
    fresh = await world.node.store.read(lambda tx: tx.sessions.get(run.session_id, world.user.id))
    assert (fresh.origin_session_id, fresh.origin_wake_id, fresh.origin_label) == (origin.id, wake.id, "Look again")
    assert (await world.wake(wake)).created_session_id == run.session_id != origin.id


@pytest.mark.parametrize("kind", ["recall", "message"])
async def test_a_recall_and_a_message_land_in_their_session(world, kind):
    session = await world.session()
    wake = await world.book(kind=kind, session=session, at=NOON + MINUTE)
    await world.turn_at(NOON + MINUTE)
    [run] = await world.runs_of(wake)
    assert (run.session_id, (await world.wake(wake)).created_session_id) == (session.id, None)


async def test_a_wake_of_a_user_who_is_gone_is_cancelled(world):
    wake = await world.book(at=NOON + MINUTE)
    await world.node.store.write(lambda tx: tx.agents.delete_user(world.user.id, NOON))
    await world.turn_at(NOON + MINUTE)
    ended = await world.wake(wake)
    assert (ended.status, ended.reason, await world.runs_of(wake)) == ("cancelled", "user_gone", [])


async def test_so_many_runs_end_a_recurrence(world):
    wake = await world.book(call_type="recurring", every=MINUTE, at=NOON + MINUTE, max_runs=2)
    await world.live_until(NOON + 5 * MINUTE)
    ended = await world.wake(wake)
    assert (ended.status, ended.reason, len(await world.runs_of(wake))) == ("fired", "max_runs", 2)


async def test_a_recurrence_ends_with_the_last_instant_not_after_its_end(world):
    wake = await world.book(call_type="recurring", every=MINUTE, at=NOON + MINUTE, until=NOON + 3 * MINUTE)
    await world.live_until(NOON + 5 * MINUTE)
    ended = await world.wake(wake)
    assert (ended.status, ended.reason, len(await world.runs_of(wake))) == ("fired", "until", 3)


# ── A wake that cannot be decided about ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def broken(world):
    """A wake whose rule has become nonsense, due before all others."""
    wake = await world.book(call_type="recurring", cron="* * * * *")
    await world.sql(f"UPDATE wakes SET cron = 'nonsense' WHERE id = '{wake.id}'")
    return wake


async def test_a_wake_that_cannot_be_decided_about_does_not_hold_up_the_others(world, broken):
    others = [await world.book(at=NOON + MINUTE + number * SECOND) for number in range(4)]
    await world.turn_at(NOON + 2 * MINUTE)
    await world.turn()
    assert [(await world.wake(wake)).status for wake in others] == ["fired"] * 4


async def test_it_is_set_aside_with_a_notice_and_tried_again(world, broken):
    until = await world.turn_at(NOON + MINUTE)
    aside = await world.wake(broken)
    assert (aside.status, aside.held_by, aside.attempt_at) == ("pending", "error", NOON + 6 * MINUTE)
    assert (aside.nominal_at, until) == (NOON + MINUTE, NOON + 90 * SECOND)
    assert [(notice.code, notice.wake_id) for notice in await world.notices()] == [("unfirable", broken.id)]


async def test_while_it_stays_aside_nothing_is_told_again(world, broken):
    for minutes in (1, 6, 11, 16):
        await world.turn_at(NOON + minutes * MINUTE)
    assert len(await world.notices()) == 1
    assert [decision.code for decision in await world.why(broken)] == ["booked", "error"]


async def test_once_mended_it_fires_and_covers_what_it_held_up(world, broken):
    await world.turn_at(NOON + MINUTE)
    await world.sql(f"UPDATE wakes SET cron = '* * * * *' WHERE id = '{broken.id}'")
    await world.turn_at(NOON + 6 * MINUTE)
    [run] = await world.runs_of(broken)
    assert (run.status, run.reason, run.covers) == ("success", None, 6)
    mended = await world.wake(broken)
    assert (mended.held_by, mended.error) == (None, None)


async def test_a_zone_that_is_gone_is_as_bad_as_a_broken_rule(world):
    wake = await world.book(call_type="recurring", cron="* * * * *")
    await world.sql(f"UPDATE wakes SET timezone = 'Europe/Atlantis' WHERE id = '{wake.id}'")
    await world.turn_at(NOON + MINUTE)
    assert "Atlantis" in (await world.wake(wake)).error


async def test_a_row_that_cannot_be_read_does_not_hold_up_the_others(world):
    unreadable = await world.book(at=NOON + MINUTE)
    other = await world.book(at=NOON + MINUTE + SECOND)
    await world.sql(f"UPDATE wakes SET context_views = '[oops' WHERE id = '{unreadable.id}'")
    await world.turn_at(NOON + 2 * MINUTE)
    await world.turn()
    assert (await world.wake(other)).status == "fired"


# ── The liveness audit ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def audit(world):
    return world.node.engine.upkeep.audit


async def test_the_audit_is_content_when_all_promises_are_kept(world, audit):
    await world.book(call_type="recurring", every=10 * SECOND, at=NOON + 10 * SECOND)
    await world.live_until(NOON + 5 * MINUTE)
    assert (await audit()).is_good


async def test_the_audit_sees_a_wake_that_nobody_decides_about(world, audit):
    wake = await world.book(at=NOON)
    world.clock.set(NOON + MINUTE)
    assert (await audit()).is_good
    world.clock.set(NOON + MINUTE + SECOND)
    assert (await audit()).overdue_wakes == (wake.id,)


async def test_the_audit_sees_a_run_whose_owner_is_gone(world, audit):
    wake = await world.book(at=NOON)
    world.executor.by_wake[wake.id] = world.gate()
    await world.turn()
    await world.crash()
    world.clock.set(NOON + 91 * SECOND)
    [run] = await world.runs_of(wake)
    assert (await audit()).stuck_runs == (run.id,)


async def test_the_audit_sees_a_wake_whose_run_has_vanished(world, audit):
    wake = await world.book(at=NOON)
    await world.node.engine.scheduler.turn()
    await world.sql(f"DELETE FROM runs WHERE wake_id = '{wake.id}'")
    world.clock.set(NOON + 2 * MINUTE)
    assert (await audit()).orphaned_wakes == (wake.id,)
