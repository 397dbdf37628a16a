"""Values that the client returns."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    id: str
    name: str
    description: str

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Self:
        return cls(id=body["id"], name=body["name"], description=body["description"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer of an agent. Its session takes the next message."""

    text: str
    session_id: str
    run_id: str
    reasoning: str = ""
    is_cut_off: bool = False  # it ended at a limit: of the model's output, the run or the budget
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """A promise to wake an agent."""

    id: str
    agent_id: str
    session_id: str | None
    at: datetime  # the next planned time
    instructions: str
    status: str  # pending, queued, running, fired, failed, cancelled, skipped, superseded
    comment: str = ""
    interval_seconds: int | None = None
    cron: str | None = None

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Self:
        return cls(
            id=body["id"],
            agent_id=body["agent_id"],
            session_id=body["session_id"],
            at=datetime.fromisoformat(body["nominal_at"]),
            instructions=body["instructions"],
            status=body["status"],
            comment=body["comment"],
            interval_seconds=body["interval_seconds"],
            cron=body["cron"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision about a planned time of a wake, in a sentence."""

    at: datetime
    code: str
    text: str
    run_id: str | None = None

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Self:
        return cls(
            at=datetime.fromisoformat(body["at"]), code=body["code"], text=body["text"], run_id=body.get("run_id")
        )
