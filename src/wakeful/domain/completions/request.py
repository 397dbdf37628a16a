"""The request of a chat completion: the last message, the history before it, and which parameters count."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from wakeful.domain.errors import Invalid
from wakeful.domain.texts import check_size

MAX_SYSTEM = 100_000  # characters

SYSTEM_ROLES = ("system", "developer")
UNUSED_ROLES = ("tool", "function")  # of a conversation with another model; the agent has its own tools
_ROLES = (*SYSTEM_ROLES, "user", "assistant", *UNUSED_ROLES)
_PERSON = ("user", "safety_identifier")  # OpenAI's names for the person who writes
_USED = frozenset({"model", "messages", "stream", "stream_options", "n", *_PERSON})
_NO_NAMES = frozenset({"", "new", "null", "none", "undefined"})
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_MAX_NAMED = 20
AN_IMAGE = "[An image was here.]"
_WORDLESS = "[An image, and no text.]"


class BadCompletion(Invalid):
    code = "bad_completion"


class NotOffered(Invalid):
    """A parameter that would change the answer, and that an agent cannot follow."""

    code = "unsupported_parameter"

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"`{field}` cannot be used with an agent. {why}", field=field)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message of a conversation, as the client has it."""

    role: Literal["user", "assistant"]
    text: str
    images: tuple[str, ...] = ()  # data URIs, of the last message
    has_image: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """A validated request."""

    model: str
    system: str
    history: tuple[Said, ...]  # before the last message; alternating roles are not required
    last: Said  # of the user
    is_streamed: bool = False
    with_usage: bool = False  # a chunk with the usage at the end of a stream
    ignored: tuple[str, ...] = ()  # names of parameters without effect
    person: tuple[str, ...] = ()  # the client's names for the person who writes, by their places; (): it gives none

    @property
    def asked_before(self) -> str | None:
        """Return the user's message before the last one."""
        return next((each.text for each in reversed(self.history) if each.role == "user"), None)

    @property
    def answer_before(self) -> str:
        """Return the answer to it that the client has; it may have come in several messages."""
        return "\n\n".join(each.text for each in self.history[len(self.until_asked_before) :])

    @property
    def until_asked_before(self) -> tuple[Said, ...]:
        """Return the history up to the user's message before the last one."""
        places = [place for place, each in enumerate(self.history, start=1) if each.role == "user"]
        return self.history[: places[-1]] if places else ()


def read_name(value: object) -> str:
    """Return a client's name for a conversation or a person; empty if it names none."""
    name = value.strip() if isinstance(value, str) else ""
    return "" if name.lower() in _NO_NAMES or name.startswith("{{") else name  # a variable that it did not replace


def read_request(given: Mapping[str, Any], people: Sequence[str | None] = ()) -> CompletionRequest:
    """Validate a request; raises an error that says what is wrong with it, or what an agent cannot do.

    `people` are the headers that name the person who writes.
    """
    _refuse_unsupported(given)
    messages = _read_messages(given.get("messages"))
    spoken = [message for message in messages if message.role not in UNUSED_ROLES]
    talk = [message for message in spoken if message.role not in SYSTEM_ROLES]
    if not talk or talk[-1].role != "user":
        raise BadCompletion(
            "The last of `messages` must have the role 'user': it is answered. To have an answer continued, ask.",
            field="messages",
        )
    last = talk[-1].to_said()
    if not last.text.strip():
        raise BadCompletion("The last of `messages` is empty. Send text or an image.", field="messages")
    system = "\n\n".join(message.text for message in spoken if message.role in SYSTEM_ROLES).strip()
    check_size("system", len(system), MAX_SYSTEM, "characters")
    options = given.get("stream_options")
    person = tuple(read_name(name) for name in (*people, *(given.get(field) for field in _PERSON)))
    return CompletionRequest(
        model=given["model"],
        system=system,
        history=tuple(message.to_said() for message in talk[:-1]),
        last=last,
        is_streamed=bool(given.get("stream")),
        with_usage=isinstance(options, dict) and bool(cast("dict[str, Any]", options).get("include_usage")),
        ignored=_ignored(given),
        person=person if any(person) else (),
    )


@dataclass(frozen=True, slots=True)
class _Read:
    role: str
    text: str
    images: tuple[str, ...] = ()
    has_image: bool = False

    def to_said(self) -> Said:
        role = "assistant" if self.role == "assistant" else "user"
        return Said(role=role, text=self.text, images=self.images, has_image=self.has_image)


def _refuse_unsupported(given: Mapping[str, Any]) -> None:
    for field in ("tool_choice", "function_call"):
        choice = given.get(field)
        if choice not in (None, "none", "auto"):
            why = f"It calls the tools that its owner gave it. Send 'auto' or leave it out, got {repr(choice)[:100]}."
            raise NotOffered(field, why)
    if given.get("n") not in (None, 1):
        raise NotOffered("n", f"It gives one answer; ask again for another. Send 1, got {given['n']!r}.")
    form = given.get("response_format")
    kind = cast("dict[str, Any]", form).get("type") if isinstance(form, dict) else form
    if kind not in (None, "text"):
        raise NotOffered("response_format", "It answers in text. Ask for the form in your message.")


def _read_messages(given: object) -> list[_Read]:
    if not isinstance(given, list) or not given:
        raise BadCompletion("`messages` must be a list with at least one message.", field="messages")
    listed = cast("list[Any]", given)
    last = max((place for place, each in enumerate(listed) if _role(each) == "user"), default=-1)
    return [_read_message(each, place, is_last=place == last) for place, each in enumerate(listed)]


def _role(message: object) -> object:
    return cast("dict[str, Any]", message).get("role") if isinstance(message, dict) else None


def _read_message(message: object, place: int, *, is_last: bool) -> _Read:
    where, role = f"messages.{place}", _role(message)
    if role not in _ROLES:
        shown = repr(role)[:100]
        raise BadCompletion(f"`{where}.role` must be one of {', '.join(_ROLES)}; got {shown}.", field=f"{where}.role")
    content = cast("dict[str, Any]", message).get("content")
    if content is None and not is_last:  # of an assistant that only called tools
        return _Read(cast("str", role), "")
    if isinstance(content, str):
        return _Read(cast("str", role), _checked(content, where))
    if not isinstance(content, list):
        raise BadCompletion(f"`{where}.content` must be text, or a list of parts.", field=f"{where}.content")
    return _join(cast("str", role), cast("list[Any]", content), where, is_last=is_last)


def _join(role: str, parts: Sequence[Any], where: str, *, is_last: bool) -> _Read:
    texts: list[str] = []
    images: list[str] = []
    has_image = False
    for number, part in enumerate(parts):
        field = f"{where}.content.{number}"
        known = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
        if known.get("type") in ("text", "refusal", "input_text", "output_text"):
            text = known.get("text", known.get("refusal"))
            if not isinstance(text, str):
                raise BadCompletion(f"`{field}` has no text.", field=field)
            texts.append(_checked(text, field))
        elif known.get("type") == "image_url":
            has_image = True
            if is_last:
                images.append(_read_image(known.get("image_url"), field))
        elif is_last:
            kind = repr(known.get("type"))[:100]
            raise BadCompletion(f"`{field}` must have the type 'text' or 'image_url', got {kind}.", field=field)
    text = "\n".join(texts)
    return _Read(role, _WORDLESS if has_image and not text.strip() else text, tuple(images), has_image)


def _read_image(given: object, field: str) -> str:
    url = cast("dict[str, Any]", given).get("url") if isinstance(given, dict) else given
    if not isinstance(url, str) or not url.startswith("data:"):
        raise BadCompletion(
            f"`{field}` must have the image itself as a data URI, such as data:image/png;base64,…: the server fetches "
            "no addresses for a client.",
            field=field,
        )
    return url


def _checked(text: str, field: str) -> str:
    """Refuse what a database cannot store."""
    if "\x00" in text:
        raise BadCompletion(f"`{field}` has a NUL character in it. Leave it out.", field=field)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadCompletion(f"`{field}` has half of a character in it. Send valid Unicode.", field=field) from None
    return text


def _ignored(given: Mapping[str, Any]) -> tuple[str, ...]:
    names = [name for name, value in given.items() if name not in _USED and value not in (None, [], {})]
    return tuple(sorted(name for name in names if _NAME.fullmatch(name)))[:_MAX_NAMED]
