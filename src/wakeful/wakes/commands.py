"""`wakeful wake …`, `wakeful agenda`, `wakeful pause` and `wakeful resume`."""

import time
from collections.abc import Iterable
from textwrap import shorten
from typing import Annotated, Any, Literal

import typer

from wakeful.cli.arguments import read_seconds, show_seconds
from wakeful.cli.nouns import WAKE, Commands, find_id, find_session_id
from wakeful.cli.output import (
    WRONG,
    AsJson,
    Limit,
    OutputZone,
    PageOption,
    echo,
    fail,
    in_local_time,
    in_words,
    print_note,
    progress,
    show_done,
    show_json,
    show_list,
    show_one,
    show_time,
    show_time_and_zone,
)
from wakeful.cli.server import Server, connect, to_body
from wakeful.cli.zone import send_zone

app = Commands()

WakeId = Annotated[str, typer.Argument(help="A wake, by its id or the beginning of it; `wakeful wake ls` shows ids.")]
Every = Annotated[str | None, typer.Option(help="recall: repeat after this long: 15m, 2h, 3 days, or seconds.")]
Cron = Annotated[str | None, typer.Option(help="recall: repeat by a cron rule of five fields.")]
Zone = Annotated[str | None, typer.Option(help="The IANA time zone of --when and --cron, such as Europe/Berlin.")]
Until = Annotated[str | None, typer.Option(help="recall: when to stop repeating.")]
MaxRuns = Annotated[int | None, typer.Option(help="recall: how many times at most.")]
OnMiss = Annotated[
    Literal["skip", "run_once", "run_catchup"] | None,
    typer.Option(help="recall, next-run: what to do about times when the server was down."),
]
Priority = Annotated[
    Literal["normal", "low"] | None,
    typer.Option(help="recall, next-run: low waits while you are talking to the agent."),
]
Comment = Annotated[str | None, typer.Option(help="A label; not for next-run.")]
Door = Literal["recall", "message", "session", "next-run"]
Agent = Annotated[str | None, typer.Option(help="Only this agent, by id or name; without it, all of them.")]

_LONG_AGO = "2000-01-01T00:00:00Z"  # a schedule in the past fires at once
_MAX_TITLE = 60  # characters, of a session named after its booking
_ENDED = ("success", "failed", "stopped", "skipped", "interrupted")
_FOLD_FROM = 3  # entries of one wake on one day
_PRESETS = ("tomorrow", "indefinitely")
_OPTIONS_OF_DOOR: dict[Door, set[str]] = {  # besides TEXT, --when, --agent and the form of the output
    "recall": {"session", "every", "cron", "zone", "until", "max_runs", "comment", "on_miss", "priority"},
    "message": {"session", "zone", "comment", "ephemeral"},
    "session": {"session", "zone", "comment", "ephemeral", "name", "tool", "model"},
    "next-run": {"zone", "on_miss", "priority", "view"},
}
_EVERY_DOOR = {"instructions", "when", "door", "agent", "quiet", "as_json"}
_FIELD_OF_OPTION = {"every": "interval_seconds", "zone": "timezone", "view": "context_views"}  # of options in a request
_TEXTS: dict[Door, dict[str, str]] = {  # those that each door calls differently
    "recall": {"instructions": "additional_context_message", "comment": "internal_comment"},
    "message": {"instructions": "message", "comment": "label"},
    "session": {"instructions": "message", "comment": "label"},
    "next-run": {},
}
_CONFIG = {"name": "session_name", "tool": "tool_ids", "model": "model"}  # of options in a session_config


@app.command()
def add(
    instructions: Annotated[str, typer.Argument(metavar="TEXT", help="What the agent reads when it wakes.")],
    when: Annotated[
        str | None,
        typer.Option(help="30m, 'tomorrow at 09:00' or ISO 8601. Without it: now; with --every, after that."),
    ] = None,
    door: Annotated[
        Door,
        typer.Option(
            "--as",
            help="recall: in a session, once or repeatedly. message: once, when the session is idle. session: in a "
            "new session. next-run: the agent's one next run, in a new session.",
        ),
    ] = "recall",
    session: Annotated[
        str | None, typer.Option(help="Its session, by id or the beginning of it; without it, a new one.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="The agent, by id or name, if no session is given; without it, your first one.")
    ] = None,
    every: Every = None,
    cron: Cron = None,
    zone: Zone = None,
    until: Until = None,
    max_runs: MaxRuns = None,
    on_miss: OnMiss = None,
    priority: Priority = None,
    comment: Comment = None,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="message, session: forget it if the server restarts.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="session: its title.")] = None,
    tool: Annotated[list[str] | None, typer.Option(help="session: only this tool; may be repeated.")] = None,
    model: Annotated[str | None, typer.Option(help="session: its model.")] = None,
    view: Annotated[list[str] | None, typer.Option(help="next-run: show the agent this view; may be repeated.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the id alone, for scripts.")] = False,
    as_json: AsJson = False,
) -> None:
    """Book a wake. Without a time it fires at once, or, with --every, first after that long."""
    given = to_body(locals(), without=() if ephemeral else ("ephemeral",))
    for option in [each for each in given if each not in _EVERY_DOOR | _OPTIONS_OF_DOOR[door]]:
        takes = ", ".join(f"--{each.replace('_', '-')}" for each in sorted(_OPTIONS_OF_DOOR[door]))
        fail(f"--{option.replace('_', '-')} does not go with --as {door}, which takes: {takes}.", WRONG)
    if every is not None:
        given["every"] = read_seconds(every, "--every")
    server = connect()
    if when or cron or until:
        send_zone(server)
    booked = _book(server, door, given)
    wake_id = next(booked[key]["id"] for key in ("recall", "schedule", "next_run") if key in booked).removeprefix(
        "sch-"
    )
    if as_json or quiet:
        show_done(booked, wake_id, as_json)
        return
    echo(f"Booked: {booked['told']}. Wake {wake_id}.")
    if booked.get("clamped"):
        print_note(f"The time was moved, because of: {', '.join(booked['clamp_reasons'])}.")
    if booked.get("warning"):
        print_note(booked["warning"])


@app.command(name="ls")
def list_wakes(
    status: Annotated[
        str | None, typer.Option(help="Only wakes with this status; without it, those still to come.")
    ] = None,
    every_status: Annotated[bool, typer.Option("--all", help="Also wakes that are over.")] = False,
    agent: Annotated[str | None, typer.Option(help="Only this agent's, by id or name.")] = None,
    limit: Limit = 50,
    page: PageOption = None,
    _zone: OutputZone = None,
    as_json: AsJson = False,
) -> None:
    """List wakes, the soonest first."""
    server = connect()
    is_live = None if every_status or status is not None else True
    found = server.get("wakes", status=status, live=is_live, agent_id=server.agent_id(agent), limit=limit, page=page)
    columns = ("id", "nominal_at", "kind", "status", "last_run", "by", "about")
    rows = [
        {
            **wake,
            "kind": wake["call_type"] if wake["kind"] == "recall" else in_words(wake["kind"]),
            "last_run": _describe(wake["last_run"]),
            "by": wake["scheduled_by"],
            "about": wake["comment"] or wake["instructions"],
        }
        for wake in found["wakes"]
    ]
    show_list(found, rows, columns, empty="No wakes. Book one with `wakeful wake add`.", as_json=as_json)


@app.command()
def show(wake_id: WakeId, _zone: OutputZone = None, as_json: AsJson = False) -> None:
    """Show one wake."""
    server = connect()
    found = server.get("wakes", find_id(server, WAKE, wake_id))
    (show_json if as_json else show_one)(found)


@app.command()
def edit(
    wake_id: WakeId,
    when: Annotated[str | None, typer.Option(help="A new time.")] = None,
    instructions: Annotated[str | None, typer.Option(help="A new text.")] = None,
    every: Every = None,
    cron: Cron = None,
    zone: Zone = None,
    until: Until = None,
    max_runs: MaxRuns = None,
    on_miss: OnMiss = None,
    priority: Priority = None,
    comment: Comment = None,
    muted: Annotated[
        bool | None, typer.Option("--mute/--no-mute", help="Whether its notices go to the inbox alone.")
    ] = None,
    ping_url: Annotated[
        str | None,
        typer.Option(help="Report each run to this address of a monitoring service; an empty one removes it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change a wake that has not fired yet."""
    body = to_body(locals(), _FIELD_OF_OPTION, without=("wake_id", "as_json"))
    if not body:
        fail("Nothing to change: give at least one option, such as --when or --instructions.", WRONG)
    if every is not None:
        body["interval_seconds"] = read_seconds(every, "--every")
    if ping_url is not None:
        body["ping_url"] = ping_url or None
    server = connect()
    if when or cron or until:
        send_zone(server)
    changed = server.patch("wakes", find_id(server, WAKE, wake_id), body=body)
    (show_json if as_json else show_one)(changed)


@app.command()
def cancel(wake_id: WakeId, as_json: AsJson = False) -> None:
    """Cancel a wake that has not fired yet."""
    server = connect()
    done = server.delete("wakes", find_id(server, WAKE, wake_id))
    show_done(done, "Cancelled.", as_json)


@app.command()
def skip(wake_id: WakeId, as_json: AsJson = False) -> None:
    """Skip the next time of a recurring recall."""
    server = connect()
    wake = server.post("wakes", find_id(server, WAKE, wake_id), "skip")
    if as_json:
        show_json(wake)
    elif wake["status"] == "pending":
        echo(f"Skipped. The next time is {show_time_and_zone(wake['nominal_at'])}.")
    else:
        echo(f"Skipped. That was the last time: it is {wake['status']}.")


@app.command()
def run(
    wake_id: WakeId,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it ends; exit 0 only if it succeeded.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a wake now, even if it is paused. A wake that fires once is over then."""
    server = connect()
    begun = server.post("wakes", find_id(server, WAKE, wake_id), "run-now")
    ended = _wait_for(server, begun["id"]) if wait else begun
    (show_json if as_json else show_one)(ended)
    if wait and ended["status"] != "success":
        raise typer.Exit(1)


@app.command()
def why(wake_id: WakeId, _zone: OutputZone = None, as_json: AsJson = False) -> None:
    """Show what was asked for, what was decided about each planned time and why, and what each run did."""
    server = connect()
    found = server.get("wakes", find_id(server, WAKE, wake_id), "why")
    rows = [{**each, "what": in_local_time(each["text"])} for each in found["decisions"]]
    show_list(found, rows, ("at", "run_id", "what"), empty="Nothing has been decided yet.", as_json=as_json)


def agenda(
    start: Annotated[str | None, typer.Option("--from", help="ISO 8601 with offset; without it, a day ago.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="ISO 8601 with offset; without it, in a week.")] = None,
    agent: Agent = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every time of a recurring wake, not one line for each day.")
    ] = False,
    _zone: OutputZone = None,
    as_json: AsJson = False,
) -> None:
    """Show what ran and what will run. Three or more times of one wake on one day are one line."""
    server = connect()
    found = server.get("agenda", **{"from": start, "to": end})
    entries = _entries(server, found)
    if agent is not None:
        chosen = server.agent(agent)["id"]
        found = {part: [each for each in listed if each["agent_id"] == chosen] for part, listed in found.items()}
        entries = [each for each in entries if each["agent_id"] == chosen]
    rows = entries if every else _fold(entries)
    columns = ("at", "times", "agent", "kind", "status", "reason", "label")
    show_list(found, rows, columns, empty="Nothing ran, and nothing is planned.", as_json=as_json)


def _complete_preset(incomplete: str) -> list[str]:
    return [preset for preset in _PRESETS if preset.startswith(incomplete)]


def pause(
    agent: Agent = None,
    length: Annotated[
        str,
        typer.Option(
            "--for",
            help="How long: a duration such as 2h or 3 days, tomorrow or indefinitely.",
            autocompletion=_complete_preset,
        ),
    ] = "indefinitely",
    until: Annotated[str | None, typer.Option(help="Until when, ISO 8601 with offset; instead of --for.")] = None,
    reason: Annotated[str, typer.Option(help="Why, for people.")] = "",
    stop: Annotated[bool, typer.Option("--stop", help="Also stop running runs.")] = False,
    _zone: OutputZone = None,
    as_json: AsJson = False,
) -> None:
    """Hold back the wakes of one agent, or of all your agents."""
    body: dict[str, Any] = {"reason": reason, "stop": stop}
    if until is not None:
        body["until"] = until
    elif length in _PRESETS:
        body["preset"] = length
    else:
        body["seconds"] = read_seconds(length, "--for", ", or tomorrow or indefinitely")
    server = connect()
    if body.get("preset") == "tomorrow":
        send_zone(server)
    made = server.put(*_path(server.agent_id(agent)), body=body)
    until, held = made["pause"]["until"], made["pause"]["held"]
    on_hold = f" {held} scheduled {'run is' if held == 1 else 'runs are'} on hold." if held else ""
    show_done(made, f"Paused until {show_time_and_zone(until) if until else 'you resume it'}.{on_hold}", as_json)


def resume(agent: Agent = None, as_json: AsJson = False) -> None:
    """End a pause. Wakes that came due meanwhile do not count as missed."""
    server = connect()
    done = server.delete(*_path(server.agent_id(agent)))
    show_done(done, "Resumed." if done["ok"] else "It was not paused.", as_json)


def _book(server: Server, door: Door, given: dict[str, Any]) -> dict[str, Any]:
    names = _FIELD_OF_OPTION | _TEXTS[door]
    asked = given.keys() & (_OPTIONS_OF_DOOR[door] | {"instructions", "when"}) - {"session", *_CONFIG}
    body = {names.get(name, name): given[name] for name in asked}
    agent_id = server.agent_id(given.get("agent"))
    if door == "next-run":
        body |= {} if "when" in given else {"in_seconds": 0}
        return server.put("agents", agent_id or server.first_agent_id(), "next-run", body=body)
    session = find_session_id(server, given.get("session"))
    if session is None:
        session = server.post("sessions", body={"agent_id": agent_id, "title": _title(given)})["id"]
    if door == "recall":
        is_recurring = "every" in given or "cron" in given
        if "every" in given and not {"when", "cron"} & given.keys():
            body["when"] = show_seconds(given["every"], units=4)
        body["call_type"] = "recurring" if is_recurring else "once" if "when" in given else "immediate"
        return server.post("sessions", session, "recall", body=body)
    body |= {"kind": door} | ({} if "when" in given else {"at": _LONG_AGO})
    if door == "session":
        body["session_config"] = {key: given[name] for name, key in _CONFIG.items() if name in given}
    return server.post("sessions", session, "schedules", body=body)


def _title(given: dict[str, Any]) -> str:
    """Return the title of a session that is created for a booking."""
    text = given.get("name") or given.get("comment") or given["instructions"]
    return shorten("".join(each if each.isprintable() else " " for each in text), _MAX_TITLE, placeholder="…")


def _describe(run: dict[str, Any] | None) -> str | None:
    """Return how a run ended, in a word or two."""
    return None if run is None else in_words(run["note"] or run["status"])


def _wait_for(server: Server, run_id: str) -> dict[str, Any]:
    with progress("running"):
        while (found := server.get("runs", run_id))["status"] not in _ENDED:
            time.sleep(0.5)
    return found


def _entries(server: Server, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return past and future runs with the names of their agents and what each is about."""
    agents = {each["id"]: each["name"] for each in server.get("agents")["agents"]}
    ran = [
        {**run, "at": run["queued_at"], "label": ": ".join(filter(None, (run["about"], _ending(run)))) or None}
        for run in found["ran"]
    ]
    planned = [{**each, "status": "planned", "label": each["about"]} for each in found["planned"]]
    held = [{**each, "status": "on hold", "label": each["about"]} for each in found["held"]]
    return [
        {**each, "agent": agents.get(each["agent_id"], "(deleted)"), "times": _times(each)}
        for each in (*ran, *sorted([*planned, *held], key=lambda each: each["at"]))
    ]


def _times(entry: dict[str, Any]) -> int:
    """Return how many times an entry stands for; a run by hand covers no planned time, but it is one run."""
    return max(1, entry["covers"])


def _ending(run: dict[str, Any]) -> str | None:
    return run["error"] or in_words(run["note"])


def _fold(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one entry for those of one wake with one result on one day, if there are several."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for entry in entries:
        day = show_time(entry["at"], "%Y-%m-%d")
        alone = None if entry["wake_id"] else entry.get("id")
        groups.setdefault((entry["wake_id"], alone, entry["status"], entry["reason"], entry["label"], day), []).append(
            entry
        )
    folded: list[dict[str, Any]] = []
    for group in groups.values():
        if len(group) < _FOLD_FROM:
            folded += group
        else:
            folded.append({**group[0], "times": sum(each["times"] for each in group)})
    return sorted(folded, key=lambda entry: entry["at"])


def _path(agent: str | None) -> tuple[str, ...]:
    return ("pause",) if agent is None else ("agents", agent, "pause")
