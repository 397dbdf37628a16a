"""Graceful stop: whatever was running, nothing stays claimed by a process that has exited."""

import asyncio

import pytest

from harness import Harness


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13, 21])
async def test_stopped_at_any_moment_it_holds_nothing(backend_settings, turns):
    harness = Harness(backend_settings | {"max_headless_runs": 50})
    harness.executor.default = harness.gate()
    async with harness.node.opened():
        await harness.settle_in()
        wakes = [await harness.book(call_type="immediate") for _ in range(20)]
        await harness.node.engine.scheduler.turn()
        await harness.node.engine.start()
        for _ in range(turns):
            await asyncio.sleep(0.0005)
        await harness.node.engine.stop()
        runs = [run for wake in wakes for run in await harness.runs_of(wake)]
    assert [(run.status, run.attempt, run.owner) for run in runs] == [("queued", 0, None)] * 20
