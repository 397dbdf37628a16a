"""The agent loop with a scripted model on a real store: its frames, saved messages and interruptions."""

import asyncio
from dataclasses import replace

import pytest

from harness import Harness
from wakeful.core.events import EndedEarly, StepSaved, StreamDelta, StreamEnd, StreamStart, ToolCall, ToolStarted
from wakeful.core.types import Budgets, Message, RunUsage
from wakeful.loop.context import INTERRUPTED
from wakeful.loop.loop import AgentLoop
from wakeful.loop.state import RetryLimits
from wakeful.models.errors import ModelBusy, ModelCutOff
from wakeful.models.scripted import scripted
from wakeful.models.streaming import LocalCall, Say, Spend, Think
from wakeful.runs.executor import Stop

NAME = "openai:gpt-4o"  # one whose price is known
WRITE = {"path": "a.txt", "content": "x"}


class Desk:
    """A loop, a session, and a message in it to work on."""

    def __init__(self, harness, node):
        self.harness = harness
        self.loop: AgentLoop = node.engine.runner.executor
        self.loop.patience = RetryLimits(retries=2, pause=0.0)
        self.node = node
        self.calls = 0  # model and tool calls that were announced

    async def before_call(self):
        self.calls += 1

    async def ask(self, **agent):
        made = await self.node.agents.add(self.harness.make_agent(**({"model": NAME, "toolsets": ("files",)} | agent)))
        session = await self.node.sessions.open(made.id, self.harness.user.id)
        return await self.node.runs.ask(session.id, self.harness.user.id, "Go on")

    async def work(self, run, model, stop=None):
        """Let the loop work and return what it says."""
        self.loop.models.use(NAME, model)
        return [event async for event in self.loop.execute(run, [], stop or Stop(), self.before_call)]

    async def fail(self, run, model, error):
        """Let the loop work until it fails, and return what it said before."""
        self.loop.models.use(NAME, model)
        said = []

        async def listen():
            async for event in self.loop.execute(run, [], Stop(), self.before_call):
                said.append(event)

        with pytest.raises(error):
            await listen()
        return said

    async def keep(self, run, *steps):
        """Save what an earlier attempt had come to."""
        for step in steps:
            message = Message(
                id=self.harness.make_agent().id,
                session_id=run.session_id,
                position=0,
                role=step.role,
                content=step.content,
                created_at=self.harness.clock.now(),
                run_id=run.id,
                data=step.data,
            )
            await self.node.store.write(lambda tx, message=message: tx.sessions.append(message))


@pytest.fixture
async def desk(tmp_path):
    harness = Harness({"data_dir": tmp_path, "config_dir": tmp_path, "store_encryption": False})
    harness.executor = None  # so that the node gets its own loop
    node = harness.another_node()
    async with node.opened():
        await node.agents.add_user(harness.user)
        yield Desk(harness, node)


def steps(events):
    return [event for event in events if isinstance(event, StepSaved)]


def of(events, kind):
    return [event for event in events if isinstance(event, kind)]


async def test_a_busy_model_that_has_begun_to_speak_is_not_asked_again_and_its_words_are_kept(desk):
    run = await desk.ask()
    with scripted([Say("Half a "), Say("sentence"), ModelBusy(NAME, "gone.")]) as model:
        said = await desk.fail(run, model, ModelBusy)
    [step] = steps(said)
    assert (step.role, step.content, step.data) == ("assistant", "Half a sentence", {"cut_off": True})


async def test_thoughts_alone_are_not_kept_when_the_model_breaks_off(desk):
    run = await desk.ask()
    with scripted([Think("Hm."), ModelCutOff(NAME, "gone.")]) as model:
        assert steps(await desk.fail(run, model, ModelCutOff)) == []


async def wake(desk):
    """Queue a run of a wake, as nobody reads along with."""
    run = await desk.ask()
    return replace(run, trigger="run_now")


@pytest.mark.parametrize("fault", [ModelBusy, ModelCutOff])
async def test_a_wakes_answer_that_breaks_off_is_asked_for_again_and_begins_anew(desk, fault):
    run = await wake(desk)
    with scripted([Think("Hm."), Say("Half"), fault(NAME, "gone.")], [Say("Whole.")]) as model:
        said = await desk.work(run, model)
    assert [step.content for step in steps(said)] == ["Whole."]
    shown = [each.delta if isinstance(each, StreamDelta) else "start" for each in of(said, StreamDelta | StreamStart)]
    assert shown == ["start", "Half", "start", "Whole."]


async def test_a_wakes_answer_that_breaks_off_each_time_is_given_up(desk):
    run = await wake(desk)
    with scripted(*[[Say("Half"), ModelCutOff(NAME, "gone.")]] * 3) as model:
        said = await desk.fail(run, model, ModelCutOff)
    assert [(step.content, step.data) for step in steps(said)] == [("Half", {"cut_off": True})]


async def test_after_a_stop_the_model_is_not_asked(desk):
    run, stop = await desk.ask(), Stop()
    stop.request()
    with scripted() as model:
        assert await desk.work(run, model, stop) == [StreamStart()]
    assert desk.calls == 0


async def test_a_stop_in_mid_sentence_keeps_the_words(desk):
    run, stop = await desk.ask(), Stop()

    async def request():
        stop.request()
        await asyncio.sleep(60)

    with scripted([Say("Once upon"), request, Say(" a time")]) as model:
        said = await desk.work(run, model, stop)
    assert [(step.content, step.data) for step in steps(said)] == [("Once upon", {"cut_off": True})]
    assert of(said, StreamEnd) == []


async def test_a_stop_during_a_tool_leaves_out_the_rest(desk):
    run, stop = await desk.ask(), Stop()
    with scripted([LocalCall("write_file", WRITE, id="c1"), LocalCall("write_file", WRITE, id="c2")]) as model:
        desk.loop.models.use(NAME, model)
        said = []
        async for event in desk.loop.execute(run, [], stop, desk.before_call):
            said.append(event)
            if isinstance(event, ToolCall):
                stop.request()
    assert [event.call_id for event in of(said, ToolStarted)] == ["c1"]
    assert [step.role for step in steps(said)] == ["assistant", "tool"]


async def test_every_model_and_tool_call_is_announced_before_it_is_made(desk):
    run = await desk.ask()
    with scripted(
        [LocalCall("write_file", WRITE, id="c1"), LocalCall("write_file", WRITE, id="c2")], [Say("Done.")]
    ) as model:
        await desk.work(run, model)
    assert desk.calls == 4


async def test_of_any_model_reading_stops_at_the_first_call_too_many(desk):
    run = await desk.ask()

    async def say_more():
        raise AssertionError("the rest was read")

    many = [LocalCall("write_file", {"path": f"{number}", "content": "x"}) for number in range(101)]
    with scripted([*many, say_more, LocalCall("write_file", WRITE)]) as model:
        said = await desk.work(run, model)
    assert [event.reason for event in of(said, EndedEarly)] == ["too_many_calls"]
    assert of(said, ToolStarted) == []


async def test_as_many_calls_as_are_allowed_are_all_made(desk):
    run = await desk.ask()
    many = [LocalCall("write_file", {"path": f"{number}", "content": "x"}) for number in range(100)]
    with scripted(many, [Say("Done.")]) as model:
        said = await desk.work(run, model)
    assert len(of(said, ToolCall)) == 100


async def test_each_step_is_saved_before_the_next_call_begins(desk):
    run = await desk.ask()
    calls = [LocalCall("write_file", WRITE, id="c1"), LocalCall("write_file", WRITE, id="c2")]
    with scripted(calls, [Say("Done.")]) as model:
        said = await desk.work(run, model)
    order = [type(event).__name__ for event in said]
    assert order == [
        "StreamStart",
        "StepSaved",
        "ToolStarted",
        "ToolCall",
        "StepSaved",
        "ToolStarted",
        "ToolCall",
        "StepSaved",
        "StreamDelta",
        "StepSaved",
        "StreamEnd",
    ]


async def reply_with(desk, run, *calls):
    """Return the step that a model's reply with these calls is saved as."""
    other = replace(run, id="another")
    with scripted([*calls], [Say("Done.")]) as model:
        return steps(await desk.work(other, model))[0]


async def test_a_call_that_was_cut_off_is_not_made_again_and_the_model_is_told(desk):
    run = await desk.ask()
    await desk.keep(
        run, await reply_with(desk, run, LocalCall("write_file", {"path": "b.txt", "content": "1"}, id="c1"))
    )
    path = desk.loop.workspace_of(run.agent_id) / "b.txt"
    path.unlink()
    with scripted([Say("I see.")]) as model:
        said = await desk.work(run, model)
    [called] = of(said, ToolCall)
    assert (called.call_id, called.success, called.result) == ("c1", False, INTERRUPTED)
    assert not path.exists()
    assert INTERRUPTED in str(model.asked[0].messages)


async def test_a_call_that_can_be_repeated_is_made_again(desk):
    run = await desk.ask()
    await desk.keep(run, await reply_with(desk, run, LocalCall("list_files", {}, id="c1")))
    with scripted([Say("I see.")]) as model:
        [called] = of(await desk.work(run, model), ToolCall)
    assert (called.call_id, called.success) == ("c1", True)


async def test_of_several_calls_only_the_first_without_a_result_is_in_doubt(desk):
    run = await desk.ask()
    made = [LocalCall("write_file", {"path": f"{n}.txt", "content": "1"}, id=f"c{n}") for n in range(3)]
    with scripted(made, [Say("Done.")]) as model:
        first, result, *_ = steps(await desk.work(replace(run, id="another"), model))
    await desk.keep(run, first, result)
    with scripted([Say("I see.")]) as model:
        called = of(await desk.work(run, model), ToolCall)
    assert [(each.call_id, each.success) for each in called] == [("c1", False), ("c2", True)]


async def test_a_repeated_call_counts_over_attempts(desk):
    run = await desk.ask()
    same = LocalCall("read_file", {"path": "none.txt"}, id="c1")
    with scripted([same], [same], [Say("Done.")]) as model:
        before = steps(await desk.work(replace(run, id="another"), model))[:4]
    await desk.keep(run, *before)
    with scripted([same]) as model:
        said = await desk.work(run, model)
    assert of(said, EndedEarly) == [EndedEarly(reason="repeated_calls")]


async def test_what_an_earlier_attempt_has_used_counts(desk):
    run = await desk.ask(budgets=Budgets(run_tokens=100))
    usage = RunUsage(
        run_id=run.id, agent_id=run.agent_id, user_id=run.user_id, at=run.queued_at, model=NAME, input_tokens=100
    )
    await desk.node.store.write(lambda tx: tx.usage.save(usage))
    with scripted() as model:
        assert of(await desk.work(run, model), EndedEarly) == [EndedEarly(reason="budget")]


async def test_a_budget_of_money_ends_the_run_after_the_call_that_used_it_up(desk):
    run = await desk.ask(budgets=Budgets(run_cost_micros=10))
    with scripted([LocalCall("write_file", WRITE), Spend(1_000, 1_000)]) as model:
        said = await desk.work(run, model)
    assert of(said, EndedEarly) == [EndedEarly(reason="budget")]
    assert steps(said)[-1].usage.cost_micros > 10


async def test_an_output_limit_is_sent_whoever_the_provider_is(desk):
    run = await desk.ask(model="anthropic:claude-sonnet-4-5", thinking_level="high")
    with scripted([Say("Ok.")]) as model:
        desk.loop.models.use("anthropic:claude-sonnet-4-5", model)
        await desk.work(run, model)
    assert model.asked[0].settings == {"thinking": "high", "max_tokens": 8_192}


async def test_an_error_that_is_nobodys_fault_but_ours_comes_out_as_it_is(desk):
    run = await desk.ask()
    with scripted([ZeroDivisionError("ours")]) as model:
        await desk.fail(run, model, ZeroDivisionError)


async def test_the_deltas_are_the_answer(desk):
    run = await desk.ask()
    with scripted([Say("a"), Say(""), Say("b"), Say("c")]) as model:
        said = await desk.work(run, model)
    assert "".join(event.delta for event in of(said, StreamDelta)) == "abc" == of(said, StreamEnd)[0].content
    assert all(event.delta for event in of(said, StreamDelta))


async def test_a_persons_run_reads_its_own_message_last_though_another_run_came_between(desk):
    """On PostgreSQL a wake can be claimed just while a person's message is saved, and then runs before it."""
    run = await desk.ask()
    between = replace(run, id=desk.harness.make_agent().id)
    await desk.keep(
        between,
        StepSaved(role="user", content="Water the plants"),
        StepSaved(role="assistant", content="Watered.", data={}),
    )
    with scripted([Say("Done.")]) as model:
        await desk.work(run, model)
    [request] = model.asked
    prompts = [
        part.content for message in request.messages for part in message.parts if part.part_kind == "user-prompt"
    ]
    assert prompts == ["Water the plants", "Go on"]
