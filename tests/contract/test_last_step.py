"""The last step of a run is saved with its end, in one transaction, and nothing comes between the two."""

import asyncio

from wakeful.domain.events import EndedEarly, StepSaved, StreamDelta, StreamEnd, StreamStart
from world import NOON, SECOND

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


async def begin(world, **request):
    wake = await world.book(at=NOON, **request)
    script = world.executor.by_wake[wake.id] = Answering()
    await world.node.engine.scheduler.turn()
    await world.node.engine.runner.turn()
    await script.has_answered.wait()
    [run] = await world.runs_of(wake)
    return wake, run, script


async def said(world, run):
    steps = await world.node.store.read(lambda tx: tx.sessions.steps_of(run.id))
    frames = await world.node.stream.of_run(await world.run(run.id), 0, 100)
    return [step.content for step in steps], [frame.text.split('"')[3] for frame in frames]


async def test_it_is_there_with_the_end_and_not_before(world):
    wake, run, script = await begin(world)
    assert (await said(world, run))[0] == []
    script.may_end.set()
    await world.work()
    assert await said(world, run) == (["Done."], ["stream_start", "stream_delta", "stream_end"])
    run = await world.run(run.id)
    assert (run.status, run.note, (await world.wake(wake)).status) == ("success", "budget", "fired")


async def test_a_wish_to_stop_that_comes_after_the_answer_changes_nothing(world):
    wake, run, script = await begin(world)
    assert await world.node.runs.stop(run.id, world.user.id)
    world.node.engine.runner.look_for_stops()
    await world.node.engine.runner.turn()
    script.may_end.set()
    await world.work()
    assert await said(world, run) == (["Done."], ["stream_start", "stream_delta", "stream_end"])
    assert ((await world.run(run.id)).status, (await world.wake(wake)).status) == ("success", "fired")


async def test_a_server_that_goes_down_saves_the_answer_first(world):
    _, run, script = await begin(world)
    draining = asyncio.create_task(world.node.engine.runner.drain())
    await asyncio.sleep(0)
    script.may_end.set()
    await draining
    assert await said(world, run) == (["Done."], ["stream_start", "stream_delta", "stream_end"])
    assert (await world.run(run.id)).status == "success"


async def test_the_time_limit_does_not_cut_off_a_run_that_has_answered(world):
    agent = await world.add_agent(run_limit=SECOND)
    _, run, script = await begin(world, agent=agent)
    await asyncio.sleep(1.05)  # the limit is kept in real time
    script.may_end.set()
    await world.work()
    assert ((await world.run(run.id)).status, (await said(world, run))[0]) == ("success", ["Done."])


async def test_of_a_run_that_was_taken_over_nothing_is_saved(world):
    _, run, script = await begin(world)
    await world.sql("UPDATE runs SET fence = fence + 1")
    script.may_end.set()
    await world.node.engine.runner.idle()
    assert (await said(world, run))[0] == []
    assert (await world.run(run.id)).status == "running"


async def test_a_session_that_is_deleted_meanwhile_does_not_keep_its_run_from_ending(world):
    wake, run, script = await begin(world)
    await world.node.sessions.delete(wake.session_id, world.user.id)
    script.may_end.set()
    await world.work()
    assert (await world.run(run.id)).finished_at is not None
