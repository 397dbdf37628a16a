"""The work on one run: who works with what, what was said so far, and how the next step is kept."""

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wakeful.clock import Clock
from wakeful.domain.events import StepSaved, StreamEnd
from wakeful.domain.types import Message, Run
from wakeful.runtime.budget import Budget, RepeatedCalls
from wakeful.runtime.executor import Stop
from wakeful.runtime.models.providers import Models
from wakeful.service.approvals import Approvals
from wakeful.service.briefings import Briefing
from wakeful.tools.registry import Tool, Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a model may be silent, and how often it is asked again; in seconds."""

    first: float = 185.0  # a little more than our own wire's, whose words are better
    between: float = 65.0
    retries: int = 6
    pause: float = 1.0  # before the first retry; doubled each time
    longest_pause: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What every worker of this server works with."""

    brief: Callable[[], Awaitable[Briefing]]  # reads anew what the run is to know
    approvals: Approvals
    models: Models
    tools: Tools
    clock: Clock
    workspace_of: Callable[[str], Path]
    patience: Patience


class Work:
    """The work on one run."""

    def __init__(self, means: Means, run: Run, briefing: Briefing, stop: Stop) -> None:
        self.means = means
        self.run = run
        self.stop = stop
        self.take_on(briefing)
        self.messages = list(briefing.messages)
        self.budget = Budget(briefing, run, self.model)
        self.repeated = RepeatedCalls()
        self.is_stuck = False
        self.context_tokens = 0
        self._began = time.monotonic()

    def take_on(self, briefing: Briefing) -> None:
        """Work as the agent of this briefing from now on."""
        self.briefing = briefing
        self.model = briefing.agent.model or self.means.models.default
        self.only: Collection[str] | None = briefing.session_config.get("tool_ids")
        self.tools: dict[str, Tool] = {tool.name: tool for tool in self.means.tools.shown_to(briefing.agent, self.only)}

    @property
    def own_messages(self) -> list[Message]:
        """Return what earlier attempts at this run, and this one, have saved."""
        return [message for message in self.messages if message.run_id == self.run.id]

    def step(self, role: str, content: str, data: Mapping[str, Any] | None = None, **more: Any) -> StepSaved:
        """Add to the transcript, here and in the store."""
        assert self.run.session_id is not None
        self.messages.append(
            Message(
                id="",
                session_id=self.run.session_id,
                position=0,
                role=role,
                content=content,
                created_at=self.means.clock.now(),
                run_id=self.run.id,
                data=data,
            )
        )
        return StepSaved(role=role, content=content, data=data, usage=self.budget.usage, **more)

    def end(self, content: str) -> StreamEnd:
        """Return what is said last."""
        usage = self.budget.usage
        return StreamEnd(
            content=content,
            context_tokens=self.context_tokens,
            max_context_tokens=self.means.models.context_window(self.model),
            elapsed_seconds=round(time.monotonic() - self._began, 3),
            tool_call_count=usage.tool_calls,
            token_count=usage.output_tokens,
            message_index=len(self.messages) - 1,
        )

    def seconds_left(self) -> float:
        return self.briefing.agent.run_limit.total_seconds() - (time.monotonic() - self._began)


def keepable(text: str) -> str:
    """Return a text without NUL, which one of the databases cannot keep."""
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
