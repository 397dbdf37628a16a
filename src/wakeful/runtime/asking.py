"""Asking the model: patient with one that is busy, deaf to none of its words, and cut off by a wish to stop."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack
from typing import TypeVar, cast

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from wakeful.domain.errors import WakefulError
from wakeful.domain.events import RunEvent, StreamDelta, ThinkingDelta, ThinkingEnd
from wakeful.runtime.budget import PriceUnknown
from wakeful.runtime.caching import cache_settings
from wakeful.runtime.context import BYTES_PER_TOKEN
from wakeful.runtime.executor import Stopped
from wakeful.runtime.models.chat_chunks import MOST_CALLS
from wakeful.runtime.models.errors import ModelBusy, ModelCutOff
from wakeful.runtime.work import Work, keepable
from wakeful.tools.registry import Tool

T = TypeVar("T")

log = logging.getLogger(__name__)

MOST_SAID = 1_000_000  # characters of one answer; no model has that much to say
_OUTPUT = 4_000  # tokens that an answer is taken for while it is under way


class BudgetSpent(Exception):
    """Other workers on the same run have used up what was left."""


class Reply:
    """One answer of the model as it comes in, up to so many characters."""

    def __init__(self, most: int = MOST_SAID) -> None:
        self._most = most
        self._said: list[str] = []
        self._thought: list[str] = []
        self.length = 0  # characters, those of calls too
        self.is_thinking = False
        self.is_too_long = False
        self.calls = 0  # begun
        self.whole: ModelResponse | None = None

    @property
    def has_begun(self) -> bool:
        return bool(self._said or self._thought)

    @property
    def has_too_many_calls(self) -> bool:
        return self.calls > MOST_CALLS

    @property
    def is_cut_off(self) -> bool:
        """Tell whether there is more than we read."""
        return self.is_too_long or self.has_too_many_calls

    @property
    def text(self) -> str:
        return "".join(self._said)

    @property
    def thinking(self) -> str:
        return "".join(self._thought)

    def read(self, event: ModelResponseStreamEvent) -> list[RunEvent]:
        """Take in a piece of the answer, and return what it shows to those who watch."""
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                text = self._take(text)
                if not text:
                    return []
                ended: list[RunEvent] = [ThinkingEnd()] if self.is_thinking else []
                self.is_thinking = False
                self._said.append(text)
                return [*ended, StreamDelta(delta=text)]
            case (
                PartStartEvent(part=ThinkingPart(content=text))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text))
            ):
                text = self._take(text)
                if not text:
                    return []
                self.is_thinking = True
                self._thought.append(text)
                return [ThinkingDelta(delta=text)]
            case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=str() as text)):
                self._take(text)
                return []
            case PartStartEvent(part=part):
                if isinstance(part, ToolCallPart):
                    self.calls += 1
                    self._take(part.args_as_json_str())
                ended = [ThinkingEnd()] if self.is_thinking else []
                self.is_thinking = False
                return ended
            case _:
                return []

    def _take(self, text: str | None) -> str:
        """Return as much of a piece as there is room for, in a form that can be kept."""
        if not text:
            return ""
        self.length += len(text)
        if self.length > self._most:
            text = text[: max(0, len(text) - (self.length - self._most))]
            self.is_too_long = True
        return keepable(text)


async def ask_quietly(
    work: Work, messages: list[ModelMessage], *, most: int = MOST_SAID, with_tools: bool = True
) -> Reply:
    """Ask the model something that nobody watches being answered."""
    reply = Reply(most)
    async for _ in ask(work, messages, reply, with_tools=with_tools):
        pass
    return reply


async def ask(
    work: Work, messages: list[ModelMessage], reply: Reply, *, with_tools: bool = True
) -> AsyncGenerator[RunEvent]:
    """Ask the model, again if it is busy, and fill in its reply."""
    patience = work.means.patience
    tools = list(work.tools.values()) if with_tools else []
    for attempt in range(patience.retries + 1):
        try:
            async for event in _stream(work, messages, tools, reply):
                yield event
        except ModelBusy as busy:
            pause = busy.retry_after or min(patience.pause * 2**attempt, patience.longest_pause)
            if reply.has_begun or attempt == patience.retries or pause > work.seconds_left():
                raise
            log.info("model busy", extra={"run_id": work.run.id, "model": work.model, "pause": pause})
            with work.stop.cuts_off():
                await asyncio.sleep(pause)
        else:
            return


async def _stream(
    work: Work, messages: list[ModelMessage], tools: Sequence[Tool], reply: Reply
) -> AsyncGenerator[RunEvent]:
    models = work.means.models
    reply.calls = 0  # those of a try that failed do not count
    size = RequestUsage(input_tokens=work.context_tokens, output_tokens=_OUTPUT)
    cost = _price(work, size)
    with work.stop.cuts_off():
        await work.budget.wait_for_room(size, cost)
    if work.budget.is_spent():  # by those whose end we waited for
        raise BudgetSpent
    async with AsyncExitStack() as stack:
        stack.enter_context(work.budget.under_way(size, cost))  # at once: nobody may come in between
        model = await models.load(work.model)
        await work.means.before_call()
        request = model_request_stream(
            model,
            messages,
            model_settings=_settings(work),
            model_request_parameters=ModelRequestParameters(function_tools=_defined(tools), allow_text_output=True),
        )
        response = await _wait(work, stack.enter_async_context(request), reply)
        events = aiter(response)
        while (event := await _wait(work, _next(events), reply)) is not None:
            for said in reply.read(event):
                yield said
            if reply.is_cut_off:
                break
        if reply.is_thinking:
            yield ThinkingEnd()
        reply.whole = response.get()
    used = response.usage
    if reply.is_cut_off or not used.has_values():  # the provider could not, or does not, say what it counted
        used = RequestUsage(
            input_tokens=max(used.input_tokens, work.context_tokens),
            output_tokens=max(used.output_tokens, reply.length // BYTES_PER_TOKEN),
        )
    work.context_tokens = used.input_tokens + used.output_tokens
    work.budget.count_model_call(used, _price(work, used))


async def _wait(work: Work, awaitable: Awaitable[T], reply: Reply) -> T:
    """Wait for the model, but not past its time or a person's wish to stop; its errors come out as ours."""
    patience = work.means.patience
    seconds = patience.between if reply.has_begun else patience.first
    try:
        with work.stop.cuts_off():
            async with asyncio.timeout(seconds):
                return await awaitable
    except (WakefulError, Stopped):
        raise
    except TimeoutError:
        kind = ModelCutOff if reply.has_begun else ModelBusy
        raise kind(work.model, f"nothing came for {seconds:.0f} seconds.") from None
    except Exception as error:
        meant = work.means.models.translate(error, work.model)
        if meant is None:
            raise
        raise meant from error


def _price(work: Work, used: RequestUsage) -> int | None:
    cost = work.means.models.price(work.model, used, at=work.means.clock.now())
    if cost is None and work.budget.counts_money:
        raise PriceUnknown(work.model)
    return cost


async def _next(events: AsyncIterator[ModelResponseStreamEvent]) -> ModelResponseStreamEvent | None:
    return await anext(events, None)


def _settings(work: Work) -> ModelSettings:
    level = work.briefing.agent.thinking_level
    breakpoints = work.briefing.session_config.get("cache_breakpoints", ())
    settings = ModelSettings() if level is None else ModelSettings(thinking=False if level == "off" else level)
    return cast("ModelSettings", {**settings, **cache_settings(work.model, breakpoints)})


def _defined(tools: Sequence[Tool]) -> list[ToolDefinition]:
    return [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.schema)
        for tool in tools
    ]
