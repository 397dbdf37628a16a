"""Ownership of runs: leases, fences, restarts. A stale owner cannot finish; a graceful stop costs nothing."""

import asyncio

import pytest

from harness import DAY, NOON, SECOND, Harness, doing, eventually
from wakeful.core.events import StepSaved
from wakeful.core.records import Outcome
from wakeful.runs.claims import Claims
from wakeful.runs.rules import LeaseLost

pytestmark = pytest.mark.both_stores

LEASE = 30 * SECOND
SUCCESS = Outcome(status="success")


async def run_of(harness, wake):
    [run] = await harness.runs_of(wake)
    return run


# ── Graceful stop ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_unfinished_is_given_back_at_once_and_does_not_count_as_an_attempt(backend_settings):
    async with Harness(backend_settings).opened() as harness:
        wake = await harness.book(at=NOON)
        gate = harness.gate()

        async def work(run, steps, stop):
            if not steps:
                yield StepSaved(role="assistant", content="One")
                async for event in gate(run, steps, stop):
                    yield event

        harness.executor.by_wake[wake.id] = work
        await harness.turn()
        await harness.node.engine.runner.drain()
        run = await run_of(harness, wake)
        assert (run.status, run.attempt, run.is_resuming, run.owner) == ("queued", 0, False, None)
    harness.node = harness.another_node()
    async with harness.node.opened():
        await harness.turn()
        run = await run_of(harness, wake)
    assert (run.status, run.attempt, harness.executor.ran[-1].steps) == ("success", 1, ["One"])


async def test_a_node_that_goes_down_takes_nothing_new(harness):
    wake = await harness.book(at=NOON)
    await harness.node.engine.runner.drain()
    await harness.turn()
    assert (await run_of(harness, wake)).status == "queued"


async def test_any_number_of_graceful_restarts_leaves_all_attempts(backend_settings):
    async with Harness(backend_settings).opened() as harness:
        wake = await harness.book(at=NOON)
    for _ in range(5):
        harness.node = harness.another_node()
        async with harness.node.opened():
            harness.executor.by_wake[wake.id] = harness.gate()
            await harness.turn()
            assert (await run_of(harness, wake)).attempt == 1
            await harness.node.engine.runner.drain()


# ── Who owns a run ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def owners(harness):
    """Two owners on one store, as two processes would be."""
    node = harness.node
    return [Claims(node.store, harness.clock, node.rules, name, LEASE) for name in ("a", "b")]


async def hand_over(harness, first, second):
    """One owner claims a run, loses its lease, and another claims it; returns the run as each knows it."""
    await harness.book(at=NOON)
    await harness.node.engine.scheduler.turn()
    [old] = await first.claim(3)
    harness.clock.set(NOON + LEASE)
    await harness.node.engine.scheduler.turn()
    [new] = await second.claim(3)
    return old.run, new.run


async def test_a_stale_owner_cannot_finish_or_save(harness, owners):
    first, second = owners
    old, new = await hand_over(harness, first, second)
    assert old.fence < new.fence
    assert not await first.finish(old, SUCCESS)
    with pytest.raises(LeaseLost):
        await first.save(old, StepSaved(role="assistant", content="I am still here"), [], "step")
    with pytest.raises(LeaseLost):
        await first.record_call(old)
    assert await harness.node.store.write(lambda tx: tx.runs.release([old])) == 0
    assert (await harness.run(new.id)).status == "running"
    assert await second.finish(new, SUCCESS)
    assert (await harness.run(new.id)).status == "success"


async def test_the_same_owner_with_an_old_fence_cannot_finish_or_save(harness, owners):
    first, _ = owners
    old, new = await hand_over(harness, first, first)
    with pytest.raises(LeaseLost):
        await first.save(old, StepSaved(role="assistant", content="I am still here"), [], "step")
    assert [await first.finish(old, SUCCESS), await first.finish(new, SUCCESS)] == [False, True]


async def test_a_suspended_machine_goes_on_with_its_runs_if_no_other_node_took_over(harness):
    wake = await harness.book(at=NOON)
    gate = harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    await harness.turn_at(NOON + DAY)
    assert (await run_of(harness, wake)).status == "running"
    await harness.let_through(gate)
    run = await run_of(harness, wake)
    assert (run.status, run.attempt, len(harness.executor.ran)) == ("success", 1, 1)


async def test_a_finish_counts_once(harness, owners):
    first, _ = owners
    await harness.book(at=NOON)
    await harness.node.engine.scheduler.turn()
    [claimed] = await first.claim(3)
    assert [await first.finish(claimed.run, SUCCESS) for _ in range(2)] == [True, False]


async def test_the_heartbeat_renews_also_what_ran_out_until_someone_took_it_back(harness, owners):
    first, second = owners
    wake = await harness.book(at=NOON)
    await harness.node.engine.scheduler.turn()
    [claimed] = await first.claim(3)
    connection = await first.open_heartbeat()
    try:
        harness.clock.set(NOON + LEASE - SECOND)
        assert await first.renew(connection) == {(claimed.run.id, 1)}
        assert (await run_of(harness, wake)).lease_until == NOON + 2 * LEASE - SECOND
        harness.clock.set(NOON + 3 * LEASE)
        assert await first.renew(connection) == {(claimed.run.id, 1)}
        assert await second.renew(connection) == set()
        harness.clock.set(NOON + 4 * LEASE)
        await harness.node.engine.scheduler.turn()
        assert await first.renew(connection) == set()
    finally:
        await connection.close()


async def test_two_owners_never_hold_the_same_run(harness, owners):
    for _ in range(12):
        await harness.book(at=NOON)
    await harness.node.engine.scheduler.turn()
    claims = await asyncio.gather(*(owner.claim(4) for owner in owners * 2))
    ids = [claimed.run.id for taken in claims for claimed in taken]
    assert len(ids) == len(set(ids)) > 0


# ── Restart ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_at_start_an_embedded_store_takes_back_at_once_what_a_dead_process_held(tmp_path):
    async with Harness({"data_dir": tmp_path, "config_dir": tmp_path}).opened() as harness:
        wake = await harness.book(at=NOON)
        harness.executor.by_wake[wake.id] = harness.gate()
        await harness.turn()
        await harness.crash()
        del harness.executor.by_wake[wake.id]
    harness.node = harness.another_node()
    async with harness.node.running():
        run = await run_of(harness, wake)
        await eventually(lambda: harness.is_over(run))
        assert (await harness.run(run.id)).status == "success"
    assert harness.clock.now() == NOON


async def test_at_start_a_shared_store_leaves_other_nodes_their_leases(postgres_url, tmp_path):
    async with Harness(
        {"database_url": postgres_url, "data_dir": tmp_path, "config_dir": tmp_path}
    ).opened() as harness:
        wake = await harness.book(at=NOON)
        gate = harness.executor.by_wake[wake.id] = harness.gate()
        await harness.turn()
        async with harness.another_node().running():
            await asyncio.sleep(0.2)
            assert ((await run_of(harness, wake)).status, len(harness.executor.ran)) == ("running", 1)
        await harness.let_through(gate)
        assert (await run_of(harness, wake)).status == "success"


async def test_another_node_takes_over_and_the_stale_ones_finish_is_refused(postgres_url, tmp_path):
    async with Harness(
        {"database_url": postgres_url, "data_dir": tmp_path, "config_dir": tmp_path}
    ).opened() as harness:
        wake = await harness.book(at=NOON)
        gate = harness.executor.by_wake[wake.id] = harness.gate()
        await harness.turn()
        harness.executor.by_wake[wake.id] = doing(lambda run: asyncio.sleep(0))
        harness.clock.set(NOON + LEASE)
        other = harness.another_node()
        async with other.opened():
            await other.engine.scheduler.turn()
            await other.engine.runner.turn()
            await other.engine.runner.idle()
        finished = await run_of(harness, wake)
        await harness.let_through(gate)
        assert await run_of(harness, wake) == finished
        assert (finished.status, finished.fence, finished.attempt) == ("success", 2, 2)


async def test_an_overdue_day_of_downtime_loses_nothing_that_was_queued(backend_settings):
    async with Harness(backend_settings).opened() as harness:
        wakes = [await harness.book(kind=kind, at=NOON) for kind in ("recall", "message", "session", "next_run")]
        await harness.node.engine.scheduler.turn()
    harness.node = harness.another_node()
    harness.clock.set(NOON + DAY)
    async with harness.node.opened():
        await harness.turn()
        assert [((await run_of(harness, wake)).status, (await run_of(harness, wake)).reason) for wake in wakes] == [
            ("success", None)
        ] * 4
