"""Runs that fail, take too long or end early, and what that means for their wake."""

import asyncio

import pytest

from harness import DAY, HOUR, MINUTE, NOON, doing
from wakeful.domain.events import EndedEarly


@pytest.fixture
def backend_settings(backend_settings):
    """Leases are not renewed here, and one run executes for a while."""
    return backend_settings | {"lease_seconds": 3600}


async def fail(run):
    raise RuntimeError("no network")


async def hang(run):
    await asyncio.sleep(60)


async def end_early(run, steps, stop):
    yield EndedEarly(reason="iteration_limit")


async def fail_hourly(harness, times, **request):
    """Book an hourly wake and let its first runs fail, each at its planned instant or when back-off lets it."""
    wake = await harness.book(**({"call_type": "recurring", "every": HOUR, "at": NOON} | request))
    harness.executor.by_wake[wake.id] = doing(fail)
    for _ in range(times):
        await harness.turn_at((await harness.wake(wake)).attempt_at)
    del harness.executor.by_wake[wake.id]
    return await harness.wake(wake)


# ── One failure ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_exception_fails_the_run_and_its_once_wake(harness):
    wake = await harness.book(at=NOON)
    harness.executor.by_wake[wake.id] = doing(fail)
    await harness.turn()
    [run] = await harness.runs_of(wake)
    assert (run.status, run.reason, run.error, run.finished_at) == ("failed", "error", "RuntimeError: no network", NOON)
    ended = await harness.wake(wake)
    assert (ended.status, ended.reason, ended.error) == ("failed", "error", "RuntimeError: no network")


async def test_a_failed_run_is_not_tried_again_by_itself(harness):
    wake = await harness.book(at=NOON)
    harness.executor.by_wake[wake.id] = doing(fail)
    await harness.turn()
    await harness.turn_at(NOON + DAY)
    assert len(harness.executor.ran) == 1


async def test_a_recurring_wake_goes_on_after_a_failure(harness):
    wake = await fail_hourly(harness, 1)
    assert (wake.status, wake.failures, wake.attempt_at, wake.held_by) == ("pending", 1, NOON + HOUR, None)


async def test_a_failure_in_a_chat_fails_that_run_only(harness):
    session = await harness.session()
    harness.executor.by_session[session.id] = doing(fail)
    run = await harness.node.runs.ask(session.id, harness.user.id, "Hello?")
    await harness.turn()
    assert (await harness.run(run.id)).status == "failed"
    await harness.node.runs.ask(session.id, harness.user.id, "Once more?")


async def test_the_iteration_limit_is_a_success_with_a_note(harness):
    wake = await harness.book(at=NOON)
    harness.executor.by_wake[wake.id] = end_early
    await harness.turn()
    [run] = await harness.runs_of(wake)
    assert (run.status, run.reason, run.error) == ("success", "iteration_limit", None)
    ended = await harness.wake(wake)
    assert (ended.status, ended.reason) == ("fired", "iteration_limit")


async def test_a_run_ends_at_its_agents_time_limit(harness):
    hasty = await harness.add_agent(run_limit=MINUTE / 60)
    wake = await harness.book(agent=hasty, at=NOON)
    harness.executor.by_wake[wake.id] = doing(hang)
    async with asyncio.timeout(5):
        await harness.turn()
    [run] = await harness.runs_of(wake)
    assert (run.status, run.reason) == ("failed", "time_limit")
    assert "0:00:01" in run.error


async def test_a_timeout_inside_the_work_is_not_the_runs_time_limit(harness):
    async def time_out(run):
        raise TimeoutError("model did not answer")

    wake = await harness.book(at=NOON)
    harness.executor.by_wake[wake.id] = doing(time_out)
    await harness.turn()
    [run] = await harness.runs_of(wake)
    assert (run.status, run.reason, run.error) == ("failed", "error", "TimeoutError: model did not answer")


# ── One failure after the other ─────────────────────────────────────────────────────────────────────────────────────


async def test_four_failures_in_a_row_change_nothing(harness):
    wake = await fail_hourly(harness, 4)
    assert (wake.failures, wake.attempt_at, await harness.notices()) == (4, NOON + 4 * HOUR, [])


async def test_from_the_fifth_failure_on_it_comes_back_later_each_time(harness):
    comes_back = []
    wake = await fail_hourly(harness, 5)
    harness.executor.by_wake[wake.id] = doing(fail)
    for _ in range(5):
        wake = await harness.wake(wake)
        comes_back.append((wake.held_by, wake.attempt_at - harness.clock.now()))
        await harness.turn_at(wake.attempt_at)
    assert comes_back == [("backoff", hours * HOUR) for hours in (2, 4, 8, 16, 24)]


async def test_the_instants_that_back_off_leaves_out_are_counted_in_the_next_run(harness):
    wake = await fail_hourly(harness, 6)  # the sixth run comes two hours after the fifth
    runs = await harness.runs_of(wake)
    assert [run.covers for run in runs] == [1, 1, 1, 1, 1, 2]
    assert [run.reason for run in runs] == ["error"] * 6


@pytest.mark.parametrize("on_miss", ["skip", "run_once", "run_catchup"])
async def test_back_off_does_not_make_a_wake_missed(harness, on_miss):
    wake = await fail_hourly(harness, 7, on_miss=on_miss)
    await harness.turn_at(wake.attempt_at)
    last = (await harness.runs_of(wake))[-1]
    assert (last.status, last.reason, last.covers) == ("success", None, 8)


async def test_the_person_is_told_once_that_it_keeps_failing(harness):
    wake = await fail_hourly(harness, 7)
    assert [(notice.code, notice.wake_id) for notice in await harness.notices()] == [("backoff", wake.id)]


async def test_a_success_ends_the_back_off(harness):
    wake = await fail_hourly(harness, 6)
    await harness.turn_at(wake.attempt_at)
    after = await harness.wake(wake)
    assert (after.failures, after.held_by, after.attempt_at) == (0, None, after.nominal_at)
    again = await fail_hourly(harness, 4)
    assert again.held_by is None


async def test_a_run_by_hand_that_succeeds_ends_the_back_off(harness):
    """Failed for the sixth time at six, it would be back at ten; run by hand at half past eight, it is back at once."""
    wake = await fail_hourly(harness, 6, on_miss="skip")
    harness.clock.set(NOON + 8.5 * HOUR)
    await harness.node.wakes.run_now(wake.id, harness.user.id)
    await harness.turn()
    await harness.turn()
    after = await harness.wake(wake)
    assert (after.failures, after.held_by, after.attempt_at) == (0, None, NOON + 9 * HOUR)
    runs = await harness.runs_of(wake)
    assert [(run.status, run.reason, run.covers) for run in runs[-2:]] == [("success", None, 2), ("success", None, 0)]


async def test_failures_that_a_success_separates_do_not_add_up(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON)
    for hours in range(12):
        harness.executor.by_wake[wake.id] = doing(fail) if hours % 4 else None
        await harness.turn_at(NOON + hours * HOUR)
    after = await harness.wake(wake)
    assert (after.failures, after.held_by) == (3, None)


async def test_lifting_a_pause_does_not_lose_a_wake_that_backed_off_meanwhile(harness):
    """The fifth run fails while a pause without end already holds the next instant."""
    wake = await fail_hourly(harness, 4, every=30 * MINUTE)
    gate = harness.gate()

    async def fail_after(run, steps, stop):
        async for event in gate(run, steps, stop):
            yield event
        raise RuntimeError("no network")

    harness.executor.by_wake[wake.id] = fail_after
    await harness.turn_at(NOON + 2 * HOUR)
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, None)
    await harness.turn_at(NOON + 2.5 * HOUR)
    assert (await harness.wake(wake)).held_by == "paused"
    await harness.let_through(gate)
    assert (await harness.wake(wake)).held_by == "backoff"
    del harness.executor.by_wake[wake.id]
    await harness.node.pauses.resume(harness.user.id, harness.agent.id)
    await harness.turn_at(NOON + 4 * HOUR)
    assert (await harness.runs_of(wake))[-1].status == "success"
