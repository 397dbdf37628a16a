"""Graceful stop: whatever was running, nothing stays claimed by a process that has exited."""

import asyncio

import pytest

from harness import Harness

pytestmark = pytest.mark.both_stores


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13, 21])
async def test_stopped_at_any_moment_it_holds_nothing(backend_settings, turns):
    harness = Harness(backend_settings | {"max_headless_runs": 50})
    harness.executor.default = harness.gate()
    async with harness.opened():
        wakes = [await harness.book(call_type="immediate") for _ in range(20)]
        await harness.node.engine.scheduler.turn()
        await harness.node.engine.start()
        for _ in range(turns):
            await asyncio.sleep(0.0005)
        await harness.node.engine.stop()
        runs = [run for wake in wakes for run in await harness.runs_of(wake)]
    assert [(run.status, run.attempt, run.owner) for run in runs] == [("queued", 0, None)] * 20


async def test_a_claim_that_is_under_way_is_awaited_and_given_back(backend_settings):
    """PostgreSQL may carry out a statement after its client has gone."""
    harness = Harness(backend_settings)
    runner = harness.node.engine.runner
    claim = runner.claims.claim
    has_begun, carried_out = asyncio.Event(), []

    async def claim_slowly(headless):
        has_begun.set()
        await asyncio.sleep(0.2)
        return await claim(headless)

    async def claim_whoever_waits(headless):
        carried_out.append(asyncio.create_task(claim_slowly(headless)))
        return await asyncio.shield(carried_out[-1])

    runner.claims.claim = claim_whoever_waits
    async with harness.opened():
        wake = await harness.book(call_type="immediate")
        await harness.node.engine.scheduler.turn()
        await harness.node.engine.start()
        await has_begun.wait()
        await harness.node.engine.stop()
        await asyncio.gather(*carried_out)
        [run] = await harness.runs_of(wake)
    assert (run.status, run.attempt, run.owner) == ("queued", 0, None)
