"""The last step of a run is saved with its end, in one transaction, and nothing comes between the two."""

import asyncio

import pytest

from harness import NOON, SECOND
from wakeful.core.events import EndedEarly, StepSaved, StreamDelta, StreamEnd, StreamStart

pytestmark = pytest.mark.both_stores

END = StreamEnd(
    content="Done.",
    context_tokens=1,
    max_context_tokens=2,
    elapsed_seconds=0.1,
    tool_call_count=0,
    token_count=1,
    message_index=1,
)


class Answering:
    """A script that answers, and stays a while between its answer and its end."""

    def __init__(self):
        self.has_answered = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self, run, steps, stop):
        yield StreamStart()
        yield StreamDelta(delta="Done.")
        yield StepSaved(role="assistant", content="Done.", is_last=True)
        yield EndedEarly(reason="budget")
        yield END
        self.has_answered.set()
        await self.may_end.wait()


async def begin(harness, **request):
    wake = await harness.book(at=NOON, **request)
    script = harness.executor.by_wake[wake.id] = Answering()
    await harness.node.engine.scheduler.turn()
    await harness.node.engine.runner.turn()
    await script.has_answered.wait()
    [run] = await harness.runs_of(wake)
    return wake, run, script


async def said(harness, run):
    steps = await harness.node.store.read(lambda tx: tx.sessions.steps_of(run.id))
    frames = await harness.node.stream.of_run(await harness.run(run.id), 0, 100)
    return [step.content for step in steps], [frame.text.split('"')[3] for frame in frames]


async def test_it_is_there_with_the_end_and_not_before(harness):
    wake, run, script = await begin(harness)
    assert (await said(harness, run))[0] == []
    script.may_end.set()
    await harness.work()
    assert await said(harness, run) == (["Done."], ["stream_start", "stream_delta", "stream_end"])
    run = await harness.run(run.id)
    assert (run.status, run.note, (await harness.wake(wake)).status) == ("success", "budget", "fired")


async def test_a_wish_to_stop_that_comes_after_the_answer_changes_nothing(harness):
    wake, run, script = await begin(harness)
    assert await harness.node.runs.stop(run.id, harness.user.id)
    harness.node.engine.runner.look_for_stops()
    await harness.node.engine.runner.turn()
    script.may_end.set()
    await harness.work()
    assert await said(harness, run) == (["Done."], ["stream_start", "stream_delta", "stream_end"])
    assert ((await harness.run(run.id)).status, (await harness.wake(wake)).status) == ("success", "fired")


async def test_a_server_that_goes_down_saves_the_answer_first(harness):
    _, run, script = await begin(harness)
    draining = asyncio.create_task(harness.node.engine.runner.drain())
    await asyncio.sleep(0)
    script.may_end.set()
    await draining
    assert await said(harness, run) == (["Done."], ["stream_start", "stream_delta", "stream_end"])
    assert (await harness.run(run.id)).status == "success"


async def test_the_time_limit_does_not_cut_off_a_run_that_has_answered(harness):
    agent = await harness.add_agent(run_limit=SECOND)
    _, run, script = await begin(harness, agent=agent)
    await asyncio.sleep(1.05)  # the limit is kept in real time
    script.may_end.set()
    await harness.work()
    assert ((await harness.run(run.id)).status, (await said(harness, run))[0]) == ("success", ["Done."])


async def test_of_a_run_that_was_taken_over_nothing_is_saved(harness):
    _, run, script = await begin(harness)
    await harness.sql("UPDATE runs SET fence = fence + 1")
    script.may_end.set()
    await harness.node.engine.runner.idle()
    assert (await said(harness, run))[0] == []
    assert (await harness.run(run.id)).status == "running"


async def test_a_session_that_is_deleted_meanwhile_does_not_keep_its_run_from_ending(harness):
    wake, run, script = await begin(harness)
    await harness.node.sessions.delete(wake.session_id, harness.user.id)
    script.may_end.set()
    await harness.work()
    assert (await harness.run(run.id)).finished_at is not None
