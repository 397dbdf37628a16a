"""Rules of chat completions: the request, the session it goes on in, the answer."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, cast

from wakeful.core.errors import Forbidden, Invalid, LimitReached, NotFound
from wakeful.core.texts import check_size, why_not_storable
from wakeful.core.types import Agent, Message, RunNote

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
    if (problem := why_not_storable(text)) is not None:
        raise BadCompletion(f"`{field}` has {problem} in it. Leave it out.", field=field)
    return text


def _ignored(given: Mapping[str, Any]) -> tuple[str, ...]:
    names = [name for name, value in given.items() if name not in _USED and value not in (None, [], {})]
    return tuple(sorted(name for name in names if _NAME.fullmatch(name)))[:_MAX_NAMED]


# Which session a conversation goes on in: clients send the whole history and mostly no id.
#
# A session is known by a digest of what its client had sent with the last message. A request whose history goes up to
# there, and has the answer that was given, goes on in that session; an edited history does not match, and gets a new
# one. Several people may write with one token, so an answer that could be someone else's does not match.


MAX_KEY = 500  # characters of a header
MIN_PART = 200  # characters without spaces: a shorter part may be of anyone's answer
# Clients put thoughts into the text of an answer; they are not part of it.
_THOUGHTS = re.compile(r"<details\b[^>]*\btype=\"reasoning\".*?</details>|<think>.*?</think>", re.DOTALL)
# Open WebUI sends documents with the last question, and leaves them out of the history.
_DOCUMENTS = re.compile(r"\A### Task:.*</context>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKey:
    """A client's own name for a conversation."""

    header: str
    value: str
    is_session: bool = False  # the client names the session, so its history does not matter


def read_key(header: str, value: str | None, *, is_session: bool = False) -> ClientKey | None:
    """Read a header; None if it names no conversation."""
    name = read_name(value)
    return ClientKey(header=header.lower(), value=name, is_session=is_session) if name else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The digests of a request. Another token, person or agent has others for the same names and texts."""

    client: str | None  # of the client's own key
    before: str | None  # under which the request before this one left its session; None: this is the first
    after: str  # under which the next request finds the session of this one


def keys_of(request: CompletionRequest, key: ClientKey | None, token_id: str, agent_id: str) -> Keys:
    """Return the digests of a request; those of 10 MB take 0.2 s."""
    asker = _digest("person", token_id, *request.person) if request.person else token_id

    def digest_all(said: Sequence[Said]) -> str:
        parts = (part for each in said for part in (each.role, _plain(each.text)))
        return _digest("history", asker, agent_id, *parts)

    before = request.until_asked_before
    return Keys(
        client=None if key is None else _digest("key", asker, agent_id, key.header, key.value),
        before=digest_all(before) if before else None,
        after=digest_all((*request.history, request.last)),
    )


def shown_answer(steps: Sequence[Message]) -> str:
    """Return the text of a run that its client was shown: everything that the agent wrote, in order."""
    texts = [(step.data or {}).get("written") or step.content for step in steps if is_said(step)]
    return "\n\n".join(text.strip() for text in texts if text.strip())


def shown_thoughts(steps: Sequence[Message]) -> str:
    """Return the reasoning of a run."""
    texts = [(step.data or {}).get("thinking") or "" for step in steps if is_said(step)]
    return "\n\n".join(text.strip() for text in texts if text.strip())


def is_said(step: Message) -> bool:
    return step.role == "assistant" and step.source is None


def is_next(request: CompletionRequest, steps: Sequence[Message]) -> bool:
    """Return whether a request follows the message that began a run: the same question stands before its last one."""
    asked = next((step.content for step in steps if step.role == "user"), None)
    return asked is not None and request.asked_before is not None and _plain(asked) == _plain(request.asked_before)


def find_replaced(request: CompletionRequest, messages: Sequence[Message]) -> Message | None:
    """Return the last question of a session if a request is another version of it: everything before is the same.

    None if a scheduled run has followed it: what that did must not become an earlier version.
    """
    asked = [each for each in messages if each.role == "user"]
    if not asked or asked[-1].source is not None:
        return None
    before = [_plain(each.content) for each in asked[:-1] if each.source in (None, "preloaded")]
    given = [_plain(each.text) for each in request.history if each.role == "user"]
    return asked[-1] if before == given else None


def has_other_answer(request: CompletionRequest, messages: Sequence[Message], replaced: Message | None = None) -> bool:
    """Return whether the answer in a client's history is one of another version of the conversation.

    The version that `replaced` begins is another one too.
    """
    given = _plain(_THOUGHTS.sub("", request.answer_before))
    kept: list[Message] = []
    others: list[Message] = []
    for each in messages:
        is_kept = each.superseded_by is None and (replaced is None or each.position < replaced.position)
        (kept if is_kept else others).append(each)
    asked = (place for place, each in enumerate(kept) if each.role == "user" and each.source in (None, "preloaded"))
    return bool(given) and given in _answers(others) and given not in _answers(kept[max(asked, default=0) :])


def _answers(messages: Sequence[Message]) -> set[str]:
    """Return what the agent answered in each run, and the preloaded answers."""
    steps_of: dict[str, list[Message]] = {}
    for each in messages:
        if each.role == "assistant":
            steps_of.setdefault(each.run_id or each.id, []).append(each)
    return {_plain(shown_answer(steps) or steps[0].content) for steps in steps_of.values()}


def compare_answer(given: str, steps: Sequence[Message], *, is_over: bool) -> Literal["same", "part", "other"]:
    """Compare the answer in a client's history with the one of a run. A client that hung up has a part of it.

    Anyone can have an empty answer or a few words, so they are the answer of no run, or only if they are all of it.
    """
    theirs, ours = _plain(_THOUGHTS.sub("", given)), _plain(shown_answer(steps))
    if theirs and theirs == ours:
        return "same"
    is_part = ours.startswith(theirs) or (not is_over and theirs.startswith(ours))
    return "part" if is_part and min(len(theirs), len(ours)) >= MIN_PART else "other"


def _plain(text: str) -> str:
    """Return a text without its spaces, which clients trim and reflow, and without the documents around a question."""
    return "".join(_DOCUMENTS.sub("", text).split())


def _digest(*parts: str) -> str:
    digest = blake2b(digest_size=24)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8))
        digest.update(data)
    return digest.hexdigest()


# The stream of a run as the pieces of one answer.


# The limits that a client knows as the length of an answer.
_LENGTHS: frozenset[RunNote] = frozenset({"output_limit", "answer_too_long", "budget", "iteration_limit"})
_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the answer, or of the reasoning before it."""

    kind: Literal["text", "thought"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailure:
    """Why a run has no answer."""

    code: str
    message: str


class AnswerPieces:
    """Reads the frames of a run, and returns what to pass on for each."""

    def __init__(self) -> None:
        self._said = ""
        self._is_between = False  # a tool was called since the last text
        self._readers: Mapping[str, Callable[[Mapping[str, Any]], list[Piece]]] = {
            "stream_delta": lambda frame: self._say(frame["delta"]),
            "thinking_delta": lambda frame: [Piece("thought", frame["delta"])],
            "turn_thinking": lambda frame: [Piece("thought", frame["thinking"] + _BETWEEN)],
            "approval_requested": lambda frame: [Piece("thought", _ask_on_page(frame))],
            "stream_end": lambda frame: self._end(frame["content"]),
        }

    def read(self, frame: Mapping[str, Any]) -> list[Piece]:
        if frame.get("is_subagent"):
            return []
        if frame["type"] in ("tool_started", "tool_call", "server_note", "stream_start"):
            self._is_between = True
        reader = self._readers.get(frame["type"])
        return [] if reader is None else [piece for piece in reader(frame) if piece.text]

    def _say(self, text: str) -> list[Piece]:
        is_apart = self._is_between and bool(self._said) and not self._said.endswith("\n")
        self._is_between = False
        text = (_BETWEEN if is_apart else "") + text
        self._said += text
        return [Piece("text", text)]

    def _end(self, content: str) -> list[Piece]:
        """Say what was not streamed: why the run ended without an answer of the model."""
        if "".join(self._said.split()).endswith("".join(content.split())):
            return []
        self._is_between = True
        return self._say(content)


def find_failure(frame: Mapping[str, Any]) -> RunFailure | None:
    """Return why a run ended without an answer, if this frame says so."""
    if frame["type"] == "error":
        return RunFailure(code=frame["code"], message=frame["message"])
    if frame["type"] == "stream_stopped":
        return RunFailure(code="stopped", message="A person stopped the run before it had answered.")
    return None


def finish_reason(note: RunNote | None) -> Literal["stop", "length"]:
    return "length" if note in _LENGTHS else "stop"


def _ask_on_page(frame: Mapping[str, Any]) -> str:
    return f"Waiting for approval on Wakeful's page: {frame.get('sentence') or frame['tool']}\n"


# Agents as models.


PREFIX = "agent:"
_MAX_MODELS_NAMED = 10


class NoSuchModel(NotFound):
    code = "model_not_found"

    def __init__(self, model: str, agents: Sequence[Agent]) -> None:
        names = [model_of(agent, agents) for agent in agents]
        known = ", ".join(map(repr, names[:_MAX_MODELS_NAMED])) + (", …" if len(names) > _MAX_MODELS_NAMED else "")
        same = [f"{PREFIX}{agent.id}" for agent in agents if agent.name == model]
        if same:
            text = f"{len(same)} of your agents have the name {model!r}. Ask for one of {', '.join(same)}."
        elif names:
            text = f"You have no agent {model[:200]!r}. A model is one of your agents: {known}."
        else:
            text = "You have no agent yet, and a model is one of your agents. Create one with POST /agents."
        super().__init__(text, field="model")


def model_of(agent: Agent, agents: Sequence[Agent]) -> str:
    """Return the name of an agent as a model: its own, unless another agent of its user has that too."""
    is_unique = Counter(each.name for each in agents)[agent.name] == 1
    return agent.name if is_unique and not agent.name.startswith(PREFIX) else f"{PREFIX}{agent.id}"


def find_agent(model: str, agents: Sequence[Agent]) -> Agent:
    """Return the agent that a program asks for; its id always works."""
    found = [agent for agent in agents if model in (f"{PREFIX}{agent.id}", model_of(agent, agents))]
    if not found:
        raise NoSuchModel(model, agents)
    return found[0]


# Side requests: chat pages ask the model of a conversation for its title, tags and follow-ups, in a chat of its own.
# They come like any message, and would fill an agent's sessions with them. They are recognised by what the chat pages
# write into them.


# All marks of one line occur in the message, which is the only one. Open WebUI's prompt for documents also begins with
# "### Task:", and is a person's question, so that mark is not enough.
_MARKS = (
    ("### task:", "<chat_history>", "</chat_history>"),  # Open WebUI: title, tags, follow-ups, searches, completion
    ("reflect the speaker's likely facial expression",),  # Open WebUI: an emoji
    ("a set of responses from various models to the latest user query",),  # Open WebUI: merged answers
    ("5-word-or-less title for the conversation",),  # LibreChat
    ("analyze this conversation and provide", "concise title in the detected language"),  # LibreChat
)
MAX_AT_ONCE = 4  # of one token on one node; a chat page asks for three after a message
_RETRY_AFTER = 5  # seconds


class SideRequestsOff(Forbidden):
    code = "side_requests_off"

    def __init__(self) -> None:
        super().__init__(
            "This looks like a request of a chat page for a title, tags or follow-ups, and the server's setting "
            "v1_side_requests refuses them. Choose another model for such tasks in the chat page, or set it to "
            "'answer'."
        )


class TooManySideRequests(LimitReached):
    code = "too_many_side_requests"

    def __init__(self) -> None:
        super().__init__(
            f"{MAX_AT_ONCE} requests of this token for titles, tags or follow-ups are being answered, which is the "
            f"limit. Try again in {_RETRY_AFTER} s.",
            seconds=_RETRY_AFTER,
        )


class BudgetUsedUp(LimitReached):
    code = "insufficient_quota"

    def __init__(self, agent: str) -> None:
        super().__init__(
            f"The budget of the agent {agent!r} for today is used up, so its model was not asked. Raise the budget, or "
            "wait until tomorrow."
        )


def is_side_request(request: CompletionRequest) -> bool:
    """Return whether a chat page asks for something about a conversation, and no person asks the agent."""
    if request.history:
        return False
    text = f"{request.system}\n{request.last.text}".lower()
    return any(all(mark in text for mark in marks) for marks in _MARKS)
