"""OpenAI-compatible chat completions as a pydantic-ai model, fast enough for thousands of deltas a second.

Silence has limits, an incomplete stream is an error, and deltas that arrive close together are merged.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponseStreamEvent
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings

from wakeful.core.clock import Clock
from wakeful.core.errors import WakefulError
from wakeful.models.endpoint import CONNECT_SECONDS, Endpoint
from wakeful.models.errors import ModelBusy, ModelCutOff, ModelSilent
from wakeful.models.openai_wire import (
    FINISH_REASONS,
    Call,
    ChatChunks,
    DataLines,
    DeltaBuffer,
    LineTooLong,
    Part,
    Silence,
    Thinking,
    shorten_call_ids,
    write_messages,
    write_tools,
)
from wakeful.models.providers import CHAT, PROVIDERS, Dialect, Provider
from wakeful.models.streaming import ModelStream, StreamingModel

LAST_BYTES_SECONDS = 1.0  # for a complete stream to end, so that its connection can be reused
USAGE_SECONDS = 5.0  # for a complete answer to report its usage

PLAIN_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "parallel_tool_calls": "parallel_tool_calls",
    "stop_sequences": "stop",
    "tool_choice": "tool_choice",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTimeouts:
    """Limits of a provider's silence, in seconds."""

    first: float = 600.0  # until the first chunk; a local model may have to be loaded
    between: float = 60.0


class OpenAIChat(StreamingModel):
    """A model at one endpoint with chat completions."""

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        clock: Clock,
        *,
        patience: ModelTimeouts | None = None,
        shown: str | None = None,
        provider: Provider | None = None,
        output_limit: int | None = None,
    ) -> None:
        # The provider decides what it supports, so nothing is left out or rewritten.
        super().__init__(profile=ModelProfile(supports_thinking=True, supports_inline_system_prompts=True))
        self._name = name
        self._shown = shown or name  # in errors: as the agent or the settings name it
        self._endpoint = endpoint
        self._clock = clock
        self._patience = patience or ModelTimeouts()
        self._spoken_to = provider or PROVIDERS[CHAT]
        self._output_limit = output_limit

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def system(self) -> str:
        return self._spoken_to.id

    @property
    def base_url(self) -> str:
        return self._endpoint.base_url

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,  # noqa: ARG002  (the library's signature)
    ) -> AsyncGenerator[StreamedResponse]:
        """Send the request, and yield the stream when the first chunk has arrived."""
        settings, parameters = self.prepare_request(model_settings, model_request_parameters)
        body = self._write(messages, settings or ModelSettings(), parameters)
        reading = Reading(self._shown, self._endpoint, self._wire(body), self._patience)
        try:
            await reading.begin()
            yield ChatStream(parameters, self, self._clock.now(), reading)
        finally:
            await reading.aclose()

    def _wire(self, body: dict[str, Any]) -> "WireRequest":
        return WireRequest(body=body)

    def _write(
        self, messages: list[ModelMessage], settings: ModelSettings, parameters: ModelRequestParameters
    ) -> dict[str, Any]:
        dialect = self._spoken_to.dialect
        instructions = self._get_instruction_parts(messages, parameters) or []
        written = write_messages(
            messages, [part.content for part in instructions], model=self._shown, system=self.system
        )
        body: dict[str, Any] = {
            "model": self._name,
            "messages": shorten_call_ids(written) if dialect.has_short_call_ids else written,
            "stream": True,
        }
        if not dialect.reports_usage_unasked:
            body["stream_options"] = {"include_usage": True}
        if parameters.function_tools:
            body["tools"] = write_tools(parameters.function_tools)
        body |= _write_effort(dialect, parameters.thinking)
        limit = settings.get("max_tokens") or self._output_limit
        if limit is not None:
            body[dialect.output_field] = limit
        for ours, theirs in (PLAIN_SETTINGS | {"seed": dialect.seed_field}).items():
            if settings.get(ours) is not None:
                body[theirs] = settings[ours]
        return body


def _write_effort(dialect: Dialect, thinking: object) -> dict[str, Any]:
    if not isinstance(thinking, str) or dialect.effort == "none":
        return {}
    return {"reasoning": {"effort": thinking}} if dialect.effort == "reasoning" else {dialect.effort: thinking}


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """A request as it is sent, and how its response is read."""

    body: dict[str, Any]
    path: str = "chat/completions"
    line_prefix: bytes = b"data:"
    chunks: type[ChatChunks] = ChatChunks


class Reading:
    """One request: a task reads the provider's bytes as they arrive, independent of the consumer."""

    def __init__(self, model: str, endpoint: Endpoint, request: WireRequest, patience: ModelTimeouts) -> None:
        self._model = model
        self._request = request
        self._endpoint = endpoint
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._sent_by = self._loop.time() + CONNECT_SECONDS  # when the request was sent, or must be at the latest
        self._heard_at = self._loop.time()
        self._buffer = DeltaBuffer[Part]()
        self.chunks = request.chunks(model, self._buffer, hide=endpoint.secrets)
        self._task = asyncio.create_task(self._read())
        # However the task ends, the consumer must not wait for ever.
        self._task.add_done_callback(self._end)

    async def begin(self) -> None:
        """Wait for the first piece; raise if there is none."""
        try:
            await self._buffer.wait(self._silent_at)
        except Silence:
            if not self.chunks.is_answered:
                raise self._silence() from None

    async def take(self) -> list[tuple[Part, str]]:
        """Return the next pieces, or an empty list at the end; raise after the last one if the answer is incomplete."""
        try:
            return await self._buffer.take(self._silent_at)
        except Silence:
            if self.chunks.is_answered:  # it only keeps the connection open
                return []
            raise self._silence() from None

    async def aclose(self) -> None:
        """End the request; a complete stream keeps its connection."""
        self._buffer.close()
        if self._task.done():
            return
        if self.chunks.is_done:
            self._endpoint.let_finish(self._task)
            return
        self._task.cancel()
        await asyncio.wait([self._task])

    def _silent_at(self) -> float:
        if not self.chunks.has_begun:
            # The time to connect and send does not count as silence.
            return self._sent_by + self._patience.first
        limit = self._patience.between
        return self._heard_at + (min(limit, USAGE_SECONDS) if self.chunks.is_answered else limit)

    def _silence(self) -> WakefulError:
        if not self.chunks.has_begun:
            problem = f"nothing came from {self._endpoint.origin} within {self._patience.first:g} s of the request."
            return ModelSilent(self._model, problem)
        return ModelCutOff(self._model, f"it fell silent for {self._patience.between:g} s in the middle of its answer.")

    def _note_sent(self) -> None:
        self._sent_by = self._loop.time()
        self._buffer.look_again()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._buffer.close(None if task.cancelled() else task.exception())

    async def _read(self) -> None:
        request = self._request
        try:
            async with (
                asyncio.timeout(None) as limit,
                self._endpoint.ask(self._model, request.body, self._note_sent, request.path) as response,
            ):
                if response.headers.get("content-type", "").startswith("application/json"):
                    self.chunks.read(await response.aread())  # a server that does not stream
                else:
                    await self._read_lines(response, limit)
            self._check()
        except httpx2.TransportError as error:
            if not self.chunks.is_answered:
                raise self._broken(error) from error
            self._check()
        except TimeoutError:
            pass  # the answer is complete; only the connection is lost

    async def _read_lines(self, response: httpx2.Response, limit: asyncio.Timeout) -> None:
        lines, chunks, buffer = DataLines(prefix=self._request.line_prefix), self.chunks, self._buffer
        is_plain = "content-encoding" not in response.headers
        try:
            async for piece in response.aiter_raw() if is_plain else response.aiter_bytes():
                self._heard_at = self._loop.time()
                for payload in lines.feed(piece):
                    chunks.read(payload)
                buffer.notify()
                if chunks.is_done and not buffer.is_closed:
                    self._check()
                    buffer.close()
                    limit.reschedule(self._loop.time() + LAST_BYTES_SECONDS)
                if buffer.is_full:
                    await buffer.make_room()
                    self._heard_at = self._loop.time()  # the wait for the reader is not silence
        except LineTooLong:
            raise ModelCutOff(self._model, "it sent a line that does not end.") from None
        for payload in lines.finish():
            chunks.read(payload)

    def _check(self) -> None:
        if not self.chunks.is_answered:
            raise ModelCutOff(self._model, "its stream ended in the middle of the answer.")
        self.chunks.check_calls()

    def _broken(self, error: httpx2.TransportError) -> WakefulError:
        problem = f"the connection broke ({type(error).__name__})."
        return (ModelCutOff if self.chunks.has_begun else ModelBusy)(self._model, problem)


@dataclass
class ChatStream(ModelStream):
    """The events of a request for pydantic-ai."""

    _reading: Reading
    _begun: set[int] = field(default_factory=set[int], init=False)
    _usage_received: bool | None = field(default=False, init=False)

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        while pieces := await self._reading.take():
            for target, text in pieces:
                for event in self._events(target, text):
                    yield event
        chunks = self._reading.chunks
        self.provider_response_id = chunks.response_id
        if chunks.finish is not None:
            self.finish_reason = FINISH_REASONS.get(chunks.finish)
            self.provider_details = {"finish_reason": chunks.finish}
        if chunks.usage is not None:
            self._add_usage(chunks.usage, reported=True, cumulative=True)

    def _events(self, target: Part, text: str) -> Iterator[ModelResponseStreamEvent]:
        if isinstance(target, Call):
            is_new = target.number not in self._begun
            self._begun.add(target.number)
            return self._parts_manager.handle_tool_call_delta_events(
                vendor_part_id=target.number,
                tool_name=target.name if is_new else None,
                args=text,
                tool_call_id=target.id,
            )
        if isinstance(target, Thinking):
            return self._parts_manager.handle_thinking_delta(
                vendor_part_id=None, id=target.field, content=text, provider_name=self.provider_name
            )
        return self._parts_manager.handle_text_delta(vendor_part_id=None, content=text)

    async def close_stream(self) -> None:
        await self._reading.aclose()
