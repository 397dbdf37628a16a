"""Frames, everything that runs stream and sockets send; and news, changes made by a transaction.

Each is a closed union. News is for subscribers in this process and on other nodes: the store's writing methods leave it
by themselves, and the store delivers it after the commit. It is only a hint: the tables are the truth, and after
`LookAgain` a subscriber reads them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeVar

from wakeful.core.call_words import ShownArgument
from wakeful.core.types import RunNote, RunStatus, RunUsage, ServerNoteCode, WakeStatus

RecallAction = Literal["scheduled", "deferred", "fired", "rescheduled", "skipped", "cancelled", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """A frame that is saved before it is sent. The store numbers it within its session."""

    seq: int | None = None
    run_id: str | None = None  # None: outside of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFrame(_Stored):
    """A frame of the agent itself or of one of its subagents."""

    is_subagent: bool = False
    subagent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStart(_Stored):
    """A run starts. A second one in the same run: it was interrupted and resumes from its last saved step."""

    type: Literal["stream_start"] = "stream_start"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnd(_Stored):
    """A run succeeded; the session accepts the next message."""

    type: Literal["stream_end"] = "stream_end"
    content: str
    context_tokens: int
    max_context_tokens: int
    elapsed_seconds: float
    tool_call_count: int
    token_count: int
    message_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStopped(_Stored):
    """A person stopped the run."""

    type: Literal["stream_stopped"] = "stream_stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFrame(_Stored):
    """A run failed, or (without seq) a frame of the client was refused."""

    type: Literal["error"] = "error"
    message: str
    code: str
    field: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingDelta(_Stored):
    """A piece of the model's reasoning."""

    type: Literal["thinking_delta"] = "thinking_delta"
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingEnd(_Stored):
    """The model has stopped reasoning for now."""

    type: Literal["thinking_end"] = "thinking_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnThinking(WorkerFrame):
    """The whole reasoning of a turn that was not streamed: planning and subagents."""

    type: Literal["turn_thinking"] = "turn_thinking"
    thinking: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningStatus(WorkerFrame):
    """The current phase of planning: 1 analysis, 2 reflection, 3 plan."""

    type: Literal["planning_status"] = "planning_status"
    phase: Literal[1, 2, 3]
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReady(WorkerFrame):
    """The steps of the plan."""

    type: Literal["plan_ready"] = "plan_ready"
    plan: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested(WorkerFrame):
    """A call waits for a person's approval; after a crash the run asks again."""

    type: Literal["approval_requested"] = "approval_requested"
    tool: str
    args: Mapping[str, Any]
    call_id: str
    sentence: str = ""  # what the call would do, in the server's words; what the model wrote is quoted in it
    shown: tuple[ShownArgument, ...]  # every argument, to be on the screen before a person can approve


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswered(WorkerFrame):
    """A person has answered, and the run continues."""

    type: Literal["approval_answered"] = "approval_answered"
    tool: str
    call_id: str
    approved: bool
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(WorkerFrame):
    """The run waits for a model or an MCP server, until the next frame of the same agent."""

    type: Literal["waiting"] = "waiting"
    for_: Literal["model", "mcp_server"]  # `for` on the wire
    reason: str
    retry_in: float | None = None  # seconds until the next attempt; None: an attempt is in progress


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(WorkerFrame):
    """A tool is about to be called."""

    type: Literal["tool_started"] = "tool_started"
    tool: str
    args: Mapping[str, Any]
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(WorkerFrame):
    """A tool has returned."""

    type: Literal["tool_call"] = "tool_call"
    tool: str
    args: Mapping[str, Any]
    result: str
    success: bool
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamDelta(_Stored):
    """A piece of the answer."""

    type: Literal["stream_delta"] = "stream_delta"
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerNote(WorkerFrame):
    """The server has written to the model, or remarks on its answer; the transcript has it too."""

    type: Literal["server_note"] = "server_note"
    code: ServerNoteCode
    text: str  # for people


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionStarted(WorkerFrame):
    """The context is about to be compressed."""

    type: Literal["compression_started"] = "compression_started"
    context_tokens: int
    max_context_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCompressed(WorkerFrame):
    """The context was compressed; the saved transcript is unchanged."""

    type: Literal["context_compressed"] = "context_compressed"
    messages_before: int
    messages_after: int
    summary: str
    context_tokens: int
    max_context_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSwitched(_Stored):
    """Another agent takes over this session."""

    type: Literal["profile_switched"] = "profile_switched"
    profile_id: str
    profile_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallUpdate(_Stored):
    """A recall of the session changed."""

    type: Literal["recall_update"] = "recall_update"
    session_id: str
    recall_id: str
    call_type: str
    trigger_at: datetime
    status: str
    action: RecallAction


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSync:
    """Load the session again: what is shown may be out of date."""

    type: Literal["session_sync"] = "session_sync"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayStart:
    """`count` frames follow that were sent before this client connected."""

    type: Literal["replay_start"] = "replay_start"
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayEnd:
    """The frames from here on are live."""

    type: Literal["replay_end"] = "replay_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The connection is alive."""

    type: Literal["heartbeat"] = "heartbeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfUser:
    """A change of something that a user owns, numbered separately from session frames."""

    seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUpdate(_OfUser):
    """A session was created, changed or deleted."""

    type: Literal["session_update"] = "session_update"
    session_id: str
    agent_id: str | None = None
    title: str | None = None
    action: Literal["changed", "deleted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalUpdate(_OfUser):
    """A run asks for approval of a tool call, or was answered. GET /approvals lists the calls that wait."""

    type: Literal["approval_update"] = "approval_update"
    run_id: str
    session_id: str
    agent_id: str
    waiting: int  # calls of the run that wait now


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUpdate(_OfUser):
    """A run has a new status."""

    type: Literal["run_update"] = "run_update"
    run_id: str
    agent_id: str
    session_id: str | None = None
    wake_id: str | None = None
    trigger: str
    status: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentUpdate(_OfUser):
    """An agent was created, changed or deleted."""

    type: Literal["agent_update"] = "agent_update"
    agent_id: str
    name: str | None = None
    action: Literal["changed", "deleted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleUpdate(_OfUser):
    """A schedule or a next run changed."""

    type: Literal["schedule_update"] = "schedule_update"
    wake_id: str
    kind: str
    agent_id: str
    session_id: str | None = None
    trigger_at: datetime
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DbUpdate(_OfUser):
    """Something is being written to an agent's own database, or was."""

    type: Literal["db_update"] = "db_update"
    agent_id: str
    table: str | None = None
    in_flight: int = 0  # writes in progress
    last_change: int | None = None  # number in the changelog; absent: a write has started or failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification(_OfUser):
    """A new notification in the inbox."""

    type: Literal["notification"] = "notification"
    notification_id: str
    code: str
    title: str
    body: str
    agent_id: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    wake_id: str | None = None
    view_ref: str | None = None
    times: Mapping[str, datetime] = field(default_factory=dict[str, datetime])  # in `body`, as written there


RunFrame = (
    StreamStart
    | StreamEnd
    | StreamStopped
    | ErrorFrame
    | ThinkingDelta
    | ThinkingEnd
    | TurnThinking
    | PlanningStatus
    | PlanReady
    | ApprovalRequested
    | ApprovalAnswered
    | Waiting
    | ToolStarted
    | ToolCall
    | StreamDelta
    | ServerNote
    | CompressionStarted
    | ContextCompressed
    | ProfileSwitched
    | RecallUpdate
)
ConnectionFrame = SessionSync | ReplayStart | ReplayEnd | Heartbeat | ErrorFrame
SessionFrame = RunFrame | SessionSync | ReplayStart | ReplayEnd | Heartbeat
UserFrame = (
    RecallUpdate
    | ScheduleUpdate
    | SessionUpdate
    | RunUpdate
    | ApprovalUpdate
    | AgentUpdate
    | DbUpdate
    | Notification
    | SessionSync
    | Heartbeat
    | ErrorFrame
)

ENDS = ("stream_end", "stream_stopped", "error")  # the last frame of a run is one of these


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSaved:
    """An entry of the transcript that must survive a crash; it is durable before the executor continues.

    The last one is saved in the transaction that finishes the run, so the model is not asked again for a saved answer.
    """

    role: str
    content: str
    data: Mapping[str, Any] | None = None
    is_recall: bool = False
    source: str | None = None
    label: str | None = None
    usage: RunUsage | None = None  # what the run has used up to here
    outside_sources: tuple[str, ...] | None = None  # those of the run up to here; None: as saved before
    is_last: bool = False  # the run ends with it; only StreamEnd and EndedEarly follow


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedEarly:
    """The run succeeds, but ends for a reason worth noting, such as the iteration limit."""

    reason: RunNote


def wire_name(field_name: str) -> str:
    """Return the JSON name of a frame's field; a name that is a Python keyword ends in `_` here."""
    return field_name.removesuffix("_")


RunEvent = StepSaved | RunFrame | EndedEarly


# News: changes made by a transaction.


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
class OutgoingQueued:
    """A message of one kind to something outside may be due."""

    kind: str


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
    | OutgoingQueued
    | ApprovalChanged
    | DatabaseChanged
    | HomeChanged
    | HomeErased
    | FramesSaved
    | LookAgain
)

N = TypeVar("N", bound=News)
