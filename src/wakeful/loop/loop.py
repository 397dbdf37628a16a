"""The agent loop: ask the model, stream its reply, call its tools, save each step, until it has answered."""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ToolCallPart

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
from wakeful.loop.context import final_answer, open_calls, to_data, to_model, view
from wakeful.loop.following import Followed
from wakeful.loop.model_call import BudgetSpent, Reply, ask
from wakeful.loop.planning import plan
from wakeful.loop.prompt import steer, system_prompt
from wakeful.loop.reminders import check_promise, remind_of_promise, resume_promise
from wakeful.loop.repetition import MAX_BAD_CALLS, without_repeats
from wakeful.loop.spending import FINISH
from wakeful.loop.state import RetryLimits, RunState, SubagentLimits
from wakeful.loop.tool_calls import call_all, shown
from wakeful.loop.tools import FINISH_STEP, MORE_TOOLS, offered_tools
from wakeful.models.by_name import Models
from wakeful.models.openai_wire import MAX_CALLS
from wakeful.models.rules import has_text_call
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


# Act on a reply of the model: make its tool calls, end the run with its answer, or say why there is none.


NOTES: Mapping[RunNote, str] = {  # of runs that end without an answer of the model
    "iteration_limit": "I stopped here because I reached my limit of model calls for one run.",
    "budget": "I stopped here because my budget is used up.",
    "repeated_calls": "I stopped here because I kept making the same call with the same result.",
    "bad_calls": f"I stopped here because {MAX_BAD_CALLS} tool calls in a row were invalid.",
    "too_many_calls": f"I stopped here because one answer asked for more than {MAX_CALLS} tool calls. None was made.",
    "answer_too_long": "I stopped here because my answer was too long.",
    "output_limit": "I stopped here because my answer reached the model's output limit.",
    "repeated_text": "I stopped here because I kept repeating the same text.",
    "empty_answer": "I ended without an answer.",
    "did_nothing": "I was woken and did nothing.",
    "unkept_promise": "I promised to do something later, and booked nothing.",
}


async def act_on(state: RunState, reply: Reply) -> AsyncGenerator[RunEvent]:
    """Save a reply and make its tool calls, or end the run."""
    state.turns += 1
    assert reply.whole is not None
    calls = [part for part in reply.whole.parts if isinstance(part, ToolCallPart)]
    state.is_reply_cut = reply.has_hit_limit
    remark = _remark_on_request(state, reply)
    if remark:
        yield server_note("prompt_cut")
    if reply.is_cut_off or (reply.has_hit_limit and not calls):
        for event in _end_cut_off(state, reply, remark):
            yield event
    elif not calls and not reply.text.strip():
        for event in end_early(state, await _why_empty(state)):
            yield event
    elif calls:
        yield state.step("assistant", reply.text, to_data(reply.whole, reply.thinking, shown(calls)) | remark)
        async for event in call_all(state, calls):
            yield event
    else:
        async for event in _answer(state, reply.text, to_data(reply.whole, reply.thinking, ()) | remark):
            yield event


def _remark_on_request(state: RunState, reply: Reply) -> dict[str, Any]:
    """Return the remark that the provider dropped a part of the request, once in a run."""
    return {"remark": "prompt_cut"} if reply.is_prompt_cut and not state.was_prompt_cut else {}


def end_early(state: RunState, reason: RunNote) -> Generator[RunEvent]:
    """End a run with a note instead of an answer."""
    state.has_ended = True
    yield state.step("assistant", NOTES[reason], {"note": reason}, is_last=True)
    yield EndedEarly(reason=reason)
    yield state.end(NOTES[reason])


async def _answer(state: RunState, text: str, data: dict[str, Any]) -> AsyncGenerator[RunEvent]:
    """End the run with an answer. If it promises later work without a booking, first remind the model, once."""
    remark: RunNote | None = "call_as_text" if has_text_call(text, [*state.tools, MORE_TOOLS]) else None
    promise = None if remark else await check_promise(state, text)
    if promise is not None and promise.may_remind:
        yield state.step("assistant", text, data | {"promise": promise.sentence})
        for event in remind_of_promise(state, promise.sentence):
            yield event
        return
    if promise is not None:
        remark = "unkept_promise"
    state.has_ended = True
    if remark is not None:
        data = {"remark": remark} | data  # a cut prompt may be the cause, so that remark stays
        yield server_note(remark)
    yield state.step("assistant", text, data, is_last=True)
    if remark is None and state.was_prompt_cut and state.depth == 0:  # a subagent's answer counts all the same
        remark = "prompt_cut"
    if remark is not None:
        yield EndedEarly(reason=remark)
    yield state.end(text)


def _end_cut_off(state: RunState, reply: Reply, remark: Mapping[str, Any]) -> Generator[RunEvent]:
    """End a run whose reply was not read to its end, and keep the text so far, marked as incomplete."""
    text = without_repeats(reply.text) if reply.is_repeating else reply.text
    if text:
        yield state.step("assistant", text, {"cut_off": True, **remark})
    reason: RunNote = "too_many_calls"
    if reply.is_repeating:
        reason = "repeated_text"
    elif reply.is_too_long:
        reason = "answer_too_long"
    elif not reply.has_too_many_calls:
        reason = "output_limit"
    yield from end_early(state, reason)


async def _why_empty(state: RunState) -> RunNote:
    if _has_done_nothing(state):
        return "did_nothing"
    return "empty_answer" if await check_promise(state, "") is None else "unkept_promise"


def _has_done_nothing(state: RunState) -> bool:
    """Return whether a woken run has neither called a tool nor written text, in any attempt."""
    own = [message for message in state.own("assistant") if "preloaded" not in (message.data or {})]
    return state.briefing.wake is not None and state.depth == 0 and not own
