"""The types that everything shares: users, agents, sessions, wakes, runs, notices.

Every datetime is aware and in UTC. Values are immutable; a rule returns a new one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from types import MappingProxyType
from typing import Any, Literal

from wakeful.core.values import value

WakeKind = Literal["recall", "message", "session", "next_run"]
CallType = Literal["once", "recurring", "immediate"]
Priority = Literal["normal", "low"]
OnMiss = Literal["skip", "run_once", "run_catchup"]
ScheduledBy = Literal["agent", "user", "system"]
WakeStatus = Literal["pending", "queued", "running", "fired", "failed", "cancelled", "skipped", "superseded"]
RunStatus = Literal["queued", "running", "success", "failed", "stopped", "skipped", "interrupted"]
RunNote = Literal[
    "did_nothing",
    "empty_answer",
    "iteration_limit",
    "budget",
    "repeated_calls",
    "bad_calls",
    "too_many_calls",
    "answer_too_long",
    "output_limit",
    "repeated_text",
    "call_as_text",
    "unkept_promise",
    "prompt_cut",
]
ServerNoteCode = Literal["budget", "promise", "call_as_text", "unkept_promise", "prompt_cut", "model_taken_back"]
Trigger = Literal["message", "wake", "run_now"]
ScheduleMode = Literal["ambient", "reactive", "project", "manual"]
Role = Literal["owner", "user"]
Door = Literal["page", "rest", "cli", "tool", "mcp", "v1", "hook"]  # how a booking or a run came in
Scope = Literal["read", "chat", "schedule", "admin"]  # each includes the ones before it
ThinkingLevel = Literal["off", "low", "medium", "high"]

FOREVER = datetime(9999, 1, 1, tzinfo=UTC)  # the end of an indefinite pause

LIVE: frozenset[WakeStatus] = frozenset({"pending", "queued"})


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person who owns agents."""

    id: str
    name: str
    role: Role
    timezone: str | None = None  # IANA; None: neither a browser nor a command line has sent it yet
    created_at: datetime
    deleted_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of the next runs that an agent books itself."""

    mode: ScheduleMode
    max_horizon: timedelta
    min_interval: timedelta
    daily_cap: int
    quiet_from: time | None = None  # wall clock in the agent's zone; both or neither
    quiet_to: time | None = None
    days: frozenset[int] = frozenset(range(7))  # Monday is 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """An access token of a person or a program; its secret is not stored."""

    id: str
    user_id: str
    name: str
    kind: Literal["api", "browser"]
    scope: Scope
    digest: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    page_digest: str | None = None  # of the secret that the web page sends with the cookie


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Limits of what an agent may spend; None: no limit. Money is in millionths of a dollar."""

    run_tokens: int | None = None
    run_cost_micros: int | None = None
    day_tokens: int | None = None
    day_cost_micros: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent: its model, prompt, tools and limits."""

    id: str
    user_id: str
    name: str
    description: str = ""
    model: str | None = None  # None: the server's default
    allowed_models: tuple[str, ...] = ()  # others that its schedules may ask for; set by the server's owner
    system_prompt: str = ""
    toolsets: tuple[str, ...] = ()
    mcp_servers: tuple[str, ...] = ()  # names from the settings file
    ask_before: tuple[str, ...] = ()  # tools that need a person's approval; a name, or a prefix with *
    profiles: tuple[str, ...] = ()  # ids of the agents it may hand a session over to
    may_write_skills: bool = False  # its skills, and AGENTS.md in its workspace
    subagents: tuple[str, ...] = ()  # ids of the agents it may give a task to
    planning: bool = False
    thinking_level: ThinkingLevel | None = None  # None: the model's default
    max_iterations: int = 50  # model calls in one run
    budgets: Budgets = Budgets()
    database_mb: int | None = None  # quota of its own database; None: the server's setting
    timezone: str | None = None  # IANA; None: its user's
    user_timezone: str | None = None  # of its user, read in the same query
    offers_zone: bool = False  # ask its user whether the agent should use theirs
    self_scheduling: bool
    bounds: Bounds
    run_limit: timedelta  # wall-clock limit of one run
    created_at: datetime
    updated_at: datetime

    @property
    def known_zone(self) -> str | None:
        """Return the time zone of wall-clock times, if one is known."""
        return self.timezone or self.user_timezone

    @property
    def zone(self) -> str:
        """Return the time zone of quiet hours, days and "today": UTC if none is known."""
        return self.known_zone or "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation of an agent with its user, or an unattended one."""

    id: str
    agent_id: str
    user_id: str
    title: str
    created_at: datetime
    updated_at: datetime  # the last message
    tool_limit: tuple[str, ...] | None = None  # None: every tool of its agent
    origin_session_id: str | None = None  # set if a wake created this session
    origin_wake_id: str | None = None
    origin_label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A period in which an agent's wakes do not fire."""

    id: str
    user_id: str
    agent_id: str | None  # None: everything this user owns
    started_at: datetime
    until: datetime  # FOREVER: until someone resumes
    reason: str


@value
class Wake:
    """A promise to wake an agent: once, at once, or repeatedly."""

    id: str
    kind: WakeKind
    agent_id: str
    user_id: str
    session_id: str | None  # where it was booked; recalls and messages run there
    slot: str | None  # unique among live wakes
    call_type: CallType
    every: timedelta | None = None
    cron: str | None = None
    timezone: str | None = None  # IANA; the zone of its wall-clock times. None: it needed none, and none was known
    wall_clock: str | None = None  # the local time that was asked for, if it fires once at a wall-clock time
    until: datetime | None = None
    max_runs: int | None = None
    booking: Mapping[str, Any] | None = None  # the requested time and why it was moved; None: booked by 0.1
    nominal_at: datetime  # the planned instant; never moved by a deferral
    attempt_at: datetime  # when the scheduler tries next
    first_due_at: datetime | None = None  # when it was first due and not held
    is_missed: bool = False  # decided once, at first_due_at
    held_by: str | None = None  # why attempt_at is later than nominal_at
    comment: str = ""
    instructions: str  # the prompt of its runs
    context_views: tuple[str, ...] = ()
    session_config: Mapping[str, Any] | None = None
    priority: Priority = "normal"
    on_miss: OnMiss = "run_once"
    scheduled_by: ScheduledBy
    booked_by_run: str | None = None
    tools: tuple[str, ...] | None = None  # tools of the run that booked it; None: a person did, so no limit
    outside_sources: tuple[str, ...] = ()  # of the run that booked it, or the hook that it belongs to
    ephemeral: bool = False  # deleted at the next start of the server
    status: WakeStatus = "pending"
    reason: str | None = None
    error: str | None = None
    delivery_phase: str | None = None
    created_session_id: str | None = None
    deferrals: int = 0
    failures: int = 0  # in a row
    runs_started: int = 0
    muted: bool = False  # its notices go to the inbox only
    ping_to: str | None = None  # the public part of the address that its runs are reported to; only people set it
    seen_at: datetime | None = None  # when a person last edited it or wrote in its session; None: never
    traceparent: str | None = None  # the span that booked it, if that was traced
    door: Door | None = None  # how it was booked; None: before this was recorded
    token_id: str | None = None  # the token or hook that booked it
    token_name: str | None = None
    version: int = 1
    created_at: datetime
    updated_at: datetime

    @property
    def is_live(self) -> bool:
        return self.status in LIVE

    @property
    def is_recurring(self) -> bool:
        return self.call_type == "recurring"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """The readable part of a wake that could not be fired."""

    id: str
    kind: WakeKind
    user_id: str
    agent_id: str
    session_id: str | None
    call_type: CallType
    nominal_at: datetime
    status: WakeStatus


@value
class Run:
    """One execution of an agent in a session, or the record of one that was skipped."""

    id: str
    agent_id: str
    user_id: str
    session_id: str | None  # None only for a skipped occurrence that never got a session
    wake_id: str | None  # None: a user's message
    kind: WakeKind | None
    trigger: Trigger
    scheduled_by: ScheduledBy
    nominal_at: datetime  # the first planned instant it covers
    covers: int = 1  # number of planned instants; 0 for an extra run by hand
    priority: Priority = "normal"
    turn: int = 0  # place in the queue, fair between agents; 0 if a person waits for it
    status: RunStatus = "queued"
    reason: str | None = None
    note: RunNote | None = None  # worth knowing about a run that succeeded
    error: str | None = None
    queued_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    owner: str | None = None  # random per process start
    lease_until: datetime | None = None
    fence: int = 0  # incremented by every claim; an expired owner has an old one
    attempt: int = 0  # incremented by every claim; a start without a model or tool call does not count
    has_called: bool = False  # the current start has reached a model or tool call
    lost_starts: int = 0  # starts that ended in a crash before that
    is_resuming: bool = False  # resumed after a crash, and no step saved since
    not_before: datetime | None = None  # queued again after an outage of its model, and not claimed earlier
    stop_requested_at: datetime | None = None
    node: str | None = None  # the name of the node that claimed it last
    has_ping: bool = False  # its wake had an address to ping when it fired
    traceparent: str | None = None  # the span of its last attempt; before the first, of what booked its wake
    door: Door | None = None  # how it was started, or how its wake was booked; None: before this was recorded
    token_id: str | None = None  # the token or hook that started it or booked its wake
    token_name: str | None = None
    outside_sources: tuple[str, ...] = ()  # where the data came from that it has read and its user did not write

    @property
    def is_headless(self) -> bool:
        return self.trigger != "message"


@value
class ClaimedRun(Run):
    """A run that a process holds and executes: it always has a session."""

    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of a session's transcript; a run's own entries are its saved steps."""

    id: str
    session_id: str
    position: int
    role: str
    content: str
    created_at: datetime
    run_id: str | None = None
    is_recall: bool = False
    source: str | None = None
    wake_id: str | None = None
    label: str | None = None
    data: Mapping[str, Any] | None = None  # tool calls, thinking, images: everything but plain text
    superseded_by: str | None = None  # the run that replaced it, by a retry or an edit


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUsage:
    """Tokens, cost and calls of a run so far."""

    run_id: str
    agent_id: str
    user_id: str
    at: datetime
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = None  # millionths of a dollar; None: the price is unknown
    model_calls: int = 0
    tool_calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingWork:
    """The amount of work that waits in the store, for the metrics."""

    pending_wakes: int
    next_wake_at: datetime | None  # when the first of them is due
    queued_runs: int
    running_runs: int
    approvals: int  # tool calls that wait for a person


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that a person uploaded to a session."""

    id: str
    session_id: str
    name: str
    path: str
    size: int
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One decision about a wake: why an occurrence ran, waited or was skipped."""

    wake_id: str
    nominal_at: datetime
    at: datetime
    code: str
    run_id: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something a person should know, in their inbox."""

    id: str
    user_id: str
    agent_id: str | None
    code: str
    title: str
    body: str
    once_key: str  # a notice with the same key is saved once
    created_at: datetime
    wake_id: str | None = None
    run_id: str | None = None
    session_id: str | None = None
    view_ref: str | None = None  # name of a saved view with details
    read_at: datetime | None = None
    times: Mapping[str, Any] | None = None  # instants (ISO 8601) by their names in `body`, as in "until {until}"
    resolved_at: datetime | None = None  # when what it asks for was done


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """A way to reach a person outside of the inbox, with the messages of an hour and the last result."""

    id: str
    user_id: str
    name: str
    hour_from: datetime | None = None  # start of the hour whose messages are counted
    hour_count: int = 0
    last_sent_at: datetime | None = None
    last_error: str | None = None
    last_error_at: datetime | None = None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel(Outlet):
    """A service that a person named. Its address is a secret."""

    url: str
    shown: str  # the public part of the address
    enabled: bool = True
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSubscription(Outlet):
    """A browser that takes push messages. Its endpoint is a secret: anyone who knows it can send to it."""

    token_id: str  # the login it was made with; when that ends, nothing is sent any more
    endpoint: str
    service: str  # the host of the endpoint
    p256dh: str  # the browser's public key, base64url
    auth: str  # shared with the browser only, base64url
    contact: str | None = None  # address of the page, for the operator of the push service
    wait_until: datetime | None = None  # its push service takes nothing before


# Limits of images attached to a message.


MAX_IMAGES = 10  # in one message
MAX_IMAGE_BYTES = 5 * 1024 * 1024
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")


# Kinds of wakes, as a table of traits. A new kind is a row here, and the door it is booked through.


Landing = Literal["origin", "fresh"]  # the session it was booked in, or a new one for each run
Slot = Literal["session", "agent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Traits of one kind of wake."""

    landing: Landing
    slot: Slot | None = None  # at most one live wake for each session or agent; None: any number
    is_recall: bool = False  # its changes are `recall_update` frames in its session; others are `schedule_update`
    is_schedule: bool = False  # booked through the scheduler door, which limits how many wait in a session
    can_recur: bool = False
    can_defer: bool = False  # deferred while its session is busy; otherwise its run is queued there
    is_bounded: bool = False  # modes, quiet hours, days and the daily cap apply if the agent itself booked it
    on_miss: OnMiss = "run_once"


KINDS: Mapping[WakeKind, Kind] = MappingProxyType(
    {
        "recall": Kind(landing="origin", slot="session", is_recall=True, can_recur=True, can_defer=True),
        "message": Kind(landing="origin", is_schedule=True),
        "session": Kind(landing="fresh", is_schedule=True),
        "next_run": Kind(landing="fresh", slot="agent", is_bounded=True, on_miss="skip"),
    }
)


def kind_of(wake: Wake) -> Kind:
    return KINDS[wake.kind]


def is_schedule(wake: Wake) -> bool:
    """Return whether a wake was booked through the scheduler door."""
    return kind_of(wake).is_schedule


def is_bounded(wake: Wake) -> bool:
    """Return whether modes, quiet hours, days and the daily cap apply: only if the agent itself booked it."""
    return kind_of(wake).is_bounded and wake.scheduled_by == "agent"


def slot_of(kind: WakeKind, agent_id: str, session_id: str | None) -> str | None:
    match KINDS[kind].slot:
        case "session":
            return f"session:{session_id}"
        case "agent":
            return f"agent:{agent_id}"
        case None:
            return None


# Numbers that the scheduling rules use; some come from the settings.


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Time limits and counts for firing, retrying and giving up."""

    grace: timedelta = timedelta(minutes=5)  # a wake less late than this simply runs
    defer_by: timedelta = timedelta(seconds=60)
    max_deferrals: int = 10
    max_catchup: int = 10  # missed runs that are caught up on
    runs_per_hour: int = 60  # the runaway brake on an agent's own bookings
    runs_per_token: int = 60  # in an hour, booked or started by one token of a program, or by one hook
    min_every: timedelta = timedelta(seconds=10)
    max_attempts: int = 3
    outage_hold: timedelta = timedelta(hours=1)  # how long a once-wake is tried again while its model does not answer
    max_outage_pause: timedelta = timedelta(minutes=10)  # between two of these tries
    max_lost_starts: int = 50  # crashes before a run reached a model or tool call
    resume_chat_within: timedelta = timedelta(minutes=10)
    shed_after: timedelta = timedelta(seconds=60)  # how long a low-priority run waits for a slot
    talking_within: timedelta = timedelta(minutes=2)
    hold_for: timedelta = timedelta(seconds=1)  # between a run and the next queued wake, for a person's message
    hold_at_most: timedelta = timedelta(minutes=10)  # how long a queued wake waits for a person who keeps writing
    failures_before_backoff: int = 5
    max_backoff: timedelta = timedelta(days=1)
