"""Runs that fail, take too long or end early, and what that means for their wake."""

import asyncio

import pytest

from harness import DAY, HOUR, MINUTE, NOON, Harness, doing
from wakeful.core.events import EndedEarly, StepSaved
from wakeful.models.errors import ModelBusy, ModelCutOff
from wakeful.timing.lifecycle import WakeNotLive

pytestmark = pytest.mark.both_stores


@pytest.fixture
def backend_settings(backend_settings):
    """Leases are not renewed here, and one run executes for a while."""
    return backend_settings | {"lease_seconds": 3600}


async def fail(run):
    raise RuntimeError("no network")


async def meet_outage(run):
    raise ModelBusy("m", "nobody answers at its address.")


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


# ── The model does not answer ───────────────────────────────────────────────────────────────────────────────────────


async def hold(harness, **request):
    """Let a wake that fires once meet an outage."""
    wake = await harness.book(**({"at": NOON} | request))
    harness.executor.by_wake[wake.id] = doing(meet_outage)
    await harness.turn_at(max(NOON, harness.clock.now()))
    return await harness.wake(wake)


@pytest.mark.parametrize("kind", ["recall", "message", "session", "next_run"])
async def test_a_once_wake_that_meets_an_outage_is_tried_again_and_succeeds_in_the_same_run(harness, kind):
    wake = await hold(harness, kind=kind)
    assert (wake.status, wake.held_by, wake.attempt_at) == ("queued", "outage", NOON + MINUTE)
    [run] = await harness.runs_of(wake)
    assert (run.status, run.reason, run.not_before, run.attempt) == ("queued", "outage", NOON + MINUTE, 0)
    assert await harness.turn_at(NOON + MINUTE / 2) == NOON + MINUTE
    assert len(harness.executor.ran) == 1
    del harness.executor.by_wake[wake.id]
    await harness.turn_at(NOON + MINUTE)
    [run] = await harness.runs_of(wake)
    assert (run.status, run.reason, run.covers, run.not_before) == ("success", None, 1, None)
    ended = await harness.wake(wake)
    assert (ended.status, ended.held_by, await harness.notices()) == ("fired", None, [])


async def test_after_the_hold_it_fails_and_its_owner_is_told_once(harness):
    wake = await hold(harness)
    await harness.live_until(NOON + 3 * HOUR)
    waits = [ran.at - NOON for ran in harness.executor.ran]
    assert waits == [minutes * MINUTE for minutes in (0, 1, 2, 4, 8, 16, 26, 36, 46, 56, 60)]
    [run] = await harness.runs_of(wake)
    assert (run.status, run.reason, run.finished_at) == ("failed", "model_busy", NOON + HOUR)
    assert (await harness.wake(wake)).status == "failed"
    [notice] = await harness.notices()
    assert (notice.code, notice.wake_id, notice.run_id) == ("wake_failed", wake.id, run.id)
    assert "nobody answers at its address" in notice.body


async def test_why_says_that_the_model_did_not_answer_and_when_it_is_tried_again(harness):
    wake = await hold(harness)
    said = [step.text for step in await harness.why(wake) if step.code == "outage"]
    assert said == [
        "The model 'm' cannot answer now: nobody answers at its address. Tried again at 2026-03-02T12:01:00Z."
    ]


async def test_a_held_run_goes_on_from_its_last_saved_step(harness):
    async def cut_off(run, steps, stop):
        yield StepSaved(role="assistant", content="half", data={"cut_off": True})
        raise ModelCutOff("m", "its stream ended.")

    wake = await harness.book(at=NOON)
    harness.executor.by_wake[wake.id] = cut_off
    await harness.turn()
    del harness.executor.by_wake[wake.id]
    await harness.turn_at(NOON + MINUTE)
    assert [ran.steps for ran in harness.executor.ran] == [[], ["half"]]
    assert [run.status for run in await harness.runs_of(wake)] == ["success"]


async def test_a_held_run_survives_a_crash_of_the_server(backend_settings):
    async with Harness(backend_settings).opened() as harness:
        wake = await hold(harness)
    harness.executor.by_wake.clear()
    harness.node = harness.another_node()
    async with harness.node.opened():
        while await harness.node.engine.firing.recover(every_other_owner=True):
            pass
        await harness.live_until(NOON + 5 * MINUTE)
        assert [(run.status, run.fence) for run in await harness.runs_of(wake)] == [("success", 2)]


async def test_a_held_run_lets_others_of_its_session_and_a_crashed_one_go_first(harness):
    wake = await hold(harness)
    session = await harness.node.sessions.get(wake.session_id, harness.user.id)
    other = await harness.book(session=session, kind="message", at=NOON + MINUTE / 2)
    await harness.node.runs.ask(wake.session_id, harness.user.id, "Hello?")
    await harness.live_until(NOON + MINUTE / 2)
    assert [run.status for run in await harness.runs_of(other)] == ["success"]


async def test_a_session_with_a_held_run_is_not_busy(harness):
    wake = await hold(harness)
    opening = await harness.node.stream.open(wake.session_id, harness.user.id)
    assert opening.active_run is None


async def test_a_held_run_can_be_stopped(harness):
    wake = await hold(harness)
    [run] = await harness.runs_of(wake)
    await harness.node.runs.stop(run.id, harness.user.id)
    await harness.live_until(NOON + 2 * HOUR)
    ended = await harness.wake(wake)
    assert ((await harness.run(run.id)).status, ended.status, ended.reason) == ("stopped", "fired", "stopped")
    assert (len(harness.executor.ran), await harness.notices()) == (1, [])


async def test_a_held_run_that_was_stopped_can_be_continued_at_once(harness):
    wake = await hold(harness)
    [run] = await harness.runs_of(wake)
    await harness.node.runs.stop(run.id, harness.user.id)
    del harness.executor.by_wake[wake.id]
    await harness.node.runs.go_on(run.id, harness.user.id)
    await harness.turn()
    assert (await harness.run(run.id)).status == "success"


async def test_a_held_wake_can_be_cancelled_but_not_edited(harness):
    wake = await hold(harness)
    with pytest.raises(WakeNotLive, match="Cancel it"):
        await harness.node.wakes.edit(wake.id, harness.user.id, {"instructions": "Other."})
    await harness.node.wakes.cancel(wake.id, harness.user.id)
    await harness.live_until(NOON + 2 * HOUR)
    assert [(run.status, run.reason) for run in await harness.runs_of(wake)] == [("skipped", "cancelled")]
    assert len(harness.executor.ran) == 1


async def test_a_held_wake_can_be_run_now(harness):
    wake = await hold(harness)
    del harness.executor.by_wake[wake.id]
    await harness.node.wakes.run_now(wake.id, harness.user.id)
    await harness.turn()
    assert [(run.status, run.covers) for run in await harness.runs_of(wake)] == [("success", 1)]


async def test_a_pause_holds_a_held_run_too(harness):
    wake = await hold(harness)
    del harness.executor.by_wake[wake.id]
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, NOON + 10 * MINUTE)
    await harness.live_until(NOON + 5 * MINUTE)
    assert len(harness.executor.ran) == 1
    await harness.live_until(NOON + 10 * MINUTE)
    assert [run.status for run in await harness.runs_of(wake)] == ["success"]


async def test_a_clock_that_was_set_back_does_not_hold_a_run_for_longer(harness):
    wake = await hold(harness)
    del harness.executor.by_wake[wake.id]
    await harness.turn_at(NOON - 2 * HOUR)
    assert [run.status for run in await harness.runs_of(wake)] == ["success"]


async def test_a_held_run_counts_once_towards_the_daily_limit_of_next_runs(harness):
    wake = await hold(harness, kind="next_run", scheduled_by="agent")
    await harness.live_until(NOON + 10 * MINUTE)
    used = await harness.node.store.read(lambda tx: tx.runs.next_runs_since(wake.agent_id, NOON - HOUR))
    assert used == 1


async def test_a_wake_whose_slot_is_taken_meanwhile_fails_and_is_told(harness):
    wake = await harness.book(at=NOON)
    session = await harness.node.sessions.get(wake.session_id, harness.user.id)

    async def book_then_fail(run):
        await harness.book(session=session, at=NOON + HOUR)
        await meet_outage(run)

    harness.executor.by_wake[wake.id] = doing(book_then_fail)
    await harness.turn()
    assert (await harness.wake(wake)).status == "failed"
    assert [notice.code for notice in await harness.notices()] == ["wake_failed"]


async def test_without_a_hold_an_outage_fails_a_once_wake_at_once(backend_settings):
    async with Harness(backend_settings | {"outage_hold_seconds": 0}).opened() as harness:
        assert (await hold(harness)).status == "failed"


async def test_recurring_wakes_and_messages_are_not_held(harness):
    recurring = await hold(harness, call_type="recurring")
    assert [run.status for run in await harness.runs_of(recurring)] == ["failed"]
    session = await harness.session()
    harness.executor.by_session[session.id] = doing(meet_outage)
    asked = await harness.node.runs.ask(session.id, harness.user.id, "Hello?")
    await harness.turn()
    assert (await harness.run(asked.id)).status == "failed"
    assert await harness.notices() == []


# ── The notice of a failed once-wake ────────────────────────────────────────────────────────────────────────────────


async def test_a_failed_once_wake_is_told_and_can_be_run_again(harness):
    wake = await harness.book(at=NOON, comment="Morning report")
    harness.executor.by_wake[wake.id] = doing(fail)
    await harness.turn()
    [notice] = await harness.notices()
    assert (notice.code, notice.title) == ("wake_failed", "A scheduled run failed")
    assert notice.body.startswith("“Morning report” was planned for {at}. RuntimeError: no network")
    del harness.executor.by_wake[wake.id]
    again = await harness.node.runs.again(notice.run_id, harness.user.id)
    await harness.turn()
    assert (await harness.run(again.id)).status == "success"
    assert len(await harness.notices()) == 1


async def test_a_failed_run_again_is_not_told_twice(harness):
    wake = await harness.book(at=NOON)
    harness.executor.by_wake[wake.id] = doing(fail)
    await harness.turn()
    [run] = await harness.runs_of(wake)
    await harness.node.runs.again(run.id, harness.user.id)
    await harness.turn()
    assert [notice.code for notice in await harness.notices()] == ["wake_failed"]


async def test_an_agent_whose_own_next_run_failed_is_told_once(harness):
    wake = await harness.book(kind="next_run", scheduled_by="agent", at=NOON)
    harness.executor.by_wake[wake.id] = doing(fail)
    await harness.turn()
    assert [notice.code for notice in await harness.notices()] == ["loop_ended"]
