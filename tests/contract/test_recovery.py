"""After a crash a run goes on from its last saved step, one at a time, and attempts are counted fairly."""

import pytest

from wakeful.domain.events import StepSaved
from world import HOUR, MINUTE, NOON, SECOND

LEASE = 30 * SECOND


async def crash_at_work(world, *, at=NOON, wakes=None):
    """Let the runs of some wakes be at work, and the process die."""
    wakes = [await world.book(at=at)] if wakes is None else wakes
    gate = world.gate()
    for wake in wakes:
        world.executor.by_wake[wake.id] = gate
    await world.turn_at(at)
    await world.crash()
    for wake in wakes:
        del world.executor.by_wake[wake.id]
    return wakes


async def run_of(world, wake):
    [run] = await world.runs_of(wake)
    return run


# ── Taken up again ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_whose_lease_ran_out_is_carried_out_again(world):
    [wake] = await crash_at_work(world)
    await world.turn_at(NOON + LEASE)
    run = await run_of(world, wake)
    assert (run.status, run.reason, run.attempt, run.fence) == ("success", "resumed", 2, 2)
    assert ((await world.wake(wake)).status, run.started_at) == ("fired", NOON)


async def test_a_lease_that_still_holds_is_respected(world):
    [wake] = await crash_at_work(world)
    until = await world.turn_at(NOON + LEASE - SECOND)
    assert ((await run_of(world, wake)).status, until) == ("running", NOON + LEASE)


async def test_it_goes_on_from_the_last_saved_step(world):
    wake = await world.book(at=NOON)
    gate = world.gate()

    async def work(run, steps, stop):
        if not steps:
            yield StepSaved(role="assistant", content="One")
            yield StepSaved(role="tool", content="Two")
            async for event in gate(run, steps, stop):
                yield event
        yield StepSaved(role="assistant", content="Three")

    world.executor.by_wake[wake.id] = work
    await world.turn()
    await world.crash()
    await world.turn_at(NOON + LEASE)
    assert [ran.steps for ran in world.executor.ran] == [[], ["One", "Two"]]
    run = await run_of(world, wake)
    steps = await world.node.store.read(lambda tx: tx.sessions.steps_of(run.id))
    assert [step.content for step in steps] == ["One", "Two", "Three"]


async def test_three_attempts_then_it_is_interrupted_with_a_notice_and_its_wake_failed(world):
    wake = await world.book(at=NOON)
    for attempt in range(3):
        await crash_at_work(world, at=NOON + attempt * MINUTE, wakes=[wake])
        assert (await run_of(world, wake)).attempt == attempt + 1
    await world.turn_at(NOON + 3 * MINUTE)
    run, ended = await run_of(world, wake), await world.wake(wake)
    assert (run.status, run.reason, run.finished_at) == ("interrupted", "attempts_used_up", NOON + 3 * MINUTE)
    assert (ended.status, ended.reason) == ("failed", "interrupted")
    assert [(notice.code, notice.run_id) for notice in await world.notices()] == [("interrupted", run.id)]
    assert len(world.executor.ran) == 3


async def test_a_recurring_wake_outlives_an_occurrence_that_was_interrupted(world):
    wake = await world.book(call_type="recurring", every=HOUR, at=NOON)
    for attempt in range(3):
        await crash_at_work(world, at=NOON + attempt * MINUTE, wakes=[wake])
    await world.turn_at(NOON + 3 * MINUTE)
    assert (await world.wake(wake)).failures == 1  # towards back-off, like any other failure
    await world.turn_at(NOON + HOUR)
    assert [run.status for run in await world.runs_of(wake)] == ["interrupted", "success"]
    assert (await world.wake(wake)).status == "pending"


async def test_an_instant_that_comes_before_its_predecessor_is_taken_up_again_gets_a_row_of_its_own(world):
    wake = await world.book(call_type="recurring", every=MINUTE, at=NOON)
    await crash_at_work(world, wakes=[wake])
    await world.turn_at(NOON + MINUTE)
    assert [(run.status, run.reason, run.covers, run.attempt) for run in await world.runs_of(wake)] == [
        ("success", "resumed", 1, 2),
        ("success", "overlap", 1, 1),
    ]


@pytest.mark.parametrize(("away", "status"), [(10 * MINUTE, "success"), (10 * MINUTE + SECOND, "interrupted")])
async def test_a_chat_run_is_taken_up_only_within_ten_minutes(world, away, status):
    session = await world.session()
    world.executor.by_session[session.id] = world.gate()
    run = await world.node.runs.ask(session.id, world.user.id, "Hello?")
    await world.turn()
    await world.crash()
    del world.executor.by_session[session.id]
    await world.turn_at(NOON + LEASE + away)
    assert (await world.run(run.id)).status == status
    assert [notice.code for notice in await world.notices()] == ["interrupted"] * (status == "interrupted")
    await world.node.runs.ask(session.id, world.user.id, "Are you back?")


# ── One at a time ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_runs_come_back_from_a_crash_one_at_a_time(world):
    wakes = await crash_at_work(world, wakes=[await world.book(at=NOON) for _ in range(3)])
    gate = world.executor.default = world.gate()
    await world.turn_at(NOON + LEASE)
    assert sorted([(await run_of(world, wake)).status for wake in wakes]) == ["queued", "queued", "running"]
    world.executor.default = None
    await world.let_through(gate)
    await world.work()
    assert {(await run_of(world, wake)).status for wake in wakes} == {"success"}


async def test_the_next_one_may_come_when_the_first_has_saved_a_step(world):
    wakes = await crash_at_work(world, wakes=[await world.book(at=NOON) for _ in range(3)])
    gate = world.gate()

    async def prove_itself(run, steps, stop):
        yield StepSaved(role="assistant", content="Still here")
        async for event in gate(run, steps, stop):
            yield event

    world.executor.default = prove_itself
    await world.turn_at(NOON + LEASE)
    assert {(await run_of(world, wake)).status for wake in wakes} == {"running"}
    await world.let_through(gate)


async def test_runs_that_did_not_crash_are_not_held_up(world):
    await crash_at_work(world, wakes=[await world.book(at=NOON) for _ in range(3)])
    gate = world.executor.default = world.gate()
    fresh = [await world.book(at=NOON + LEASE) for _ in range(2)]
    await world.turn_at(NOON + LEASE)
    assert [(await run_of(world, wake)).status for wake in fresh] == ["running", "running"]
    world.executor.default = None
    await world.let_through(gate)


async def test_a_run_that_kills_the_process_does_not_use_up_the_others_attempts(world):
    killer = await world.book(at=NOON)
    others = [await world.book(at=NOON + SECOND) for _ in range(2)]
    world.executor.by_wake[killer.id] = world.gate()
    for wake in others:
        world.executor.by_wake[wake.id] = world.gate()
    await world.turn_at(NOON + SECOND)
    await world.crash()
    for wake in others:
        del world.executor.by_wake[wake.id]
    for minutes in (1, 2):
        await world.turn_at(NOON + minutes * MINUTE)
        await world.crash()
    await world.turn_at(NOON + 3 * MINUTE)
    assert (await run_of(world, killer)).status == "interrupted"
    assert [((await run_of(world, wake)).status, (await run_of(world, wake)).attempt) for wake in others] == [
        ("success", 2)
    ] * 2


async def test_a_pause_does_not_keep_a_run_that_had_begun_from_coming_back(world):
    held_up = await world.add_agent()
    first = await world.book(agent=held_up, at=NOON)
    second = await world.book(at=NOON + SECOND)
    await crash_at_work(world, at=NOON + SECOND, wakes=[first, second])
    await world.node.pauses.pause(world.user.id, held_up.id, None)
    await world.turn_at(NOON + MINUTE)
    assert [(await run_of(world, wake)).status for wake in (first, second)] == ["success", "success"]


async def test_chat_runs_come_back_one_at_a_time_too(world):
    sessions = [await world.session() for _ in range(3)]
    gate = world.executor.default = world.gate()
    runs = [await world.node.runs.ask(session.id, world.user.id, "Hello?") for session in sessions]
    await world.turn()
    await world.crash()
    await world.turn_at(NOON + LEASE)
    assert [(await world.run(run.id)).status for run in runs].count("running") == 1
    world.executor.default = None
    await world.let_through(gate)


# ── Starts that reached no model or tool call ───────────────────────────────────────────────────────────────────────


async def test_a_start_that_reached_no_call_spends_no_attempt(world):
    wake = await world.book(at=NOON)
    world.executor.is_calling = False
    for minutes in range(5):
        await crash_at_work(world, at=NOON + minutes * MINUTE, wakes=[wake])
        assert (await run_of(world, wake)).attempt == 1
    world.executor.is_calling = True
    await world.turn_at(NOON + 5 * MINUTE)
    run = await run_of(world, wake)
    assert (run.status, run.attempt, run.lost_starts) == ("success", 1, 5)
    told = [decision.detail for decision in await world.why(wake) if decision.code == "resumed"]
    assert told == [{"attempt": 0, "lost_starts": number} for number in range(1, 6)]


async def test_starts_that_reached_a_call_are_counted_among_those_that_did_not(world):
    wake = await world.book(at=NOON)
    for minutes in range(6):
        world.executor.is_calling = minutes % 2 == 0
        await crash_at_work(world, at=NOON + minutes * MINUTE, wakes=[wake])
    await world.turn_at(NOON + 6 * MINUTE)
    run = await run_of(world, wake)
    assert (run.status, run.reason, run.attempt, run.lost_starts) == ("interrupted", "attempts_used_up", 3, 2)


async def test_a_run_that_crashes_the_process_before_any_call_ends_with_words(world):
    wake = await world.book(at=NOON)
    world.executor.is_calling = False
    await crash_at_work(world, wakes=[wake])
    await world.sql(f"UPDATE runs SET lost_starts = {world.node.rules.max_lost_starts - 1}")
    await world.turn_at(NOON + MINUTE)
    run = await run_of(world, wake)
    assert (run.status, run.reason, (await world.wake(wake)).status) == ("interrupted", "starts_used_up", "failed")
    [notice] = await world.notices()
    assert "died 50 times before this run reached a model or tool call. Continue" in notice.body
    went_on = await world.node.runs.go_on(run.id, world.user.id)
    assert (went_on.attempt, went_on.lost_starts) == (0, 0)


@pytest.mark.parametrize("is_woken", [True, False], ids=["woken", "chat"])
async def test_a_run_that_got_nowhere_comes_back_after_those_that_did(world, is_woken):
    """One that crashes the process at once must not hold up the others for fifty crashes."""
    gate = world.executor.default = world.gate()
    for seconds in range(3):
        world.clock.set(NOON + seconds * SECOND)
        if is_woken:
            await world.book(call_type="immediate")
        else:
            await world.node.runs.ask((await world.session()).id, world.user.id, "Hello?")
        await world.turn()
    runs = [ran.run for ran in world.executor.ran]
    await world.crash()
    await world.sql(f"UPDATE runs SET has_called = 0 WHERE id = '{runs[0].id}'")
    await world.turn_at(NOON + LEASE + 2 * SECOND)
    assert [(await world.run(run.id)).status for run in runs] == ["queued", "running", "queued"]
    world.executor.default = None
    await world.let_through(gate)
