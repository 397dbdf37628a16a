"""Frames: what runs stream while they work and what the sockets send, as one closed union."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from wakeful.domain.types import RunNote, RunUsage

RecallAction = Literal["scheduled", "deferred", "fired", "rescheduled", "skipped", "cancelled", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """A frame that is saved before it is sent. The store gives it its place in the session."""

    seq: int | None = None
    run_id: str | None = None  # None: outside of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfWorker(_Stored):
    """A frame of the top-level agent or of one it has spawned."""

    is_subagent: bool = False
    subagent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStart(_Stored):
    """A run begins. A second one in the same run: it was cut off and goes on from its last saved step."""

    type: Literal["stream_start"] = "stream_start"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnd(_Stored):
    """A run ended well; the session takes the next message."""

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
    """A run failed, or (without seq) a client's own frame was refused."""

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
class TurnThinking(_OfWorker):
    """The whole reasoning of a turn that was not streamed: planning and subagents."""

    type: Literal["turn_thinking"] = "turn_thinking"
    thinking: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningStatus(_OfWorker):
    """How far planning is: 1 analysis, 2 reflection, 3 plan."""

    type: Literal["planning_status"] = "planning_status"
    phase: Literal[1, 2, 3]
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReady(_OfWorker):
    """The steps the agent means to take."""

    type: Literal["plan_ready"] = "plan_ready"
    plan: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested(_OfWorker):
    """A call waits for a person's approval; after a crash the run asks again."""

    type: Literal["approval_requested"] = "approval_requested"
    tool: str
    args: Mapping[str, Any]
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswered(_OfWorker):
    """A person has answered, and the run goes on."""

    type: Literal["approval_answered"] = "approval_answered"
    tool: str
    call_id: str
    approved: bool
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(_OfWorker):
    """The run waits for a model or an MCP server. The next frame of the same worker ends the waiting."""

    type: Literal["waiting"] = "waiting"
    for_: Literal["model", "mcp_server"]  # `for` on the wire
    reason: str
    retry_in: float | None = None  # seconds until the next try; None: it is being tried


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(_OfWorker):
    """A tool is about to be called."""

    type: Literal["tool_started"] = "tool_started"
    tool: str
    args: Mapping[str, Any]
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(_OfWorker):
    """A tool has answered."""

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
class CompressionStarted(_OfWorker):
    """The context is about to be compressed."""

    type: Literal["compression_started"] = "compression_started"
    context_tokens: int
    max_context_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCompressed(_OfWorker):
    """The context was compressed; the saved transcript is whole as before."""

    type: Literal["context_compressed"] = "context_compressed"
    messages_before: int
    messages_after: int
    summary: str
    context_tokens: int
    max_context_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSwitched(_Stored):
    """Another agent goes on in this session."""

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
    """So many frames follow that were sent before this client connected."""

    type: Literal["replay_start"] = "replay_start"
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayEnd:
    """The frames from here on are live."""

    type: Literal["replay_end"] = "replay_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The connection is alive, though nothing happens."""

    type: Literal["heartbeat"] = "heartbeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfUser:
    """A change of something that a user owns; seq counts these alone."""

    seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUpdate(_OfUser):
    """A session was made, changed or deleted."""

    type: Literal["session_update"] = "session_update"
    session_id: str
    agent_id: str | None = None
    title: str | None = None
    action: Literal["changed", "deleted"]


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
    """An agent was made, changed or deleted."""

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
    in_flight: int = 0  # writes under way
    last_change: int | None = None  # number in the changelog; absent: a write has begun or failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification(_OfUser):
    """Something for the inbox."""

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
    """A piece of the transcript that must survive a crash; it is durable before the executor goes on.

    The last one is saved in the transaction that finishes the run, so a saved final answer is never asked for again.
    """

    role: str
    content: str
    data: Mapping[str, Any] | None = None
    is_recall: bool = False
    source: str | None = None
    label: str | None = None
    usage: RunUsage | None = None  # what the run has used up to here
    is_last: bool = False  # the run ends with it; only StreamEnd and EndedEarly follow


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedEarly:
    """The run ends well, but for a reason worth noting, such as the iteration limit."""

    reason: RunNote


def wire_name(field_name: str) -> str:
    """Return what a frame's field is called on the wire; one named like a Python keyword ends in `_` here."""
    return field_name.removesuffix("_")


RunEvent = StepSaved | RunFrame | EndedEarly
