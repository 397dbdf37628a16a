"""The state of a run while it executes, of its agent or of a subagent: dependencies, messages, budget, saving steps."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

from wakeful.core.clock import Clock
from wakeful.core.events import RunEvent, StepSaved, StreamEnd, Waiting
from wakeful.core.outside import add_sources
from wakeful.core.types import ClaimedRun, Message, Run, RunUsage, ServerNoteCode
from wakeful.database.files import AgentFiles
from wakeful.loop.budget import Budget, Mishaps
from wakeful.loop.prompt import Briefing
from wakeful.models.by_name import Models
from wakeful.notices.service import NoticeService
from wakeful.operations.metrics import Metrics
from wakeful.runs.approvals import Approvals
from wakeful.runs.executor import BeforeCall, Stop
from wakeful.store.runs import Spent
from wakeful.telemetry.tracing import Tracing
from wakeful.toolbox.registry import Tool, Tools

# Run work in a task and yield its events; while it is silent, yield `waiting` frames that say why.


T = TypeVar("T")

FIRST_SHOWN = 3.0  # seconds of silence until the first `waiting` frame
EVERY = 20.0  # then at 10 s, 20 s, 40 s, … so that a stream is never silent for half a minute
_STEPS = (FIRST_SHOWN, 10.0)
_MOMENT = 0.1  # seconds
_MAX_QUEUED = 64  # events; beyond, the work waits for its consumer

Describe = Callable[[float], Waiting | None]  # the frame after that many seconds of waiting; None: no frame


def next_step(waited: float) -> float:
    """Return after how many seconds of waiting the next frame is due."""
    return next((step for step in _STEPS if waited < step), (waited // EVERY + 1) * EVERY)


async def pause(clock: Clock, seconds: float, nudged: asyncio.Event) -> None:
    """Wait for some seconds, or until nudged; it may return early, so the caller checks the clock again."""
    await clock.wait(clock.now() + timedelta(seconds=seconds), nudged)


class Followed(Generic[T]):
    """Work in a task of its own. `events` yields the events that it says, and `waiting` frames while it is silent."""

    result: T

    def __init__(
        self,
        clock: Clock,
        work: "Callable[[Followed[T]], Coroutine[Any, Any, T]]",
        describe: Describe = lambda _: None,
        *,
        is_shown: Callable[[RunEvent], bool] = lambda _: True,  # whether people see an event
        until: Callable[[], float] = lambda: float("inf"),  # a deadline by the monotonic clock; raises if it has passed
    ) -> None:
        self._clock = clock
        self._work = work
        self._describe = describe
        self._is_shown = is_shown
        self._until = until
        self._said: deque[RunEvent] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._is_at_once = False
        self.alive_at = clock.monotonic()  # the last sign of life

    @property
    def silent_for(self) -> float:
        return self._clock.monotonic() - self.alive_at

    def note_alive(self) -> None:
        """Restart the count of how long the work has been silent."""
        self.alive_at = self._clock.monotonic()

    async def say(self, event: RunEvent) -> None:
        """Queue an event; waits while the consumer is far behind."""
        self._said.append(event)
        self._news.set()
        while len(self._said) >= _MAX_QUEUED:
            self._room.clear()
            await self._room.wait()

    def explain(self, describe: Describe) -> None:
        """Use this function for `waiting` frames from now on; the first one is due in 0.1 s."""
        self._describe = describe
        asyncio.get_running_loop().call_later(_MOMENT, self._nudge)

    def _nudge(self) -> None:
        self._is_at_once = True
        self._news.set()

    async def events(self, tasks: "set[asyncio.Task[Any]]", stop: Stop | None = None) -> AsyncGenerator[RunEvent]:
        """Start the work and yield its events and its waiting; then `result` is set.

        Its task is in `tasks` while it runs, so that the end of the run can cancel it. A stop request cancels it.
        """
        task = asyncio.create_task(self._work(self))
        tasks.add(task)
        task.add_done_callback(lambda _: self._news.set())
        shown_at, waited = self._clock.monotonic(), 0.0
        try:
            while True:
                self._news.clear()
                while self._said:
                    event = self._said.popleft()
                    self._room.set()
                    if self._is_shown(event):
                        shown_at, waited = self._clock.monotonic(), 0.0
                    yield event
                if task.done():
                    break
                now, until = self._clock.monotonic(), self._until()
                if now - shown_at >= next_step(waited) or self._is_at_once:
                    waited, self._is_at_once = now - shown_at, False
                    frame = self._describe(waited)
                    if frame is not None:
                        yield frame
                        continue  # saving the frame took time, so check the clock again
                left = min(shown_at + next_step(waited), until) - now
                with nullcontext() if stop is None else stop.cuts_off():
                    await pause(self._clock, left, self._news)
        finally:
            await _end(task)
            tasks.discard(task)
        self.result = task.result()


async def _end(task: "asyncio.Task[Any]") -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log it


_LAST_MOMENT = 2.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLimits:
    """Limits of a model's silence, in seconds, and of retries."""

    first: float = 605.0  # a little more than that of `openai_chat`, whose error says more
    between: float = 65.0
    retries: int = 6
    silences: int = 1  # retries of a model that accepted the request and sent nothing
    pause: float = 1.0  # before the first retry; doubled each time
    longest_pause: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentLimits:
    """Limits of subagents."""

    depth: int = 2  # 1: a subagent has none of its own
    per_run: int = 20


class RunDeps(Protocol):
    """Dependencies of every run and subagent: the agent loop."""

    approvals: Approvals
    metrics: Metrics
    models: Models
    notices: NoticeService
    tools: Tools
    clock: Clock
    workspace_of: Callable[[str], Path]
    agent_files: AgentFiles
    patience: RetryLimits
    subagents: SubagentLimits
    small_window: int
    asks_for_promises: bool
    tracing: Tracing

    def brief(self, run: ClaimedRun, stop: Stop) -> "Followed[Briefing]": ...
    def take_turns(self, state: "RunState") -> AsyncGenerator[RunEvent]: ...
    async def spent_today(self, run: Run) -> Spent: ...
    async def is_awaited(self, run: Run, agent_id: str) -> bool: ...


class Marks:
    """The outside sources of a run and its subagents: those of its wake, of its session, and what it reads."""

    def __init__(self, run: Run, briefing: Briefing) -> None:
        self.sources = add_sources(run.outside_sources, briefing.outside_sources)
        self._saved = run.outside_sources

    def add(self, source: str | None) -> None:
        if source is not None:
            self.sources = add_sources(self.sources, [source])

    def pop_unsaved(self) -> tuple[str, ...] | None:
        """Return the sources to save with the next step; None if they are saved."""
        if self.sources == self._saved:
            return None
        self._saved = self.sources
        return self.sources


class RunState:
    """The state of one worker, the agent or a subagent. Subagents share the run's budget, stop and time limit."""

    def __init__(
        self,
        deps: RunDeps,
        run: ClaimedRun,
        briefing: Briefing,
        stop: Stop,
        before_call: BeforeCall,
        *,
        of: "RunState | None" = None,  # the parent of a subagent
    ) -> None:
        self.deps = deps
        self.run = run
        self.stop = stop
        self.before_call = before_call
        self.depth: int = 0 if of is None else of.depth + 1
        self.subagent_id: str | None = None
        self.switch_to(briefing)
        # Its own steps come last: a message that arrived while it waited to be resumed was answered before.
        self.messages = sorted(briefing.messages, key=lambda message: message.run_id == run.id)
        self.mishaps = Mishaps()
        self.turns = sum("response" in (message.data or {}) for message in self.own("assistant"))
        self.context_tokens = 0
        self.is_without_summary = False  # once one has failed
        self.has_ended = False
        self.is_reply_cut = False  # the last reply ended at the model's output limit
        self.budget = self._open_budget() if of is None else of.budget
        self.marks = Marks(run, briefing) if of is None else of.marks
        self.tasks: set[asyncio.Task[Any]] = set() if of is None else of.tasks  # subagents and model calls of this run
        self.began: float = deps.clock.monotonic() if of is None else of.began

    def switch_to(self, briefing: Briefing) -> None:
        """Continue as the agent of this briefing."""
        self.briefing = briefing
        self.model = briefing.agent.model or self.deps.models.default
        self.abilities = self.deps.models.abilities(self.model)
        self.window = self.abilities.context_window
        shown = self.deps.tools.catalog.shown_to(briefing.agent, briefing.only)
        self.tools: dict[str, Tool] = {tool.name: tool for tool in shown}

    def own(self, role: str) -> list[Message]:
        """Return the messages with a role that this and earlier attempts have saved."""
        return [message for message in self.messages if message.run_id == self.run.id and message.role == role]

    @property
    def plan(self) -> str | None:
        """Return the plan of the run; empty: planning failed, None: no planning yet."""
        made = self.own("plan")
        return made[-1].content if made else None

    @property
    def wants_plan(self) -> bool:
        return self.briefing.agent.planning and self.plan is None and self.turns == 0

    @property
    def was_asked_to_finish(self) -> bool:
        return self.has_notice("budget")

    def has_notice(self, code: ServerNoteCode | Literal["hook"]) -> bool:
        """Return whether this run, in any attempt, has told the model this."""
        return any((message.data or {}).get("note") == code for message in self.own("notice"))

    @property
    def was_prompt_cut(self) -> bool:
        """Return whether a remark of this run, in any attempt, says that a provider dropped a part of a request."""
        return any((message.data or {}).get("remark") == "prompt_cut" for message in self.own("assistant"))

    async def is_spent(self) -> bool:
        """Return whether the budget allows no further model call. Other runs of today count."""
        if self.budget.has_day_limits:
            self.budget.spent_today = await self.deps.spent_today(self.run)
        return self.budget.is_spent()

    def step(self, role: str, content: str, data: Mapping[str, Any] | None = None, **more: Any) -> StepSaved:
        """Add a message to the transcript, and return the event that saves it."""
        self.messages.append(self.message(role, content, data))
        # A step of a subagent is saved as one of its parent, with the marks.
        sources = self.marks.pop_unsaved() if self.depth == 0 else None
        return StepSaved(
            role=role, content=content, data=data, usage=self.budget.usage, outside_sources=sources, **more
        )

    def message(self, role: str, content: str, data: Mapping[str, Any] | None = None) -> Message:
        """Return a new message of this run; the store gives it an id and a position when it is saved."""
        return Message(
            id="",
            session_id=self.run.session_id,
            position=0,
            role=role,
            content=content,
            created_at=self.deps.clock.now(),
            run_id=self.run.id,
            data=data,
        )

    def end(self, content: str) -> StreamEnd:
        """Return the last frame."""
        usage = self.budget.usage
        return StreamEnd(
            content=content,
            context_tokens=self.context_tokens,
            max_context_tokens=self.window,
            elapsed_seconds=round(self.deps.clock.monotonic() - self.began, 3),
            tool_call_count=usage.tool_calls,
            token_count=usage.output_tokens,
            message_index=self.briefing.superseded + len(self.messages) - 1,
        )

    def seconds_left(self) -> float:
        """Return what is left of the run's time limit, minus a moment to report why it ends."""
        limit = self.briefing.agent.run_limit.total_seconds()
        return limit - min(_LAST_MOMENT, limit / 10) - (self.deps.clock.monotonic() - self.began)

    async def cancel_tasks(self) -> None:
        """Cancel the tasks that still run: subagents and model calls."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def _open_budget(self) -> Budget:
        run, briefing = self.run, self.briefing
        started = run.started_at or run.queued_at
        fresh = RunUsage(run_id=run.id, agent_id=run.agent_id, user_id=run.user_id, at=started, model=self.model)
        usage = replace(briefing.usage or fresh, model=self.model)
        budget = Budget(briefing.agent.budgets, briefing.spent_today, usage)
        budget.subagents = sum((message.data or {}).get("role") == "user" for message in self.own("subagent"))
        return budget


def keepable(text: str) -> str:
    """Return a text without NUL, which PostgreSQL cannot store."""
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
