"""Names and short texts of the codes that people see: the page is generated from them (`make docs`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from wakeful.domain.types import Door, RunNote, RunStatus, ScheduleMode, ServerNoteCode, WakeKind


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
    "memory_elsewhere": "no running server has its data directory",
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
