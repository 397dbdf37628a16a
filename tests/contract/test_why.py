"""Why did it (not) run: the chain of decisions, in order, with time and reason."""

import pytest

from world import DAY, HOUR, MINUTE, NOON, SECOND, doing


@pytest.fixture
def backend_settings(backend_settings, request):
    """Nobody renews leases here; a test that waits for one to run out says so."""
    return backend_settings | ({} if "crash" in request.node.name else {"lease_seconds": 3600})


async def told(world, wake):
    return [(decision.code, decision.at) for decision in await world.why(wake)]


async def test_the_plain_course(world):
    wake = await world.book(at=NOON + MINUTE)
    await world.turn_at(NOON + MINUTE)
    assert await told(world, wake) == [
        ("booked", NOON),
        ("queued", NOON + MINUTE),
        ("started", NOON + MINUTE),
        ("success", NOON + MINUTE),
        ("wake_fired", NOON + MINUTE),
    ]


async def test_a_wake_that_waits_has_only_been_booked(world):
    wake = await world.book(scheduled_by="agent")
    [booked] = await world.why(wake)
    assert (booked.code, booked.detail) == ("booked", {"by": "agent"})


async def test_who_held_it_until_when_and_how_late_it_was(world):
    wake = await world.book(at=NOON + MINUTE)
    await world.node.pauses.pause(world.user.id, world.agent.id, NOON + HOUR)
    await world.turn_at(NOON + MINUTE)
    await world.turn_at(NOON + HOUR)
    chain = await world.why(wake)
    assert [decision.code for decision in chain] == ["booked", "paused", "queued", "started", "success", "wake_fired"]
    assert chain[1].detail == {"until": (NOON + HOUR).isoformat()}
    assert chain[3].detail["late_seconds"] == 59 * 60


async def test_a_missed_one(world):
    wake = await world.book(kind="next_run", at=NOON + MINUTE)
    await world.turn_at(NOON + HOUR)
    chain = await world.why(wake)
    assert [decision.code for decision in chain] == ["booked", "missed", "skipped", "wake_skipped"]
    assert (chain[2].detail["reason"], chain[3].detail["reason"]) == ("missed", "missed")


async def test_a_cancelled_one(world):
    wake = await world.book(at=NOON + HOUR)
    world.clock.set(NOON + MINUTE)
    await world.node.wakes.cancel(wake.id, world.user.id, "no longer needed")
    chain = await world.why(wake)
    assert [decision.code for decision in chain] == ["booked", "cancelled", "wake_cancelled"]
    assert chain[1].detail["reason"] == "no longer needed"


async def test_one_that_a_newer_took_the_place_of(world):
    old = await world.book(kind="next_run")
    new = await world.book(kind="next_run")
    chain = await world.why(old)
    assert [decision.code for decision in chain] == ["booked", "superseded", "wake_superseded"]
    assert chain[1].detail["by"] == new.id


async def test_an_edited_and_skipped_one(world):
    wake = await world.book(call_type="recurring", every=HOUR, at=NOON + HOUR)
    world.clock.set(NOON + MINUTE)
    await world.node.wakes.edit(wake.id, world.user.id, {"comment": "Look again"})
    world.clock.set(NOON + 2 * MINUTE)
    await world.node.wakes.skip(wake.id, world.user.id)
    chain = await world.why(wake)
    assert [decision.code for decision in chain] == ["booked", "edited", "skipped"]
    assert (chain[1].detail["changed"], chain[2].detail["reason"]) == (["comment"], "skipped_by_request")


async def test_one_that_a_crash_cut_off(world):
    wake = await world.book(at=NOON)
    world.executor.by_wake[wake.id] = world.gate()
    await world.turn()
    await world.crash()
    del world.executor.by_wake[wake.id]
    await world.turn_at(NOON + MINUTE)
    codes = [code for code, _ in await told(world, wake)]
    assert codes == ["booked", "queued", "started", "resumed", "success", "wake_fired"]


async def test_one_that_failed(world):
    async def fail(run):
        raise RuntimeError("no network")

    wake = await world.book(at=NOON)
    world.executor.by_wake[wake.id] = doing(fail)
    await world.turn()
    last = (await world.why(wake))[-1]
    assert (last.code, last.detail["error"]) == ("wake_failed", "RuntimeError: no network")


async def test_occurrences_of_a_recurring_wake_each_tell_their_own(world):
    wake = await world.book(call_type="recurring", every=MINUTE, at=NOON)
    gate = world.executor.by_wake[wake.id] = world.gate()
    await world.turn()
    await world.turn_at(NOON + 10 * SECOND)
    world.clock.set(NOON + MINUTE)
    await world.node.engine.scheduler.turn()
    await world.let_through(gate)
    await world.work()
    runs = await world.runs_of(wake)
    chain = await world.why(wake)
    for run in runs:
        codes = [decision.code for decision in chain if decision.run_id == run.id]
        assert codes == ["queued", "started", "success"]
    assert [run.reason for run in runs] == [None, "overlap"]


async def test_every_link_has_a_time_and_they_come_in_order(world):
    """A busy day: put off, paused, queued, run, skipped."""
    session = await world.session()
    wake = await world.book(session=session, call_type="recurring", every=HOUR, at=NOON)
    async with world.talking(session):
        await world.turn()
    await world.node.pauses.pause(world.user.id, world.agent.id, NOON + 10 * MINUTE)
    await world.turn_at(NOON + MINUTE)
    await world.turn_at(NOON + 10 * MINUTE)
    await world.node.wakes.skip(wake.id, world.user.id)
    await world.turn_at(NOON + 2 * HOUR)
    chain = await told(world, wake)
    assert [at for _, at in chain] == sorted(at for _, at in chain)
    assert [code for code, _ in chain] == [
        *("booked", "deferred", "paused", "queued", "started", "success", "skipped"),
        *("queued", "started", "success"),
    ]


async def test_a_run_by_hand_says_so(world):
    wake = await world.book(at=NOON + DAY)
    await world.node.wakes.run_now(wake.id, world.user.id)
    await world.turn()
    codes = [code for code, _ in await told(world, wake)]
    assert codes == ["booked", "run_now", "started", "success", "wake_fired"]
