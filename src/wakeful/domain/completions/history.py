"""Which session a conversation goes on in: clients send the whole history and mostly no id.

A session is known by a digest of what its client had sent with the last message. A request whose history goes up to
there, and has the answer that was given, goes on in that session; an edited history does not match, and gets a new one.
Several people may write with one token, so an answer that could be someone else's does not match.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Literal

from wakeful.domain.completions.request import CompletionRequest, Said, read_name
from wakeful.domain.types import Message

KEPT = timedelta(days=30)  # after the last message
MAX_KEY = 500  # characters of a header
MIN_PART = 200  # characters without spaces: a shorter part may be of anyone's answer
# Clients put thoughts into the text of an answer; they are not part of it.
_THOUGHTS = re.compile(r"<details\b[^>]*\btype=\"reasoning\".*?</details>|<think>.*?</think>", re.DOTALL)
# Open WebUI sends documents with the last question, and leaves them out of the history.
_DOCUMENTS = re.compile(r"\A### Task:.*</context>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSession:
    """A session that a program goes on with, and the last message it sent there."""

    session_id: str
    user_id: str
    client_key: str | None
    history_key: str
    run_id: str
    at: datetime


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
