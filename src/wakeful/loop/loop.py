"""The agent loop: ask the model, stream its reply, call its tools, save each step, until it has answered."""

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage

from wakeful.agents.instruction_files import InstructionFiles
from wakeful.core.budget import Spent
from wakeful.core.clock import Clock
from wakeful.core.errors import WakefulError
from wakeful.core.events import EndedEarly, RunEvent, StepSaved, StreamStart
from wakeful.core.frames import recall_update, server_note, wake_fired
from wakeful.core.records import chosen
from wakeful.core.records import missing as records_missing
from wakeful.core.types import ClaimedRun, Message, Run, RunNote, Wake, kind_of
from wakeful.database.files import AgentFiles
from wakeful.hooks import rules as hooks_rules
from wakeful.hooks.service import HookPayloads
from wakeful.loop.briefing import Briefing, Briefings
from wakeful.loop.compression import make_room
from wakeful.loop.context import view
from wakeful.loop.following import Followed
from wakeful.loop.model_call import BudgetSpent, Reply, ask
from wakeful.loop.more_tools import offered_tools
from wakeful.loop.planning import plan
from wakeful.loop.prompt import steer, system_prompt
from wakeful.loop.reminders import resume_promise
from wakeful.loop.replies import act_on, end_early
from wakeful.loop.spending import FINISH
from wakeful.loop.state import RetryLimits, RunState, SubagentLimits
from wakeful.loop.tool_calls import call_all
from wakeful.loop.tools import FINISH_STEP
from wakeful.loop.transcript import final_answer, open_calls, to_model
from wakeful.models.by_name import Models
from wakeful.notices.service import NoticeService
from wakeful.operations.metrics import Metrics
from wakeful.runs.approvals import Approvals
from wakeful.runs.executor import BeforeCall, RunStopped, Stop
from wakeful.store.errors import insist
from wakeful.telemetry.tracing import Tracing
from wakeful.timing import session_config
from wakeful.toolbox.registry import Tools


@dataclass(eq=False)
class AgentLoop:
    """Executes runs with a model and tools."""

    briefings: Briefings
    models: Models
    tools: Tools
    clock: Clock
    workspace_of: Callable[[str], Path]
    approvals: Approvals
    instructions: InstructionFiles
    agent_files: AgentFiles
    notices: NoticeService
    metrics: Metrics
    hook_payloads: HookPayloads
    patience: RetryLimits = field(default_factory=RetryLimits)
    subagents: SubagentLimits = field(default_factory=SubagentLimits)
    small_window: int = 32_768
    asks_for_promises: bool = True
    tracing: Tracing = field(default_factory=Tracing)

    async def execute(
        self, run: ClaimedRun, saved_steps: Sequence[Message], stop: Stop, before_call: BeforeCall
    ) -> AsyncGenerator[RunEvent]:
        """Execute a run from where its session's transcript ends."""
        # Only in data of 0.1: since then the answer and the end of the run are saved together.
        ended = final_answer(saved_steps)
        if ended is not None:
            for event in _end_as_saved(RunState(self, run, await self.briefings.read(run), stop, before_call), ended):
                yield event
            return
        wake = await insist(lambda: self.briefings.wake(run))
        for event in _open(run, wake, len(saved_steps)):
            yield event
        looking = self.brief(run, stop)
        try:
            async for event in looking.events(set()):
                yield event
        except RunStopped:
            return
        state = RunState(self, run, looking.result, stop, before_call)
        self.tracing.name_agent(state.briefing.agent, state.model)
        try:
            async for event in _resume(state):
                yield event
            async for event in self.take_turns(state):
                yield event
        finally:
            await state.cancel_tasks()

    def take_turns(self, state: RunState) -> AsyncGenerator[RunEvent]:
        """Run the loop for an agent or a subagent."""
        return take_turns(state)

    async def spent_today(self, run: Run) -> Spent:
        return await insist(lambda: self.briefings.spent_today(run))

    async def is_awaited(self, run: Run, agent_id: str) -> bool:
        return await insist(lambda: self.briefings.is_awaited(run, agent_id))

    def brief(self, run: ClaimedRun, stop: Stop) -> "Followed[Briefing]":
        """Read what the agent of a run needs to know, and start the servers of its tools."""
        return Followed(self.clock, lambda looking: insist(lambda: self._brief(run, stop, looking)))

    async def _brief(self, run: ClaimedRun, stop: Stop, looking: "Followed[Briefing]") -> Briefing:
        briefing = await self.briefings.read(run)
        await self.models.prepare(briefing.agent.model)
        briefing = await self._add_context(briefing, stop, looking)
        wake = briefing.wake
        if wake is None or wake.door != "hook":
            return briefing
        return replace(briefing, hook_data=await self.hook_payloads.of_run(run))

    async def _add_context(self, briefing: Briefing, stop: Stop, looking: "Followed[Briefing]") -> Briefing:
        """Start the servers of the agent's tools, and add its skills, its AGENTS.md and notes about problems."""
        agent, config, catalog = briefing.agent, briefing.session_config, self.tools.catalog
        looking.explain(partial(catalog.waiting_for_start, agent))
        with stop.cuts_off():
            notes = await catalog.prepare(agent)
        for frame in catalog.failed_starts(agent):
            await looking.say(frame)
        await self.agent_files.bring_files(agent.id)
        files = await self.instructions.for_prompt(agent)
        missing = records_missing(files.skills, config.get("skills"))
        if missing:
            notes.append(f"These skills of the session do not exist: {', '.join(missing)}.")
        return replace(
            briefing,
            skills=chosen(files.skills, config.get("skills")),
            agents_file=files.agents_file,
            notes=[*notes, *files.left_out],
            # A prompt with a new time for each call could not be cached.
            told_at=self.clock.now() if config.get("cache_breakpoints") else None,
        )


async def take_turns(state: RunState) -> AsyncGenerator[RunEvent]:
    """Plan if the agent plans, then alternate model and tool calls until there is an answer or a limit is reached."""
    try:
        if state.wants_plan and not await state.is_spent():
            async for event in make_room(state, partial(_besides, state)):
                yield event
            async for event in plan(state, _request(state)):
                yield event
        while not state.stop.is_requested:
            reason = state.mishaps.reason() or await _limit(state)
            if reason is not None:
                for event in end_early(state, reason):
                    yield event
                return
            calls_before = state.spending.usage.model_calls
            async for event in make_room(state, partial(_besides, state)):
                yield event
            if state.spending.usage.model_calls > calls_before:  # a summary was made: check the limits again
                continue
            if state.spending.budget.is_nearly_spent and not state.was_asked_to_finish:
                yield server_note("budget")
                yield state.step("notice", FINISH, {"note": "budget"})
            reply = Reply()
            try:
                async for event in ask(state, _request(state), reply):
                    yield event
            except (WakefulError, RunStopped):
                if reply.text:  # people have read it, so it is saved, marked as incomplete
                    yield state.step("assistant", reply.text, {"cut_off": True})
                raise
            async for event in act_on(state, reply):
                yield event
            if state.has_ended:
                return
    except RunStopped:
        return
    except BudgetSpent:
        for event in end_early(state, "budget"):
            yield event


async def _limit(state: RunState) -> RunNote | None:
    """Return the limit that does not allow another model call, if there is one."""
    if state.turns >= state.briefing.agent.max_iterations:
        return "iteration_limit"
    return "budget" if await state.is_spent() else None


def _end_as_saved(state: RunState, ended: Message) -> Generator[RunEvent]:
    """End a run whose final answer an earlier attempt saved, without asking the model again."""
    reason: RunNote | None = (ended.data or {}).get("note")
    if reason is not None:
        yield EndedEarly(reason=reason)
    yield state.end(ended.content)


def _request(state: RunState) -> list[ModelMessage]:
    return to_model(_prompt(state), view(state.messages, state.window), state.briefing.images)


def _prompt(state: RunState) -> str:
    now = state.briefing.told_at or state.deps.clock.now()
    parts = (
        system_prompt(state.briefing, state.run, now, state.tools),
        steer(state.plan, can_tick=FINISH_STEP in state.tools),
    )
    return "\n\n".join(part for part in parts if part)


def _besides(state: RunState) -> str:
    """Return the prompt and the tools that are sent with the messages, to estimate their tokens."""
    return _prompt(state) + "".join(f"{tool.description}{tool.schema}" for tool in offered_tools(state))


def _open(run: ClaimedRun, wake: Wake | None, saved: int) -> Generator[RunEvent]:
    """Start the stream, and save the message that a wake starts with, less the steps that an earlier attempt has saved.

    The message is saved in the transaction of `stream_start`: clients load the session when they see that frame.
    """
    steps = [] if wake is None else _opening(wake)[saved:]
    yield from steps[:-1]
    yield StreamStart()
    if wake is not None and saved == 0 and kind_of(wake).is_recall:
        yield recall_update(wake, wake_fired(wake.id, run))  # saved with the first step, so it is sent once
    yield from steps[-1:]


def _opening(wake: Wake) -> list[StepSaved]:
    """Return the first steps of a woken run: the messages that its session begins with, and the instructions.

    If an agent booked it, the messages become one notice, and the instructions are marked as its own.
    """
    label, kind = wake.comment or None, kind_of(wake)
    config = wake.session_config or {}
    preloaded = config.get("preloaded_messages", ()) if kind.landing == "fresh" else ()
    source = "hook" if wake.door == "hook" else "scheduled" if kind.is_schedule else wake.kind
    said: list[tuple[str, str, dict[str, Any]]] = [
        (each["role"], each["content"], {"preloaded": dict(each)}) for each in preloaded
    ]
    if said and wake.scheduled_by == "agent":
        said = [("notice", session_config.frame_preloaded(preloaded), {"note": "preloaded"})]
    return [
        *(StepSaved(role=role, content=text, data=data, source="preloaded", label=label) for role, text, data in said),
        StepSaved(
            role="user",
            content=wake.instructions,
            data={"booked_by": "agent"} if wake.scheduled_by == "agent" else None,
            is_recall=kind.is_recall,
            source=source,
            label=label,
        ),
    ]


async def _resume(state: RunState) -> AsyncGenerator[RunEvent]:
    """Add what a hook has received, and continue where an earlier attempt was interrupted."""
    wake, data = state.briefing.wake, state.briefing.hook_data
    if wake is not None and data is not None and not state.has_notice("hook"):
        yield state.step("notice", hooks_rules.frame_payload(data), {"note": "hook"}, label=wake.comment or None)
    for message in state.own("tool"):
        if message.data is not None:
            code = message.data["metadata"].get("code")
            state.mishaps.note(message.data["tool"], message.data["args"], message.content, code)
    async for event in call_all(state, open_calls(state.messages), is_first_begun=True):
        yield event
    for event in _announce_model(state):
        yield event
    for event in resume_promise(state):
        yield event


def _announce_model(state: RunState) -> Generator[RunEvent]:
    """Say once in a session that the model that it was booked with is not used."""
    booked, code = state.briefing.booked_model, "model_taken_back"
    if booked in (None, state.model) or any((message.data or {}).get("note") == code for message in state.messages):
        return
    text = (
        f"[From the server, not from your user] This session was booked with the model {booked!r}, which your owner no "
        f"longer allows. {state.model!r} answers instead. Say so if it matters for your task."
    )
    yield server_note(code)
    yield state.step("notice", text, {"note": code})
