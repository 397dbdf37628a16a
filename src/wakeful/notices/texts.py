"""The texts of notices in people's inboxes: one table, and the function that makes a notice of a row.

Texts of hooks, webhooks and a wrong clock are with their features.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from string import Formatter
from typing import Any, cast

from wakeful.core import ids
from wakeful.core.errors import Invalid, LimitReached
from wakeful.core.labels import LOOP_ENDED, REASONS, REMEDY
from wakeful.core.records import MCP_ELSEWHERE
from wakeful.core.texts import check_size
from wakeful.core.types import Agent, Notice, Run, SetAside, User, Wake
from wakeful.core.zones import write_time

NOTIFY = "notify"  # the code of notifications from an agent
NEEDS_APPROVAL = "needs_approval"
MAX_TITLE = 200
MAX_BODY = 4_000
PER_HOUR = 20  # of one agent


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The text of a notice. Fields name facts; `about` is what the notice is about, and `now` is the time."""

    title: str
    body: str
    once: str  # a second notice with the same is not added
    code: str = ""  # if it is not the name of the row


def make_notice(kind: str, about: Wake | SetAside | Run | Agent | User, now: datetime, **facts: object) -> Notice:
    """Return a notice for the owner of something, with links to it.

    A fact that is a time stays a field of the body, and is written in the zone of each reader. A list is cut at 20.
    """
    template = TEMPLATES[kind]
    times = {name: fact for name, fact in facts.items() if isinstance(fact, datetime)}
    shown = {name: _show(name, fact) for name, fact in facts.items()} | {"about": about}
    return _to_notice(
        about,
        now,
        code=template.code or kind,
        title=template.title.format_map(shown),
        body=template.body.format_map(shown),
        once_key=_KeyFormatter().format(template.once, about=about, now=now, **facts),
        times=as_text(times),
    )


def listed(names: Sequence[str], most: int = 20) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def as_text(times: Mapping[str, datetime]) -> Mapping[str, str] | None:
    """Return the times of a notice as they are saved."""
    return {name: at.isoformat() for name, at in times.items()} or None


def describe_end(run: Run) -> str:
    """Return how a run ended, and why."""
    reason = REASONS.get(run.reason or "")
    return _ENDED[run.status] + (f" ({reason})" if reason and run.reason not in (run.status, "error") else "")


def call_to_approve(notice: Notice) -> str | None:
    """Return the id of the call that a notice is about."""
    start = f"{NEEDS_APPROVAL}:{notice.run_id}:"
    return notice.once_key.removeprefix(start) if notice.once_key.startswith(start) else None


# ── Notifications from agents ───────────────────────────────────────────────────────────────────────────────────────


class TooManyNotices(LimitReached):
    code = "too_many_notifications"

    def __init__(self, free_at: datetime, zone: str) -> None:
        super().__init__(
            f"You have sent {PER_HOUR} notifications within an hour, which is the limit. This one was not sent. The "
            f"next one is possible at {write_time(free_at, zone)}; combine several into one."
        )


def from_agent(run: Run, title: str, body: str, now: datetime) -> Notice:
    """Return the notice that an agent sends with the tool `notify`."""
    title, body = title.strip(), body.strip()
    for field, text, most in (("title", title, MAX_TITLE), ("body", body, MAX_BODY)):
        if not text:
            raise Invalid(f"{field!r} is empty. Write 1 to {most:,} characters.", field=field)
        check_size(field, len(text), most, "characters")
    digest = blake2b(f"{title}\x00{body}".encode(), digest_size=16).hexdigest()
    once_key = f"{NOTIFY}:{run.agent_id}:{digest}:{now:%Y-%m-%dT%H}"  # the same text of two runs is sent once
    return _to_notice(run, now, code=NOTIFY, title=title, body=body, once_key=once_key)


# ── The table ───────────────────────────────────────────────────────────────────────────────────────────────────────

_ENDED: Mapping[str, str] = {
    "success": "finished",
    "failed": "failed",
    "stopped": "was stopped",
    "skipped": "was skipped",
    "interrupted": "was interrupted",
}
_CAUSE = (
    "That happens when its journal ({journal}) is truncated or deleted, or when an older copy replaces it. It is used "
    "as it is now. If you have a newer copy of it with its journal, stop the server and restore both."
)
_STORE_CAUSE = _CAUSE.format(journal="wakeful.sqlite-wal")
_DATABASE_CAUSE = _CAUSE.format(journal="db.sqlite-wal")
_RESTORE_DATABASE = (
    "Nothing was deleted. The agent starts with a new one. To go back to the old one, stop the server and restore its "
    "db.sqlite, its db.sqlite-wal if there is one, and its db.key from a backup. To copy tables of a snapshot, use "
    "`wakeful db snapshots` and `wakeful db recover`."
)
_RESTORE_HOME = (
    "The agent starts with a new database. To go back, restore a backup of PostgreSQL. To copy tables of a snapshot, "
    "use `wakeful db snapshots` and `wakeful db recover`."
)

_OF_WAKES_AND_RUNS: Mapping[str, Template] = {
    # An agent's own bookings have started too many runs within an hour.
    "brake": Template(
        title="Too many runs within an hour",
        body="The runs that this agent scheduled itself have reached the limit for an hour. The rest wait until "
        "{until}.",
        once="brake:{about.agent_id}:{until:%Y-%m-%dT%H}",  # the same for all wakes that wait
    ),
    "token_brake": Template(
        title="Too many runs of a token within an hour",
        body="The runs that the token “{about.token_name}” scheduled or started have reached the limit for an hour "
        "(the setting runs_per_token_per_hour). The rest wait until {until}.",
        once="token_brake:{about.token_id}:{until:%Y-%m-%dT%H}",
    ),
    "hook_brake": Template(
        title="Too many runs of a hook within an hour",
        body="The runs that the hook “{about.token_name}” scheduled or started have reached the limit for an hour "
        "(the setting runs_per_token_per_hour). The rest wait until {until}.",
        once="token_brake:{about.token_id}:{until:%Y-%m-%dT%H}",
        code="token_brake",
    ),
    "backoff": Template(
        title="A recurring run keeps failing",
        body="It failed {about.failures} times in a row, so it now runs less often: next at {next}.",
        once="backoff:{about.id}:{about.created_at}:{now:%Y-%m-%d}",
    ),
    "wake_failed": Template(
        title="A scheduled run failed",
        body="“{wake}” was planned for {at}. {error} It does not come back by itself: run it again.",
        once="wake_failed:{about.wake_id}",
    ),
    "interrupted": Template(
        title="A run was interrupted",
        body="{error} Continue resumes it from its last saved step.",
        once="interrupted:{about.id}:{about.fence}",
    ),
    "unfirable": Template(
        title="A scheduled run could not be started",
        body="{error} It is retried every five minutes.",
        once="unfirable:{about.id}:{about.nominal_at}",
    ),
    "unfirable_for_good": Template(
        title="A scheduled run could not be started",
        body="{error} Its session could not be created; schedule it again.",
        once="unfirable:{about.id}:{about.nominal_at}",
        code="unfirable",
    ),
    # An agent that booked its own runs has booked no next one.
    LOOP_ENDED: Template(
        title="{agent.name} has no next run scheduled",
        body="Its last run {end}, and it didn't schedule another. Run it now, or schedule its next run.",
        once=LOOP_ENDED + ":{about.wake_id}",
    ),
    # An answer promised later work, and the run booked nothing, even when it was asked to.
    "unkept_promise": Template(
        title="{agent.name} promised something for later",
        body="It scheduled no run, so nothing will happen. Ask it again, or schedule a run yourself.",
        once="unkept_promise:{about.id}",
    ),
    # A recurring recall was ended, because its user was absent for long.
    "forgotten": Template(
        title="A recurring run has ended",
        body="“{wake}” ran {about.runs_started} times, and for {days} days you neither wrote in its session nor edited "
        "it. To have it again, open the session and ask the agent, or schedule it there.",
        once="forgotten:{about.id}",
    ),
    # A headless run reached a call that a person must approve.
    NEEDS_APPROVAL: Template(
        title="{agent.name} needs your approval",
        body="It tried to call {tool} while you were not there, so the call was not made. Look at it in its run; you "
        "can approve exactly this call and run it again.",
        once=NEEDS_APPROVAL + ":{about.id}:{call_id}",  # read by call_to_approve
    ),
    MCP_ELSEWHERE: Template(
        title="{agent.name} waits for its MCP servers",
        body="It uses {names}, and no running node has all of them in its settings. Add them to the settings of a node "
        "and restart that, or turn them off in Configure of the agent. Its scheduled runs keep their place.",
        once=MCP_ELSEWHERE + ":{agent.id}:{names}:{now:%Y-%m-%d}",
    ),
    # A model's provider has read only a part of what it was sent.
    "prompt_cut": Template(
        title="The model {model} reads only a part of what it is sent",
        body="A request had at least {least:,} tokens, and its provider counted {counted:,}: it dropped the rest, "
        "perhaps instructions or the beginning of the conversation. Its context window is smaller than Wakeful "
        "assumes. Set the real one (`wakeful model edit {model} --context-window {counted}`), or start the model's "
        "server with a larger window.",
        once="prompt_cut:{about.agent_id}:{model}:{now:%Y-%m-%d}",
    ),
    "prompt_cut_in_settings": Template(
        title="The model {model} reads only a part of what it is sent",
        body="A request had at least {least:,} tokens, and its provider counted {counted:,}: it dropped the rest, "
        "perhaps instructions or the beginning of the conversation. Its context window is smaller than Wakeful "
        "assumes. Set the real one (`context_window = {counted}` in the server's settings, and restart the server), or "
        "start the model's server with a larger window.",
        once="prompt_cut:{about.agent_id}:{model}:{now:%Y-%m-%d}",
        code="prompt_cut",
    ),
}

_OF_AGENTS: Mapping[str, Template] = {
    "storage_low": Template(
        title="{about.name}'s database is {share:.0%} full",
        body="It has {used:.1f} of {quota:.1f} MB. When it is full, the agent can only delete. Delete rows that are no "
        "longer needed, or raise its size limit under Configure. Only an owner can go beyond the server's own limit "
        "(agent_database_mb).",
        once="storage_low:{about.id}:{now}",  # once per crossing; the file records it
    ),
    # The file of an agent's database is damaged, empty or missing; the rest of it was moved aside.
    "database_unreadable": Template(
        title="{about.name}'s database could not be read",
        body="The file {problem}. What is left was moved to {path} in the data directory. " + _RESTORE_DATABASE,
        once="database_unreadable:{about.id}:{now}",
    ),
    "database_gone": Template(
        title="{about.name}'s database could not be read",
        body="The file {problem}. Nothing is left of it here. " + _RESTORE_DATABASE,
        once="database_unreadable:{about.id}:{now}",
        code="database_unreadable",
    ),
    # An agent's database lacks changes that were written to it.
    "database_behind": Template(
        title="Changes of {about.name}'s database are missing",
        body="Change {written} was written to it, but now its last one is change {last} of {at}. " + _DATABASE_CAUSE,
        once="database_behind:{about.id}:{written}:{digest}",
    ),
    "database_emptied": Template(
        title="Changes of {about.name}'s database are missing",
        body="Change {written} was written to it, but now it has no changes. " + _DATABASE_CAUSE,
        once="database_behind:{about.id}:{written}:{digest}",
        code="database_behind",
    ),
    # A file that is part of an agent's prompts was not saved or accepted by a person.
    "instructions_changed": Template(
        title="{path} of {about.name} changed",
        body="It was not saved here, so a program may have written it. Runs do not use it until you have read and "
        "accepted it, in Configure of the agent or with `wakeful agent accept`.",
        once="instructions_changed:{about.id}:{path}:{digest}",
    ),
    # The upgrade dropped names of tools that an MCP server and this server had in common.
    "tools_dropped": Template(
        title="Some tools of {about.name} have to be set again",
        body="Before this version, {names} could mean a built-in tool or one of an MCP server. They were removed from: "
        "{places}. Set, allow or schedule again what you need. A tool of an MCP server that would have the name of a "
        "built-in one is now called mcp_SERVER_TOOL.",
        once="tools_dropped:{about.id}",
    ),
    # An agent's database is damaged in PostgreSQL; it was put into quarantine.
    "home_damaged": Template(
        title="{about.name}'s database is damaged in PostgreSQL",
        body="Pages of it are missing or damaged there. What is left is kept as {kept!r} among the agent's files, with "
        "its key, and nothing was deleted. These tables could be read, and are in {exported!r} in the workspace: "
        "{tables}. " + _RESTORE_HOME,
        once="home_damaged:{about.id}:{kept}",
        code="database_unreadable",
    ),
    "home_unreadable": Template(
        title="{about.name}'s database is damaged in PostgreSQL",
        body="Pages of it are missing or damaged there. What is left is kept as {kept!r} among the agent's files, with "
        "its key, and nothing was deleted. No table could be read. " + _RESTORE_HOME,
        once="home_damaged:{about.id}:{kept}",
        code="database_unreadable",
    ),
    # Files of an agent are damaged in PostgreSQL, so that nodes leave them out.
    "files_damaged": Template(
        title="Files of {about.name} are damaged in PostgreSQL",
        body="They cannot be read, and are left out of the workspace: {paths}. Nothing was deleted. Restore a backup "
        "of PostgreSQL, or write them again.",
        once="files_damaged:{about.id}:{now}",
    ),
    # Programs on two nodes have changed the same files of an agent at once.
    "files_in_conflict": Template(
        title="{about.name} has two versions of {what}",
        body="Runs on two nodes have changed them at the same time. The first version has the name, and the other is "
        "kept beside it: {names}.",
        once="files_in_conflict:{about.id}:{now}",
    ),
    "database_key_shown": Template(
        title="The key of {about.name}'s database was shown",
        body="Someone with your account requested it at {at}. With it and a copy of the file, all data can be read. If "
        "that was not you, revoke your tokens and change the key: `wakeful db rekey`.",
        once="database_key_shown:{about.id}:{at}",
    ),
    # An agent tried to run a command on a machine that cannot confine it.
    "shell_refused": Template(
        title="{about.name}'s commands are not run",
        body="This server's machine cannot confine commands, and one that is not confined could read the server's keys "
        "({problems}). To allow them, " + REMEDY + ". Or, if you trust this agent's model and everything it reads, set "
        "shell_unconfined = true in the server's settings file and restart the server.",
        once="shell_refused:{about.id}:{now:%Y-%m-%d}",
    ),
}

_OF_THE_SERVER: Mapping[str, Template] = {  # each owner gets one
    # An MCP server lists other tools than at its last start.
    "mcp_tools_changed": Template(
        title="The tools of the MCP server {server!r} have changed",
        body="{changes} Agents that have this server use its tools as they are now. If you do not know why they have "
        "changed, switch it off for your agents.",
        once="mcp_tools_changed:{server}:{digest}:{now:%Y-%m-%d}:{about.id}",  # nodes may have different versions
    ),
    # The embedded store lacks transactions that were committed before.
    "store_behind": Template(
        title="A part of the server's data is missing",
        body="The store is older than before: messages, runs and scheduled runs that were written between {since} and "
        "{until} may be missing. " + _STORE_CAUSE,
        once="store_behind:{number}:{until}:{about.id}",
    ),
    "store_behind_from_start": Template(
        title="A part of the server's data is missing",
        body="The store is older than before: messages, runs and scheduled runs that were written until {until} may be "
        "missing. " + _STORE_CAUSE,
        once="store_behind:{number}:{until}:{about.id}",
        code="store_behind",
    ),
    # PostgreSQL lacks changes that it had acknowledged; once an hour while copies that have them are found.
    "store_rewound": Template(
        title="PostgreSQL was taken back to an earlier state",
        body="It lacks changes that it had confirmed. That happens when a standby without the last changes is "
        "promoted, or when a backup is put in place while nodes run. What was written after that state is gone: "
        "messages, runs, scheduled runs, and rows and files of agents. Nodes have dropped their copies and use what "
        "PostgreSQL has. The log names the agents (“PostgreSQL was taken back”). With synchronous replication "
        "(synchronous_commit, synchronous_standby_names) a promotion loses nothing.",
        once="store_rewound:{now:%Y-%m-%dT%H}:{about.id}",
    ),
    # A scheduled backup could not be made; once a day while it goes on.
    "backup_failed": Template(
        title="A backup of the server failed",
        body="{error} The last one is of {last}.",
        once="backup_failed:{now:%Y-%m-%d}:{about.id}",
    ),
    "first_backup_failed": Template(
        title="A backup of the server failed",
        body="{error} There is no backup yet.",
        once="backup_failed:{now:%Y-%m-%d}:{about.id}",
        code="backup_failed",
    ),
    # Models are marked as writing their tool calls as text, which 0.2 made.
    "calls_as_text": Template(
        title="Models that write tool calls as text can no longer act",
        body="These models are marked `tool_calls = text`: {models}. Calls that a model writes as text are no longer "
        "made: strangers could have them made by writing them into a page that the model quotes. Agents with these "
        "models answer without tools. Give them a model that calls tools, or let the model's server recognise its "
        "calls, and test the model again.",
        once="calls_as_text:{about.id}",
    ),
    # The disk of a node's data directory has next to no room.
    "disk_nearly_full": Template(
        title="The server's disk is nearly full",
        body="The disk of the data directory of {node} has {shortage}. When it is full, nothing is saved and no run "
        "goes on. Free space on it, or move the data directory to a larger one.",
        once="disk_nearly_full:{node}:{now:%Y-%m-%d}:{about.id}",
    ),
}

TEMPLATES: Mapping[str, Template] = {**_OF_WAKES_AND_RUNS, **_OF_AGENTS, **_OF_THE_SERVER}


class _KeyFormatter(Formatter):
    """Writes times as ISO 8601 where no other format is given."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, datetime) and not format_spec:
            return value.isoformat()
        return super().format_field(value, format_spec)


def _show(name: str, fact: object) -> object:
    if isinstance(fact, datetime):
        return f"{{{name}}}"
    return listed(cast("Sequence[str]", fact)) if isinstance(fact, list | tuple) else fact


def _to_notice(
    about: Wake | SetAside | Run | Agent | User,
    now: datetime,
    *,
    code: str,
    title: str,
    body: str,
    once_key: str,
    times: Mapping[str, str] | None = None,
) -> Notice:
    notice = Notice(
        id=ids.new_id(now),
        user_id=about.id if isinstance(about, User) else about.user_id,
        agent_id=None,
        code=code,
        title=title[:MAX_TITLE],
        body=body,
        once_key=once_key,
        created_at=now,
        times=times,
    )
    match about:
        case User():
            return notice
        case Agent():
            return replace(notice, agent_id=about.id)
        case Run():
            return replace(
                notice, agent_id=about.agent_id, wake_id=about.wake_id, run_id=about.id, session_id=about.session_id
            )
        case _:
            return replace(notice, agent_id=about.agent_id, wake_id=about.id, session_id=about.session_id)
