"""The agent loop: ask the model, show what it says, call its tools, save each step, until it has answered."""

from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

from pydantic_ai.messages import ModelMessage, ToolCallPart

from wakeful.clock import Clock
from wakeful.domain.errors import WakefulError
from wakeful.domain.events import EndedEarly, RecallUpdate, RunEvent, StepSaved, StreamStart
from wakeful.domain.types import Message, Run, Wake
from wakeful.domain.wakes import is_schedule
from wakeful.runtime.asking import Reply, ask
from wakeful.runtime.budget import NOTES
from wakeful.runtime.calling import call_all, shown
from wakeful.runtime.executor import Stop, Stopped
from wakeful.runtime.models.providers import Models
from wakeful.runtime.prompt import system_prompt
from wakeful.runtime.surroundings import look_around
from wakeful.runtime.transcript import open_calls, to_data, to_model
from wakeful.runtime.work import Means, Patience, Work
from wakeful.service.approvals import Approvals
from wakeful.service.briefings import Briefing, Briefings
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
        patience: Patience | None = None,
    ) -> None:
        self.briefings = briefings
        self.models = models
        self.tools = tools
        self.clock = clock
        self.workspace_of = workspace_of
        self.approvals = approvals
        self.patience = patience or Patience()

    async def execute(self, run: Run, _saved_steps: Sequence[Message], stop: Stop) -> AsyncGenerator[RunEvent]:
        """Work on a run from where its session's transcript ends."""
        yield StreamStart()
        means = Means(
            brief=lambda: self._brief(run, stop),
            approvals=self.approvals,
            models=self.models,
            tools=self.tools,
            clock=self.clock,
            workspace_of=self.workspace_of,
            patience=self.patience,
        )
        try:
            briefing = await means.brief()
        except Stopped:
            return
        async for event in _go(Work(means, run, briefing, stop)):
            yield event

    async def _brief(self, run: Run, stop: Stop) -> Briefing:
        briefing = await self.briefings.read(run)
        workspace = self.workspace_of(briefing.agent.id)
        return await look_around(briefing, self.tools, workspace, stop, self.clock.now())


async def _go(work: Work) -> AsyncGenerator[RunEvent]:
    async for event in _begin(work):
        yield event
    while not work.stop.is_requested:
        reason = "repeated_calls" if work.is_stuck else work.budget.spent()
        if reason is not None:
            yield work.step("assistant", NOTES[reason], {"note": reason})
            yield EndedEarly(reason=reason)
            yield work.end(NOTES[reason])
            return
        reply = Reply()
        try:
            async for event in ask(work, _request(work), reply):
                yield event
        except (WakefulError, Stopped) as error:
            if reply.text:  # people have read it: it is kept, marked as the piece it is
                yield work.step("assistant", reply.text, {"cut_off": True})
            if isinstance(error, Stopped):
                return
            raise
        assert reply.whole is not None
        calls = [part for part in reply.whole.parts if isinstance(part, ToolCallPart)]
        yield work.step("assistant", reply.text, to_data(reply.whole, reply.thinking, shown(calls)))
        if not calls:
            yield work.end(reply.text)
            return
        async for event in call_all(work, calls):
            yield event


def _request(work: Work) -> list[ModelMessage]:
    now = work.briefing.told_at or work.means.clock.now()
    prompt = system_prompt(work.briefing, work.run, now, work.tools)
    return to_model(prompt, work.messages, work.briefing.images)


async def _begin(work: Work) -> AsyncGenerator[RunEvent]:
    """Put what woke us into the transcript, or go on where an earlier attempt was cut off."""
    own = work.own_messages
    wake = work.briefing.wake
    if wake is not None:
        for step in _opening(work, wake, len(own)):
            yield step
        if not own and wake.kind == "recall" and wake.session_id is not None:
            yield RecallUpdate(
                session_id=wake.session_id,
                recall_id=wake.id,
                call_type=wake.call_type,
                trigger_at=work.run.nominal_at,
                status="pending" if wake.is_recurring else "fired",
                action="fired",
            )
    for message in own:
        if message.role == "tool" and message.data is not None:
            work.is_stuck = work.repeated.note(message.data["tool"], message.data["args"], message.content)
    if own:
        async for event in call_all(work, open_calls(work.messages), is_first_begun=True):
            yield event


def _opening(work: Work, wake: Wake, count: int) -> list[StepSaved]:
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
