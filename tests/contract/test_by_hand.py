"""What a person does to a wake by hand: run now, skip, edit."""

import pytest

from wakeful.domain.errors import NotFound
from wakeful.domain.wakes.wakes import WakeFiresOnce, WakeNotLive
from world import DAY, HOUR, MINUTE, NOON


async def told(world, wake):
    return [(run.trigger, run.status, run.nominal_at, run.covers) for run in await world.runs_of(wake)]


# ── Run now ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def backend_settings(backend_settings):
    return backend_settings | {"runs_per_hour": 3}


@pytest.mark.parametrize("kind", ["recall", "message", "session", "next_run"])
async def test_run_now_uses_up_a_once_wake(world, kind):
    wake = await world.book(kind=kind, at=NOON + HOUR)
    run = await world.node.wakes.run_now(wake.id, world.user.id)
    await world.turn()
    assert (await world.run(run.id)).started_at == NOON
    await world.turn_at(NOON + HOUR)
    assert await told(world, wake) == [("run_now", "success", NOON + HOUR, 1)]
    assert (await world.wake(wake)).status == "fired"


async def test_run_now_of_a_recurring_wake_is_an_extra_run_and_the_grid_stays(world):
    wake = await world.book(call_type="recurring", every=HOUR, at=NOON + HOUR, max_runs=2)
    world.clock.set(NOON + 10 * MINUTE)
    await world.node.wakes.run_now(wake.id, world.user.id)
    await world.turn()
    await world.turn_at(NOON + HOUR)
    await world.turn_at(NOON + 2 * HOUR)
    assert await told(world, wake) == [
        ("run_now", "success", NOON + 10 * MINUTE, 0),
        ("wake", "success", NOON + HOUR, 1),
        ("wake", "success", NOON + 2 * HOUR, 1),
    ]


async def test_run_now_goes_before_the_occurrence_that_waits_in_its_session_and_not_beside_it(world):
    wake = await world.book(call_type="recurring", every=HOUR, at=NOON)
    await world.node.engine.scheduler.turn()  # the occurrence of noon is queued
    world.clock.advance(MINUTE)
    await world.node.wakes.run_now(wake.id, world.user.id)
    gate = world.executor.by_wake[wake.id] = world.gate()
    await world.work()
    assert [ran.run.trigger for ran in world.executor.ran] == ["run_now"]
    await world.let_through(gate)
    await world.work()
    assert [ran.run.trigger for ran in world.executor.ran] == ["run_now", "wake"]


async def test_run_now_twice_runs_a_recurring_wake_twice_one_after_the_other(world):
    wake = await world.book(call_type="recurring", every=HOUR, at=NOON + HOUR)
    for _ in range(2):
        await world.node.wakes.run_now(wake.id, world.user.id)
    gate = world.executor.by_wake[wake.id] = world.gate()
    await world.work()
    assert len(world.executor.ran) == 1
    await world.let_through(gate)
    await world.work()
    assert [run.status for run in await world.runs_of(wake)] == ["success", "success"]


async def test_run_now_of_a_next_run_opens_its_fresh_session(world):
    wake = await world.book(kind="next_run")
    run = await world.node.wakes.run_now(wake.id, world.user.id)
    await world.turn()
    session = await world.node.store.read(lambda tx: tx.sessions.get(run.session_id, world.user.id))
    assert (session.origin_wake_id, (await world.wake(wake)).created_session_id) == (wake.id, session.id)


async def test_run_now_works_once_the_agents_hour_is_used_up(world):
    """The brake holds an agent's bookings, not a person's wish."""
    wake = await world.book(kind="next_run", scheduled_by="agent", at=NOON + HOUR)
    for _ in range(world.node.rules.runs_per_hour):
        await world.book(kind="session", scheduled_by="agent", at=NOON)
    await world.turn()
    run = await world.node.wakes.run_now(wake.id, world.user.id)
    await world.turn()
    assert (await world.run(run.id)).status == "success"


async def test_run_now_twice_gives_the_same_run_of_a_once_wake(world):
    wake = await world.book()
    first = await world.node.wakes.run_now(wake.id, world.user.id)
    assert (await world.node.wakes.run_now(wake.id, world.user.id)).id == first.id
    await world.turn()
    with pytest.raises(WakeNotLive):
        await world.node.wakes.run_now(wake.id, world.user.id)
    assert [run.status for run in await world.runs_of(wake)] == ["success"]


async def test_run_now_gets_a_run_going_that_was_queued_before_a_pause(world):
    session = await world.session()
    wake = await world.book(kind="message", session=session, at=NOON)
    async with world.talking(session):
        await world.turn()
        await world.node.pauses.pause(world.user.id, world.agent.id, None)
    await world.turn()
    assert (await world.wake(wake)).status == "queued"
    await world.node.wakes.run_now(wake.id, world.user.id)
    await world.turn()
    assert (await world.wake(wake)).status == "fired"


# ── Skip ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_skip_leaves_out_one_instant_and_records_it(world):
    wake = await world.book(call_type="recurring", every=HOUR, at=NOON + HOUR)
    await world.node.wakes.skip(wake.id, world.user.id)
    await world.turn_at(NOON + HOUR)
    await world.turn_at(NOON + 2 * HOUR)
    runs = await world.runs_of(wake)
    assert [(run.status, run.reason, run.nominal_at) for run in runs] == [
        ("skipped", "skipped_by_request", NOON + HOUR),
        ("success", None, NOON + 2 * HOUR),
    ]


async def test_skip_never_goes_into_the_past(world):
    """Held since one o'clock by a pause; at half past four the whole backlog is skipped."""
    wake = await world.book(call_type="recurring", every=HOUR, at=NOON + HOUR)
    await world.node.pauses.pause(world.user.id, world.agent.id, NOON + DAY)
    await world.turn_at(NOON + HOUR)
    world.clock.set(NOON + 4.5 * HOUR)
    skipped = await world.node.wakes.skip(wake.id, world.user.id)
    assert (skipped.nominal_at, skipped.attempt_at, skipped.held_by) == (NOON + 5 * HOUR, NOON + 5 * HOUR, None)
    assert await told(world, wake) == [("wake", "skipped", NOON + HOUR, 4)]


async def test_skip_of_a_once_wake_is_refused(world):
    wake = await world.book()
    with pytest.raises(WakeFiresOnce):
        await world.node.wakes.skip(wake.id, world.user.id)


# ── Edit ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_wake_edited_to_an_earlier_time_fires_then(world):
    wake = await world.book(at=NOON + DAY)
    await world.node.wakes.edit(wake.id, world.user.id, {"nominal_at": NOON + MINUTE})
    await world.live_until(NOON + 2 * MINUTE)
    assert await told(world, wake) == [("wake", "success", NOON + MINUTE, 1)]


async def test_a_wake_edited_to_a_later_time_does_not_fire_before(world):
    wake = await world.book(at=NOON + MINUTE)
    await world.node.wakes.edit(wake.id, world.user.id, {"nominal_at": NOON + HOUR})
    await world.turn_at(NOON + HOUR - MINUTE)
    assert await told(world, wake) == []
    await world.turn_at(NOON + HOUR)
    assert await told(world, wake) == [("wake", "success", NOON + HOUR, 1)]


async def test_every_field_of_an_edit_is_kept(world):
    wake = await world.book(call_type="recurring", every=HOUR, at=NOON + HOUR)
    changes = {
        "nominal_at": NOON + 3 * HOUR,
        "every": 2 * HOUR,
        "timezone": "Asia/Tokyo",
        "until": NOON + DAY,
        "max_runs": 9,
        "comment": "Look again",
        "instructions": "Read plan.txt.",
        "context_views": ("open_tasks",),
        "priority": "low",
        "on_miss": "skip",
    }
    await world.node.wakes.edit(wake.id, world.user.id, changes)
    edited = await world.wake(wake)
    assert {name: getattr(edited, name) for name in changes} == changes


@pytest.mark.parametrize("verb", ["edit", "skip", "run_now", "cancel", "why"])
async def test_someone_elses_wake_is_not_there(world, verb):
    wake = await world.book()
    call = getattr(world.node.wakes, verb)
    with pytest.raises(NotFound):
        await (call(wake.id, "eve", {}) if verb == "edit" else call(wake.id, "eve"))
