"""News as text for PostgreSQL's NOTIFY: a word for the type, then the fields of each piece of news in their order."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from wakeful.core.events import (
    AgentChanged,
    ApprovalChanged,
    FramesSaved,
    HomeChanged,
    HomeErased,
    LookAgain,
    ModelsChanged,
    News,
    NodeChanged,
    NoticeAdded,
    OutgoingQueued,
    RunChanged,
    RunQueued,
    SessionChanged,
    SessionGone,
    StopAsked,
    WakeChanged,
    WakeDueSooner,
)
from wakeful.store.rows import from_micros, to_micros

_MAX_CHARACTERS = 7_500  # PostgreSQL passes on fewer than 8,000 bytes at once, our name included
_PLAIN = re.compile(r"[\w-]+", re.ASCII)
_NOTHING = "-"

_WORDS: dict[type[Any], str] = {
    WakeChanged: "wake",
    WakeDueSooner: "wake_due_sooner",
    RunQueued: "run_queued",
    RunChanged: "run",
    StopAsked: "stop_asked",
    SessionChanged: "session",
    SessionGone: "session_gone",
    AgentChanged: "agent",
    ModelsChanged: "models",
    NodeChanged: "node",
    NoticeAdded: "notice",
    OutgoingQueued: "outgoing",
    ApprovalChanged: "approval",
    HomeChanged: "home",
    HomeErased: "home_erased",
    FramesSaved: "frames",
    LookAgain: "look_again",
}
_TYPES = {word: kind for kind, word in _WORDS.items()}
_FIELDS = {
    kind: ("session_id",) if kind is FramesSaved else tuple(field.name for field in fields(kind)) for kind in _WORDS
}


def encode(news: Iterable[News]) -> list[str]:
    """Write news as few texts; that of one type keeps its order. The texts are words and ids, safe to quote in SQL."""
    grouped: dict[type[Any], dict[str, None]] = {}
    for each in news:
        kind = type(each)
        grouped.setdefault(kind, {})[" ".join(_to_text(getattr(each, name)) for name in _FIELDS[kind])] = None
    return [text for kind, texts in grouped.items() for text in _join(_WORDS[kind], list(texts))]


def decode(text: str) -> list[News]:
    """Read news back. That of another version of the server is ignored: nodes look at the tables by themselves, too.

    A type whose fields change needs another word, so that no older node reads them as its own.
    """
    word, *values = text.split(" ")
    kind = _TYPES.get(word)
    if kind is None:
        return []
    names = _FIELDS[kind]
    if not names:
        return [kind()]
    step = len(names)
    try:
        return [
            kind(**{name: _from_text(name, value) for name, value in zip(names, values[at : at + step], strict=True)})
            for at in range(0, len(values), step)
        ]
    except ValueError:
        return []


def _join(word: str, texts: Sequence[str]) -> list[str]:
    if texts == [""]:
        return [word]
    joined = [word]
    for text in texts:
        if len(joined[-1]) + len(text) > _MAX_CHARACTERS:
            joined.append(word)
        joined[-1] += f" {text}"
    return joined


def _to_text(value: Any) -> str:
    if isinstance(value, datetime):
        return str(to_micros(value))
    text = None if value is None else str(value)
    return text if text is not None and _PLAIN.fullmatch(text) else _NOTHING


def _from_text(name: str, text: str) -> Any:
    if text == _NOTHING:
        return None
    if name.endswith("_at"):
        return from_micros(int(text))
    return int(text) if name == "last_change" else text
