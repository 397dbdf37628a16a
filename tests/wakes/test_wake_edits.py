"""A person changes a wake by hand: run now, skip, edit."""

import pytest

from harness import DAY, HOUR, MINUTE, NOON
from wakeful.core.errors import NotFound
from wakeful.timing.lifecycle import WakeFiresOnce, WakeNotLive

pytestmark = pytest.mark.both_stores


async def told(harness, wake):
    return [(run.trigger, run.status, run.nominal_at, run.covers) for run in await harness.runs_of(wake)]


# ── Run now ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def backend_settings(backend_settings):
    return backend_settings | {"runs_per_hour": 3}


@pytest.mark.parametrize("kind", ["recall", "message", "session", "next_run"])
async def test_run_now_uses_up_a_once_wake(harness, kind):
    wake = await harness.book(kind=kind, at=NOON + HOUR)
    run = await harness.node.wakes.run_now(wake.id, harness.user.id)
    await harness.turn()
    assert (await harness.run(run.id)).started_at == NOON
    await harness.turn_at(NOON + HOUR)
    assert await told(harness, wake) == [("run_now", "success", NOON + HOUR, 1)]
    assert (await harness.wake(wake)).status == "fired"


async def test_run_now_of_a_recurring_wake_is_an_extra_run_and_the_grid_stays(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON + HOUR, max_runs=2)
    harness.clock.set(NOON + 10 * MINUTE)
    await harness.node.wakes.run_now(wake.id, harness.user.id)
    await harness.turn()
    await harness.turn_at(NOON + HOUR)
    await harness.turn_at(NOON + 2 * HOUR)
    assert await told(harness, wake) == [
        ("run_now", "success", NOON + 10 * MINUTE, 0),
        ("wake", "success", NOON + HOUR, 1),
        ("wake", "success", NOON + 2 * HOUR, 1),
    ]


async def test_run_now_goes_before_the_occurrence_that_waits_in_its_session_and_not_beside_it(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON)
    await harness.node.engine.scheduler.turn()  # the occurrence of noon is queued
    harness.clock.advance(MINUTE)
    await harness.node.wakes.run_now(wake.id, harness.user.id)
    gate = harness.executor.by_wake[wake.id] = harness.gate()
    await harness.work()
    assert [ran.run.trigger for ran in harness.executor.ran] == ["run_now"]
    await harness.let_through(gate)
    await harness.work()
    assert [ran.run.trigger for ran in harness.executor.ran] == ["run_now", "wake"]


async def test_run_now_twice_runs_a_recurring_wake_twice_one_after_the_other(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON + HOUR)
    for _ in range(2):
        await harness.node.wakes.run_now(wake.id, harness.user.id)
    gate = harness.executor.by_wake[wake.id] = harness.gate()
    await harness.work()
    assert len(harness.executor.ran) == 1
    await harness.let_through(gate)
    await harness.work()
    assert [run.status for run in await harness.runs_of(wake)] == ["success", "success"]


async def test_run_now_of_a_next_run_opens_its_fresh_session(harness):
    wake = await harness.book(kind="next_run")
    run = await harness.node.wakes.run_now(wake.id, harness.user.id)
    await harness.turn()
    session = await harness.node.store.read(lambda tx: tx.sessions.get(run.session_id, harness.user.id))
    assert (session.origin_wake_id, (await harness.wake(wake)).created_session_id) == (wake.id, session.id)


async def test_run_now_works_once_the_agents_hour_is_used_up(harness):
    """The brake holds an agent's bookings, not a person's wish."""
    wake = await harness.book(kind="next_run", scheduled_by="agent", at=NOON + HOUR)
    for _ in range(harness.node.rules.runs_per_hour):
        await harness.book(kind="session", scheduled_by="agent", at=NOON)
    await harness.turn()
    run = await harness.node.wakes.run_now(wake.id, harness.user.id)
    await harness.turn()
    assert (await harness.run(run.id)).status == "success"


async def test_run_now_twice_gives_the_same_run_of_a_once_wake(harness):
    wake = await harness.book()
    first = await harness.node.wakes.run_now(wake.id, harness.user.id)
    assert (await harness.node.wakes.run_now(wake.id, harness.user.id)).id == first.id
    await harness.turn()
    with pytest.raises(WakeNotLive):
        await harness.node.wakes.run_now(wake.id, harness.user.id)
    assert [run.status for run in await harness.runs_of(wake)] == ["success"]


async def test_run_now_gets_a_run_going_that_was_queued_before_a_pause(harness):
    session = await harness.session()
    wake = await harness.book(kind="message", session=session, at=NOON)
    async with harness.talking(session):
        await harness.turn()
        await harness.node.pauses.pause(harness.user.id, harness.agent.id, None)
    await harness.turn()
    assert (await harness.wake(wake)).status == "queued"
    await harness.node.wakes.run_now(wake.id, harness.user.id)
    await harness.turn()
    assert (await harness.wake(wake)).status == "fired"


# ── Skip ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_skip_leaves_out_one_instant_and_records_it(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON + HOUR)
    await harness.node.wakes.skip(wake.id, harness.user.id)
    await harness.turn_at(NOON + HOUR)
    await harness.turn_at(NOON + 2 * HOUR)
    runs = await harness.runs_of(wake)
    assert [(run.status, run.reason, run.nominal_at) for run in runs] == [
        ("skipped", "skipped_by_request", NOON + HOUR),
        ("success", None, NOON + 2 * HOUR),
    ]


async def test_skip_never_goes_into_the_past(harness):
    """Held since one o'clock by a pause; at half past four the whole backlog is skipped."""
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON + HOUR)
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, NOON + DAY)
    await harness.turn_at(NOON + HOUR)
    harness.clock.set(NOON + 4.5 * HOUR)
    skipped = await harness.node.wakes.skip(wake.id, harness.user.id)
    assert (skipped.nominal_at, skipped.attempt_at, skipped.held_by) == (NOON + 5 * HOUR, NOON + 5 * HOUR, None)
    assert await told(harness, wake) == [("wake", "skipped", NOON + HOUR, 4)]


async def test_skip_of_a_once_wake_is_refused(harness):
    wake = await harness.book()
    with pytest.raises(WakeFiresOnce):
        await harness.node.wakes.skip(wake.id, harness.user.id)


# ── Edit ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_wake_edited_to_an_earlier_time_fires_then(harness):
    wake = await harness.book(at=NOON + DAY)
    await harness.change_wake(wake.id, {"nominal_at": NOON + MINUTE})
    await harness.live_until(NOON + 2 * MINUTE)
    assert await told(harness, wake) == [("wake", "success", NOON + MINUTE, 1)]


async def test_a_wake_edited_to_a_later_time_does_not_fire_before(harness):
    wake = await harness.book(at=NOON + MINUTE)
    await harness.change_wake(wake.id, {"nominal_at": NOON + HOUR})
    await harness.turn_at(NOON + HOUR - MINUTE)
    assert await told(harness, wake) == []
    await harness.turn_at(NOON + HOUR)
    assert await told(harness, wake) == [("wake", "success", NOON + HOUR, 1)]


async def test_every_field_of_an_edit_is_kept(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON + HOUR)
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
    await harness.change_wake(wake.id, changes)
    edited = await harness.wake(wake)
    assert {name: getattr(edited, name) for name in changes} == changes


@pytest.mark.parametrize("verb", ["edit", "skip", "run_now", "cancel", "why"])
async def test_someone_elses_wake_is_not_there(harness, verb):
    wake = await harness.book()
    call = getattr(harness.node.wakes, verb)
    with pytest.raises(NotFound):
        await (call(wake.id, "eve", {}) if verb == "edit" else call(wake.id, "eve"))
