"""Spans of runs: one for each attempt, with its requests to models and calls of tools. Without a collector, none."""

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, Protocol

import orjson
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from wakeful.core.errors import WakefulError
from wakeful.core.records import Outcome
from wakeful.core.types import Agent, ClaimedRun, RunUsage

# Names of spans and attributes: OpenTelemetry's conventions for generative AI, which still change, and our own.
#
# Every name stands here alone. Checked against version 1.37 of the conventions.


SCHEMA_URL = "https://opentelemetry.io/schemas/1.37.0"

Attributes = Mapping[str, "str | int | float | bool | list[str]"]

OPERATION = "gen_ai.operation.name"
AGENT_ID = "gen_ai.agent.id"
AGENT_NAME = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
ERROR_TYPE = "error.type"

# With content only.
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

# Ours.
RUN_ID = "wakeful.run.id"
WAKE_ID = "wakeful.wake.id"
TRIGGER = "wakeful.run.trigger"
ATTEMPT = "wakeful.run.attempt"
STATUS = "wakeful.run.status"
REASON = "wakeful.run.reason"
COST = "wakeful.cost_dollars"
LINK = "wakeful.link"  # of a link: what the linked span is to this one

UNKNOWN_TOOL = "unknown"  # a model can make up names
_MAX_NAME = 100

# Providers whose name in the conventions is not ours.
_PROVIDERS = {
    "google": "gcp.gemini",
    "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "openai-chat": "openai",
}


def agent_span(name: str) -> str:
    return f"invoke_agent {name[:_MAX_NAME]}".rstrip()


def chat_span(model: str) -> str:
    return f"chat {model[:_MAX_NAME]}"


def tool_span(name: str) -> str:
    return f"execute_tool {name[:_MAX_NAME]}"


def of_attempt(run: ClaimedRun) -> Attributes:
    """Return the attributes of an attempt at a run that are known when it starts."""
    found: dict[str, str | int | float | bool | list[str]] = {
        OPERATION: "invoke_agent",
        AGENT_ID: run.agent_id,
        CONVERSATION: run.session_id,
        RUN_ID: run.id,
        TRIGGER: run.trigger,
        ATTEMPT: run.attempt,
    }
    return found if run.wake_id is None else {**found, WAKE_ID: run.wake_id}


def of_chat(provider_string: str) -> Attributes:
    """Return the attributes of a request to a model, from PROVIDER:MODEL."""
    provider, _, model = provider_string.partition(":")
    # A name without a provider, as `demo`, is both.
    return {OPERATION: "chat", PROVIDER: _PROVIDERS.get(provider, provider), REQUEST_MODEL: model or provider}


def of_tool(name: str, call_id: str) -> Attributes:
    return {OPERATION: "execute_tool", TOOL_NAME: name[:_MAX_NAME], TOOL_TYPE: "function", TOOL_CALL_ID: call_id}


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
        self, name: str, kind: SpanKind, attributes: Attributes, *, within: Span | None, link: str | None
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
        attributes = of_attempt(run)
        with _entered(self._begin(agent_span(""), "internal", attributes, within=None, link=run.traceparent)) as span:
            yield span

    @contextmanager
    def agent(self, agent: Agent) -> Generator[Span]:
        """Trace the work of a subagent."""
        attributes = {OPERATION: "invoke_agent", AGENT_ID: agent.id, AGENT_NAME: agent.name}
        with self._inside(agent_span(agent.name), "internal", attributes) as span:
            yield span

    @contextmanager
    def chat(self, provider_string: str) -> Generator[Span]:
        """Trace one request to a model."""
        if self._begin is None:
            yield OFF
            return
        attributes = of_chat(provider_string)
        with self._inside(chat_span(str(attributes[REQUEST_MODEL])), "client", attributes) as span:
            yield span

    @contextmanager
    def tool(self, name: str, call_id: str, *, is_known: bool) -> Generator[Span]:
        """Trace one call of a tool; a model can make up names, which are not names of spans."""
        if self._begin is None:
            yield OFF
            return
        shown = name if is_known else UNKNOWN_TOOL
        with self._inside(tool_span(shown), "internal", of_tool(shown, call_id)) as span:
            yield span

    def name_agent(self, agent: Agent, model: str) -> None:
        """Note on the attempt of the current task which agent executes it."""
        span = _current.get()
        if span is not None:
            span.rename(agent_span(agent.name))
            span.note({AGENT_ID: agent.id, AGENT_NAME: agent.name, REQUEST_MODEL: model})

    @contextmanager
    def _inside(self, name: str, kind: SpanKind, attributes: Attributes) -> Generator[Span]:
        parent = _current.get()
        if self._begin is None or parent is None:
            yield OFF
            return
        with _entered(self._begin(name, kind, attributes, within=parent, link=None)) as span:
            yield span


def note_end(span: Span, outcome: Outcome | None, usage: RunUsage | None, *, is_lost: bool) -> None:
    """Note how an attempt ended; without an outcome, the run goes on later or elsewhere."""
    if outcome is None:
        span.note({STATUS: "lost" if is_lost else "released"})
        return
    span.note({STATUS: outcome.status, REASON: outcome.reason})
    if usage is not None:
        cost = None if usage.cost_micros is None else usage.cost_micros / 1_000_000
        span.note({INPUT_TOKENS: usage.input_tokens, OUTPUT_TOKENS: usage.output_tokens, COST: cost})
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


# ── Messages as content of spans ─────────────────────────────────────────────────────────────────────────────────────

_MAX_TEXT = 8_000  # characters of one part
_ROLES: dict[type, str] = {SystemPromptPart: "system", ToolReturnPart: "tool"}


def to_otel(messages: Sequence[ModelMessage]) -> str:
    """Return messages as JSON: a role and its parts for each. Images are named, not contained."""
    found: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, ModelRequest):
            found += [{"role": _ROLES.get(type(part), "user"), "parts": [_to_part(part)]} for part in message.parts]
        else:
            found.append({"role": "assistant", "parts": [_to_part(part) for part in message.parts]})
    return orjson.dumps(found).decode()


def _to_part(part: Any) -> dict[str, Any]:
    match part:
        case ToolCallPart():
            return {
                "type": "tool_call",
                "id": part.tool_call_id,
                "name": part.tool_name,
                "arguments": part.args_as_json_str()[:_MAX_TEXT],
            }
        case ToolReturnPart():
            response = part.model_response_str()[:_MAX_TEXT]
            return {"type": "tool_call_response", "id": part.tool_call_id, "response": response}
        case ThinkingPart():
            return {"type": "reasoning", "content": part.content[:_MAX_TEXT]}
        case TextPart() | SystemPromptPart():
            return {"type": "text", "content": part.content[:_MAX_TEXT]}
        case UserPromptPart():
            return {"type": "text", "content": _text_of(part)[:_MAX_TEXT]}
        case _:
            return {"type": str(part.part_kind)}


def _text_of(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    return "\n".join(each if isinstance(each, str) else f"[{type(each).__name__}]" for each in part.content)
