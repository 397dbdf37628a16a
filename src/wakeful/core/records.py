"""Rows of the store that belong to one feature each, as values."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any, Literal

from wakeful.core.call_words import ShownArgument, show_arguments
from wakeful.core.errors import Conflict, NotFound, Unavailable
from wakeful.core.types import Agent, Run, RunNote, Upload

Scheme = Literal["github", "stripe", "standard", "gitlab", "bearer"]


HookMode = Literal["run", "notify"]
ReceivedOutcome = Literal["run", "folded", "notified", "ping", "filtered"]
PER_MINUTE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """An address for another system, and what its deliveries start."""

    id: str
    user_id: str
    agent_id: str
    session_id: str | None  # where its runs land; None: each in a new session
    name: str
    scheme: Scheme
    secret: str  # encrypted
    old_secret: str | None = None  # encrypted
    old_until: datetime | None = None
    events: tuple[str, ...] = ()  # empty: all
    instructions: str
    tools: tuple[str, ...] | None = None  # None: those that change nothing outside
    coalesce_seconds: int = 0
    per_minute: int = PER_MINUTE
    mode: HookMode = "run"
    enabled: bool = True
    last_at: datetime | None = None  # of the last delivery that was accepted
    refused_at: datetime | None = None
    refused_why: str | None = None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedDelivery:
    """A delivery that was accepted."""

    id: str
    hook_id: str
    delivery_id: str  # the sender's
    sha256: str  # of the body
    event: str | None
    at: datetime
    outcome: ReceivedOutcome
    wake_id: str | None = None
    run_id: str | None = None
    size: int  # bytes of the body


FOLDER = "inbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """A delivery with its body; None: it was deleted since."""

    delivery: ReceivedDelivery
    body: bytes | None

    @property
    def path(self) -> str:
        """Return the path of its file in the workspace. Nothing in it comes from the sender."""
        return f"{FOLDER}/{self.delivery.id}.json"


WebhookEvent = Literal["run.finished", "run.failed", "wake.missed", "loop.ended", "notification"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Another system that gets events. Its address is a secret."""

    id: str
    user_id: str
    agent_id: str | None = None  # None: of all agents
    name: str
    url: str
    shown: str  # the public part of the address
    secret: str  # encrypted
    old_secret: str | None = None
    old_until: datetime | None = None
    events: tuple[str, ...]
    enabled: bool = True
    failing_since: datetime | None = None
    last_sent_at: datetime | None = None
    last_error: str | None = None
    last_error_at: datetime | None = None
    created_at: datetime
    updated_at: datetime


OutgoingStatus = Literal["pending", "sent", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A message to something outside; its id is the same in every attempt."""

    id: str
    kind: str  # how it is sent: "channel", "push", "webhook", "ping"
    target: str  # the id of the channel, browser, webhook or wake
    event: str
    about: str  # a target gets one message about the same thing
    body: str  # JSON
    status: OutgoingStatus = "pending"
    attempts: int = 0
    next_at: datetime | None = None
    taken_at: datetime | None = None  # when a node claimed it
    abandoned: int = 0  # claims that were left behind by nodes that went down
    last_status: int | None = None  # of HTTP
    last_error: str | None = None
    created_at: datetime
    settled_at: datetime | None = None


ToolCalls = Literal["native", "none"]
# 0.2 also had `text`, and made the calls that a model wrote as text. It is read as `none`.
StoredToolCalls = Literal["native", "text", "none"]
Source = Literal["settings", "added"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """Limits and abilities of a model, as far as they are known; the loop plans with them.

    `tool_calls` is `native` unless a test or the owner says otherwise. `none`: it cannot call tools, so none must be
    sent.
    """

    context_window: int  # tokens
    output_limit: int  # tokens of one answer
    tool_calls: ToolCalls = "native"
    images: bool | None = None  # None: unknown
    thinking: bool | None = None
    is_window_known: bool = True  # False: `context_window` is the server's default


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model at one endpoint. Fields that are None are unknown, or the provider's own."""

    name: str
    provider: str
    model: str  # its id at the provider
    address: str
    key: str | None = field(default=None, repr=False)  # encrypted if it was added; plain from the settings file
    source: Source = "added"
    context_window: int | None = None  # tokens
    output_limit: int | None = None
    input_price: float | None = None  # dollars per million tokens
    output_price: float | None = None
    tool_calls: StoredToolCalls | None = None
    images: bool | None = None
    thinking: bool | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def has_key(self) -> bool:
        return self.key is not None

    @property
    def written(self) -> str:
        """Return the provider string of the same model, for price lists."""
        return f"{self.provider}:{self.model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTest:
    """Result of the last test of a model; `subject` identifies what was tested, so that a changed model is untested."""

    name: str  # as written
    subject: str
    tool_calls: StoredToolCalls
    tested_at: datetime


# Homes of agents on PostgreSQL; each node's disk is a cache.


SAVE_ID = 16  # characters of the id of a change
WARM = timedelta(milliseconds=200)  # time that the node with the cache has to claim a run before any other may


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """An agent's home, without its pages and files."""

    agent_id: str
    holder: str | None  # the node that took it last
    fence: int  # goes up each time another node takes it
    busy_until: datetime | None  # other nodes wait until then, or until it is saved
    seq: int  # goes up with every change
    page_count: int  # of the database; 0: there is none
    pages_seq: int  # `seq` of the last change of the database
    snapshots_seq: int  # and of its snapshots
    files_seq: int  # and of the other files
    database_key: str | None  # the key file of the database
    files_key: str | None  # encrypted
    last_save: str | None  # id of the last change, by which a node knows its own
    saves: str = ""  # the last changes, the newest first: `seq:id seq:id …`, perhaps cut off in the middle of one


def new_save_id() -> str:
    """Return an id for a change, which never comes twice."""
    return token_hex(SAVE_ID // 2)


def follows(home: Home | None, before: Home | None) -> Literal["yes", "no", "unknown"]:
    """Return whether a home, as PostgreSQL has it now, goes on from what this node has read before.

    It does not if PostgreSQL was taken back meanwhile: a standby that lacked the last changes was promoted, or a backup
    was put in place. Numbers of changes come again then, but not their ids. Unknown: too many changes were made since.
    """
    if before is None or before.seq == 0:
        return "yes"
    if home is None or home.seq < before.seq:
        return "no"
    known = dict(each.split(":") for each in home.saves.split() if len(each.partition(":")[2]) == SAVE_ID)
    known[str(home.seq)] = home.last_save or ""
    found = known.get(str(before.seq))
    return "unknown" if found is None else "yes" if found == (before.last_save or "") else "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeFile:
    """A file, link or empty folder of a home."""

    path: str  # below the agent's folder, with slashes
    kind: str  # file, link or folder
    mode: int
    size: int
    digest: str | None  # keyed hash of the content; None: a folder


class HomeTaken(Unavailable):
    """Another node goes on with the run, so this one must not write for it any more."""

    code = "home_taken"

    def __init__(self, agent_id: str) -> None:
        super().__init__(
            f"Another node has taken over the database and files of agent {agent_id!r}. Nothing was changed. Try again."
        )


# Nodes: the servers that share a store.


MCP_ELSEWHERE = "mcp_elsewhere"  # the reason of a run that waits for a node with its MCP servers


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIdentity:
    """The facts about a node that others know."""

    owner: str  # of its claims: random, new at every start
    name: str
    version: str
    place: str = ""  # host and data directory
    mcp_servers: tuple[str, ...] = ()  # names in its settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node, as the store knows it."""

    id: str
    name: str
    version: str
    place: str  # host and data directory
    started_at: datetime
    seen_at: datetime  # its last heartbeat
    is_alive: bool = True  # it has had a heartbeat within its lease
    is_draining: bool
    mcp_servers: tuple[str, ...]
    runs: int  # that it executes
    agents: int  # whose database and files it has used last


class NoSuchNode(NotFound):
    code = "no_such_node"

    def __init__(self, node_id: str) -> None:
        super().__init__(f"There is no node {node_id!r}. `wakeful node ls` and GET /nodes list them.")


class OnlyNode(Conflict):
    code = "only_node"
    text = (
        "This server has an embedded store, so there is no other node that could take over its runs. Stop the server "
        "instead, or pause the agents."
    )


# refused: no person was present. used: the call was started, so after a crash it is not known whether it happened.
ApprovalStatus = Literal["pending", "approved", "denied", "refused", "used"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One call, and the answer of a person."""

    run_id: str
    call_id: str
    user_id: str
    session_id: str
    agent_id: str | None = None  # the agent that makes the call; None: asked before 0.2
    tool: str
    args: Mapping[str, Any]
    status: ApprovalStatus
    sentence: str = ""  # what the call would do, in the host's words; empty: asked before 0.2
    note: str | None = None
    asked_at: datetime
    answered_at: datetime | None = None

    @property
    def shown(self) -> tuple[ShownArgument, ...]:
        """Return every argument, for people to read before they answer."""
        return show_arguments(self.args)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A tool that a person lets an agent call in a session without being asked each time."""

    id: str
    user_id: str
    agent_id: str
    session_id: str
    tool: str
    created_at: datetime


OutcomeStatus = Literal["success", "failed", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of executing a run."""

    status: OutcomeStatus
    reason: str | None = None
    note: RunNote | None = None  # worth knowing about a run that succeeded
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SideAnswer:
    """A model's answer outside of any run, and its usage."""

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_micros: int | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupState:
    """The last scheduled backups."""

    started_at: datetime | None = None  # the last attempt
    renewed_at: datetime | None = None  # when its node was last at it
    node: str | None = None  # that made it
    finished_at: datetime | None = None  # the last success
    file: str | None = None  # its name
    size: int | None = None
    failed_at: datetime | None = None  # the last failure
    error: str | None = None

    @property
    def is_failing(self) -> bool:
        """Return whether the last attempt failed."""
        return self.failed_at is not None and (self.finished_at is None or self.failed_at > self.finished_at)

    @property
    def is_running(self) -> bool:
        """Return whether the last attempt has not ended, as far as the store knows."""
        ends = [at for at in (self.finished_at, self.failed_at) if at is not None]
        return self.started_at is not None and (not ends or max(ends) < self.started_at)


WAIT_SECONDS = 20  # for another run of the session
RETRY_AFTER = 10  # seconds


class StillBusy(Conflict):
    code = "session_busy"
    seconds: int | None = RETRY_AFTER

    def __init__(self, run: Run) -> None:
        what = "a scheduled run" if run.is_headless else "another message"
        super().__init__(
            f"The agent is still working on {what} in this conversation (run {run.id!r}), and has not ended within "
            f"{WAIT_SECONDS} s. Nothing was sent. Send it again later, or stop that run."
        )


ViewsOf = Callable[[Agent], Awaitable[Mapping[str, Sequence[str]]]]


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a user's message."""

    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Attached:
    """Attachments of a message: images, and files uploaded before."""

    images: tuple[Image, ...] = ()
    files: tuple[Upload, ...] = ()


@dataclass(frozen=True, slots=True)
class Stopped:
    """A run that was asked to stop, and its status before."""

    run_id: str
    was: Literal["queued", "running"]
    is_delayed: bool = False  # a node that does not answer holds it; it is stopped when it is free


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """Instructions on how to do something, from a Markdown file."""

    name: str
    description: str
    body: str
    file: str  # its file's name


def chosen(skills: Sequence[Skill], names: Collection[str] | None) -> list[Skill]:
    """Return the skills of a session: all, or the ones its configuration names."""
    if names is None:
        return list(skills)
    return [each for each in skills if not {each.name, each.file, each.file.removesuffix(".md")}.isdisjoint(names)]


def missing(skills: Sequence[Skill], names: Collection[str] | None) -> list[str]:
    """Return the names for which there is no skill."""
    return [name for name in names or () if not chosen(skills, [name])]
