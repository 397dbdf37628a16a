"""Every operation, once: a generator that yields the requests it needs and is sent their answers.

The synchronous and the asynchronous client only differ in how they send a request.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

from wakeful.client.connection import Agent, Decision, Wake, WakefulClientError

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

_PAGE = 200
_TITLE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request to the server."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A message, and the request that streams its answer."""

    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    path: str = "/v1/chat/completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When a wake fires; nothing of it: at once."""

    when: str | datetime | None
    every: timedelta | float | None
    cron: str | None
    timezone: str | None

    def to_body(self) -> dict[str, Any]:
        seconds = int(self.every.total_seconds() if isinstance(self.every, timedelta) else self.every or 0)
        when = self.when.isoformat() if isinstance(self.when, datetime) else self.when
        if seconds and when is None and self.cron is None:
            when = f"{seconds}s"  # first after that long
        return {
            "call_type": "recurring" if seconds or self.cron else "once" if when is not None else "immediate",
            "when": when,
            "interval_seconds": seconds or None,
            "cron": self.cron,
            "timezone": self.timezone,
        }


Calls: TypeAlias = Generator[Call, Any, T]
ReadAnswer: TypeAlias = Callable[[R, Calls[Question]], S]


def question(message: str, agent: str | None, session: str | None, system: str) -> Calls[Question]:
    model = yield from model_for(agent, session)
    messages = [{"role": "system", "content": system}] if system else []
    body = {
        "model": model,
        "messages": [*messages, {"role": "user", "content": message}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return Question(body=body, headers={} if session is None else {"X-Wakeful-Session": session})


def agents() -> Calls[list[Agent]]:
    found = yield Call(method="GET", path="/agents")
    return [Agent.read(each) for each in found["agents"]]


def wakes(agent: str | None, *, is_live: bool) -> Calls[list[Wake]]:
    query: dict[str, Any] = {"limit": _PAGE} | ({"live": "true"} if is_live else {})
    if agent is not None:
        query["agent_id"] = (yield from find_agent(agent)).id
    listed: list[Wake] = []
    while True:
        page = yield Call(method="GET", path=f"/wakes?{urlencode(query)}")
        listed += [Wake.read(each) for each in page["wakes"]]
        if not page.get("next"):
            return listed
        query["page"] = page["next"]


def book(
    instructions: str, timing: Timing, *, agent: str | None, session: str | None, comment: str | None
) -> Calls[Wake]:
    asked = timing.to_body() | {"additional_context_message": instructions, "internal_comment": comment}
    if session is None:
        opened = {"agent_id": (yield from find_agent(agent)).id, "title": _title(comment or instructions)}
        session = (yield Call(method="POST", path="/sessions", body=opened))["id"]
    body = {name: value for name, value in asked.items() if value is not None}
    booked = yield Call(method="POST", path=f"/sessions/{quote(str(session), safe='')}/recall", body=body)
    return (yield from wake(booked["recall"]["id"]))


def wake(wake_id: str) -> Calls[Wake]:
    return Wake.read((yield Call(method="GET", path=_of_wake(wake_id))))


def cancel(wake_id: str) -> Calls[None]:
    yield Call(method="DELETE", path=_of_wake(wake_id))


def why(wake_id: str) -> Calls[list[Decision]]:
    found = yield Call(method="GET", path=f"{_of_wake(wake_id)}/why")
    return [Decision.read(each) for each in found["decisions"]]


def model_for(agent: str | None, session: str | None) -> Calls[str]:
    """Return the model to ask: the agent that is named, that of the session, or the first one."""
    if agent is None and session is not None:
        found = yield Call(method="GET", path=f"/sessions/{quote(session, safe='')}")
        return f"agent:{found['agent_id']}"
    return f"agent:{(yield from find_agent(agent)).id}"


def find_agent(agent: str | None) -> Calls[Agent]:
    """Return an agent by its id or name; None: the first one."""
    found = yield from agents()
    if not found:
        raise WakefulClientError("You have no agent yet. Create one on the page, or with `wakeful agent add`.")
    same = found[:1] if agent is None else [each for each in found if agent in (each.id, each.name)]
    if len(same) == 1:
        return same[0]
    if same:
        ids = ", ".join(each.id for each in same)
        raise WakefulClientError(f"{len(same)} of your agents have the name {agent!r}. Use one of their ids: {ids}.")
    raise WakefulClientError(f"You have no agent {agent!r}. Yours: {_names(found)}.")


def _of_wake(wake_id: str) -> str:
    return f"/wakes/{quote(wake_id, safe='')}"


def _names(found: Sequence[Agent]) -> str:
    return ", ".join(repr(each.name) for each in found)


def _title(text: str) -> str:
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= _TITLE else f"{line[: _TITLE - 1]}…"
