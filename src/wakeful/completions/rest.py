"""Routes of OpenAI's protocol: agents as models, and chat completions."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import Receive, Scope, Send

from wakeful.completions.rules import (
    MAX_KEY,
    AnswerPieces,
    ClientKey,
    CompletionRequest,
    RunFailure,
    find_failure,
    is_side_request,
    read_key,
    read_request,
)
from wakeful.completions.service import Asked, Completion, Completions, to_error
from wakeful.core import ids
from wakeful.core.errors import WakefulError
from wakeful.core.identity import Identity
from wakeful.core.records import Attached
from wakeful.core.types import Agent
from wakeful.http.auth import Chatter
from wakeful.http.errors import OPENAI_RESPONSES, answer, openai_error, status_of
from wakeful.http.limits import MAX_COMPLETION
from wakeful.http.routes import DoorRoute, takes_bodies_of
from wakeful.http.services import Need, Services, ServicesDep
from wakeful.http.shapes import Shape
from wakeful.sessions.messages import read_message

# Bodies of OpenAI's protocol, as far as agents use it.


MAX_MODEL = 300  # characters

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": waiting\n\n"


class CompletionBody(BaseModel):
    """A chat completion. Other parameters are ignored; the answer's header X-Wakeful-Ignored names them."""

    model_config = ConfigDict(extra="allow", strict=True)

    model: Annotated[
        str, Field(min_length=1, max_length=MAX_MODEL, description="An agent, as GET /v1/models lists it.")
    ]
    messages: Annotated[
        list[dict[str, Any]],
        Field(
            min_length=1, description="The whole conversation. The last message is one of the user, and is answered."
        ),
    ]
    stream: bool | None = None
    stream_options: dict[str, Any] | None = Field(None, description="`include_usage`: end a stream with the usage.")
    n: int | None = Field(None, description="Only 1.")
    tool_choice: str | dict[str, Any] | None = Field(
        None, description="Refused, unless `auto` or `none`: an agent has its own tools, and ignores `tools`."
    )
    response_format: dict[str, Any] | None = Field(None, description="Refused, unless its type is `text`.")

    def given(self) -> Mapping[str, Any]:
        """Return every field that was sent."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class AgentModel(Shape):
    """An agent, as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["wakeful"] = "wakeful"
    name: str
    description: str

    @classmethod
    def of(cls, model: str, agent: Agent) -> "AgentModel":
        created = int(agent.created_at.timestamp())
        return cls(id=model, created=created, name=agent.name, description=agent.description)


class AgentModels(Shape):
    object: Literal["list"] = "list"
    data: list[AgentModel]


class AnswerMessage(Shape):
    role: Literal["assistant"] = "assistant"
    content: str
    reasoning_content: str | None = None
    refusal: None = None


class Choice(Shape):
    index: Literal[0] = 0
    message: AnswerMessage
    finish_reason: Literal["stop", "length"]
    logprobs: None = None


class CompletionUsage(Shape):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int

    @classmethod
    def of(cls, completion: Completion) -> "CompletionUsage":
        asked, answered = completion.input_tokens, completion.output_tokens
        return cls(prompt_tokens=asked, completion_tokens=answered, total_tokens=asked + answered)


class CompletionShape(Shape):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: CompletionUsage


class Chunks:
    """Makes the events of one streamed answer."""

    def __init__(self, completion_id: str, created: int, model: str) -> None:
        self._head = {"id": completion_id, "object": "chat.completion.chunk", "created": created, "model": model}

    def role(self) -> bytes:
        return self._choice({"role": "assistant", "content": ""})

    def text(self, text: str) -> bytes:
        return self._choice({"content": text})

    def thought(self, text: str) -> bytes:
        return self._choice({"reasoning_content": text})

    def finish(self, reason: str) -> bytes:
        return self._choice({}, reason)

    def usage(self, completion: Completion) -> bytes:
        return _event({**self._head, "choices": [], "usage": CompletionUsage.of(completion).model_dump()})

    def _choice(self, delta: Mapping[str, str], reason: str | None = None) -> bytes:
        return _event({**self._head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def error_event(error: Mapping[str, Any]) -> bytes:
    """Return an error in the middle of a stream, which then ends without [DONE]."""
    return _event(error)


def _event(value: Mapping[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


router = APIRouter(route_class=DoorRoute, prefix="/v1", tags=["chat completions"], responses=OPENAI_RESPONSES)

_FINAL = {"x-should-retry": "false"}  # clients would repeat the request by themselves, and start another run
_PLAIN_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "The answer, or its stream."}
}

SessionHeader = Annotated[
    str | None,
    Header(
        alias="X-Wakeful-Session",
        max_length=MAX_KEY,
        description="The conversation: the id of a session, or any text of yours. The history is then not compared.",
    ),
]
OpenWebUIHeader = Annotated[
    str | None, Header(alias="X-OpenWebUI-Chat-Id", max_length=MAX_KEY, description="The conversation in Open WebUI.")
]
ConversationHeader = Annotated[
    str | None, Header(alias="X-Conversation-Id", max_length=MAX_KEY, description="The conversation in LibreChat.")
]
OpenWebUIUserHeader = Annotated[
    str | None, Header(alias="X-OpenWebUI-User-Id", max_length=MAX_KEY, description="The person in Open WebUI.")
]
UserHeader = Annotated[
    str | None, Header(alias="X-User-Id", max_length=MAX_KEY, description="The person in another chat page.")
]
ModelPath = Annotated[str, Path(min_length=1, max_length=MAX_MODEL)]


@router.get("/models")
async def list_models(caller: Chatter, completions: Need[Completions]) -> AgentModels:
    """List the caller's agents as models."""
    found = await completions.models(caller.user.id)
    return AgentModels(data=[AgentModel.of(model, agent) for model, agent in found])


@router.get("/models/{model:path}")
async def get_model(caller: Chatter, completions: Need[Completions], model: ModelPath) -> AgentModel:
    """Show an agent as a model: by its name, or by `agent:ID`."""
    return AgentModel.of(*await completions.model(model, caller.user.id))


@router.post("/chat/completions", response_model=CompletionShape, responses=_PLAIN_ANSWER)
@takes_bodies_of(MAX_COMPLETION)
async def complete_chat(
    caller: Chatter,
    services: ServicesDep,
    request: Request,
    asked: CompletionBody,
    session: SessionHeader = None,
    open_webui: OpenWebUIHeader = None,
    conversation: ConversationHeader = None,
    open_webui_user: OpenWebUIUserHeader = None,
    user: UserHeader = None,
) -> Response:
    """Have an agent answer the last message of a conversation.

    The conversation goes on in a session: the one that a header names, or the one whose history it has. An unknown one
    gets a new session. A request of a chat page for a title, tags or follow-ups is answered by the agent's model alone.
    """
    wanted = await asyncio.to_thread(read_request, asked.given(), (open_webui_user, user))
    created = int(services.completions.now().timestamp())
    if is_side_request(wanted):
        return await _answer_aside(caller, services, wanted, created)
    key = (
        read_key("X-Wakeful-Session", session, is_session=True)
        or read_key("X-OpenWebUI-Chat-Id", open_webui)
        or read_key("X-Conversation-Id", conversation)
    )
    started = await _ask(caller, services, wanted, key)
    headers = _headers(wanted) | {"X-Wakeful-Session": started.session_id, "X-Wakeful-Run": started.run.id}
    if wanted.is_streamed:
        chunks = Chunks(f"chatcmpl-{started.run.id}", created, wanted.model)
        return RunStream(started, services.completions, chunks, with_usage=wanted.with_usage, headers=headers)
    return await _answer_whole(request, started, services.completions, wanted, created, headers)


async def _ask(caller: Identity, services: Services, wanted: CompletionRequest, key: ClientKey | None) -> Asked:
    given = {"content": wanted.last.text, "images": list(wanted.last.images)}
    incoming = await asyncio.to_thread(read_message, given)  # decodes the images
    return await services.completions.ask(caller, wanted, key, Attached(incoming.images))


async def _answer_aside(caller: Identity, services: Services, wanted: CompletionRequest, created: int) -> Response:
    completion = await services.completions.answer_aside(caller, wanted)
    completion_id = f"chatcmpl-{ids.new_id()}"
    if not wanted.is_streamed:
        return _whole(completion, completion_id, created, wanted.model, _headers(wanted))
    chunks = Chunks(completion_id, created, wanted.model)
    parts = [chunks.role(), chunks.text(completion.text), *_ending(chunks, completion, with_usage=wanted.with_usage)]
    return Response(b"".join(parts), media_type="text/event-stream", headers=_headers(wanted))


async def _answer_whole(
    request: Request,
    started: Asked,
    completions: Completions,
    wanted: CompletionRequest,
    created: int,
    headers: Mapping[str, str],
) -> Response:
    """Wait for the answer, as long as the client does."""
    following = asyncio.create_task(_follow(started, completions))
    gone = asyncio.create_task(_wait_until_gone(request))
    try:
        await asyncio.wait({following, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not following.done():
            completions.leave(started)
            return Response(status_code=499)  # which nobody reads
        failure = await following
    finally:
        for task in (following, gone):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    if failure is not None:
        return answer(to_error(failure), request.scope["path"], headers={**headers, **_FINAL})
    completion = await completions.finish(started)
    return _whole(completion, f"chatcmpl-{started.run.id}", created, wanted.model, headers)


async def _follow(started: Asked, completions: Completions) -> RunFailure | None:
    failure = None
    async for frame in completions.follow(started):
        failure = None if frame is None else find_failure(frame)
    return failure


async def _wait_until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class RunStream(StreamingResponse):
    """The answer as it is written. A client that hangs up leaves the run."""

    def __init__(
        self, started: Asked, completions: Completions, chunks: Chunks, *, with_usage: bool, headers: Mapping[str, str]
    ) -> None:
        self._started = started
        self._completions = completions
        self._chunks = chunks
        self._with_usage = with_usage
        self._is_over = False
        super().__init__(self._events(), media_type="text/event-stream", headers={**headers, "X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if not self._is_over:
                self._completions.leave(self._started)

    async def _events(self) -> AsyncGenerator[bytes]:
        yield self._chunks.role()
        try:
            async for event in self._read_run():
                yield event
        except WakefulError as error:  # the response has begun, so it cannot have another status
            yield error_event(openai_error(status_of(error), error.code, error.message))

    async def _read_run(self) -> AsyncGenerator[bytes]:
        pieces, makers = AnswerPieces(), {"text": self._chunks.text, "thought": self._chunks.thought}
        async for frame in self._completions.follow(self._started):
            if frame is None:
                yield KEEP_ALIVE
                continue
            for piece in pieces.read(frame):
                yield makers[piece.kind](piece.text)
            failure = find_failure(frame)
            if failure is not None:
                self._is_over = True
                raise to_error(failure)
        self._is_over = True
        completion = await self._completions.finish(self._started)
        for event in _ending(self._chunks, completion, with_usage=self._with_usage):
            yield event


def _ending(chunks: Chunks, completion: Completion, *, with_usage: bool) -> list[bytes]:
    usage = [chunks.usage(completion)] if with_usage else []
    return [chunks.finish(completion.finish_reason), *usage, DONE]


def _whole(
    completion: Completion, completion_id: str, created: int, model: str, headers: Mapping[str, str]
) -> JSONResponse:
    message = AnswerMessage(content=completion.text, reasoning_content=completion.thoughts or None)
    body = CompletionShape(
        id=completion_id,
        created=created,
        model=model,
        choices=[Choice(message=message, finish_reason=completion.finish_reason)],
        usage=CompletionUsage.of(completion),
    )
    return JSONResponse(body.model_dump(), headers=headers)


def _headers(wanted: CompletionRequest) -> dict[str, str]:
    return {"X-Wakeful-Ignored": ", ".join(wanted.ignored)} if wanted.ignored else {}
