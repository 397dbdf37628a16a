"""The agent loop: ask the model, show what it says, call its tools, save each step, until it has answered."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from wakeful.clock import Clock
from wakeful.domain.errors import WakefulError
from wakeful.domain.events import (
    EndedEarly,
    RecallUpdate,
    RunEvent,
    StepSaved,
    StreamDelta,
    StreamEnd,
    StreamStart,
    ThinkingDelta,
    ThinkingEnd,
    ToolCall,
    ToolStarted,
)
from wakeful.domain.types import Message, Run, Wake
from wakeful.domain.wakes import is_schedule
from wakeful.runtime.budget import NOTES, Budget, RepeatedCalls
from wakeful.runtime.executor import Stop, Stopped
from wakeful.runtime.models.errors import ModelBusy, ModelCutOff
from wakeful.runtime.models.providers import Models
from wakeful.runtime.prompt import system_prompt
from wakeful.runtime.transcript import INTERRUPTED, open_calls, to_data, to_model
from wakeful.service.briefings import Briefing, Briefings
from wakeful.tools.registry import Tool, ToolContext, ToolResult, Tools

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a model may be silent, and how often it is asked again; in seconds."""

    first: float = 185.0  # a little more than our own wire's, whose words are better
    between: float = 65.0
    retries: int = 6
    pause: float = 1.0  # before the first retry; doubled each time
    longest_pause: float = 60.0


class AgentLoop:
    """Carries out runs with a model and tools."""

    def __init__(
        self,
        briefings: Briefings,
        models: Models,
        tools: Tools,
        clock: Clock,
        workspace_of: Callable[[str], Path],
        patience: Patience | None = None,
    ) -> None:
        self.briefings = briefings
        self.models = models
        self.tools = tools
        self.clock = clock
        self.workspace_of = workspace_of
        self.patience = patience or Patience()

    async def execute(self, run: Run, _saved_steps: Sequence[Message], stop: Stop) -> AsyncGenerator[RunEvent]:
        """Work on a run from where its session's transcript ends."""
        yield StreamStart()
        briefing = await self.briefings.read(run)
        await self.tools.prepare(briefing.agent)
        async for event in _Work(self, run, briefing, stop).go():
            yield event


class _Reply:
    """One answer of the model as it comes in."""

    def __init__(self) -> None:
        self.text = ""
        self.thinking = ""
        self.is_thinking = False
        self.whole: ModelResponse | None = None

    @property
    def has_begun(self) -> bool:
        return bool(self.text or self.thinking)


class _Work:
    """The work on one run."""

    def __init__(self, loop: AgentLoop, run: Run, briefing: Briefing, stop: Stop) -> None:
        self._loop = loop
        self._run = run
        self._briefing = briefing
        self._stop = stop
        self._began = time.monotonic()
        self._name = briefing.agent.model or loop.models.default
        self._messages = list(briefing.messages)
        self._budget = Budget(briefing, run, self._name)
        self._repeated = RepeatedCalls()
        self._is_stuck = False
        self._context_tokens = 0
        self._only = briefing.session_config.get("tool_ids")
        self._tools = {tool.name: tool for tool in loop.tools.shown_to(briefing.agent, self._only)}

    async def go(self) -> AsyncGenerator[RunEvent]:
        async for event in self._begin():
            yield event
        while not self._stop.is_requested:
            reason = "repeated_calls" if self._is_stuck else self._budget.spent()
            if reason is not None:
                yield self._step("assistant", NOTES[reason], {"note": reason})
                yield EndedEarly(reason=reason)
                yield self._end(NOTES[reason])
                return
            reply = _Reply()
            try:
                async for event in self._ask(reply):
                    yield event
            except Stopped:
                return
            assert reply.whole is not None
            calls = [part for part in reply.whole.parts if isinstance(part, ToolCallPart)]
            yield self._step("assistant", reply.text, to_data(reply.whole, reply.thinking, _shown(calls)))
            if not calls:
                yield self._end(reply.text)
                return
            async for event in self._call_all(calls):
                yield event

    async def _begin(self) -> AsyncGenerator[RunEvent]:
        """Put what woke us into the transcript, or go on where an earlier attempt was cut off."""
        own = [message for message in self._messages if message.run_id == self._run.id]
        wake = self._briefing.wake
        if wake is not None:
            for step in self._opening(wake, len(own)):
                yield step
            if not own and wake.kind == "recall" and wake.session_id is not None:
                yield RecallUpdate(
                    session_id=wake.session_id,
                    recall_id=wake.id,
                    call_type=wake.call_type,
                    trigger_at=self._run.nominal_at,
                    status="pending" if wake.is_recurring else "fired",
                    action="fired",
                )
        for message in own:
            if message.role == "tool" and message.data is not None:
                self._is_stuck = self._repeated.note(message.data["tool"], message.data["args"], message.content)
        if own:
            async for event in self._call_all(open_calls(self._messages), is_first_begun=True):
                yield event

    def _opening(self, wake: Wake, count: int) -> list[StepSaved]:
        """Return what a woken run begins with, after the first so many that an earlier attempt has saved."""
        label = wake.comment or None
        preloaded = self._briefing.session_config.get("preloaded_messages", ()) if wake.kind == "session" else ()
        steps = [
            self._step(each["role"], each["content"], {"preloaded": dict(each)}, source="preloaded", label=label)
            for each in preloaded[count:]
        ]
        if count <= len(preloaded):
            source = "scheduled" if is_schedule(wake) else wake.kind
            is_recall = wake.kind == "recall"
            steps.append(self._step("user", wake.instructions, is_recall=is_recall, source=source, label=label))
        return steps

    async def _ask(self, reply: _Reply) -> AsyncGenerator[RunEvent]:
        """Ask the model, again if it is busy, and fill in its reply."""
        patience = self._loop.patience
        for attempt in range(patience.retries + 1):
            try:
                async for event in self._stream(reply):
                    yield event
            except ModelBusy as busy:
                pause = busy.retry_after or min(patience.pause * 2**attempt, patience.longest_pause)
                if reply.has_begun or attempt == patience.retries or pause > self._seconds_left():
                    for step in self._cut_off(reply):
                        yield step
                    raise
                log.info("model busy", extra={"run_id": self._run.id, "model": self._name, "pause": pause})
                with self._stop.cuts_off():
                    await asyncio.sleep(pause)
            except (WakefulError, Stopped):
                for step in self._cut_off(reply):
                    yield step
                raise
            else:
                return

    def _cut_off(self, reply: _Reply) -> list[StepSaved]:
        """Keep what people have read of a reply that broke off, marked as the piece it is."""
        return [self._step("assistant", reply.text, {"cut_off": True})] if reply.text else []

    async def _stream(self, reply: _Reply) -> AsyncGenerator[RunEvent]:
        model = await self._loop.models.load(self._name)
        prompt = system_prompt(self._briefing, self._run, self._loop.clock.now())
        request = model_request_stream(
            model,
            to_model(prompt, self._messages, self._briefing.images),
            model_settings=self._settings(),
            model_request_parameters=ModelRequestParameters(
                function_tools=[_defined(tool) for tool in self._tools.values()], allow_text_output=True
            ),
        )
        async with AsyncExitStack() as stack:
            response = await self._wait(stack.enter_async_context(request), reply)
            events = aiter(response)
            while (event := await self._wait(_next(events), reply)) is not None:
                for said in _read(event, reply):
                    yield said
            if reply.is_thinking:
                yield ThinkingEnd()
            reply.whole = response.get()
        used = response.usage
        self._context_tokens = used.input_tokens + used.output_tokens
        self._budget.count_model_call(used, self._loop.models.price(self._name, used, at=self._loop.clock.now()))

    async def _wait(self, awaitable: Awaitable[T], reply: _Reply) -> T:
        """Wait for the model, but not past its time or a person's wish to stop; its errors come out as ours."""
        seconds = self._loop.patience.between if reply.has_begun else self._loop.patience.first
        try:
            with self._stop.cuts_off():
                async with asyncio.timeout(seconds):
                    return await awaitable
        except (WakefulError, Stopped):
            raise
        except TimeoutError:
            kind = ModelCutOff if reply.has_begun else ModelBusy
            raise kind(self._name, f"nothing came for {seconds:.0f} seconds.") from None
        except Exception as error:
            meant = self._loop.models.translate(error, self._name)
            if meant is None:
                raise
            raise meant from error

    async def _call_all(
        self, calls: Sequence[ToolCallPart], *, is_first_begun: bool = False
    ) -> AsyncGenerator[RunEvent]:
        """Call tools one after the other. Each result is saved before the next call, so after a crash at most one
        call is in doubt: the first without a result.
        """
        for number, call in enumerate(calls):
            if self._stop.is_requested:
                return
            async for event in self._call(call, is_in_doubt=is_first_begun and number == 0):
                yield event

    async def _call(self, call: ToolCallPart, *, is_in_doubt: bool) -> AsyncGenerator[RunEvent]:
        args = _arguments(call)
        tool = self._tools.get(call.tool_name)
        shown = args if args is not None else {"unreadable": str(call.args)}
        yield ToolStarted(tool=call.tool_name, args=shown, call_id=call.tool_call_id)
        if is_in_doubt and not (tool is not None and tool.is_repeatable):
            result = ToolResult(text=INTERRUPTED, success=False, metadata={"code": "interrupted"})
        elif args is None:
            text = f"{call.tool_name} was not called: its arguments are not a JSON object."
            result = ToolResult(text=text, success=False, metadata={"code": "bad_arguments"})
        else:
            agent = self._briefing.agent
            context = ToolContext(
                run=self._run, agent=agent, workspace=self._loop.workspace_of(agent.id), only=self._only
            )
            result = await self._loop.tools.call(call.tool_name, args, context)
            result = replace(result, text=_keepable(result.text))
        self._budget.count_tool_call()
        self._is_stuck = self._repeated.note(call.tool_name, shown, result.text)
        yield ToolCall(
            tool=call.tool_name,
            args=shown,
            result=result.text,
            success=result.success,
            metadata=result.metadata,
            call_id=call.tool_call_id,
        )
        for frame in result.frames:
            yield frame
        data = {
            "call_id": call.tool_call_id,
            "tool": call.tool_name,
            "args": shown,
            "success": result.success,
            "metadata": dict(result.metadata),
        }
        yield self._step("tool", result.text, data)

    def _step(self, role: str, content: str, data: Mapping[str, Any] | None = None, **more: Any) -> StepSaved:
        """Add to the transcript, here and in the store."""
        assert self._run.session_id is not None
        self._messages.append(
            Message(
                id="",
                session_id=self._run.session_id,
                position=0,
                role=role,
                content=content,
                created_at=self._loop.clock.now(),
                run_id=self._run.id,
                data=data,
            )
        )
        return StepSaved(role=role, content=content, data=data, usage=self._budget.usage, **more)

    def _end(self, content: str) -> StreamEnd:
        usage = self._budget.usage
        return StreamEnd(
            content=content,
            context_tokens=self._context_tokens,
            max_context_tokens=self._loop.models.context_window(self._name),
            elapsed_seconds=round(time.monotonic() - self._began, 3),
            tool_call_count=usage.tool_calls,
            token_count=usage.output_tokens,
            message_index=len(self._messages) - 1,
        )

    def _settings(self) -> ModelSettings:
        level = self._briefing.agent.thinking_level
        return ModelSettings() if level is None else ModelSettings(thinking=False if level == "off" else level)

    def _seconds_left(self) -> float:
        return self._briefing.agent.run_limit.total_seconds() - (time.monotonic() - self._began)


async def _next(events: AsyncIterator[ModelResponseStreamEvent]) -> ModelResponseStreamEvent | None:
    return await anext(events, None)


def _read(event: ModelResponseStreamEvent, reply: _Reply) -> list[RunEvent]:
    """Return what a piece of the model's answer shows to those who watch."""
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            text = _keepable(text)
            ended: list[RunEvent] = [ThinkingEnd()] if reply.is_thinking and text else []
            reply.is_thinking = reply.is_thinking and not text
            reply.text += text
            return [*ended, StreamDelta(delta=text)] if text else []
        case (
            PartStartEvent(part=ThinkingPart(content=text))
            | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text))
        ):
            text = _keepable(text or "")
            reply.is_thinking = reply.is_thinking or bool(text)
            reply.thinking += text
            return [ThinkingDelta(delta=text)] if text else []
        case PartStartEvent() if reply.is_thinking:
            reply.is_thinking = False
            return [ThinkingEnd()]
        case _:
            return []


def _keepable(text: str) -> str:
    """Return a text without NUL, which one of the databases cannot keep."""
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}")


def _defined(tool: Tool) -> ToolDefinition:
    return ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.schema)


def _arguments(call: ToolCallPart) -> dict[str, Any] | None:
    try:
        return call.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError):  # what the model wrote is not a JSON object
        return None


def _shown(calls: Sequence[ToolCallPart]) -> list[dict[str, Any]]:
    return [{"call_id": call.tool_call_id, "tool": call.tool_name, "args": _arguments(call) or {}} for call in calls]
