"""Names and short texts of the codes that people see: toolsets, doors, notes, reasons, confinement; names of tools.

The page is generated from them (`make docs`).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeVar

from wakeful.core.errors import LimitReached
from wakeful.core.types import Agent, Door, Run, RunNote, RunStatus, ScheduleMode, ServerNoteCode, Wake, WakeKind
from wakeful.core.values import replace
from wakeful.core.zones import format_duration


@dataclass(frozen=True, slots=True)
class Toolset:
    """A set of tools that can be turned on for an agent."""

    label: str
    hint: str
    needs_self_scheduling: bool = False  # hidden from the model while self-scheduling is off


@dataclass(frozen=True, slots=True)
class Mode:
    """A preset of scheduling limits."""

    label: str
    hint: str


TOOLSETS: Mapping[str, Toolset] = {
    "recall": Toolset("Recalls", "Schedule its own runs in the same session", needs_self_scheduling=True),
    "scheduler": Toolset("Scheduler", "Schedule messages and sessions within a day", needs_self_scheduling=True),
    "next_run": Toolset("Next run", "Schedule its own next run, one at a time", needs_self_scheduling=True),
    "database": Toolset("Database", "An encrypted database of its own"),
    "notify": Toolset("Notify", "Send you notifications", needs_self_scheduling=True),
    "files": Toolset("Files", "Read and write files in its workspace"),
    "web": Toolset("Web", "Fetch web pages"),
    "shell": Toolset("Shell", "Run commands in its workspace"),
    "subagents": Toolset("Subagents", "Give tasks to the agents listed below"),
}
MODES: Mapping[ScheduleMode, Mode] = {
    "ambient": Mode("Ambient", "A quiet companion that looks in now and then."),
    "reactive": Mode("Reactive", "Follows things closely, day and night."),
    "project": Mode("Project", "Works on something long, a few times a day."),
    "manual": Mode("Manual", "Schedules nothing by itself."),
}
SCHEDULING = frozenset(name for name, toolset in TOOLSETS.items() if toolset.needs_self_scheduling)
LOOP_ENDED = "loop_ended"
WAKE_KINDS: Mapping[WakeKind, str] = {
    "recall": "Scheduled run",
    "message": "Scheduled message",
    "session": "Scheduled session",
    "next_run": "Next run",
}
DOORS: Mapping[Door, str] = {
    "page": "the page",
    "rest": "REST",
    "cli": "the command line",
    "tool": "its tools",
    "mcp": "MCP",
    "v1": "the OpenAI-compatible API",
    "hook": "a hook",
}
RUN_STATUSES: Mapping[RunStatus, str] = {
    "queued": "waiting",
    "running": "running",
    "success": "done",
    "failed": "failed",
    "stopped": "stopped",
    "skipped": "skipped",
    "interrupted": "interrupted",
}
RUN_NOTES: Mapping[RunNote, str] = {
    "did_nothing": "did nothing",
    "empty_answer": "empty answer",
    "iteration_limit": "step limit reached",
    "budget": "budget used up",
    "repeated_calls": "stopped for repeating itself",
    "bad_calls": "too many bad tool calls",
    "too_many_calls": "too many tool calls in one reply",
    "answer_too_long": "answer too long",
    "output_limit": "answer cut off at the output limit",
    "repeated_text": "stopped for repeating its text",
    "call_as_text": "wrote a tool call as text",
    "unkept_promise": "promised later work and scheduled nothing",
    "prompt_cut": "its model read only a part of the request",
}
# Kinds of tool results that the page draws; other results are shown as text.
ResultKind = Literal["rows", "changes", "file", "note", "booking", "command", "subagent"]
RESULT_KINDS: Mapping[str, ResultKind] = {
    "db_query": "rows",
    "db_run_view": "rows",
    "db_insert": "changes",
    "db_upsert": "changes",
    "db_update": "changes",
    "db_delete": "changes",
    "db_restore": "changes",
    "db_execute": "changes",
    "read_file": "file",
    "write_file": "file",
    "notify": "note",
    "schedule_recall": "booking",
    "schedule_next_run": "booking",
    "scheduler": "booking",
    "run_command": "command",
    "spawn_agent": "subagent",
}
# The server's remarks in a transcript, for people; the model reads longer ones.
SERVER_NOTES: Mapping[ServerNoteCode, str] = {
    "budget": "The server asked it to finish: most of the run's budget is used up.",
    "promise": "The server asked it to schedule the work it promised, or to say that it does not do it.",
    "call_as_text": "It wrote a tool call as text, so nothing was called. Its model may not support tools: test it.",
    "unkept_promise": "It promised to do something later and scheduled nothing, so it will not wake for it.",
    "prompt_cut": (
        "The model's server dropped a part of what it was sent, perhaps its instructions or the beginning of the "
        "conversation: its context window is smaller than the one set for the model. The inbox says what to do."
    ),
    "model_taken_back": "The model it was booked with is no longer allowed for it, so it uses its own model.",
}
# Reasons why a run was moved, skipped or ended, and the decisions in a wake's history.
REASONS: Mapping[str, str] = {
    "quiet_hours": "quiet hours",
    "day_not_allowed": "not allowed on this day",
    "daily_cap": "daily limit reached",
    "paused": "paused",
    "deferred": "the session was busy",
    "overlap": "the previous run had not finished",
    "backoff": "waiting after failures",
    "brake": "too many runs within an hour",
    "token_brake": "too many runs of its token within an hour",
    "missed": "missed",
    "mcp_elsewhere": "no running server has its MCP servers",
    "outage": "its model did not answer",
    "out_of_resources": "the server was out of resources",
    "disk_full": "the server's disk was full",
    "min_interval": "minimum gap between runs",
    "max_horizon": "too far ahead",
    "low_priority": "low priority: your conversation went first",
    "loop_ended": "no next run scheduled",
    "past": "the time was in the past",
    "clock_change": "the clocks change then",
    "replanned": "rescheduled after the clock was wrong",
    "zone_rules_changed": "the rules of its time zone have changed",
    "cron": "the next time of its cron rule",
    "session_deleted": "the session was deleted",
    "forgotten": "nobody wrote there or edited it for a long time",
    "self_scheduling_off": "self-scheduling is off",
    "attempts_used_up": "no attempts left",
    "restored": "restored from a backup",
    "starts_used_up": "the server crashed too often before it began",
    "away_too_long": "the server was down for too long",
    "resumed": "resumed after an interruption",
    "time_limit": "time limit reached",
    "stopped": "stopped",
    "error": "an error",
    "booked": "scheduled",
    "run_now": "started by hand",
    "started": "started",
    "wake_fired": "finished",
    "wake_failed": "ended with a failure",
    "wake_cancelled": "cancelled",
    "wake_skipped": "skipped",
    "wake_superseded": "replaced by a newer one",
}


# The door that a booking or a run came through, and the token or hook behind it.


HOUR = timedelta(hours=1)
BRAKED: frozenset[Door] = frozenset({"mcp", "v1", "hook"})  # named in token_uses.sql and its indexes too
_UNNAMED: frozenset[Door] = frozenset({"page", "tool"})  # a person, or the agent itself: that is said anyway
Stamped = TypeVar("Stamped", Wake, Run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Via:
    """The door of a request, and the token or hook that it was made with."""

    door: Door
    token_id: str | None = None
    token_name: str | None = None
    key: str | None = None  # the program's own name for a booking: repeated, it books once

    @property
    def is_braked(self) -> bool:
        """Whether what comes this way counts against the brake of its token."""
        return self.door in BRAKED and self.token_id is not None


TOOL = Via(door="tool")


class TokenBraked(LimitReached):
    """A token or a hook has booked or started its runs of this hour."""

    code = "token_brake"

    def __init__(self, via: Via, used: str, free_at: datetime, now: datetime) -> None:
        self.free_at = free_at
        wait = timedelta(seconds=max(1, -(-(free_at - now) // timedelta(seconds=1))))
        what = "hook" if via.door == "hook" else "token"
        super().__init__(
            f"The {what} {via.token_name!r} has {used} within an hour, which is the limit of "
            f"one {what}. The next one is possible in {format_duration(wait)}, at {free_at:%Y-%m-%dT%H:%M:%SZ}.",
            hint="The setting runs_per_token_per_hour changes the limit.",
            seconds=wait // timedelta(seconds=1),
        )


def stamp(one: Stamped, via: Via | None) -> Stamped:
    """Return a wake or a run with the door that it came through; None: the server itself."""
    if via is None:
        return replace(one, door=None, token_id=None, token_name=None)
    return replace(one, door=via.door, token_id=via.token_id, token_name=via.token_name)


def stamp_booked(wake: Wake, run: Run) -> Wake:
    """Return a wake that a run has booked, with the door of agents and what the run has read."""
    return replace(stamp(wake, TOOL), outside_sources=run.outside_sources)


def via_of(one: Wake | Run) -> Via | None:
    """Return how a wake was booked or a run started; None: by the server itself, or before this was recorded."""
    return None if one.door is None else Via(door=one.door, token_id=one.token_id, token_name=one.token_name)


def is_braked(wake: Wake) -> bool:
    """Return whether the runs of a wake count against the brake of the token that booked it."""
    return wake.door in BRAKED and wake.token_id is not None


def describe_door(door: Door | None, token_name: str | None) -> str | None:
    """Return how something came in, as in "through MCP (token “laptop”)"; None if there is nothing to say."""
    if door is None or door in _UNNAMED:
        return None
    named = f" ({'hook' if door == 'hook' else 'token'} “{token_name}”)" if door != "cli" and token_name else ""
    return f"through {DOORS[door]}{named}"


# Confinement of the programs that agents start.


Level = Literal["bubblewrap", "landlock", "none"]  # strongest first
Confined = Literal["bubblewrap", "landlock", "unconfined", "refused"]  # how a program is run
REMEDY = "install bubblewrap so that `bwrap` works for the server's user, or run Linux 6.12 or later with Landlock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """The level that was tried on this machine and works."""

    level: Level
    problems: tuple[str, ...] = ()  # why a stronger level does not work here

    def of(self, *, is_unconfined: bool) -> Confined:
        """Return how a program is run, given whether the owner wants it unconfined."""
        if is_unconfined:
            return "unconfined"
        return "refused" if self.level == "none" else self.level


def shown_toolsets(agent: Agent) -> tuple[str, ...]:
    """Return the toolsets whose tools a model is offered; without self-scheduling, none that books wakes."""
    hidden = set(hidden_toolsets(agent))
    if not agent.subagents:  # it has none to give a task to
        hidden.add("subagents")
    return tuple(name for name in agent.toolsets if name not in hidden)


def hidden_toolsets(agent: Agent) -> tuple[str, ...]:
    """Return the toolsets that the agent has, and its model is not offered while self-scheduling is off."""
    return () if agent.self_scheduling else tuple(name for name in agent.toolsets if name in SCHEDULING)


# The names of tools: those of built-in ones, and those of MCP servers, which never have one of these.


# No tool of an MCP server has one of these names, whether or not an agent has the built-in tool.
BUILT_IN = frozenset((
    "schedule_recall", "manage_recall", "scheduler", "schedule_next_run", "cancel_next_run", "notify", "read_file",
    "write_file", "list_files", "search_files", "fetch_url", "run_command", "spawn_agent", "read_skill", "write_skill",
    "finish_step", "switch_profile", "more_tools", "db_schema", "db_create_table", "db_alter_table", "db_migrate",
    "db_insert", "db_upsert", "db_update", "db_delete", "db_restore", "db_query", "db_execute", "db_define_view",
    "db_run_view", "db_list_views", "db_drop_view", "db_import", "db_export",
))  # fmt: skip
_MARK = "mcp_"  # before a name that would be a built-in one
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """Return the name of a server's tool: SERVER_TOOL, or mcp_SERVER_TOOL if that is the name of a built-in one.

    Two servers never have the same name for a tool: a server's own name has no underscore.
    """
    name = f"{server}_{_NOT_IN_A_NAME.sub('_', tool)}"
    return f"{_MARK}{name}" if _is_reserved(name) else name


def plain_name(tool: str) -> str:
    """Return SERVER_TOOL for a tool whose name is mcp_SERVER_TOOL, and any other name as it is."""
    plain = tool.removeprefix(_MARK)
    return plain if plain != tool and _is_reserved(plain) else tool


def may_be_of(servers: Iterable[str], name: str) -> bool:
    """Return whether a tool of one of these servers may have this name, or one that starts with it."""
    prefixes = tuple(f"{mark}{server}_" for server in servers for mark in ("", _MARK))
    return name not in BUILT_IN and name.startswith(prefixes)


def ambiguous_names(servers: Iterable[str]) -> list[str]:
    """Return the names that a tool of these servers could have in 0.2, and that mean another tool since."""
    prefixes = tuple(f"{server}_" for server in servers)
    return sorted(name for each in BUILT_IN for name in (each, f"{_MARK}{each}") if name.startswith(prefixes))


def _is_reserved(name: str) -> bool:
    """Return whether it is a built-in name, with any number of marks: a server can be called mcp too."""
    name = name.lower()
    while name.startswith(_MARK):
        name = name.removeprefix(_MARK)
    return name in BUILT_IN
