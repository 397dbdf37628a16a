"""Texts of the notices in people's inboxes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import blake2b

from wakeful.core import ids
from wakeful.core.errors import Invalid, LimitReached
from wakeful.core.labels import LOOP_ENDED, REASONS, REMEDY, Confinement
from wakeful.core.records import MCP_ELSEWHERE
from wakeful.core.texts import check_size, quote_line, title_of
from wakeful.core.types import Agent, Notice, Run, SetAside, User, Wake
from wakeful.core.zones import write_time

NOTIFY = "notify"  # the code of notifications from an agent
NEEDS_APPROVAL = "needs_approval"
MAX_TITLE = 200
MAX_BODY = 4_000
PER_HOUR = 20  # of one agent
_CAUSE = (
    "That happens when its journal ({journal}) is truncated or deleted, or when an older copy replaces it. It is used "
    "as it is now. If you have a newer copy of it with its journal, stop the server and restore both."
)


_ENDED: Mapping[str, str] = {
    "success": "finished",
    "failed": "failed",
    "stopped": "was stopped",
    "skipped": "was skipped",
    "interrupted": "was interrupted",
}


class TooManyNotices(LimitReached):
    code = "too_many_notifications"

    def __init__(self, free_at: datetime, zone: str) -> None:
        super().__init__(
            f"You have sent {PER_HOUR} notifications within an hour, which is the limit. This one was not sent. The "
            f"next one is possible at {write_time(free_at, zone)}; combine several into one."
        )


def braked(wake: Wake, until: datetime, now: datetime) -> Notice:
    """An agent's own bookings have started too many runs within an hour."""
    return _about(
        wake,
        now,
        code="brake",
        title="Too many runs within an hour",
        body=(
            "The runs that this agent scheduled itself have reached the limit for an hour. The rest wait until {until}."
        ),
        times={"until": until},
        once_key=f"brake:{wake.agent_id}:{until:%Y-%m-%dT%H}",  # the same for all wakes that wait
    )


def token_braked(wake: Wake, until: datetime, now: datetime) -> Notice:
    """The bookings of one token, or the deliveries of one hook, have started too many runs within an hour."""
    what = "hook" if wake.door == "hook" else "token"
    return _about(
        wake,
        now,
        code="token_brake",
        title=f"Too many runs of a {what} within an hour",
        body=(
            f"The runs that the {what} “{wake.token_name}” scheduled or started have reached the limit for an hour "
            "(the setting runs_per_token_per_hour). The rest wait until {until}."
        ),
        times={"until": until},
        once_key=f"token_brake:{wake.token_id}:{until:%Y-%m-%dT%H}",  # the same for all wakes that wait
    )


def backing_off(wake: Wake, now: datetime) -> Notice:
    """A recurring wake failed several times in a row."""
    return _about(
        wake,
        now,
        code="backoff",
        title="A recurring run keeps failing",
        body=(f"It failed {wake.failures} times in a row, so it now runs less often: next at {{next}}."),
        times={"next": wake.attempt_at},
        once_key=f"backoff:{wake.id}:{wake.created_at.isoformat()}:{now:%Y-%m-%d}",
    )


def wake_failed(run: Run, wake: Wake, error: str | None, now: datetime) -> Notice:
    """A wake that fires once has failed, and does not come back by itself."""
    return _about(
        run,
        now,
        code="wake_failed",
        title="A scheduled run failed",
        body=(
            f"“{title_of(wake.comment, wake.instructions)}” was planned for {{at}}. {error or 'The run failed.'} "
            "It does not come back by itself: run it again."
        ),
        times={"at": wake.nominal_at},
        once_key=f"wake_failed:{wake.id}",
    )


def interrupted(run: Run, now: datetime) -> Notice:
    """A run was interrupted and is not retried by itself."""
    return _about(
        run,
        now,
        code="interrupted",
        title="A run was interrupted",
        body=f"{run.error or 'It was interrupted.'} Continue resumes it from its last saved step.",
        once_key=f"interrupted:{run.id}:{run.fence}",
    )


def unfirable(wake: SetAside, error: str, now: datetime) -> Notice:
    """The scheduler could not fire a wake, perhaps not even read it."""
    is_over = wake.status == "failed"
    after = "Its session could not be created; schedule it again." if is_over else "It is retried every five minutes."
    return _about(
        wake,
        now,
        code="unfirable",
        title="A scheduled run could not be started",
        body=f"{error} {after}",
        once_key=f"unfirable:{wake.id}:{wake.nominal_at.isoformat()}",
    )


def loop_ended(run: Run, agent: Agent, now: datetime) -> Notice:
    """An agent that booked its own runs has booked no next one."""
    reason = REASONS.get(run.reason or "")
    why = f" ({reason})" if reason and run.reason not in (run.status, "error") else ""
    return _about(
        run,
        now,
        code=LOOP_ENDED,
        title=f"{agent.name} has no next run scheduled",
        body=(
            f"Its last run {_ENDED[run.status]}{why}, and it didn't schedule another. Run it now, or schedule its next "
            "run."
        ),
        once_key=f"{LOOP_ENDED}:{run.wake_id}",
    )


def unkept_promise(run: Run, agent: Agent, now: datetime) -> Notice:
    """An answer promised later work, and the run booked nothing, even when it was asked to."""
    return _about(
        run,
        now,
        code="unkept_promise",
        title=f"{agent.name} promised something for later",
        body="It scheduled no run, so nothing will happen. Ask it again, or schedule a run yourself.",
        once_key=f"unkept_promise:{run.id}",
    )


def forgotten(wake: Wake, days: int, now: datetime) -> Notice:
    """A recurring recall was ended, because its user was absent for long."""
    return _about(
        wake,
        now,
        code="forgotten",
        title="A recurring run has ended",
        body=(
            f"“{title_of(wake.comment, wake.instructions)}” ran {wake.runs_started} times, and for {days} days you "
            "neither wrote in its session nor edited it. To have it again, open the session and ask the agent, or "
            "schedule it there."
        ),
        once_key=f"forgotten:{wake.id}",
    )


def needs_approval(run: Run, agent: Agent, call_id: str, tool: str, now: datetime) -> Notice:
    """A headless run reached a call that a person must approve."""
    return _about(
        run,
        now,
        code=NEEDS_APPROVAL,
        title=f"{agent.name} needs your approval",
        body=f"It tried to call {tool} while you were not there, so the call was not made. Look at it in its run; you "
        "can approve exactly this call and run it again.",
        once_key=f"{NEEDS_APPROVAL}:{run.id}:{call_id}",
    )


def call_to_approve(notice: Notice) -> str | None:
    """Return the id of the call that a notice is about."""
    start = f"{NEEDS_APPROVAL}:{notice.run_id}:"
    return notice.once_key.removeprefix(start) if notice.once_key.startswith(start) else None


def storage_low(agent: Agent, used: int, quota: int, now: datetime) -> Notice:
    """An agent's database is nearly full."""
    return _about(
        agent,
        now,
        code="storage_low",
        title=f"{agent.name}'s database is {used / quota:.0%} full",
        body=(
            f"It has {used / 1024**2:.1f} of {quota / 1024**2:.1f} MB. When it is full, the agent can only delete. "
            "Delete rows that are no longer needed, or raise its size limit under Configure. Only an owner can go "
            "beyond the server's own limit (agent_database_mb)."
        ),
        once_key=f"storage_low:{agent.id}:{now.isoformat()}",  # once per crossing; the file records it
    )


def database_unreadable(agent: Agent, what: str, path: str | None, now: datetime) -> Notice:
    """The file of an agent's database is damaged, empty or missing; the rest of it was moved aside."""
    left = "Nothing is left of it here." if path is None else f"What is left was moved to {path} in the data directory."
    return _about(
        agent,
        now,
        code="database_unreadable",
        title=f"{agent.name}'s database could not be read",
        body=(
            f"The file {what}. {left} Nothing was deleted. The agent starts with a new one. To go back to the old one, "
            "stop the server and restore its db.sqlite, its db.sqlite-wal if there is one, and its db.key from a "
            "backup. To copy tables of a snapshot, use `wakeful db snapshots` and `wakeful db recover`."
        ),
        once_key=f"database_unreadable:{agent.id}:{now.isoformat()}",
    )


def database_behind(agent: Agent, known: tuple[int, str], last: int, at: str | None, now: datetime) -> Notice:
    """An agent's database lacks changes that were written to it."""
    reached = f"now its last one is change {last} of {{at}}" if last else "now it has no changes"
    return _about(
        agent,
        now,
        code="database_behind",
        title=f"Changes of {agent.name}'s database are missing",
        body=(f"Change {known[0]} was written to it, but {reached}. {_CAUSE.format(journal='db.sqlite-wal')}"),
        once_key=f"database_behind:{agent.id}:{known[0]}:{known[1][:16]}",
        times={} if at is None else {"at": datetime.fromisoformat(at)},
    )


def instructions_changed(agent: Agent, path: str, digest: str, now: datetime) -> Notice:
    """A file that is part of an agent's prompts was not saved or accepted by a person."""
    return _about(
        agent,
        now,
        code="instructions_changed",
        title=f"{path} of {agent.name} changed",
        body=(
            "It was not saved here, so a program may have written it. Runs do not use it until you have read and "
            "accepted it, in Configure of the agent or with `wakeful agent accept`."
        ),
        once_key=f"instructions_changed:{agent.id}:{path}:{digest}",
    )


def mcp_elsewhere(run: Run, agent: Agent, now: datetime) -> Notice:
    """A run waits for MCP servers that no running node has."""
    names = ", ".join(agent.mcp_servers)
    return _about(
        run,
        now,
        code=MCP_ELSEWHERE,
        title=f"{agent.name} waits for its MCP servers",
        body=(
            f"It uses {names}, and no running node has all of them in its settings. Add them to the settings of a node "
            "and restart that, or turn them off in Configure of the agent. Its scheduled runs keep their place."
        ),
        once_key=f"{MCP_ELSEWHERE}:{agent.id}:{names}:{now:%Y-%m-%d}",  # once a day
    )


def tools_dropped(agent: Agent, names: Sequence[str], places: Sequence[str], now: datetime) -> Notice:
    """The upgrade dropped names of tools that an MCP server and this server had in common."""
    return _about(
        agent,
        now,
        code="tools_dropped",
        title=f"Some tools of {agent.name} have to be set again",
        body=(
            f"Before this version, {_listed(names)} could mean a built-in tool or one of an MCP server. They were "
            f"removed from: {_listed(places)}. Set, allow or schedule again what you need. A tool of an MCP server "
            "that would have the name of a built-in one is now called mcp_SERVER_TOOL."
        ),
        once_key=f"tools_dropped:{agent.id}",
    )


def mcp_tools_changed(
    owner: User, server: str, before: Mapping[str, str], after: Mapping[str, str], now: datetime
) -> Notice:
    """An MCP server lists other tools than at its last start. The mappings have a fingerprint of each."""
    changes = {
        "New": after.keys() - before.keys(),
        "Gone": before.keys() - after.keys(),
        "Changed": {name for name in before.keys() & after.keys() if before[name] != after[name]},
    }
    told = [
        f"{what}: {_listed([quote_line(name, 64) for name in sorted(names)])}."
        for what, names in changes.items()
        if names
    ]
    digest = blake2b(repr(sorted(after.items())).encode(errors="replace"), digest_size=8).hexdigest()
    return Notice(
        id=ids.new_id(now),
        user_id=owner.id,
        agent_id=None,
        code="mcp_tools_changed",
        title=f"The tools of the MCP server {server!r} have changed",
        body=(
            f"{' '.join(told)} Agents that have this server use its tools as they are now. If you do not know why they "
            "have changed, switch it off for your agents."
        ),
        once_key=f"mcp_tools_changed:{server}:{digest}:{now:%Y-%m-%d}:{owner.id}",  # nodes may have different versions
        created_at=now,
    )


def home_damaged(agent: Agent, kept: str, exported: str | None, tables: Sequence[str], now: datetime) -> Notice:
    """An agent's database is damaged in PostgreSQL; it was put into quarantine."""
    readable = (
        "No table could be read."
        if exported is None
        else f"These tables could be read, and are in {exported!r} in the workspace: {_listed(tables)}."
    )
    return _about(
        agent,
        now,
        code="database_unreadable",
        title=f"{agent.name}'s database is damaged in PostgreSQL",
        body=(
            f"Pages of it are missing or damaged there. What is left is kept as {kept!r} among the agent's files, with "
            f"its key, and nothing was deleted. {readable} The agent starts with a new database. To go back, restore a "
            "backup of PostgreSQL. To copy tables of a snapshot, use `wakeful db snapshots` and `wakeful db recover`."
        ),
        once_key=f"home_damaged:{agent.id}:{kept}",
    )


def files_damaged(agent: Agent, paths: Sequence[str], now: datetime) -> Notice:
    """Files of an agent are damaged in PostgreSQL, so that nodes leave them out."""
    return _about(
        agent,
        now,
        code="files_damaged",
        title=f"Files of {agent.name} are damaged in PostgreSQL",
        body=(
            f"They cannot be read, and are left out of the workspace: {_listed(paths)}. Nothing was deleted. Restore a "
            "backup of PostgreSQL, or write them again."
        ),
        once_key=f"files_damaged:{agent.id}:{now.isoformat()}",
    )


def files_in_conflict(agent: Agent, copies: Mapping[str, str], now: datetime) -> Notice:
    """Programs on two nodes have changed the same files of an agent at once."""
    names = [f"{path.partition('/')[2]} (also as {copy.rpartition('/')[2]})" for path, copy in copies.items()]
    return _about(
        agent,
        now,
        code="files_in_conflict",
        title=f"{agent.name} has two versions of {'a file' if len(names) == 1 else f'{len(names)} files'}",
        body=(
            "Runs on two nodes have changed them at the same time. The first version has the name, and the other is "
            f"kept beside it: {_listed(names)}."
        ),
        once_key=f"files_in_conflict:{agent.id}:{now.isoformat()}",
    )


def _listed(names: Sequence[str], most: int = 20) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def database_key_shown(agent: Agent, now: datetime) -> Notice:
    """The key of an agent's database was shown to someone."""
    return _about(
        agent,
        now,
        code="database_key_shown",
        title=f"The key of {agent.name}'s database was shown",
        body=(
            "Someone with your account requested it at {at}. With it and a copy of the file, all data can be read. If "
            "that was not you, revoke your tokens and change the key: `wakeful db rekey`."
        ),
        times={"at": now},
        once_key=f"database_key_shown:{agent.id}:{now.isoformat()}",
    )


def shell_refused(agent: Agent, confinement: Confinement, now: datetime) -> Notice:
    """An agent tried to run a command on a machine that cannot confine it."""
    return _about(
        agent,
        now,
        code="shell_refused",
        title=f"{agent.name}'s commands are not run",
        body=(
            "This server's machine cannot confine commands, and one that is not confined could read the server's keys "
            f"({'; '.join(confinement.problems)}). To allow them, {REMEDY}. Or, if you trust this agent's model and "
            "everything it reads, set shell_unconfined = true in the server's settings file and restart the server."
        ),
        once_key=f"shell_refused:{agent.id}:{now:%Y-%m-%d}",
    )


def prompt_cut(run: Run, model: str, least: int, counted: int, now: datetime) -> Notice:
    """A model's provider has read only a part of what it was sent."""
    is_named = ":" not in model  # else it is PROVIDER:MODEL, and only the settings know it
    command = f"`wakeful model edit {model} --context-window {counted}`"
    setting = f"`context_window = {counted}` in the server's settings, and restart the server"
    return _about(
        run,
        now,
        code="prompt_cut",
        title=f"The model {model} reads only a part of what it is sent",
        body=(
            f"A request had at least {least:,} tokens, and its provider counted {counted:,}: it dropped the rest, "
            "perhaps instructions or the beginning of the conversation. Its context window is smaller than Wakeful "
            f"assumes. Set the real one ({command if is_named else setting}), or start the model's server with a "
            "larger window."
        ),
        once_key=f"prompt_cut:{run.agent_id}:{model}:{now:%Y-%m-%d}",
    )


def store_behind(owner: User, since: datetime | None, until: datetime, number: int, now: datetime) -> Notice:
    """The embedded store lacks transactions that were committed before."""
    missing = "until {until}" if since is None else "between {since} and {until}"
    times = {"until": until} if since is None else {"since": since, "until": until}
    return Notice(
        id=ids.new_id(now),
        user_id=owner.id,
        agent_id=None,
        code="store_behind",
        title="A part of the server's data is missing",
        body=(
            f"The store is older than before: messages, runs and scheduled runs that were written {missing} may be "
            "missing. "
            f"{_CAUSE.format(journal='wakeful.sqlite-wal')}"
        ),
        once_key=f"store_behind:{number}:{until.isoformat()}:{owner.id}",
        created_at=now,
        times=as_text(times),
    )


def store_rewound(owner: User, now: datetime) -> Notice:
    """PostgreSQL lacks changes that it had acknowledged; once an hour while copies that have them are found."""
    return Notice(
        id=ids.new_id(now),
        user_id=owner.id,
        agent_id=None,
        code="store_rewound",
        title="PostgreSQL was taken back to an earlier state",
        body=(
            "It lacks changes that it had confirmed. That happens when a standby without the last changes is promoted, "
            "or when a backup is put in place while nodes run. What was written after that state is gone: messages, "
            "runs, scheduled runs, and rows and files of agents. Nodes have dropped their copies and use what "
            "PostgreSQL has. The log names the agents (“PostgreSQL was taken back”). With synchronous replication "
            "(synchronous_commit, synchronous_standby_names) a promotion loses nothing."
        ),
        once_key=f"store_rewound:{now:%Y-%m-%dT%H}:{owner.id}",
        created_at=now,
    )


def backup_failed(owner: User, error: str, last: datetime | None, now: datetime) -> Notice:
    """A scheduled backup could not be made; once a day while it goes on."""
    return Notice(
        id=ids.new_id(now),
        user_id=owner.id,
        agent_id=None,
        code="backup_failed",
        title="A backup of the server failed",
        body=f"{error} " + ("There is no backup yet." if last is None else "The last one is of {last}."),
        once_key=f"backup_failed:{now:%Y-%m-%d}:{owner.id}",
        created_at=now,
        times=as_text({} if last is None else {"last": last}),
    )


def calls_as_text(owner: User, models: Sequence[str], now: datetime) -> Notice:
    """Models are marked as writing their tool calls as text, which 0.2 made; once."""
    return Notice(
        id=ids.new_id(now),
        user_id=owner.id,
        agent_id=None,
        code="calls_as_text",
        title="Models that write tool calls as text can no longer act",
        body=(
            f"These models are marked `tool_calls = text`: {', '.join(models)}. Calls that a model writes as text are "
            "no longer made: strangers could have them made by writing them into a page that the model quotes. "
            "Agents with these models answer without tools. Give them a model that calls tools, or let the model's "
            "server recognise its calls, and test the model again."
        ),
        once_key=f"calls_as_text:{owner.id}",
        created_at=now,
    )


def disk_nearly_full(owner: User, node: str, shortage: str, now: datetime) -> Notice:
    """The disk of a node's data directory has next to no room; at most once a day."""
    return Notice(
        id=ids.new_id(now),
        user_id=owner.id,
        agent_id=None,
        code="disk_nearly_full",
        title="The server's disk is nearly full",
        body=(
            f"The disk of the data directory of {node} has {shortage}. When it is full, nothing is saved and no run "
            "goes on. Free space on it, or move the data directory to a larger one."
        ),
        once_key=f"disk_nearly_full:{node}:{now:%Y-%m-%d}:{owner.id}",
        created_at=now,
    )


def from_agent(run: Run, title: str, body: str, now: datetime) -> Notice:
    """Return the notice that an agent sends with the tool `notify`."""
    title, body = title.strip(), body.strip()
    for field, text, most in (("title", title, MAX_TITLE), ("body", body, MAX_BODY)):
        if not text:
            raise Invalid(f"{field!r} is empty. Write 1 to {most:,} characters.", field=field)
        check_size(field, len(text), most, "characters")
    digest = blake2b(f"{title}\x00{body}".encode(), digest_size=16).hexdigest()
    return _about(
        run,
        now,
        code=NOTIFY,
        title=title,
        body=body,
        once_key=f"{NOTIFY}:{run.agent_id}:{digest}:{now:%Y-%m-%dT%H}",  # the same text of two runs is sent once
    )


def _about(
    what: Wake | SetAside | Run | Agent,
    now: datetime,
    *,
    code: str,
    title: str,
    body: str,
    once_key: str,
    times: Mapping[str, datetime] | None = None,
) -> Notice:
    """Return a notice for the owner of something, with links to it. `times` are written where `body` names them."""
    is_agent = isinstance(what, Agent)
    return Notice(
        id=ids.new_id(now),
        user_id=what.user_id,
        agent_id=what.id if is_agent else what.agent_id,
        code=code,
        title=title[:MAX_TITLE],
        body=body,
        once_key=once_key,
        created_at=now,
        wake_id=None if is_agent else what.wake_id if isinstance(what, Run) else what.id,
        run_id=what.id if isinstance(what, Run) else None,
        session_id=None if is_agent else what.session_id,
        times=as_text(times or {}),
    )


def as_text(times: Mapping[str, datetime]) -> Mapping[str, str] | None:
    """Return the times of a notice as they are saved."""
    return {name: at.isoformat() for name, at in times.items()} or None
