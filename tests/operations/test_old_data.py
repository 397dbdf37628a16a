"""Retention of runs and sessions: off by default, and what stays if it is on."""

import pytest

from harness import DAY, HOUR, NOON, Harness, lay_out
from wakeful.core.events import StepSaved
from wakeful.core.types import RunUsage

pytestmark = pytest.mark.both_stores

LONG_AGO = 40 * DAY


@pytest.fixture
async def harness(backend_settings, request):
    await lay_out(backend_settings)
    given = getattr(request, "param", {"retention_runs_days": 31, "retention_sessions_days": 31})
    harness = Harness(backend_settings | given)
    harness.executor.default = answer
    async with harness.opened():
        yield harness


async def answer(run, _steps, _stop):
    usage = RunUsage(run_id=run.id, agent_id=run.agent_id, user_id=run.user_id, at=run.queued_at, model="m")
    yield StepSaved(role="assistant", content="Said.", usage=usage, is_last=True)


async def delete_old(harness):
    await harness.node.engine.upkeep.forget()


async def count_runs(harness):
    found = await harness.node.store.read(lambda tx: tx.storage.texts_of_agents())
    return sum(each.runs for each in found)


async def test_a_run_from_long_ago_is_deleted_with_its_wake_and_its_usage_but_not_its_messages(harness):
    session = await harness.session()
    old = await harness.book(at=NOON, session=session)
    await harness.turn_at(NOON)
    [gone] = await harness.runs_of(old)
    assert await harness.node.store.read(lambda tx: tx.usage.of_run(gone.id)) is not None
    new = await harness.book(at=NOON + LONG_AGO - DAY)
    await harness.turn_at(NOON + LONG_AGO - DAY)
    harness.clock.set(NOON + LONG_AGO)
    await delete_old(harness)
    assert [run.status for run in await harness.runs_of(old)] == []
    assert [run.status for run in await harness.runs_of(new)] == ["success"]
    wakes = await harness.node.wakes.find(harness.user.id)
    assert [wake.id for wake in wakes] == [new.id]
    assert await count_runs(harness) == 1
    assert await harness.node.store.read(lambda tx: tx.usage.of_run(gone.id)) is None
    found = await harness.node.store.read(lambda tx: tx.sessions.messages(session.id))
    assert [message.content for message in found] == ["Said."]


async def test_a_wake_that_is_not_over_keeps_its_last_run(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON, until=NOON + LONG_AGO * 2)
    for hour in range(3):
        await harness.turn_at(NOON + hour * HOUR)
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, None, "off")
    harness.clock.set(NOON + LONG_AGO)
    await delete_old(harness)
    [last] = await harness.runs_of(wake)
    assert last.nominal_at == NOON + 2 * HOUR
    assert (await harness.wake(wake)).status == "pending"


async def test_a_session_keeps_its_last_marked_run_because_what_it_read_is_in_the_transcript(harness):
    sources = iter([("https://a",), None, None])

    async def read(_run, _steps, _stop):
        yield StepSaved(role="assistant", content="Said.", outside_sources=next(sources), is_last=True)

    harness.executor.default = read
    session = await harness.session()
    wakes = []
    for hour in range(3):
        wakes.append(await harness.book(at=NOON + hour * HOUR, session=session))
        await harness.turn_at(NOON + hour * HOUR)
    harness.clock.set(NOON + LONG_AGO)
    await delete_old(harness)
    assert [len(await harness.runs_of(wake)) for wake in wakes] == [1, 0, 0]
    [kept] = await harness.runs_of(wakes[0])
    assert kept.outside_sources == ("https://a",)
    assert await harness.node.store.read(lambda tx: tx.runs.sources_of_session(session.id)) == ("https://a",)
    await harness.node.sessions.delete(session.id, harness.user.id)
    await delete_old(harness)
    assert await harness.runs_of(wakes[0]) == []


async def test_a_session_that_a_wake_opened_goes_and_one_that_a_person_wrote_in_stays(harness):
    for _ in range(2):
        await harness.book(kind="next_run", at=NOON)
        await harness.turn_at(NOON)
    talk = await harness.session()
    woken = [session for session in await _sessions(harness) if session.origin_wake_id is not None]
    assert len(woken) == 2
    await harness.node.runs.ask(woken[0].id, harness.user.id, "What was that?")
    await harness.work()
    harness.clock.set(NOON + LONG_AGO)
    await delete_old(harness)
    assert {session.id for session in await _sessions(harness)} == {woken[0].id, talk.id}


async def _sessions(harness):
    return await harness.node.store.read(lambda tx: tx.sessions.of_user(harness.user.id, None, None, 100))


@pytest.mark.parametrize("harness", [{}], indirect=True)
async def test_by_default_nothing_is_deleted(harness):
    wake = await harness.book(kind="next_run", at=NOON)
    await harness.turn_at(NOON)
    harness.clock.set(NOON + 1000 * DAY)
    await delete_old(harness)
    assert len(await harness.runs_of(wake)) == 1
    assert len(await _sessions(harness)) == 1


async def test_more_than_one_batch_is_deleted(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON, max_runs=250)
    for hour in range(250):
        await harness.turn_at(NOON + hour * HOUR)
    assert (await harness.wake(wake)).status == "fired"
    harness.clock.set(NOON + 2 * LONG_AGO)
    await delete_old(harness)
    assert await count_runs(harness) == 0
