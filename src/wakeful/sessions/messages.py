"""Messages to a session: validation of text, images and names of uploads; reading sessions for their user."""

import base64
import binascii
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from wakeful.core.errors import Invalid
from wakeful.core.identity import Identity
from wakeful.core.records import Attached, Image
from wakeful.core.texts import why_not_storable
from wakeful.core.types import MAX_IMAGE_BYTES, MAX_IMAGES, Agent, Message
from wakeful.http.services import Services
from wakeful.store.store import Store, Tx

MAX_CONTENT = 1_000_000  # characters
MAX_FILES = 100

_DATA_URI = re.compile(r"data:[^,]{0,200};base64,")
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class BadFrame(Invalid):
    code = "bad_frame"


class BadImage(Invalid):
    code = "bad_image"

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(f"Image {number} {problem} Nothing was sent.", field="images")


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A message that was received."""

    content: str
    images: tuple[Image, ...] = ()
    paths: tuple[str, ...] = ()


def read_message(given: Mapping[str, Any]) -> Incoming:
    """Validate a message; raises an error that says what is wrong with it."""
    content = given.get("content")
    if not isinstance(content, str) or not content.strip():
        raise BadFrame("`content` must be text that is not empty.", field="content")
    if len(content) > MAX_CONTENT:
        raise BadFrame(
            f"`content` has {len(content):,} characters; the limit is {MAX_CONTENT:,}. "
            "Upload the text as a file instead.",
            field="content",
        )
    if why_not_storable(content) is not None:
        raise BadFrame("`content` must not have NUL or lone surrogate characters.", field="content")
    images = _list(given, "images")
    if len(images) > MAX_IMAGES:
        raise BadFrame(f"A message can have at most {MAX_IMAGES} images, got {len(images)}.", field="images")
    return Incoming(
        content=content,
        images=tuple(_read_image(image, number) for number, image in enumerate(images, start=1)),
        paths=tuple(_read_path(file) for file in _list(given, "files")),
    )


async def hand_over(incoming: Incoming, session_id: str, caller: Identity, services: Services) -> str:
    """Queue the run that answers a message and return its id."""
    files = await services.sessions.uploads_at(session_id, caller.user.id, incoming.paths)
    attached = Attached(incoming.images, tuple(files))
    run = await services.runs.ask(session_id, caller.user.id, incoming.content, attached, caller.via)
    return run.id


def _list(given: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = given.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadFrame(f"`{name}` must be a list.", field=name)
    listed = cast("list[Any]", value)
    if len(listed) > MAX_FILES:
        raise BadFrame(f"`{name}` has {len(listed)} entries; the limit is {MAX_FILES}.", field=name)
    return listed


def _read_image(value: Any, number: int) -> Image:
    if not isinstance(value, str):
        raise BadImage(number, "is not base64 text.")
    prefix = _DATA_URI.match(value)
    encoded = value[prefix.end() :] if prefix else value
    if len(encoded) > MAX_IMAGE_BYTES * 4 // 3 + 8:
        raise BadImage(number, f"is larger than {MAX_IMAGE_BYTES:,} bytes.")
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise BadImage(number, "is not base64 text.") from None
    if len(content) > MAX_IMAGE_BYTES:
        raise BadImage(number, f"has {len(content):,} bytes; the limit is {MAX_IMAGE_BYTES:,}.")
    media_type = _media_type(content)
    if media_type is None:
        raise BadImage(number, "must be a PNG, JPEG, GIF or WebP image.")
    return Image(media_type, content)


def _media_type(content: bytes) -> str | None:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES if content.startswith(signature)), None)


def _read_path(value: Any) -> str:
    if isinstance(value, dict):
        path = cast("dict[str, Any]", value).get("path")
        if isinstance(path, str) and why_not_storable(path) is None:
            return path
    raise BadFrame('A file must be {"name": …, "path": …}, with the path that its upload returned.', field="files")


# Read sessions, their agents and their messages for the user they belong to.


_PAGE = 1_000

T = TypeVar("T")


async def read_own(store: Store, session_id: str, user_id: str, read: Callable[[Tx], Coroutine[Any, Any, T]]) -> T:
    """Read something of a session, or raise if the user has no such session."""

    async def work(tx: Tx) -> T:
        await tx.sessions.get(session_id, user_id)
        return await read(tx)

    return await store.read(work)


async def agent_of(tx: Tx, session_id: str, user_id: str) -> Agent:
    """Return the agent of a session, or raise if the session or the agent was deleted."""
    session = await tx.sessions.get(session_id, user_id)
    return await tx.agents.get(session.agent_id, user_id)


async def all_messages(tx: Tx, session_id: str) -> list[Message]:
    """Return the whole transcript of a session."""
    found: list[Message] = []
    while True:
        page = await tx.sessions.messages(session_id, found[-1].position if found else 0, _PAGE)
        found += page
        if len(page) < _PAGE:
            return found
