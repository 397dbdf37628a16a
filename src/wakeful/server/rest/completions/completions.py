"""Routes of OpenAI's protocol: agents as models, and chat completions."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from wakeful.domain import ids
from wakeful.domain.completions.answer import AnswerPieces, RunFailure, find_failure
from wakeful.domain.completions.history import MAX_KEY, ClientKey, read_key
from wakeful.domain.completions.request import CompletionRequest, read_request
from wakeful.domain.completions.side_requests import is_side_request
from wakeful.domain.errors import WakefulError
from wakeful.domain.people.accounts import Identity
from wakeful.server.auth import Chatter
from wakeful.server.errors import OPENAI_RESPONSES, answer, openai_error, status_of
from wakeful.server.limits.body_limits import MAX_COMPLETION
from wakeful.server.rest.completions.shapes import (
    DONE,
    KEEP_ALIVE,
    MAX_MODEL,
    AgentModel,
    AgentModels,
    AnswerMessage,
    Choice,
    Chunks,
    CompletionBody,
    CompletionShape,
    CompletionUsage,
    error_event,
)
from wakeful.server.routes import DoorRoute, takes_bodies_of
from wakeful.server.services import Services, ServicesDep
from wakeful.server.ws.incoming import read_message
from wakeful.service.completions.completions import Asked, Completion, Completions
from wakeful.service.completions.failures import to_error
from wakeful.service.runs.runs import Attached

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
async def list_models(caller: Chatter, services: ServicesDep) -> AgentModels:
    """List the caller's agents as models."""
    found = await services.completions.models(caller.user.id)
    return AgentModels(data=[AgentModel.of(model, agent) for model, agent in found])


@router.get("/models/{model:path}")
async def get_model(caller: Chatter, services: ServicesDep, model: ModelPath) -> AgentModel:
    """Show an agent as a model: by its name, or by `agent:ID`."""
    return AgentModel.of(*await services.completions.model(model, caller.user.id))


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
