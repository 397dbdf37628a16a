"""Routes for sessions, messages, uploads and search."""

import asyncio
import re
from collections.abc import Sequence
from typing import Annotated, Any, Self, get_args

from fastapi import APIRouter, Query, Response, UploadFile
from pydantic import AwareDatetime, ConfigDict, Field, model_validator

from wakeful.core.errors import Invalid, NotFound
from wakeful.core.search import MAX_QUERY, IndexProgress, Snippet
from wakeful.core.types import MAX_IMAGES, Message, ServerNoteCode, Session, Upload
from wakeful.http.auth import Chatter, Reader
from wakeful.http.routes import DoorRoute, takes_large_bodies
from wakeful.http.services import Need, Services, ServicesDep
from wakeful.http.shapes import (
    BadPage,
    Done,
    Id,
    Most,
    Page,
    PathId,
    RecallShape,
    RequestBody,
    Shape,
    Sparse,
    StopAnswer,
    Text,
    next_page,
    read_page,
    shape_of,
)
from wakeful.sessions.messages import MAX_CONTENT, MAX_FILES, hand_over, read_message
from wakeful.sessions.search import Hit, Kind, Place, Search
from wakeful.sessions.service import MAX_TITLE, SessionService, SessionView
from wakeful.sessions.uploads import MAX_UPLOAD_BYTES, MAX_UPLOADS_BYTES, UploadTooLarge
from wakeful.timing.schedule_request import PREFIX

# ── Search ────────────────────────────────────────────────────────────────────────────────────────────────────────────


router = APIRouter(route_class=DoorRoute, tags=["sessions"])

Words = Annotated[
    str,
    Query(
        min_length=1,
        max_length=MAX_QUERY,
        description='Words that must all occur, and "quoted phrases". Case, accents and punctuation do not matter.',
    ),
]

_PAGE = re.compile(rf"({'|'.join(get_args(Kind))})\.(-?[0-9]{{1,18}})", re.ASCII)


class SearchResult(Shape):
    """A message that matches, or a session by its title: then `message_id`, `run_id` and `role` are null."""

    session_id: str
    session_title: str
    agent_id: str
    message_id: str | None
    run_id: str | None
    role: str | None
    created_at: AwareDatetime
    snippet: str  # a part of the text, on one line; plain text, never HTML
    matches: list[tuple[int, int]]  # ranges of the snippet that match: [start, end), in UTF-16 units as in JavaScript


class SearchIndexShape(shape_of(IndexProgress)):
    """Whether everything from before the last upgrade can be found yet, and how much of it."""


class SearchAnswer(Sparse):
    results: list[SearchResult]  # titles first, then messages, the latest first; a page may have fewer than `limit`
    next: str | None = None
    index: SearchIndexShape


@router.get("/search")
async def search(
    caller: Reader, search_service: Need[Search], q: Words, most: Most = 20, page: Page = None
) -> SearchAnswer:
    """Search the caller's messages and session titles, of people and agents; results of tools are not searched.

    A word of three letters or more is found anywhere in a word, a shorter one at its beginning.
    """
    answer = await search_service.find(caller.user.id, q, most, _read_place(page))
    return SearchAnswer(
        results=[_to_result(hit) for hit in answer.hits],
        next=None if answer.next is None else f"{answer.next.kind}.{answer.next.before}",
        index=SearchIndexShape.model_validate(answer.index),
    )


def _read_place(page: str | None) -> Place | None:
    if page is None:
        return None
    found = _PAGE.fullmatch(page)
    if found is None:
        raise BadPage(page)
    kind: Kind = "titles" if found[1] == "titles" else "messages"
    return Place(kind=kind, before=int(found[2]))


def _to_result(hit: Hit) -> SearchResult:
    return SearchResult.from_fields(hit.found, snippet=hit.snippet.text, matches=_in_utf16(hit.snippet))


def _in_utf16(snippet: Snippet) -> list[tuple[int, int]]:
    """Count an emoji as two, as JavaScript does."""

    def place_of(character: int) -> int:
        return len(snippet.text[:character].encode("utf-16-le")) // 2

    return [(place_of(start), place_of(end)) for start, end in snippet.matches]


# ── Sessions, their messages and uploads ──────────────────────────────────────────────────────────────────────────────


Title = Annotated[str, Field(max_length=MAX_TITLE, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
Wanted = Annotated[
    str, Query(max_length=MAX_TITLE, pattern=r"^[^\x00]*$", description="Words in the title; case does not matter.")
]

Unattended = Annotated[
    bool | None,
    Query(description="True: only sessions that a scheduled run began and nobody has written in. False: the others."),
]
HasWake = Annotated[
    bool, Query(description="Only sessions with a wake to come: a recall, or a message or session scheduled there.")
]


class SubagentStep(Shape):
    """The subagent that took a step. The id is that of the call that gave it its task."""

    id: str
    agent: str
    role: str


class MessageShape(Shape):
    """One entry of a transcript."""

    id: str
    index: int
    role: str
    content: str
    created_at: AwareDatetime
    run_id: str | None
    is_recall: bool
    source: str | None
    wake_id: str | None
    schedule_id: str | None = None  # of a message that the scheduler delivered
    label: str | None
    thinking: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool: dict[str, Any] | None = None  # of a tool's result: its call, and whether it succeeded
    images: list[dict[str, str]] | None = None
    files: list[dict[str, str]] | None = None
    through: str | None = None  # the door and the token of a program that sent it
    is_cut_off: bool = False  # stopped or failed in mid-sentence
    note: str | None = None  # why the run ended early; of a message with the role notice, why the server wrote it
    remark: ServerNoteCode | None = None  # of the server, on an answer
    timestamp: str | None = None  # of a preloaded message, as the schedule gave it
    subagent: SubagentStep | None = None  # of a message with the role subagent
    superseded_by: str | None = None  # the run that replaced it, by a retry or an edit: models do not read it


class SessionShape(shape_of(Session, without=("user_id",))):
    """A session. `tool_limit` lists the tools of the agent that handed it over; null: no limit."""

    scheduled_origin_session_id: str | None = None  # these three: if a schedule created it
    scheduled_from_schedule_id: str | None = None
    scheduled_from_label: str | None = None
    is_running: bool
    is_failed: bool  # its last run failed, and nothing was written since
    needs_approval: bool  # its run waits until a call is approved or refused
    recall: RecallShape | None


class SessionDetail(SessionShape):
    messages: list[MessageShape]


class SessionList(Sparse):
    sessions: list[SessionShape]
    next: str | None = None


class NewSession(RequestBody):
    agent_id: Id | None = None  # without: the caller's first agent
    title: Title = ""


class SessionChange(RequestBody):
    """Fields that are left out stay unchanged. Another agent continues with all of its own tools."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    title: Title = ""
    agent_id: Id = ""

    @model_validator(mode="after")
    def _refuse_nothing(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("it must have title or agent_id")
        return self


class FileName(RequestBody):
    name: Text = ""
    path: Text
    size: int | None = None  # as the upload returned it; ignored


class NewMessage(RequestBody):
    content: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT)]
    images: Annotated[list[str], Field(max_length=MAX_IMAGES)] | None = None
    files: Annotated[list[FileName], Field(max_length=MAX_FILES)] | None = None


class Retry(RequestBody):
    """Without `content` the message stays as it is."""

    content: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT)] | None = None


class MessageTaken(Shape):
    run_id: str


class UploadShape(shape_of(Upload, without=("id", "session_id", "created_at"))):
    pass


class UploadList(Shape):
    files: list[UploadShape]


class NoAgent(NotFound):
    code = "no_agent"

    def __init__(self) -> None:
        super().__init__("You have no agent yet. Create one with POST /agents, then open the session.")


class NoSuchImage(NotFound):
    code = "no_such_image"

    def __init__(self, image_id: str) -> None:
        super().__init__(
            f"There is no image {image_id!r} in this session. GET the session: its messages have the ids of its images."
        )


@router.get("/sessions")
async def list_sessions(
    caller: Reader,
    sessions: Need[SessionService],
    agent_id: Id | None = None,
    q: Wanted | None = None,
    has_recall: bool = False,
    has_wake: HasWake = False,
    unattended: Unattended = None,
    most: Most = 50,
    page: Page = None,
) -> SessionList:
    """List the caller's sessions, the latest first: all, or those with words in the title, a pending recall or wake."""
    found = await sessions.find(
        caller.user.id,
        agent_id=agent_id,
        named=q,
        booked="recall" if has_recall else "any" if has_wake else None,
        is_unattended=unattended,
        before=read_page(page),
        most=most,
    )
    return SessionList(
        sessions=[_to_body(view) for view in found],
        next=next_page(found, most, lambda view: (view.session.updated_at, view.session.id)),
    )


@router.post("/sessions", status_code=201)
async def open_session(caller: Chatter, services: ServicesDep, asked: NewSession | None = None) -> SessionDetail:
    """Open a session with an agent."""
    asked = asked or NewSession()
    agent_id = asked.agent_id
    if agent_id is None:
        agents = await services.agents.of_user(caller.user.id)
        if not agents:
            raise NoAgent
        agent_id = agents[0].id
    session = await services.sessions.open(agent_id, caller.user.id, asked.title)
    return _detail(SessionView(session=session, recall=None, is_running=False, is_failed=False), [])


@router.get("/sessions/{session_id}")
async def get_session(caller: Reader, sessions: Need[SessionService], session_id: PathId) -> SessionDetail:
    """Show a session with all its messages."""
    view = await sessions.view(session_id, caller.user.id)
    return _detail(view, await sessions.messages(session_id, caller.user.id))


@router.patch("/sessions/{session_id}")
async def change_session(
    caller: Chatter, services: ServicesDep, session_id: PathId, asked: SessionChange
) -> SessionShape:
    """Rename a session, or let another agent continue it."""
    if "agent_id" in asked.model_fields_set:
        await services.profiles.choose(session_id, caller.user.id, asked.agent_id)
    if "title" in asked.model_fields_set:
        await services.sessions.rename(session_id, caller.user.id, asked.title)
    return _to_body(await services.sessions.view(session_id, caller.user.id))


@router.delete("/sessions/{session_id}")
async def delete_session(caller: Chatter, sessions: Need[SessionService], session_id: PathId) -> Done:
    """Delete a session: its run is stopped and its wakes are cancelled. Its runs stay listed, without their text."""
    await sessions.delete(session_id, caller.user.id)
    return Done()


@router.post("/sessions/{session_id}/messages", status_code=202)
@takes_large_bodies
async def send_message(caller: Chatter, services: ServicesDep, session_id: PathId, asked: NewMessage) -> MessageTaken:
    """Send a message; the answer comes over the session's socket, and is in the session when the run has ended."""
    given = asked.model_dump()
    # Ten images take 0.2 s to decode.
    incoming = await asyncio.to_thread(read_message, given) if asked.images else read_message(given)
    run_id = await hand_over(incoming, session_id, caller, services)
    return MessageTaken(run_id=run_id)


@router.post("/sessions/{session_id}/messages/{message_id}/retry", status_code=202)
@takes_large_bodies
async def retry_message(
    caller: Chatter, services: ServicesDep, session_id: PathId, message_id: PathId, asked: Retry | None = None
) -> MessageTaken:
    """Have the caller's last message answered again, with new text if given. Its attachments stay.

    The message and everything after it become an earlier version: still shown and exported, but models no longer read
    it. What tools did stays done.
    """
    content = None if asked is None or asked.content is None else read_message({"content": asked.content}).content
    run = await services.runs.ask_again(session_id, caller.user.id, message_id, content, caller.via)
    return MessageTaken(run_id=run.id)


@router.post("/sessions/{session_id}/stop")
async def stop_session(caller: Chatter, services: ServicesDep, session_id: PathId) -> StopAnswer:
    """Stop the running run of a session within two seconds; if there is none, the next queued one."""
    return StopAnswer.of(await services.runs.stop_session(session_id, caller.user.id))


@router.post("/sessions/{session_id}/uploads", status_code=201)
@takes_large_bodies
async def upload(caller: Chatter, services: ServicesDep, session_id: PathId, files: list[UploadFile]) -> UploadList:
    """Upload files to a session; name their paths in a message, so that the agent reads them."""
    kept = await keep_uploads(files, session_id, caller.user.id, services)
    return UploadList(files=[UploadShape.model_validate(each) for each in kept])


@router.get("/sessions/{session_id}/images/{image_id}", response_class=Response)
async def get_image(caller: Reader, sessions: Need[SessionService], session_id: PathId, image_id: PathId) -> Response:
    """Return an image that was sent with a message."""
    found = await sessions.image(session_id, caller.user.id, image_id)
    if found is None:
        raise NoSuchImage(image_id)
    media_type, content = found
    return Response(content, media_type=media_type)


@router.get("/sessions/{session_id}/export.md", response_class=Response)
async def export(caller: Reader, sessions: Need[SessionService], session_id: PathId) -> Response:
    """Export a session as Markdown."""
    view = await sessions.view(session_id, caller.user.id)
    text = _as_markdown(view, await sessions.messages(session_id, caller.user.id))
    headers = {"Content-Disposition": f'attachment; filename="session-{session_id}.md"'}
    return Response(text, media_type="text/markdown; charset=utf-8", headers=headers)


def _to_body(view: SessionView) -> SessionShape:
    session = view.session
    is_scheduled = session.origin_session_id is not None  # a next run was not booked in a session
    return SessionShape.from_fields(
        session,
        scheduled_origin_session_id=session.origin_session_id,
        scheduled_from_schedule_id=f"{PREFIX}{session.origin_wake_id}" if is_scheduled else None,
        scheduled_from_label=session.origin_label if is_scheduled else None,
        is_running=view.is_running,
        is_failed=view.is_failed,
        needs_approval=view.needs_approval,
        recall=None if view.recall is None else RecallShape.from_fields(view.recall, is_paused=view.is_paused),
    )


def _detail(view: SessionView, messages: Sequence[Message]) -> SessionDetail:
    shown = [_message_to_body(message, index) for index, message in enumerate(messages)]
    return SessionDetail(**dict(_to_body(view)), messages=shown)


def _message_to_body(message: Message, index: int) -> MessageShape:
    data = message.data or {}
    subagent = None
    if message.role == "subagent":
        subagent = SubagentStep(id=data["subagent_id"], agent=data["agent"], role=data["role"])
    tool = None
    if "tool" in (message.role, subagent and subagent.role):
        tool = {key: data.get(key) for key in ("call_id", "tool", "args", "success", "metadata")}
    return MessageShape.from_fields(
        message,
        index=index,
        schedule_id=f"{PREFIX}{message.wake_id}" if message.source == "scheduled" else None,
        thinking=data.get("thinking"),
        tool_calls=data.get("tool_calls"),
        tool=tool,
        images=data.get("images") or None,
        files=data.get("files") or None,
        through=data.get("through"),
        is_cut_off=bool(data.get("cut_off")),
        note=data.get("note"),
        remark=data.get("remark"),
        timestamp=_said_at(message),
        subagent=subagent,
    )


def _said_at(message: Message) -> str | None:
    """Return the time of a preloaded message, if its schedule gave one."""
    return (message.data or {}).get("preloaded", {}).get("timestamp")


def _as_markdown(view: SessionView, messages: Sequence[Message]) -> str:
    parts = [f"# {view.session.title or 'Untitled session'}"]
    for message in messages:
        data = message.data or {}
        who = f"Tool {data.get('tool', '')}" if message.role == "tool" else message.role.capitalize()
        woken = " (preloaded)" if message.source == "preloaded" else " (woken)" if message.source else ""
        body = _exported(message)
        if not body:
            continue  # a heading with nothing under it
        when = _said_at(message) or f"{message.created_at:%Y-%m-%d %H:%M:%S} UTC"
        earlier = " (earlier version)" if message.superseded_by else ""
        parts.append(f"## {who}{woken}{earlier} · {when}\n\n{body}")
    return "\n\n".join(parts) + "\n"


def _exported(message: Message) -> str:
    """Return the text of a message; of one without a text, the tools that it calls or what is attached to it."""
    if message.role == "tool":
        return _fenced(message.content)
    if message.content.strip():
        return message.content
    data = message.data or {}
    named = {
        "Calls": [each["tool"] for each in data.get("tool_calls") or ()],
        "Files": [each["path"] for each in data.get("files") or ()],
        "Images": [each["id"] for each in data.get("images") or ()],
    }
    return "\n\n".join(f"{kind}: {', '.join(names)}" for kind, names in named.items() if names)


def _fenced(text: str) -> str:
    """Return a code block whose fences are longer than any in the text, so that the text cannot end it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}\n{text}\n{fence}"


# ── Uploads ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class NoFiles(Invalid):
    code = "no_files"

    def __init__(self) -> None:
        super().__init__(
            "There is no file in the request. Send at least one as the multipart form field `files`.", field="files"
        )


async def keep_uploads(files: Sequence[UploadFile], session_id: str, user_id: str, services: Services) -> list[Upload]:
    """Save uploaded files, all or none."""
    room = await services.sessions.room_for_uploads(session_id, user_id)
    if not files:
        raise NoFiles
    for file in files:
        if (file.size or 0) > MAX_UPLOAD_BYTES:
            raise UploadTooLarge(
                f"{file.filename!r} has {file.size:,} bytes; the limit is {MAX_UPLOAD_BYTES:,}.", field="files"
            )
    if sum(file.size or 0 for file in files) > room:
        raise UploadTooLarge(
            f"These files do not fit: a session can have {MAX_UPLOADS_BYTES:,} bytes, and {max(0, room):,} are left.",
            field="files",
        )
    contents = [(file.filename or "", await file.read()) for file in files]
    return await services.uploads.keep(session_id, user_id, contents)
