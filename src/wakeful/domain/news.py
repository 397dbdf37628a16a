"""News: changes made by a transaction, for subscribers in this process and on other nodes.

A closed union. The store's writing methods leave news by themselves, and the store delivers it after the commit. News
is only a hint: the tables are the truth, and after `LookAgain` a subscriber reads them.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from wakeful.domain.events import RecallAction
from wakeful.domain.types import RunStatus, WakeStatus


@dataclass(frozen=True, slots=True)
class WakeChanged:
    """A wake was booked, changed or ended; the fields are from after that change."""

    wake_id: str
    action: RecallAction
    status: WakeStatus
    trigger_at: datetime


@dataclass(frozen=True, slots=True)
class WakeDueSooner:
    """A wake may be due earlier than schedulers know."""


@dataclass(frozen=True, slots=True)
class RunQueued:
    """A run may be free to start."""


@dataclass(frozen=True, slots=True)
class RunChanged:
    """A run has a new status."""

    run_id: str
    status: RunStatus
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class StopAsked:
    """A stop was requested for an executing run."""


@dataclass(frozen=True, slots=True)
class SessionChanged:
    """A session was created, renamed or handed over, or has a new message of a person."""

    session_id: str


@dataclass(frozen=True, slots=True)
class SessionGone:
    """A session was deleted."""

    session_id: str
    user_id: str


@dataclass(frozen=True, slots=True)
class AgentChanged:
    """An agent was created, changed, paused, resumed or deleted."""

    agent_id: str
    user_id: str


@dataclass(frozen=True, slots=True)
class ModelsChanged:
    """A model was added, changed, tested or removed, or there is another default."""


@dataclass(frozen=True, slots=True)
class NodeChanged:
    """A node is to drain, or to claim runs again."""

    owner: str


@dataclass(frozen=True, slots=True)
class NoticeAdded:
    """A notice was added to the inbox."""

    notice_id: str


@dataclass(frozen=True, slots=True)
class WebhookQueued:
    """A message to another system may be due."""


@dataclass(frozen=True, slots=True)
class ApprovalChanged:
    """A call waits for approval, or was answered."""

    run_id: str


@dataclass(frozen=True, slots=True)
class DatabaseChanged:
    """An agent's own database is being written to, or was. Not sent to other nodes."""

    agent_id: str
    user_id: str
    table: str | None
    in_flight: int
    last_change: int | None


@dataclass(frozen=True, slots=True)
class HomeChanged:
    """An agent's own database was written to by a node of a shared store."""

    agent_id: str
    user_id: str
    table: str | None
    last_change: int | None
    node: str  # which has told its own subscribers


@dataclass(frozen=True, slots=True)
class HomeErased:
    """The database or files of an agent on a shared store were erased, so every node deletes its copies."""

    agent_id: str


@dataclass(frozen=True, slots=True)
class FramesSaved:
    """Frames were added to a session's stream. Without frames: another node saved them."""

    session_id: str
    first_seq: int = 0
    frames: tuple[str, ...] = ()  # encoded, in order


@dataclass(frozen=True, slots=True)
class LookAgain:
    """News may have been lost: read the tables."""


News = (
    WakeChanged
    | WakeDueSooner
    | RunQueued
    | RunChanged
    | StopAsked
    | SessionChanged
    | SessionGone
    | AgentChanged
    | ModelsChanged
    | NodeChanged
    | NoticeAdded
    | WebhookQueued
    | ApprovalChanged
    | DatabaseChanged
    | HomeChanged
    | HomeErased
    | FramesSaved
    | LookAgain
)

N = TypeVar("N", bound=News)
