"""Why did it (not) run: the chain of decisions, in order, with time and reason."""

import pytest

from harness import DAY, HOUR, MINUTE, NOON, SECOND, doing

pytestmark = pytest.mark.both_stores


@pytest.fixture
def backend_settings(backend_settings, request):
    """Nobody renews leases here; a test that waits for one to run out says so."""
    return backend_settings | ({} if "crash" in request.node.name else {"lease_seconds": 3600})


async def told(harness, wake):
    return [(decision.code, decision.at) for decision in await harness.why(wake)]


async def test_the_plain_course(harness):
    wake = await harness.book(at=NOON + MINUTE)
    await harness.turn_at(NOON + MINUTE)
    assert await told(harness, wake) == [
        ("booked", NOON),
        ("queued", NOON + MINUTE),
        ("started", NOON + MINUTE),
        ("success", NOON + MINUTE),
    ]


async def test_a_wake_that_waits_has_only_been_booked(harness):
    wake = await harness.book(scheduled_by="agent")
    [booked] = await harness.why(wake)
    assert (booked.code, booked.detail) == ("booked", {"by": "agent"})


async def test_who_held_it_until_when_and_how_late_it_was(harness):
    wake = await harness.book(at=NOON + MINUTE)
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, NOON + HOUR)
    await harness.turn_at(NOON + MINUTE)
    await harness.turn_at(NOON + HOUR)
    chain = await harness.why(wake)
    assert [decision.code for decision in chain] == ["booked", "paused", "queued", "started", "success"]
    assert chain[1].detail == {"until": (NOON + HOUR).isoformat()}
    assert chain[3].detail["late_seconds"] == 59 * 60


async def test_a_missed_one(harness):
    wake = await harness.book(kind="next_run", at=NOON + MINUTE)
    await harness.turn_at(NOON + HOUR)
    chain = await harness.why(wake)
    assert [decision.code for decision in chain] == ["booked", "missed", "skipped"]
    assert chain[2].detail["reason"] == "missed"


async def test_a_cancelled_one(harness):
    wake = await harness.book(at=NOON + HOUR)
    harness.clock.set(NOON + MINUTE)
    await harness.node.wakes.cancel(wake.id, harness.user.id, "no longer needed")
    chain = await harness.why(wake)
    assert [decision.code for decision in chain] == ["booked", "cancelled"]
    assert chain[1].detail["reason"] == "no longer needed"


async def test_one_that_a_newer_took_the_place_of(harness):
    old = await harness.book(kind="next_run")
    new = await harness.book(kind="next_run")
    chain = await harness.why(old)
    assert [decision.code for decision in chain] == ["booked", "superseded"]
    assert chain[1].detail["by"] == new.id


async def test_an_edited_and_skipped_one(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON + HOUR)
    harness.clock.set(NOON + MINUTE)
    await harness.change_wake(wake.id, {"comment": "Look again"})
    harness.clock.set(NOON + 2 * MINUTE)
    await harness.node.wakes.skip(wake.id, harness.user.id)
    chain = await harness.why(wake)
    assert [decision.code for decision in chain] == ["booked", "edited", "skipped"]
    assert (chain[1].detail["changed"], chain[2].detail["reason"]) == (["comment"], "skipped_by_request")


async def test_only_what_an_edit_changed_is_said(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON + HOUR, comment="Look again")
    await harness.change_wake(wake.id, {"timezone": wake.timezone, "comment": "Look again", "max_runs": 3})
    await harness.change_wake(wake.id, {"comment": "Look again"})
    told = [step.text for step in await harness.why(wake)]
    assert told[1:] == ["You changed: number of runs.", "You saved it unchanged."]


async def test_one_that_a_crash_cut_off(harness):
    wake = await harness.book(at=NOON)
    harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    await harness.crash()
    del harness.executor.by_wake[wake.id]
    await harness.turn_at(NOON + MINUTE)
    codes = [code for code, _ in await told(harness, wake)]
    assert codes == ["booked", "queued", "started", "resumed", "success"]


async def test_one_that_failed(harness):
    async def fail(run):
        raise RuntimeError("no network")

    wake = await harness.book(at=NOON)
    harness.executor.by_wake[wake.id] = doing(fail)
    await harness.turn()
    last = (await harness.why(wake))[-1]
    assert (last.code, last.detail["error"]) == ("failed", "RuntimeError: no network")


async def test_occurrences_of_a_recurring_wake_each_tell_their_own(harness):
    wake = await harness.book(call_type="recurring", every=MINUTE, at=NOON)
    gate = harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    await harness.turn_at(NOON + 10 * SECOND)
    harness.clock.set(NOON + MINUTE)
    await harness.node.engine.scheduler.turn()
    await harness.let_through(gate)
    await harness.work()
    runs = await harness.runs_of(wake)
    chain = await harness.why(wake)
    for run in runs:
        codes = [decision.code for decision in chain if decision.run_id == run.id]
        assert codes == ["queued", "started", "success"]
    assert [run.reason for run in runs] == [None, "overlap"]


async def test_every_link_has_a_time_and_they_come_in_order(harness):
    """A busy day: put off, paused, queued, run, skipped."""
    session = await harness.session()
    wake = await harness.book(session=session, call_type="recurring", every=HOUR, at=NOON)
    async with harness.talking(session):
        await harness.turn()
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, NOON + 10 * MINUTE)
    await harness.turn_at(NOON + MINUTE)
    await harness.turn_at(NOON + 10 * MINUTE)
    await harness.node.wakes.skip(wake.id, harness.user.id)
    await harness.turn_at(NOON + 2 * HOUR)
    chain = await told(harness, wake)
    assert [at for _, at in chain] == sorted(at for _, at in chain)
    assert [code for code, _ in chain] == [
        *("booked", "deferred", "paused", "queued", "started", "success", "skipped"),
        *("queued", "started", "success"),
    ]


async def test_a_run_by_hand_says_so(harness):
    wake = await harness.book(at=NOON + DAY)
    await harness.node.wakes.run_now(wake.id, harness.user.id)
    await harness.turn()
    codes = [code for code, _ in await told(harness, wake)]
    assert codes == ["booked", "run_now", "started", "success"]
