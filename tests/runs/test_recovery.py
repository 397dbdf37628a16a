"""After a crash a run goes on from its last saved step, one at a time, and attempts are counted fairly."""

import pytest

from harness import HOUR, MINUTE, NOON, SECOND
from wakeful.core.events import StepSaved

pytestmark = pytest.mark.both_stores

LEASE = 30 * SECOND


async def crash_at_work(harness, *, at=NOON, wakes=None):
    """Let the runs of some wakes execute, and crash the process."""
    wakes = [await harness.book(at=at)] if wakes is None else wakes
    gate = harness.gate()
    for wake in wakes:
        harness.executor.by_wake[wake.id] = gate
    await harness.turn_at(at)
    await harness.crash()
    for wake in wakes:
        del harness.executor.by_wake[wake.id]
    return wakes


async def run_of(harness, wake):
    [run] = await harness.runs_of(wake)
    return run


# ── Taken up again ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_whose_lease_ran_out_is_carried_out_again(harness):
    [wake] = await crash_at_work(harness)
    await harness.turn_at(NOON + LEASE)
    run = await run_of(harness, wake)
    assert (run.status, run.reason, run.attempt, run.fence) == ("success", "resumed", 2, 2)
    assert ((await harness.wake(wake)).status, run.started_at) == ("fired", NOON)


async def test_a_lease_that_still_holds_is_respected(harness):
    [wake] = await crash_at_work(harness)
    until = await harness.turn_at(NOON + LEASE - SECOND)
    assert ((await run_of(harness, wake)).status, until) == ("running", NOON + LEASE)


async def test_it_goes_on_from_the_last_saved_step(harness):
    wake = await harness.book(at=NOON)
    gate = harness.gate()

    async def work(run, steps, stop):
        if not steps:
            yield StepSaved(role="assistant", content="One")
            yield StepSaved(role="tool", content="Two")
            async for event in gate(run, steps, stop):
                yield event
        yield StepSaved(role="assistant", content="Three")

    harness.executor.by_wake[wake.id] = work
    await harness.turn()
    await harness.crash()
    await harness.turn_at(NOON + LEASE)
    assert [ran.steps for ran in harness.executor.ran] == [[], ["One", "Two"]]
    run = await run_of(harness, wake)
    steps = await harness.node.store.read(lambda tx: tx.sessions.steps_of(run.id))
    assert [step.content for step in steps] == ["One", "Two", "Three"]


async def test_three_attempts_then_it_is_interrupted_with_a_notice_and_its_wake_failed(harness):
    wake = await harness.book(at=NOON)
    for attempt in range(3):
        await crash_at_work(harness, at=NOON + attempt * MINUTE, wakes=[wake])
        assert (await run_of(harness, wake)).attempt == attempt + 1
    await harness.turn_at(NOON + 3 * MINUTE)
    run, ended = await run_of(harness, wake), await harness.wake(wake)
    assert (run.status, run.reason, run.finished_at) == ("interrupted", "attempts_used_up", NOON + 3 * MINUTE)
    assert (ended.status, ended.reason) == ("failed", "interrupted")
    assert [(notice.code, notice.run_id) for notice in await harness.notices()] == [("interrupted", run.id)]
    assert len(harness.executor.ran) == 3


async def test_a_recurring_wake_outlives_an_occurrence_that_was_interrupted(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON)
    for attempt in range(3):
        await crash_at_work(harness, at=NOON + attempt * MINUTE, wakes=[wake])
    await harness.turn_at(NOON + 3 * MINUTE)
    assert (await harness.wake(wake)).failures == 1  # towards back-off, like any other failure
    await harness.turn_at(NOON + HOUR)
    assert [run.status for run in await harness.runs_of(wake)] == ["interrupted", "success"]
    assert (await harness.wake(wake)).status == "pending"


async def test_an_instant_that_comes_before_its_predecessor_is_taken_up_again_gets_a_row_of_its_own(harness):
    wake = await harness.book(call_type="recurring", every=MINUTE, at=NOON)
    await crash_at_work(harness, wakes=[wake])
    await harness.turn_at(NOON + MINUTE)
    assert [(run.status, run.reason, run.covers, run.attempt) for run in await harness.runs_of(wake)] == [
        ("success", "resumed", 1, 2),
        ("success", "overlap", 1, 1),
    ]


@pytest.mark.parametrize(("away", "status"), [(10 * MINUTE, "success"), (10 * MINUTE + SECOND, "interrupted")])
async def test_a_chat_run_is_taken_up_only_within_ten_minutes(harness, away, status):
    session = await harness.session()
    harness.executor.by_session[session.id] = harness.gate()
    run = await harness.node.runs.ask(session.id, harness.user.id, "Hello?")
    await harness.turn()
    await harness.crash()
    del harness.executor.by_session[session.id]
    await harness.turn_at(NOON + LEASE + away)
    assert (await harness.run(run.id)).status == status
    assert [notice.code for notice in await harness.notices()] == ["interrupted"] * (status == "interrupted")
    await harness.node.runs.ask(session.id, harness.user.id, "Are you back?")


# ── One at a time ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_runs_come_back_from_a_crash_one_at_a_time(harness):
    wakes = await crash_at_work(harness, wakes=[await harness.book(at=NOON) for _ in range(3)])
    gate = harness.executor.default = harness.gate()
    await harness.turn_at(NOON + LEASE)
    assert sorted([(await run_of(harness, wake)).status for wake in wakes]) == ["queued", "queued", "running"]
    harness.executor.default = None
    await harness.let_through(gate)
    await harness.work()
    assert {(await run_of(harness, wake)).status for wake in wakes} == {"success"}


async def test_the_next_one_may_come_when_the_first_has_saved_a_step(harness):
    wakes = await crash_at_work(harness, wakes=[await harness.book(at=NOON) for _ in range(3)])
    gate = harness.gate()

    async def prove_itself(run, steps, stop):
        yield StepSaved(role="assistant", content="Still here")
        async for event in gate(run, steps, stop):
            yield event

    harness.executor.default = prove_itself
    await harness.turn_at(NOON + LEASE)
    assert {(await run_of(harness, wake)).status for wake in wakes} == {"running"}
    await harness.let_through(gate)


async def test_runs_that_did_not_crash_are_not_held_up(harness):
    await crash_at_work(harness, wakes=[await harness.book(at=NOON) for _ in range(3)])
    gate = harness.executor.default = harness.gate()
    fresh = [await harness.book(at=NOON + LEASE) for _ in range(2)]
    await harness.turn_at(NOON + LEASE)
    assert [(await run_of(harness, wake)).status for wake in fresh] == ["running", "running"]
    harness.executor.default = None
    await harness.let_through(gate)


async def test_a_run_that_kills_the_process_does_not_use_up_the_others_attempts(harness):
    killer = await harness.book(at=NOON)
    others = [await harness.book(at=NOON + SECOND) for _ in range(2)]
    harness.executor.by_wake[killer.id] = harness.gate()
    for wake in others:
        harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn_at(NOON + SECOND)
    await harness.crash()
    for wake in others:
        del harness.executor.by_wake[wake.id]
    for minutes in (1, 2):
        await harness.turn_at(NOON + minutes * MINUTE)
        await harness.crash()
    await harness.turn_at(NOON + 3 * MINUTE)
    assert (await run_of(harness, killer)).status == "interrupted"
    assert [((await run_of(harness, wake)).status, (await run_of(harness, wake)).attempt) for wake in others] == [
        ("success", 2)
    ] * 2


async def test_chat_runs_come_back_one_at_a_time_too(harness):
    sessions = [await harness.session() for _ in range(3)]
    gate = harness.executor.default = harness.gate()
    runs = [await harness.node.runs.ask(session.id, harness.user.id, "Hello?") for session in sessions]
    await harness.turn()
    await harness.crash()
    await harness.turn_at(NOON + LEASE)
    assert [(await harness.run(run.id)).status for run in runs].count("running") == 1
    harness.executor.default = None
    await harness.let_through(gate)


# ── Starts that reached no model or tool call ───────────────────────────────────────────────────────────────────────


async def test_a_start_that_reached_no_call_spends_no_attempt(harness):
    wake = await harness.book(at=NOON)
    harness.executor.is_calling = False
    for minutes in range(5):
        await crash_at_work(harness, at=NOON + minutes * MINUTE, wakes=[wake])
        assert (await run_of(harness, wake)).attempt == 1
    harness.executor.is_calling = True
    await harness.turn_at(NOON + 5 * MINUTE)
    run = await run_of(harness, wake)
    assert (run.status, run.attempt, run.lost_starts) == ("success", 1, 5)
    told = [decision.detail for decision in await harness.why(wake) if decision.code == "resumed"]
    assert told == [{"attempt": 0, "lost_starts": number} for number in range(1, 6)]


async def test_starts_that_reached_a_call_are_counted_among_those_that_did_not(harness):
    wake = await harness.book(at=NOON)
    for minutes in range(6):
        harness.executor.is_calling = minutes % 2 == 0
        await crash_at_work(harness, at=NOON + minutes * MINUTE, wakes=[wake])
    await harness.turn_at(NOON + 6 * MINUTE)
    run = await run_of(harness, wake)
    assert (run.status, run.reason, run.attempt, run.lost_starts) == ("interrupted", "attempts_used_up", 3, 2)


async def test_a_run_that_crashes_the_process_before_any_call_ends_with_words(harness):
    wake = await harness.book(at=NOON)
    harness.executor.is_calling = False
    await crash_at_work(harness, wakes=[wake])
    await harness.sql(f"UPDATE runs SET lost_starts = {harness.node.rules.max_lost_starts - 1}")
    await harness.turn_at(NOON + MINUTE)
    run = await run_of(harness, wake)
    assert (run.status, run.reason, (await harness.wake(wake)).status) == ("interrupted", "starts_used_up", "failed")
    [notice] = await harness.notices()
    assert "died 50 times before this run reached a model or tool call. Continue" in notice.body
    went_on = await harness.node.runs.go_on(run.id, harness.user.id)
    assert (went_on.attempt, went_on.lost_starts) == (0, 0)


@pytest.mark.parametrize("is_woken", [True, False], ids=["woken", "chat"])
async def test_a_run_that_got_nowhere_comes_back_after_those_that_did(harness, is_woken):
    """One that crashes the process at once must not hold up the others for fifty crashes."""
    gate = harness.executor.default = harness.gate()
    for seconds in range(3):
        harness.clock.set(NOON + seconds * SECOND)
        if is_woken:
            await harness.book(call_type="immediate")
        else:
            await harness.node.runs.ask((await harness.session()).id, harness.user.id, "Hello?")
        await harness.turn()
    runs = [ran.run for ran in harness.executor.ran]
    await harness.crash()
    await harness.sql(f"UPDATE runs SET has_called = 0 WHERE id = '{runs[0].id}'")
    await harness.turn_at(NOON + LEASE + 2 * SECOND)
    assert [(await harness.run(run.id)).status for run in runs] == ["queued", "running", "queued"]
    harness.executor.default = None
    await harness.let_through(gate)
