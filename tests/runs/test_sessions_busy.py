"""A session executes one run at a time: recalls are deferred for the user, messages go first, none waits for ever."""

import pytest

from harness import MINUTE, NOON, SECOND
from wakeful.sessions.service import SessionBusy

pytestmark = pytest.mark.both_stores


@pytest.fixture
def backend_settings(backend_settings):
    """Leases are not renewed here, and some runs execute for a while."""
    return backend_settings | {"lease_seconds": 3600}


def codes(chain):
    return [decision.code for decision in chain]


async def told(harness, wake):
    return [(run.status, run.reason, run.nominal_at, run.covers) for run in await harness.runs_of(wake)]


# ── A recall defers ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_recall_in_a_busy_session_is_put_off_by_a_minute_and_keeps_its_instant(harness):
    session = await harness.session()
    wake = await harness.book(session=session, at=NOON + MINUTE)
    async with harness.talking(session):
        await harness.turn_at(NOON + MINUTE)
        deferred = await harness.wake(wake)
        assert (deferred.status, deferred.held_by, deferred.deferrals) == ("pending", "deferred", 1)
        assert (deferred.nominal_at, deferred.attempt_at) == (NOON + MINUTE, NOON + 2 * MINUTE)
    await harness.live_until(NOON + 3 * MINUTE)
    [run] = await harness.runs_of(wake)
    assert (run.status, run.nominal_at, run.started_at) == ("success", NOON + MINUTE, NOON + 2 * MINUTE)
    assert codes(await harness.why(wake)) == ["booked", "deferred", "queued", "started", "success"]


async def test_after_ten_deferrals_it_queues_is_not_missed_and_starts_when_the_session_is_free(harness):
    session = await harness.session()
    wake = await harness.book(session=session, at=NOON, on_miss="skip")
    async with harness.talking(session):
        for minutes in range(10):
            await harness.turn_at(NOON + minutes * MINUTE)
            assert (await harness.wake(wake)).deferrals == minutes + 1
        await harness.turn_at(NOON + 10 * MINUTE)
        assert (await harness.wake(wake)).status == "queued"
        await harness.turn_at(NOON + 20 * MINUTE)
        assert await told(harness, wake) == [("queued", None, NOON, 1)]
    await harness.work()
    assert await told(harness, wake) == [("success", None, NOON, 1)]
    chain = codes(await harness.why(wake))
    assert (chain.count("deferred"), chain.count("queued_while_busy"), "missed" in chain) == (10, 1, False)


async def test_a_chatty_user_cannot_starve_a_recall(harness):
    session = await harness.session()
    wake = await harness.book(session=session, at=NOON)
    for minutes in range(11):  # always busy when the recall is due, always a pause in between
        async with harness.talking(session):
            await harness.turn_at(NOON + minutes * MINUTE)
        harness.clock.advance(SECOND)
        await harness.work()
    assert [run.status for run in await harness.runs_of(wake)] == ["success"]


async def test_a_recurring_recall_takes_the_instants_along_that_pass_while_it_is_put_off(harness):
    session = await harness.session()
    wake = await harness.book(session=session, call_type="recurring", every=20 * SECOND, at=NOON)
    async with harness.talking(session):
        await harness.turn()
    await harness.turn_at(NOON + MINUTE)
    assert await told(harness, wake) == [("success", None, NOON, 4)]
    after = await harness.wake(wake)
    assert (after.nominal_at, after.deferrals, after.held_by) == (NOON + 80 * SECOND, 0, None)


async def test_another_session_is_not_in_the_way(harness):
    wake = await harness.book(at=NOON)
    async with harness.talking(await harness.session()):
        await harness.turn()
        assert [run.status for run in await harness.runs_of(wake)] == ["success"]


async def test_an_immediate_recall_queues_and_starts_when_the_run_that_booked_it_ends(harness):
    session = await harness.session()
    first = await harness.book(session=session, at=NOON)
    booked = []
    gate = harness.gate()

    async def go_on(run, steps, stop):
        booked.append(await harness.book(session=session, call_type="immediate", booked_by_run=run.id))
        async for event in gate(run, steps, stop):
            yield event

    harness.executor.by_wake[first.id] = go_on
    await harness.turn()
    await harness.turn_at(NOON + SECOND)
    assert [run.status for run in await harness.runs_of(booked[0])] == ["queued"]
    harness.clock.set(NOON + 5 * SECOND)
    await harness.let_through(gate)
    await harness.work()
    [run] = await harness.runs_of(booked[0])
    assert (run.status, run.started_at) == ("success", NOON + 5 * SECOND)
    assert (await harness.wake(booked[0])).deferrals == 0


async def test_messages_queue_in_a_busy_session_and_drain_one_after_the_other(harness):
    session = await harness.session()
    wakes = [await harness.book(kind="message", session=session, at=NOON + number * SECOND) for number in range(3)]
    async with harness.talking(session):
        await harness.turn_at(NOON + MINUTE)
        assert {(await harness.wake(wake)).status for wake in wakes} == {"queued"}
        assert len(harness.executor.ran) == 1
    await harness.live_until(NOON + 2 * MINUTE)
    assert [ran.run.wake_id for ran in harness.executor.ran[1:]] == [wake.id for wake in wakes]


async def test_messages_of_one_instant_drain_in_the_order_they_were_booked(harness):
    session = await harness.session()
    wakes = []
    for number in range(6):
        harness.clock.set(NOON + number * SECOND)
        wakes.append(await harness.book(kind="message", session=session, at=NOON + MINUTE))
    await harness.turn_at(NOON + MINUTE)
    assert [ran.run.wake_id for ran in harness.executor.ran] == [wake.id for wake in wakes]


# ── The user goes first ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_queued_headless_run_does_not_lock_the_user_out(harness):
    session = await harness.session()
    wake = await harness.book(session=session, at=NOON)
    await harness.node.engine.scheduler.turn()
    assert (await harness.wake(wake)).status == "queued"
    asked = await harness.node.runs.ask(session.id, harness.user.id, "Quick question")
    await harness.work()
    assert harness.executor.ran[0].run.id == asked.id
    await harness.turn_at(NOON + SECOND)
    assert [run.status for run in await harness.runs_of(wake)] == ["success"]


async def test_all_slots_taken_by_headless_runs_do_not_keep_a_user_waiting(harness):
    gate = harness.executor.default = harness.gate()
    for _ in range(4):
        await harness.book(at=NOON)
    await harness.turn()
    assert len(harness.executor.ran) == 3
    harness.executor.default = None
    asked = await harness.node.runs.ask((await harness.session()).id, harness.user.id, "Quick question")
    await harness.work()
    assert (await harness.run(asked.id)).status == "success"
    await harness.let_through(gate)


async def test_users_runs_take_no_headless_slots(harness):
    gate = harness.executor.default = harness.gate()
    for _ in range(5):
        await harness.node.runs.ask((await harness.session()).id, harness.user.id, "Think long")
    wakes = [await harness.book(at=NOON) for _ in range(3)]
    await harness.turn()
    assert [(await harness.wake(wake)).status for wake in wakes] == ["running"] * 3
    await harness.let_through(gate)


@pytest.mark.parametrize("state", ["queued", "running"])
async def test_a_second_message_is_refused_while_the_first_is_unfinished(harness, state):
    session = await harness.session()
    gate = harness.executor.default = harness.gate()
    first = await harness.node.runs.ask(session.id, harness.user.id, "First")
    if state == "running":
        await harness.work()
    with pytest.raises(SessionBusy) as refusal:
        await harness.node.runs.ask(session.id, harness.user.id, "Second")
    assert first.id in refusal.value.message
    await harness.work()
    await harness.let_through(gate)
    texts = await harness.node.store.read(lambda tx: tx.sessions.messages(session.id))
    assert [message.content for message in texts] == ["First"]


async def test_a_message_is_refused_while_a_headless_run_is_at_work_there(harness):
    session = await harness.session()
    wake = await harness.book(session=session, at=NOON)
    gate = harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    with pytest.raises(SessionBusy, match="a scheduled run"):
        await harness.node.runs.ask(session.id, harness.user.id, "Are you there?")
    await harness.let_through(gate)
    await harness.node.runs.ask(session.id, harness.user.id, "And now?")


# ── An occurrence is still running when the next is due ─────────────────────────────────────────────────────────────


async def test_instants_that_come_while_an_occurrence_is_at_work_share_one_waiting_row(harness):
    wake = await harness.book(call_type="recurring", every=MINUTE, at=NOON)
    gate = harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    for minutes in range(1, 6):
        await harness.turn_at(NOON + minutes * MINUTE)
    waiting = ("queued", "overlap", NOON + MINUTE, 5)
    assert await told(harness, wake) == [("running", None, NOON, 1), waiting]
    await harness.let_through(gate)
    await harness.work()
    await harness.turn_at(NOON + 6 * MINUTE)
    assert await told(harness, wake) == [
        ("success", None, NOON, 1),
        ("success", "overlap", NOON + MINUTE, 5),
        ("success", None, NOON + 6 * MINUTE, 1),
    ]


async def test_instants_that_come_while_an_occurrence_waits_for_a_slot_are_folded_into_it(harness):
    gate = harness.executor.default = harness.gate()
    for _ in range(3):
        await harness.book(at=NOON)
    wake = await harness.book(call_type="recurring", every=MINUTE, at=NOON + MINUTE)
    for minutes in range(5):
        await harness.turn_at(NOON + minutes * MINUTE)
    assert await told(harness, wake) == [("queued", "overlap", NOON + MINUTE, 4)]
    harness.executor.default = None
    await harness.let_through(gate)


async def test_an_overlap_is_not_put_off_as_if_the_user_were_talking(harness):
    wake = await harness.book(call_type="recurring", every=MINUTE, at=NOON)
    gate = harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    await harness.turn_at(NOON + MINUTE)
    assert (await harness.wake(wake)).deferrals == 0
    await harness.let_through(gate)


async def test_no_instant_is_lost_or_doubled_through_half_an_hour_of_overlaps(harness):
    session = await harness.session()
    wake = await harness.book(session=session, call_type="recurring", every=30 * SECOND, at=NOON)
    for at in range(0, 1800, 90):
        gate = harness.executor.by_wake[wake.id] = harness.gate()
        await harness.turn_at(NOON + at * SECOND)
        await harness.turn_at(NOON + (at + 60) * SECOND)
        await harness.let_through(gate)
    runs = await harness.runs_of(wake)
    instants = [run.nominal_at + number * 30 * SECOND for run in runs for number in range(run.covers)]
    assert instants == [NOON + number * 30 * SECOND for number in range(len(instants))]
    assert (await harness.wake(wake)).nominal_at == instants[-1] + 30 * SECOND > NOON + 28 * MINUTE
