"""Call the model: stream its reply, retry while it is busy, report the waiting. A stop request cancels it."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Sequence
from typing import Any, cast

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

from wakeful.core.budget import Spent
from wakeful.core.errors import Unavailable, WakefulError
from wakeful.core.events import RunEvent, StreamDelta, StreamStart, ThinkingDelta, ThinkingEnd, Waiting
from wakeful.core.resources import shortage
from wakeful.core.texts import to_storable
from wakeful.loop.context import BYTES_PER_TOKEN, is_cut, note_cut, size_of
from wakeful.loop.following import EVERY, FIRST_SHOWN, Followed, pause
from wakeful.loop.repetition import RepetitionBrake
from wakeful.loop.spending import PriceUnknown
from wakeful.loop.state import RunState
from wakeful.loop.tools import offered_tools
from wakeful.models.errors import ModelBusy, ModelCutOff, ModelSilent
from wakeful.models.openai_wire import MAX_CALLS
from wakeful.telemetry.tracing import (
    COST,
    FINISH_REASONS,
    INPUT_MESSAGES,
    INPUT_TOKENS,
    OUTPUT_MESSAGES,
    OUTPUT_TOKENS,
    RESPONSE_MODEL,
    Span,
    to_otel,
)
from wakeful.timing.session_config import caching_provider
from wakeful.toolbox.registry import Tool

log = logging.getLogger(__name__)

MAX_SAID = 1_000_000  # characters of one answer
_ADVICE = "Test the agent's model, which says whether its endpoint answers, then continue this run."
_MIN_OUTPUT = 256  # tokens
_OUTPUT = 4_000  # tokens: the estimate for an answer in progress
_CACHES = {"system": "cache_instructions", "tools": "cache_tool_definitions", "messages": "cache_messages"}


_Stream = Callable[["Followed[None]"], Coroutine[Any, Any, None]]


class BudgetSpent(Exception):
    """Other subagents of the same run have used up the rest of the budget."""


class Reply:
    """One answer of the model as it arrives, up to `most` characters."""

    def __init__(self, most: int | None = None) -> None:
        self._most = MAX_SAID if most is None else most
        self.begin()

    def begin(self) -> None:
        """Drop what an attempt before has brought."""
        self._said: list[str] = []
        self._thought: list[str] = []
        self.length = 0  # characters, those of calls too
        self.is_thinking = False
        self.is_too_long = False
        self._brakes = RepetitionBrake(), RepetitionBrake()  # of the text and the thinking
        self.calls = 0  # begun
        self.whole: ModelResponse | None = None
        self.is_prompt_cut = False  # the provider dropped a part of what was sent

    @property
    def has_begun(self) -> bool:
        return any(self._said) or any(self._thought)

    @property
    def has_too_many_calls(self) -> bool:
        return self.calls > MAX_CALLS

    @property
    def is_repeating(self) -> bool:
        """Return whether it repeats the same text without end."""
        return any(brake.is_on for brake in self._brakes)

    @property
    def is_cut_off(self) -> bool:
        """Return whether the answer was longer than what was read."""
        return self.is_too_long or self.has_too_many_calls or self.is_repeating

    @property
    def has_hit_limit(self) -> bool:
        """Return whether the answer ended at the model's output limit."""
        return self.whole is not None and self.whole.finish_reason == "length"

    @property
    def text(self) -> str:
        return "".join(self._said)

    @property
    def thinking(self) -> str:
        return "".join(self._thought)

    def read(self, event: ModelResponseStreamEvent) -> list[RunEvent]:
        """Add a piece of the answer, and return its frames."""
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                text = self._take(text)
                self._said.append(text)
                self._brakes[0].read(text)
                return [*self._end_thinking(), StreamDelta(delta=text)] if text else []
            case (
                PartStartEvent(part=ThinkingPart(content=text))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text))
            ):
                text = self._take(text)
                self._thought.append(text)
                self._brakes[1].read(text)
                self.is_thinking = self.is_thinking or bool(text)
                return [ThinkingDelta(delta=text)] if text else []
            case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=str() as text)):
                self._take(text)
                return []
            case PartStartEvent(part=part):
                if isinstance(part, ToolCallPart):
                    self.calls += 1
                    self._take(part.args_as_json_str())
                return self._end_thinking()
            case _:
                return []

    def _end_thinking(self) -> list[RunEvent]:
        ended: list[RunEvent] = [ThinkingEnd()] if self.is_thinking else []
        self.is_thinking = False
        return ended

    def _take(self, text: str | None) -> str:
        """Return as much of a piece as the limit allows, in a form that can be saved."""
        if not text:
            return ""
        self.length += len(text)
        if self.length > self._most:
            text = text[: max(0, len(text) - (self.length - self._most))]
            self.is_too_long = True
        return to_storable(text)


async def ask_quietly(
    state: RunState, messages: list[ModelMessage], reply: Reply, *, with_tools: bool = True
) -> AsyncGenerator[RunEvent]:
    """Ask the model without streaming its answer; yield only `waiting` frames."""
    async for event in ask(state, messages, reply, with_tools=with_tools, is_streamed=False):
        if isinstance(event, Waiting):
            yield event


async def ask(
    state: RunState, messages: list[ModelMessage], reply: Reply, *, with_tools: bool = True, is_streamed: bool = True
) -> AsyncGenerator[RunEvent]:
    """Ask the model, with retries while it is busy, and fill in its reply. Yield `waiting` frames in between."""
    patience = state.deps.patience
    tools = offered_tools(state) if with_tools else []
    trying = _Trying(state, reply)
    while True:
        if state.seconds_left() <= 0:
            raise OutOfTime(state, "no time is left for a call.")
        attempt = trying.begin(lambda _: _stream(state, messages, tools, trying), is_streamed=is_streamed)
        try:
            async for event in attempt.events(state.tasks, state.stop):
                yield event
        except WakefulError as busy:
            state.deps.metrics.note_model_error(state.model, busy.code)
            if not isinstance(busy, ModelBusy):
                raise
            trying.note(busy)
            seconds = busy.retry_after or min(patience.pause * 2 ** (trying.tries - 1), patience.longest_pause)
            if not trying.may_go_on(seconds):
                raise trying.given_up(busy, seconds) from busy
            log.info("model busy", extra={"run_id": state.run.id, "model": state.model, "pause": seconds})
            state.deps.metrics.note_model_retry(state.model)
            problem = busy.problem
        else:
            return
        async for frame in _pause(state, problem, seconds):
            yield frame
        if reply.has_begun and is_streamed and state.depth == 0:
            yield StreamStart()  # clients drop what was streamed since the last saved step
        reply.begin()


class OutOfTime(Unavailable):
    """The run reached its time limit while it waited for the model."""

    code = "time_limit"

    def __init__(self, state: RunState, problem: str) -> None:
        limit = state.briefing.agent.run_limit.total_seconds()
        super().__init__(
            f"The run's time limit of {limit:g} s was used up while it waited for the model {state.model!r}: {problem} "
            f"{_ADVICE} If the model only needs longer, raise the agent's `run_limit_seconds`."
        )


class _Trying:
    """The attempts at one answer, and their time limits."""

    followed: "Followed[None]"

    def __init__(self, state: RunState, reply: Reply) -> None:
        self.reply = reply
        self._state = state
        self._clock = state.deps.clock
        self._began = self._clock.monotonic()
        self._is_asked = False
        self._silences = 0
        self._is_cut_off = False  # the last attempt
        self.tries = 0

    def begin(self, stream: _Stream, *, is_streamed: bool) -> "Followed[None]":
        """Start an attempt. Deltas of a subagent are never streamed."""
        self.tries += 1
        self._is_asked = False
        are_deltas_shown = is_streamed and self._state.depth == 0
        self.followed = Followed(
            self._clock,
            stream,
            self._describe,
            is_shown=lambda event: are_deltas_shown or not isinstance(event, StreamDelta | ThinkingDelta),
            until=self._until,
        )
        return self.followed

    def note_asked(self) -> None:
        """Start the model's time: waiting for the budget or for an import does not count."""
        # A silent model is asked once more, so the first attempt may take half of the time that is left.
        share = self._state.seconds_left() / (1 if self._silences else 2)
        self._first = min(self._state.deps.patience.first, max(share, 0.0))
        self._is_asked = True
        self.followed.note_alive()

    def note(self, busy: ModelBusy) -> None:
        self._silences += isinstance(busy, ModelSilent)
        self._is_cut_off = isinstance(busy, ModelCutOff)

    def may_go_on(self, seconds: float) -> bool:
        patience = self._state.deps.patience
        is_patient = self.tries <= patience.retries and self._silences <= patience.silences
        return is_patient and not self._is_for_a_person and seconds < self._state.seconds_left()

    @property
    def _is_for_a_person(self) -> bool:
        """Return whether an answer has broken off that a person reads: what they saw of it is not taken back."""
        return not self._state.run.is_headless and (self.reply.has_begun or self._is_cut_off)

    def given_up(self, busy: ModelBusy, seconds: float) -> WakefulError:
        """Return the error: what happened, how often it was tried, and what to do."""
        if self._is_for_a_person:
            return busy
        left = self._state.seconds_left()
        if isinstance(busy, ModelSilent) and left <= 0:
            return OutOfTime(self._state, busy.problem)
        tried = f"It was asked {'once' if self.tries == 1 else f'{self.tries} times'} in {self._took:.0f} s."
        if seconds >= left:
            tried += f" The next attempt would be in {seconds:.0f} s, but the run has {max(left, 0):.0f} s left."
        problem = f"{busy.problem.removesuffix('.')}. {tried} {_ADVICE}"
        return type(busy)(self._state.model, problem, retry_after=busy.retry_after, status=busy.status)

    @property
    def _took(self) -> float:
        return self._clock.monotonic() - self._began

    def _place(self) -> str:
        return self._state.deps.models.place_of(self._state.model)

    def _describe(self, _waited: float) -> Waiting | None:
        if not self._is_asked:
            return None
        silent_for = self.followed.silent_for
        if self.reply.length and silent_for < FIRST_SHOWN:
            reason = f"the model is writing ({self.reply.length:,} characters so far)"
        elif self.reply.length:
            reason = f"nothing more from {self._place()} ({silent_for:.0f} s)"
        else:
            reason = f"no answer yet from {self._place()} ({silent_for:.0f} s)"
        return Waiting(for_="model", reason=reason)

    def _until(self) -> float:
        """Return the deadline for the next piece of the answer; raise if it has passed."""
        if not self._is_asked:
            return float("inf")
        alive_at, now = self.followed.alive_at, self._clock.monotonic()
        ends_at = now + self._state.seconds_left()
        has_begun = self.reply.length > 0
        limit = self._state.deps.patience.between if has_begun else self._first
        until = min(alive_at + limit, ends_at)
        if now < until:
            return until
        silence = f"{self._place()} has said nothing for {now - alive_at:.0f} s"
        if has_begun:
            silence += ", in the middle of its answer"
        if now < ends_at:
            raise (ModelCutOff if has_begun else ModelSilent)(self._state.model, f"{silence}.")
        if now - alive_at < FIRST_SHOWN:
            silence = "it was still writing its answer" if has_begun else "no time was left for its answer"
        raise OutOfTime(self._state, f"{silence}.")


async def _pause(state: RunState, problem: str, seconds: float) -> AsyncGenerator[RunEvent]:
    """Wait before the next attempt, and yield frames that say why and how long."""
    clock = state.deps.clock
    left, until, over = seconds, clock.monotonic() + seconds, asyncio.Event()
    while True:
        yield Waiting(for_="model", reason=problem, retry_in=round(left, 1))
        repeat_at = clock.monotonic() + EVERY
        while (left := until - clock.monotonic()) > 0 and (rest := repeat_at - clock.monotonic()) > 0:
            over.clear()
            with state.stop.cuts_off():
                await pause(clock, min(left, rest), over)
        if left <= 0:
            return


async def _stream(state: RunState, messages: list[ModelMessage], tools: Sequence[Tool], trying: _Trying) -> None:
    """Ask once, and say the frames of the answer."""
    cost = _price(state, RequestUsage(input_tokens=state.context_tokens, output_tokens=_OUTPUT))
    size = Spent(state.context_tokens + _OUTPUT, cost or 0)
    await state.spending.wait_for_room(size)
    if state.spending.budget.is_spent:  # by the calls that it waited for
        raise BudgetSpent
    with state.deps.tracing.chat(state.deps.models.find(state.model).provider_string) as span:
        span.show(INPUT_MESSAGES, lambda: to_otel(messages))
        await _ask_once(state, messages, tools, trying, size, span)


async def _ask_once(
    state: RunState, messages: list[ModelMessage], tools: Sequence[Tool], trying: _Trying, size: Spent, span: Span
) -> None:
    reply, began = trying.reply, state.deps.clock.monotonic()
    try:
        with state.spending.in_flight(size):  # without an await after the check, so no other call comes between
            used = await _read(state, messages, tools, trying)
    except WakefulError:
        raise
    except Exception as error:
        known = shortage(error) or state.deps.models.translate(error, state.model)
        if known is None:
            raise
        raise known from error
    if reply.is_cut_off or not used.has_values():  # the provider reported no usage
        used = RequestUsage(
            input_tokens=max(used.input_tokens, state.context_tokens),
            output_tokens=max(used.output_tokens, reply.length // BYTES_PER_TOKEN),
        )
    elif is_cut(sent := size_of(messages, tools), used.input_tokens):
        reply.is_prompt_cut = True
        await note_cut(state, sent, used.input_tokens)
    state.context_tokens = used.input_tokens + used.output_tokens
    cost, seconds = _price(state, used), state.deps.clock.monotonic() - began
    state.deps.metrics.note_model_call(state.model, seconds, used.input_tokens, used.output_tokens, cost)
    state.spending.count_model_call(used, cost)
    if (whole := reply.whole) is not None:
        reasons = None if whole.finish_reason is None else [whole.finish_reason]
        span.note({RESPONSE_MODEL: whole.model_name, FINISH_REASONS: reasons})
        span.show(OUTPUT_MESSAGES, lambda: to_otel([whole]))
    dollars = None if cost is None else cost / 1_000_000
    span.note({INPUT_TOKENS: used.input_tokens, OUTPUT_TOKENS: used.output_tokens, COST: dollars})


async def _read(state: RunState, messages: list[ModelMessage], tools: Sequence[Tool], trying: _Trying) -> RequestUsage:
    reply, followed = trying.reply, trying.followed
    model = await state.deps.models.load(state.model)
    await state.before_call()
    trying.note_asked()
    async with model_request_stream(
        model,
        messages,
        model_settings=_settings(state),
        model_request_parameters=ModelRequestParameters(function_tools=_defined(tools), allow_text_output=True),
    ) as response:
        async for event in response:
            followed.note_alive()
            for said in reply.read(event):
                await followed.say(said)
            if reply.is_cut_off:
                break
        if reply.is_thinking:
            await followed.say(ThinkingEnd())
        reply.whole = response.get()
    return response.usage


def _price(state: RunState, used: RequestUsage) -> int | None:
    cost = state.deps.models.price(state.model, used, at=state.deps.clock.now())
    if cost is None and state.spending.budget.counts_money:
        raise PriceUnknown(state.model)
    return cost


def _settings(state: RunState) -> ModelSettings:
    level = state.briefing.agent.thinking_level
    breakpoints = state.briefing.session_config.get("cache_breakpoints", ())
    room = max(state.window - state.context_tokens, _MIN_OUTPUT)
    settings: dict[str, Any] = {"max_tokens": min(state.abilities.output_limit, room)}
    if level is not None:
        settings["thinking"] = False if level == "off" else level
    provider_string = state.deps.models.find(state.model).provider_string
    return cast("ModelSettings", settings | cache_settings(provider_string, breakpoints))


def cache_settings(model: str, breakpoints: Collection[str]) -> dict[str, bool]:
    """Return the settings for these cache breakpoints; none if the provider does not accept any."""
    provider = caching_provider(model)
    return {} if provider is None else {f"{provider}_{_CACHES[each]}": True for each in breakpoints}


def _defined(tools: Sequence[Tool]) -> list[ToolDefinition]:
    return [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.schema)
        for tool in tools
    ]
