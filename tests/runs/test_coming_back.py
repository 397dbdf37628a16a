"""Runs that a crash interrupted are retried one at a time, and other queued runs do not delay them."""

import pytest

from harness import MINUTE, SECOND, Harness

pytestmark = pytest.mark.both_stores


async def begin(harness: Harness, **request) -> object:
    """Book a wake and let its run execute."""
    gate = harness.executor.default = harness.gate()
    wake = await harness.book(**{"kind": "message", "at": harness.clock.now()} | request)
    await harness.turn()
    [run] = await harness.runs_of(wake)
    assert (run.status, gate.is_holding) == ("running", 1)
    return wake


async def lose_all(harness: Harness) -> None:
    """The process dies, and its leases run out; the next one does not wait."""
    await harness.crash()
    harness.executor.default = None
    harness.clock.advance(MINUTE)
    await harness.node.engine.scheduler.turn()


async def statuses(harness: Harness, *wakes) -> list[str]:
    return [run.status for wake in wakes for run in await harness.runs_of(wake)]


async def test_two_of_one_session_do_not_wait_for_each_other(harness):
    """The one was queued first, the other was planned first."""
    session = await harness.session()
    queued_first = await harness.book(session=session, kind="message", at=harness.clock.now())
    await harness.node.engine.scheduler.turn()
    harness.clock.advance(-MINUTE)
    planned_first = await harness.book(session=session, kind="message", at=harness.clock.now())
    await harness.node.engine.scheduler.turn()
    await harness.sql("UPDATE runs SET is_resuming = 1, attempt = 1, fence = 1, started_at = queued_at")

    for _ in range(3):
        await harness.turn()
    assert await statuses(harness, queued_first, planned_first) == ["success", "success"]


async def test_what_was_cut_off_goes_on_before_anything_else_begins_in_its_session(harness):
    session = await harness.session()
    begun = await begin(harness, session=session)
    await lose_all(harness)
    harness.clock.advance(-5 * MINUTE)
    planned_earlier = await harness.book(session=session, kind="message", at=harness.clock.now())
    harness.executor.ran.clear()
    for _ in range(3):
        await harness.turn()
    assert [ran.run.wake_id for ran in harness.executor.ran] == [begun.id, planned_earlier.id]


async def test_a_wake_that_a_pause_holds_keeps_nothing_that_had_begun_from_coming_back(harness):
    other = await harness.add_agent()
    session = await harness.session()
    begun = await begin(harness, session=session)
    harness.clock.advance(SECOND)
    elsewhere = await begin(harness, agent=other)
    harness.clock.advance(-MINUTE)
    waiting = await harness.book(session=session, kind="message", at=harness.clock.now())
    await harness.node.engine.scheduler.turn()
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, None)
    harness.clock.advance(MINUTE)
    await lose_all(harness)
    assert await statuses(harness, begun, elsewhere, waiting) == ["queued", "queued", "queued"]

    for _ in range(3):
        await harness.turn()
    assert await statuses(harness, begun, elsewhere, waiting) == ["success", "success", "queued"]


async def test_a_users_run_and_a_headless_one_do_not_come_back_together(harness):
    begun = await begin(harness)
    harness.clock.advance(SECOND)
    await begin(harness, agent=await harness.add_agent())
    await lose_all(harness)
    await harness.sql(f"UPDATE runs SET trigger = 'message' WHERE wake_id = '{begun.id}'")
    now = harness.clock.now()

    taken = await harness.node.store.write(
        lambda tx: tx.runs.claim("me", now, MINUTE, messages=9, headless=9, rules=harness.node.rules)
    )
    assert [claimed.run.wake_id for claimed in taken] == [begun.id]
