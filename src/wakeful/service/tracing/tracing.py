"""Spans of runs: one for each attempt, with its requests to models and calls of tools. Without a collector, none."""

import asyncio
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, Protocol

from wakeful.domain.errors import WakefulError
from wakeful.domain.runs.runs import Outcome
from wakeful.domain.types import Agent, ClaimedRun, RunUsage
from wakeful.service.tracing import conventions as names

SpanKind = Literal["internal", "client"]


class Span:
    """A span that nothing is recorded of, because tracing is off."""

    trace_id: str | None = None
    traceparent: str | None = None

    def rename(self, name: str) -> None:
        """Give it a name that was not known when it began."""

    def note(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes; None is left out."""

    def show(self, name: str, read: Callable[[], str]) -> None:
        """Add content, if the owner of the server wants it in traces."""

    def fail(self, code: str) -> None:
        """Mark it as failed."""

    def end(self) -> None:
        """End it."""


class BeginSpan(Protocol):
    """Begins a span, inside of another one or in a trace of its own, with a link to the one that it goes on from."""

    def __call__(
        self, name: str, kind: SpanKind, attributes: names.Attributes, *, within: Span | None, link: str | None
    ) -> Span: ...


OFF = Span()
_current: ContextVar[Span | None] = ContextVar("wakeful_span", default=None)


def current_traceparent() -> str | None:
    """Return the span that the current task works in, to be saved with what it books."""
    span = _current.get()
    return None if span is None else span.traceparent


class Tracing:
    """Begins spans. Outside of a run there is no span, so nothing is traced there."""

    def __init__(self, begin: BeginSpan | None = None) -> None:
        self._begin = begin

    @property
    def is_on(self) -> bool:
        return self._begin is not None

    @contextmanager
    def attempt(self, run: ClaimedRun) -> Generator[Span]:
        """Trace an attempt at a run, in a trace of its own.

        It links to the attempt before, or to the span that booked its wake: the traces of an agent that books itself
        are one chain, over restarts and nodes.
        """
        if self._begin is None:
            yield OFF
            return
        attributes = names.of_attempt(run)
        with _entered(
            self._begin(names.agent_span(""), "internal", attributes, within=None, link=run.traceparent)
        ) as span:
            yield span

    @contextmanager
    def agent(self, agent: Agent) -> Generator[Span]:
        """Trace the work of a subagent."""
        attributes = {names.OPERATION: "invoke_agent", names.AGENT_ID: agent.id, names.AGENT_NAME: agent.name}
        with self._inside(names.agent_span(agent.name), "internal", attributes) as span:
            yield span

    @contextmanager
    def chat(self, provider_string: str) -> Generator[Span]:
        """Trace one request to a model."""
        if self._begin is None:
            yield OFF
            return
        attributes = names.of_chat(provider_string)
        with self._inside(names.chat_span(str(attributes[names.REQUEST_MODEL])), "client", attributes) as span:
            yield span

    @contextmanager
    def tool(self, name: str, call_id: str, *, is_known: bool) -> Generator[Span]:
        """Trace one call of a tool; a model can make up names, which are not names of spans."""
        if self._begin is None:
            yield OFF
            return
        shown = name if is_known else names.UNKNOWN_TOOL
        with self._inside(names.tool_span(shown), "internal", names.of_tool(shown, call_id)) as span:
            yield span

    def name_agent(self, agent: Agent, model: str) -> None:
        """Note on the attempt of the current task which agent executes it."""
        span = _current.get()
        if span is not None:
            span.rename(names.agent_span(agent.name))
            span.note({names.AGENT_ID: agent.id, names.AGENT_NAME: agent.name, names.REQUEST_MODEL: model})

    @contextmanager
    def _inside(self, name: str, kind: SpanKind, attributes: names.Attributes) -> Generator[Span]:
        parent = _current.get()
        if self._begin is None or parent is None:
            yield OFF
            return
        with _entered(self._begin(name, kind, attributes, within=parent, link=None)) as span:
            yield span


def note_end(span: Span, outcome: Outcome | None, usage: RunUsage | None, given_up: str | None) -> None:
    """Note how an attempt ended; without an outcome, this process gave the run up."""
    if outcome is None:
        span.note({names.STATUS: given_up or "released"})
        return
    span.note({names.STATUS: outcome.status, names.REASON: outcome.reason})
    if usage is not None:
        cost = None if usage.cost_micros is None else usage.cost_micros / 1_000_000
        span.note({names.INPUT_TOKENS: usage.input_tokens, names.OUTPUT_TOKENS: usage.output_tokens, names.COST: cost})
    if outcome.status == "failed":
        span.fail(outcome.reason or "error")


@contextmanager
def _entered(span: Span) -> Generator[Span]:
    before = _current.set(span)
    try:
        yield span
    except BaseException as error:
        span.fail(_code_of(error))
        raise
    finally:
        _current.reset(before)
        span.end()


def _code_of(error: BaseException) -> str:
    if isinstance(error, WakefulError):
        return error.code
    return "cancelled" if isinstance(error, asyncio.CancelledError) else type(error).__name__
