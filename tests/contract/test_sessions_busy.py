"""A session does one thing at a time: recalls give way to the user, the user goes first, nobody waits for ever."""

import pytest

from wakeful.domain.runs.runs import SessionBusy
from world import MINUTE, NOON, SECOND


@pytest.fixture
def backend_settings(backend_settings):
    """Nobody renews leases here, and some runs are at work for a while."""
    return backend_settings | {"lease_seconds": 3600}


def codes(chain):
    return [decision.code for decision in chain]


async def told(world, wake):
    return [(run.status, run.reason, run.nominal_at, run.covers) for run in await world.runs_of(wake)]


# ── A recall defers ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_recall_in_a_busy_session_is_put_off_by_a_minute_and_keeps_its_instant(world):
    session = await world.session()
    wake = await world.book(session=session, at=NOON + MINUTE)
    async with world.talking(session):
        await world.turn_at(NOON + MINUTE)
        deferred = await world.wake(wake)
        assert (deferred.status, deferred.held_by, deferred.deferrals) == ("pending", "deferred", 1)
        assert (deferred.nominal_at, deferred.attempt_at) == (NOON + MINUTE, NOON + 2 * MINUTE)
    await world.live_until(NOON + 3 * MINUTE)
    [run] = await world.runs_of(wake)
    assert (run.status, run.nominal_at, run.started_at) == ("success", NOON + MINUTE, NOON + 2 * MINUTE)
    assert codes(await world.why(wake)) == ["booked", "deferred", "queued", "started", "success", "wake_fired"]


async def test_after_ten_deferrals_it_queues_is_not_missed_and_starts_when_the_session_is_free(world):
    session = await world.session()
    wake = await world.book(session=session, at=NOON, on_miss="skip")
    async with world.talking(session):
        for minutes in range(10):
            await world.turn_at(NOON + minutes * MINUTE)
            assert (await world.wake(wake)).deferrals == minutes + 1
        await world.turn_at(NOON + 10 * MINUTE)
        assert (await world.wake(wake)).status == "queued"
        await world.turn_at(NOON + 20 * MINUTE)
        assert await told(world, wake) == [("queued", None, NOON, 1)]
    await world.work()
    assert await told(world, wake) == [("success", None, NOON, 1)]
    chain = codes(await world.why(wake))
    assert (chain.count("deferred"), chain.count("queued_while_busy"), "missed" in chain) == (10, 1, False)


async def test_a_chatty_user_cannot_starve_a_recall(world):
    session = await world.session()
    wake = await world.book(session=session, at=NOON)
    for minutes in range(11):  # always at work when the recall looks, always a pause in between
        async with world.talking(session):
            await world.turn_at(NOON + minutes * MINUTE)
        world.clock.advance(SECOND)
        await world.work()
    assert [run.status for run in await world.runs_of(wake)] == ["success"]


async def test_a_recurring_recall_takes_the_instants_along_that_pass_while_it_is_put_off(world):
    session = await world.session()
    wake = await world.book(session=session, call_type="recurring", every=20 * SECOND, at=NOON)
    async with world.talking(session):
        await world.turn()
    await world.turn_at(NOON + MINUTE)
    assert await told(world, wake) == [("success", None, NOON, 4)]
    after = await world.wake(wake)
    assert (after.nominal_at, after.deferrals, after.held_by) == (NOON + 80 * SECOND, 0, None)


async def test_another_session_is_not_in_the_way(world):
    wake = await world.book(at=NOON)
    async with world.talking(await world.session()):
        await world.turn()
        assert [run.status for run in await world.runs_of(wake)] == ["success"]


async def test_an_immediate_recall_queues_and_starts_when_the_run_that_booked_it_ends(world):
    session = await world.session()
    first = await world.book(session=session, at=NOON)
    booked = []
    gate = world.gate()

    async def go_on(run, steps, stop):
        booked.append(await world.book(session=session, call_type="immediate", booked_by_run=run.id))
        async for event in gate(run, steps, stop):
            yield event

    world.executor.by_wake[first.id] = go_on
    await world.turn()
    await world.turn_at(NOON + SECOND)
    assert [run.status for run in await world.runs_of(booked[0])] == ["queued"]
    world.clock.set(NOON + 5 * SECOND)
    await world.let_through(gate)
    await world.work()
    [run] = await world.runs_of(booked[0])
    assert (run.status, run.started_at) == ("success", NOON + 5 * SECOND)
    assert (await world.wake(booked[0])).deferrals == 0


async def test_messages_queue_in_a_busy_session_and_drain_one_after_the_other(world):
    session = await world.session()
    wakes = [await world.book(kind="message", session=session, at=NOON + number * SECOND) for number in range(3)]
    async with world.talking(session):
        await world.turn_at(NOON + MINUTE)
        assert {(await world.wake(wake)).status for wake in wakes} == {"queued"}
        assert len(world.executor.ran) == 1
    await world.live_until(NOON + 2 * MINUTE)
    assert [ran.run.wake_id for ran in world.executor.ran[1:]] == [wake.id for wake in wakes]


async def test_messages_of_one_instant_drain_in_the_order_they_were_booked(world):
    session = await world.session()
    wakes = []
    for number in range(6):
        world.clock.set(NOON + number * SECOND)
        wakes.append(await world.book(kind="message", session=session, at=NOON + MINUTE))
    await world.turn_at(NOON + MINUTE)
    assert [ran.run.wake_id for ran in world.executor.ran] == [wake.id for wake in wakes]


# ── The user goes first ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_queued_headless_run_does_not_lock_the_user_out(world):
    session = await world.session()
    wake = await world.book(session=session, at=NOON)
    await world.node.engine.scheduler.turn()
    assert (await world.wake(wake)).status == "queued"
    asked = await world.node.runs.ask(session.id, world.user.id, "Quick question")
    await world.work()
    assert world.executor.ran[0].run.id == asked.id
    await world.turn_at(NOON + SECOND)
    assert [run.status for run in await world.runs_of(wake)] == ["success"]


async def test_all_slots_taken_by_headless_runs_do_not_keep_a_user_waiting(world):
    gate = world.executor.default = world.gate()
    for _ in range(4):
        await world.book(at=NOON)
    await world.turn()
    assert len(world.executor.ran) == 3
    world.executor.default = None
    asked = await world.node.runs.ask((await world.session()).id, world.user.id, "Quick question")
    await world.work()
    assert (await world.run(asked.id)).status == "success"
    await world.let_through(gate)


async def test_users_runs_take_no_headless_slots(world):
    gate = world.executor.default = world.gate()
    for _ in range(5):
        await world.node.runs.ask((await world.session()).id, world.user.id, "Think long")
    wakes = [await world.book(at=NOON) for _ in range(3)]
    await world.turn()
    assert [(await world.wake(wake)).status for wake in wakes] == ["running"] * 3
    await world.let_through(gate)


@pytest.mark.parametrize("state", ["queued", "running"])
async def test_a_second_message_is_refused_while_the_first_is_unfinished(world, state):
    session = await world.session()
    gate = world.executor.default = world.gate()
    first = await world.node.runs.ask(session.id, world.user.id, "First")
    if state == "running":
        await world.work()
    with pytest.raises(SessionBusy) as refusal:
        await world.node.runs.ask(session.id, world.user.id, "Second")
    assert first.id in refusal.value.message
    await world.work()
    await world.let_through(gate)
    texts = await world.node.store.read(lambda tx: tx.sessions.messages(session.id))
    assert [message.content for message in texts] == ["First"]


async def test_a_message_is_refused_while_a_headless_run_is_at_work_there(world):
    session = await world.session()
    wake = await world.book(session=session, at=NOON)
    gate = world.executor.by_wake[wake.id] = world.gate()
    await world.turn()
    with pytest.raises(SessionBusy, match="a scheduled run"):
        await world.node.runs.ask(session.id, world.user.id, "Are you there?")
    await world.let_through(gate)
    await world.node.runs.ask(session.id, world.user.id, "And now?")


# ── An occurrence is still at work when the next is due ─────────────────────────────────────────────────────────────


async def test_instants_that_come_while_an_occurrence_is_at_work_share_one_waiting_row(world):
    wake = await world.book(call_type="recurring", every=MINUTE, at=NOON)
    gate = world.executor.by_wake[wake.id] = world.gate()
    await world.turn()
    for minutes in range(1, 6):
        await world.turn_at(NOON + minutes * MINUTE)
    waiting = ("queued", "overlap", NOON + MINUTE, 5)
    assert await told(world, wake) == [("running", None, NOON, 1), waiting]
    await world.let_through(gate)
    await world.work()
    await world.turn_at(NOON + 6 * MINUTE)
    assert await told(world, wake) == [
        ("success", None, NOON, 1),
        ("success", "overlap", NOON + MINUTE, 5),
        ("success", None, NOON + 6 * MINUTE, 1),
    ]


async def test_instants_that_come_while_an_occurrence_waits_for_a_slot_are_folded_into_it(world):
    gate = world.executor.default = world.gate()
    for _ in range(3):
        await world.book(at=NOON)
    wake = await world.book(call_type="recurring", every=MINUTE, at=NOON + MINUTE)
    for minutes in range(5):
        await world.turn_at(NOON + minutes * MINUTE)
    assert await told(world, wake) == [("queued", "overlap", NOON + MINUTE, 4)]
    world.executor.default = None
    await world.let_through(gate)


async def test_an_overlap_is_not_put_off_as_if_the_user_were_talking(world):
    wake = await world.book(call_type="recurring", every=MINUTE, at=NOON)
    gate = world.executor.by_wake[wake.id] = world.gate()
    await world.turn()
    await world.turn_at(NOON + MINUTE)
    assert (await world.wake(wake)).deferrals == 0
    await world.let_through(gate)


async def test_no_instant_is_lost_or_doubled_through_half_an_hour_of_overlaps(world):
    session = await world.session()
    wake = await world.book(session=session, call_type="recurring", every=30 * SECOND, at=NOON)
    for at in range(0, 1800, 90):
        gate = world.executor.by_wake[wake.id] = world.gate()
        await world.turn_at(NOON + at * SECOND)
        await world.turn_at(NOON + (at + 60) * SECOND)
        await world.let_through(gate)
    runs = await world.runs_of(wake)
    instants = [run.nominal_at + number * 30 * SECOND for run in runs for number in range(run.covers)]
    assert instants == [NOON + number * 30 * SECOND for number in range(len(instants))]
    assert (await world.wake(wake)).nominal_at == instants[-1] + 30 * SECOND > NOON + 28 * MINUTE
