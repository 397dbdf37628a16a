"""The state of a run while it executes, of its agent or of a subagent: dependencies, messages, budget, saving steps."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from wakeful.core.budget import Spent
from wakeful.core.clock import Clock
from wakeful.core.events import RunEvent, StepSaved, StreamEnd
from wakeful.core.outside import add_sources
from wakeful.core.types import ClaimedRun, Message, Run, RunUsage, ServerNoteCode
from wakeful.database.files import AgentFiles
from wakeful.loop.briefing import Briefing
from wakeful.loop.following import Followed
from wakeful.loop.repetition import Mishaps
from wakeful.loop.spending import Spending
from wakeful.models.by_name import Models
from wakeful.notices.service import NoticeService
from wakeful.operations.metrics import Metrics
from wakeful.runs.approvals import Approvals
from wakeful.runs.executor import BeforeCall, Stop
from wakeful.telemetry.tracing import Tracing
from wakeful.toolbox.registry import Tool, Tools

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
        self.spending = self._open_spending() if of is None else of.spending
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
        if self.spending.budget.has_day_limits:
            self.spending.spent_today = await self.deps.spent_today(self.run)
        return self.spending.budget.is_spent

    def step(self, role: str, content: str, data: Mapping[str, Any] | None = None, **more: Any) -> StepSaved:
        """Add a message to the transcript, and return the event that saves it."""
        self.messages.append(self.message(role, content, data))
        # A step of a subagent is saved as one of its parent, with the marks.
        sources = self.marks.pop_unsaved() if self.depth == 0 else None
        return StepSaved(
            role=role, content=content, data=data, usage=self.spending.usage, outside_sources=sources, **more
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
        usage = self.spending.usage
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

    def _open_spending(self) -> Spending:
        run, briefing = self.run, self.briefing
        started = run.started_at or run.queued_at
        fresh = RunUsage(run_id=run.id, agent_id=run.agent_id, user_id=run.user_id, at=started, model=self.model)
        usage = replace(briefing.usage or fresh, model=self.model)
        spending = Spending(briefing.agent.budgets, briefing.spent_today, usage)
        spending.subagents = sum((message.data or {}).get("role") == "user" for message in self.own("subagent"))
        return spending
