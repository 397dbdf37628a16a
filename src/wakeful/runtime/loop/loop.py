"""The agent loop: ask the model, show what it says, call its tools, save each step, until it has answered."""

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from functools import partial
from pathlib import Path

from pydantic_ai.messages import ModelMessage, ToolCallPart

from wakeful.clock import Clock
from wakeful.domain.errors import WakefulError
from wakeful.domain.events import EndedEarly, RunEvent, StepSaved, StreamStart
from wakeful.domain.frames import recall_update, wake_fired
from wakeful.domain.types import Message, Run, RunNote, Wake
from wakeful.domain.wakes.kinds import is_schedule
from wakeful.runtime.executor import BeforeCall, RunStopped, Stop
from wakeful.runtime.loop.budget import FINISH, NOTES
from wakeful.runtime.loop.compaction import make_room
from wakeful.runtime.loop.context import view
from wakeful.runtime.loop.model_call import BudgetSpent, Reply, ask
from wakeful.runtime.loop.planning import plan
from wakeful.runtime.loop.prompt import steer, system_prompt
from wakeful.runtime.loop.run_state import RetryLimits, RunDeps, RunState, SubagentLimits
from wakeful.runtime.loop.tool_calls import call_all, shown
from wakeful.runtime.loop.transcript import final_answer, open_calls, to_data, to_model
from wakeful.runtime.loop.workspace_context import look_around
from wakeful.runtime.models.providers import Models
from wakeful.runtime.waiting import Followed
from wakeful.service.agents.directories import Directories
from wakeful.service.agents.instruction_files import InstructionFiles
from wakeful.service.retrying import insist
from wakeful.service.runs.approvals import Approvals
from wakeful.service.sessions.briefing import Briefing, Briefings
from wakeful.tools.registry import Tools


class AgentLoop:
    """Carries out runs with a model and tools."""

    def __init__(
        self,
        briefings: Briefings,
        models: Models,
        tools: Tools,
        clock: Clock,
        workspace_of: Callable[[str], Path],
        approvals: Approvals,
        instructions: InstructionFiles,
        directories: Directories,
        patience: RetryLimits | None = None,
        subagents: SubagentLimits | None = None,
    ) -> None:
        self.briefings = briefings
        self.models = models
        self.tools = tools
        self.clock = clock
        self.workspace_of = workspace_of
        self.approvals = approvals
        self.instructions = instructions
        self.directories = directories
        self.patience = patience or RetryLimits()
        self.subagents = subagents or SubagentLimits()

    async def execute(
        self, run: Run, saved_steps: Sequence[Message], stop: Stop, before_call: BeforeCall
    ) -> AsyncGenerator[RunEvent]:
        """Work on a run from where its session's transcript ends."""
        # Only 0.1 could be killed between the two: today the answer and the run's end are saved together.
        ended = final_answer(saved_steps)
        if ended is None:
            yield StreamStart()
        means = RunDeps(
            brief=lambda: Followed(self.clock, lambda looking: insist(lambda: self._brief(run, stop, looking))),
            before_call=before_call,
            approvals=self.approvals,
            models=self.models,
            tools=self.tools,
            clock=self.clock,
            workspace_of=self.workspace_of,
            directories=self.directories,
            spent_today=lambda run: insist(lambda: self.briefings.spent_today(run)),
            patience=self.patience,
            subagents=self.subagents,
            take_turns=take_turns,
        )
        if ended is not None:
            for event in _end_as_saved(RunState(means, run, await self.briefings.read(run), stop), ended):
                yield event
            return
        looking = means.brief()
        try:
            async for event in looking.events(set()):
                yield event
        except RunStopped:
            return
        work = RunState(means, run, looking.result, stop)
        try:
            async for event in _begin(work):
                yield event
            async for event in take_turns(work):
                yield event
        finally:
            await work.put_away()

    async def _brief(self, run: Run, stop: Stop, looking: "Followed[Briefing]") -> Briefing:
        await self.directories.check(run.agent_id)
        briefing = await self.briefings.read(run)
        await self.directories.check(briefing.agent.id)
        return await look_around(briefing, self.tools, self.instructions, stop, self.clock.now(), looking)


async def take_turns(work: RunState) -> AsyncGenerator[RunEvent]:
    """Plan if the agent plans, then ask and call until there is an answer, or no more may be spent on one."""
    try:
        if work.wants_plan and not await work.is_spent():
            async for event in make_room(work, partial(_besides, work)):
                yield event
            async for event in plan(work, _request(work)):
                yield event
        while not work.stop.is_requested:
            reason = work.mishaps.reason() or await _limit(work)
            if reason is not None:
                for event in _end_early(work, reason):
                    yield event
                return
            calls_before = work.budget.usage.model_calls
            async for event in make_room(work, partial(_besides, work)):
                yield event
            if work.budget.usage.model_calls > calls_before:  # a summary has cost something: look again
                continue
            if work.budget.is_nearly_spent() and not work.is_told_to_finish:
                yield work.step("notice", FINISH, {"note": "budget"})
            reply = Reply()
            try:
                async for event in ask(work, _request(work), reply):
                    yield event
            except (WakefulError, RunStopped):
                if reply.text:  # people have read it: it is kept, marked as the piece it is
                    yield work.step("assistant", reply.text, {"cut_off": True})
                raise
            async for event in _act_on(work, reply):
                yield event
            if work.has_ended:
                return
    except RunStopped:
        return
    except BudgetSpent:
        for event in _end_early(work, "budget"):
            yield event


async def _act_on(work: RunState, reply: Reply) -> AsyncGenerator[RunEvent]:
    """Keep an answer and do what it asks for."""
    work.turns += 1
    assert reply.whole is not None
    calls = [part for part in reply.whole.parts if isinstance(part, ToolCallPart)]
    if reply.is_cut_off:
        if reply.text:
            yield work.step("assistant", reply.text, {"cut_off": True})
        for event in _end_early(work, "answer_too_long" if reply.is_too_long else "too_many_calls"):
            yield event
        return
    if not calls and not reply.text.strip():
        for event in _end_early(work, "did_nothing" if _has_done_nothing(work) else "empty_answer"):
            yield event
        return
    work.has_ended = not calls
    data = to_data(reply.whole, reply.thinking, shown(calls))
    yield work.step("assistant", reply.text, data, is_last=work.has_ended)
    if work.has_ended:
        yield work.end(reply.text)
        return
    async for event in call_all(work, calls):
        yield event


def _has_done_nothing(work: RunState) -> bool:
    """Tell whether a woken run has neither called a tool nor said anything, in this attempt or an earlier one."""
    own = [message for message in work.own("assistant") if "preloaded" not in (message.data or {})]
    return work.briefing.wake is not None and work.depth == 0 and not own


async def _limit(work: RunState) -> RunNote | None:
    """Return which limit forbids another model call, if one does."""
    if work.turns >= work.briefing.agent.max_iterations:
        return "iteration_limit"
    return "budget" if await work.is_spent() else None


def _end_early(work: RunState, reason: RunNote) -> Generator[RunEvent]:
    work.has_ended = True
    yield work.step("assistant", NOTES[reason], {"note": reason}, is_last=True)
    yield EndedEarly(reason=reason)
    yield work.end(NOTES[reason])


def _end_as_saved(work: RunState, ended: Message) -> Generator[RunEvent]:
    """End a run whose final answer an earlier attempt saved. The model is not asked again."""
    reason: RunNote | None = (ended.data or {}).get("note")
    if reason is not None:
        yield EndedEarly(reason=reason)
    yield work.end(ended.content)


def _request(work: RunState) -> list[ModelMessage]:
    return to_model(_prompt(work), view(work.messages, work.window), work.briefing.images)


def _prompt(work: RunState) -> str:
    now = work.briefing.told_at or work.means.clock.now()
    said = (system_prompt(work.briefing, work.run, now, work.tools), steer(work.plan))
    return "\n\n".join(part for part in said if part)


def _besides(work: RunState) -> str:
    """Return what is sent along with the messages, to guess how long it is."""
    return _prompt(work) + "".join(f"{tool.description}{tool.schema}" for tool in work.tools.values())


async def _begin(work: RunState) -> AsyncGenerator[RunEvent]:
    """Put what woke us into the transcript, or go on where an earlier attempt was cut off."""
    own = [message for message in work.messages if message.run_id == work.run.id]
    wake = work.briefing.wake
    if wake is not None:
        if not own and wake.kind == "recall" and wake.session_id is not None:
            yield recall_update(wake, wake_fired(wake.id, work.run))  # saved with the first step, so it is said once
        for step in _opening(work, wake, len(own)):
            yield step
    for message in own:
        if message.role == "tool" and message.data is not None:
            code = message.data["metadata"].get("code")
            work.mishaps.note(message.data["tool"], message.data["args"], message.content, code)
    if own:
        async for event in call_all(work, open_calls(work.messages), is_first_begun=True):
            yield event


def _opening(work: RunState, wake: Wake, count: int) -> list[StepSaved]:
    """Return what a woken run begins with, after the first so many that an earlier attempt has saved."""
    label = wake.comment or None
    preloaded = work.briefing.session_config.get("preloaded_messages", ()) if wake.kind == "session" else ()
    steps = [
        work.step(each["role"], each["content"], {"preloaded": dict(each)}, source="preloaded", label=label)
        for each in preloaded[count:]
    ]
    if count <= len(preloaded):
        source = "scheduled" if is_schedule(wake) else wake.kind
        is_recall = wake.kind == "recall"
        steps.append(work.step("user", wake.instructions, is_recall=is_recall, source=source, label=label))
    return steps
