"""`wakeful wake …`: book, list and change wakes."""

import time
from enum import StrEnum
from typing import Annotated, Any

import typer

from wakeful.cli.client import Server, connect, fail
from wakeful.cli.show import AsJson, PageOption, in_words, print_note, show_json, show_more, show_one, show_table
from wakeful.cli.zone import send_zone

app = typer.Typer(help="Book, list and change wakes.", no_args_is_help=True, rich_markup_mode=None)

WakeId = Annotated[str, typer.Argument(help="The id of a wake, as `wakeful wake ls` shows it.")]
_LONG_AGO = "2000-01-01T00:00:00Z"  # what is past comes at once
_ENDED = ("success", "failed", "stopped", "skipped", "interrupted")


class Door(StrEnum):
    """Where a wake lands, and what it can do."""

    recall = "recall"
    message = "message"
    session = "session"
    next_run = "next-run"


class Missed(StrEnum):
    """What to do about times missed while the server was away."""

    skip = "skip"
    run_once = "run_once"
    run_catchup = "run_catchup"


class Priority(StrEnum):
    """Whether it gives way to a user who is talking."""

    normal = "normal"
    low = "low"


_OPTIONS = {  # by door: which options it takes besides --when, --agent and --json
    Door.recall: {"session", "every", "cron", "zone", "until", "max_runs", "comment", "on_miss", "priority"},
    Door.message: {"session", "zone", "comment", "ephemeral"},
    Door.session: {"session", "zone", "comment", "ephemeral", "name", "tool", "model"},
    Door.next_run: {"zone", "on_miss", "priority", "view"},
}


@app.command()
def add(
    instructions: Annotated[str, typer.Argument(metavar="TEXT", help="What the agent reads when it wakes.")],
    when: Annotated[str | None, typer.Option(help="30m, 'tomorrow at 09:00' or ISO 8601. Without it: now.")] = None,
    door: Annotated[
        Door,
        typer.Option(
            "--as",
            help="recall: in a session, once or repeatedly. message: once, when the session is idle. session: in a "
            "new session. next-run: the agent's one next run, in a new session.",
        ),
    ] = Door.recall,
    session: Annotated[str | None, typer.Option(help="The id of its session; without it, a new one.")] = None,
    agent: Annotated[
        str | None, typer.Option(help="The agent, by id or name, if no session is given; without it, your first one.")
    ] = None,
    every: Annotated[int | None, typer.Option(help="recall: repeat every so many seconds.")] = None,
    cron: Annotated[str | None, typer.Option(help="recall: repeat by a cron rule of five fields.")] = None,
    zone: Annotated[
        str | None, typer.Option(help="The IANA time zone of --when and --cron, such as Europe/Berlin.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="recall: when to stop repeating.")] = None,
    max_runs: Annotated[int | None, typer.Option(help="recall: how many times at most.")] = None,
    on_miss: Annotated[
        Missed | None, typer.Option(help="recall, next-run: what to do about times when the server was down.")
    ] = None,
    priority: Annotated[
        Priority | None, typer.Option(help="recall, next-run: low waits while you are talking to the agent.")
    ] = None,
    comment: Annotated[str | None, typer.Option(help="A label; not for next-run.")] = None,
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
    """Book a wake. Without a time it fires at once."""
    given: dict[str, Any] = {
        "session": session,
        "every": every,
        "cron": cron,
        "zone": zone,
        "until": until,
        "max_runs": max_runs,
        "on_miss": on_miss,
        "priority": priority,
        "comment": comment,
        "ephemeral": ephemeral or None,
        "name": name,
        "tool": tool or None,
        "model": model,
        "view": view or None,
    }
    given = {option: value for option, value in given.items() if value is not None}
    _check_options(door, given)
    server = connect()
    if when or cron or until:
        send_zone(server)
    if door is Door.recall:
        booked, wake_id = _book_recall(server, instructions, when, agent, given)
    elif door is Door.next_run:
        booked, wake_id = _book_next_run(server, instructions, when, agent, given)
    else:
        booked, wake_id = _book_schedule(server, door, instructions, when, agent, given)
    if as_json or quiet:
        show_json(booked) if as_json else typer.echo(wake_id)
        return
    typer.echo(f"Booked: {booked['told']}. Wake {wake_id}.")
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
    limit: Annotated[int, typer.Option(help="How many at most.", min=1, max=200)] = 50,
    page: PageOption = None,
    as_json: AsJson = False,
) -> None:
    """List wakes, the soonest first."""
    server = connect()
    is_live = None if every_status or status is not None else True
    found = server.get("wakes", status=status, live=is_live, agent_id=server.agent_id(agent), limit=limit, page=page)
    if as_json:
        show_json(found)
        return
    columns = ("id", "nominal_at", "kind", "call_type", "status", "last_run", "scheduled_by", "comment")
    rows = [{**wake, "last_run": _told(wake["last_run"])} for wake in found["wakes"]]
    show_table(rows, columns, empty="No wakes. Book one with `wakeful wake add`.")
    show_more(found)


@app.command()
def show(wake_id: WakeId, as_json: AsJson = False) -> None:
    """Show one wake."""
    found = connect().get("wakes", wake_id)
    (show_json if as_json else show_one)(found)


@app.command()
def edit(
    wake_id: WakeId,
    when: Annotated[str | None, typer.Option(help="A new time.")] = None,
    instructions: Annotated[str | None, typer.Option(help="A new text.")] = None,
    every: Annotated[int | None, typer.Option(help="A new interval in seconds, for a recurring recall.")] = None,
    cron: Annotated[str | None, typer.Option(help="A new cron rule, for a recurring recall.")] = None,
    zone: Annotated[str | None, typer.Option(help="Another IANA time zone, for a recall.")] = None,
    until: Annotated[str | None, typer.Option(help="When to stop repeating, for a recurring recall.")] = None,
    max_runs: Annotated[int | None, typer.Option(help="How many times at most, for a recurring recall.")] = None,
    on_miss: Annotated[Missed | None, typer.Option(help="What to do about times when the server was down.")] = None,
    priority: Annotated[Priority | None, typer.Option(help="low waits while you are talking to the agent.")] = None,
    comment: Annotated[str | None, typer.Option(help="A new label.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change a wake that has not fired yet."""
    given = {
        "when": when,
        "instructions": instructions,
        "interval_seconds": every,
        "cron": cron,
        "timezone": zone,
        "until": until,
        "max_runs": max_runs,
        "on_miss": on_miss,
        "priority": priority,
        "comment": comment,
    }
    body = {name: value for name, value in given.items() if value is not None}
    if not body:
        fail("Nothing to change: give at least one option, such as --when or --instructions.", 2)
    server = connect()
    if when or cron or until:
        send_zone(server)
    changed = server.patch("wakes", wake_id, body=body)
    (show_json if as_json else show_one)(changed)


@app.command()
def cancel(wake_id: WakeId, as_json: AsJson = False) -> None:
    """Cancel a wake that has not fired yet."""
    done = connect().delete("wakes", wake_id)
    show_json(done) if as_json else typer.echo("Cancelled.")


@app.command()
def skip(wake_id: WakeId, as_json: AsJson = False) -> None:
    """Skip the next time of a recurring recall."""
    wake = connect().post("wakes", wake_id, "skip")
    if as_json:
        show_json(wake)
    elif wake["status"] == "pending":
        typer.echo(f"Skipped. The next time is {wake['nominal_at']}.")
    else:
        typer.echo(f"Skipped. That was the last time: it is {wake['status']}.")


@app.command()
def run(
    wake_id: WakeId,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it ends; exit 0 only if it succeeded.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a wake now, even if it is paused. A wake that fires once is over then."""
    server = connect()
    begun = server.post("wakes", wake_id, "run-now")
    ended = _wait_for(server, begun["id"]) if wait else begun
    (show_json if as_json else show_one)(ended)
    if wait and ended["status"] != "success":
        raise typer.Exit(1)


@app.command()
def why(wake_id: WakeId, as_json: AsJson = False) -> None:
    """Show what was decided about each planned time, and why."""
    found = connect().get("wakes", wake_id, "why")
    if as_json:
        show_json(found)
        return
    show_table(
        found["decisions"], ("nominal_at", "at", "code", "run_id", "detail"), empty="Nothing has been decided yet."
    )


def _told(run: dict[str, Any] | None) -> str | None:
    """Say how a run ended in a word or two."""
    return None if run is None else in_words(run["note"] or run["status"])


def _check_options(door: Door, given: dict[str, Any]) -> None:
    for option in given:
        if option not in _OPTIONS[door]:
            takes = ", ".join(f"--{each.replace('_', '-')}" for each in sorted(_OPTIONS[door]))
            fail(f"--{option.replace('_', '-')} does not go with --as {door}, which takes: {takes}.", 2)


def _book_recall(server: Server, text: str, when: str | None, agent: str | None, given: dict[str, Any]) -> Any:
    is_recurring = "every" in given or "cron" in given
    body = {
        "call_type": "recurring" if is_recurring else "immediate" if when is None else "once",
        "additional_context_message": text,
        "when": when,
        "timezone": given.get("zone"),
        "interval_seconds": given.get("every"),
        "cron": given.get("cron"),
        "until": given.get("until"),
        "max_runs": given.get("max_runs"),
        "on_miss": given.get("on_miss"),
        "priority": given.get("priority"),
        "internal_comment": given.get("comment"),
    }
    booked = server.post("sessions", _session(server, agent, given), "recall", body=_without_nothing(body))
    return booked, booked["recall"]["id"]


def _book_schedule(
    server: Server, door: Door, text: str, when: str | None, agent: str | None, given: dict[str, Any]
) -> Any:
    config = {"session_name": given.get("name"), "tool_ids": given.get("tool"), "model": given.get("model")}
    where = _session(server, agent, given)
    body = {
        "kind": str(door),
        "message": text,
        "at": _LONG_AGO if when is None else None,
        "when": when,
        "timezone": given.get("zone"),
        "label": given.get("comment"),
        "ephemeral": given.get("ephemeral"),
        "session_config": _without_nothing(config) if door is Door.session else None,
    }
    booked = server.post("sessions", where, "schedules", body=_without_nothing(body))
    return booked, booked["schedule"]["id"].removeprefix("sch-")


def _book_next_run(server: Server, text: str, when: str | None, agent: str | None, given: dict[str, Any]) -> Any:
    whose = server.agent_id(agent) or server.first_agent_id()
    body = {
        "instructions": text,
        "in_seconds": 0 if when is None else None,
        "when": when,
        "timezone": given.get("zone"),
        "context_views": given.get("view"),
        "priority": given.get("priority"),
        "on_miss": given.get("on_miss"),
    }
    booked = server.put("agents", whose, "next-run", body=_without_nothing(body))
    return booked, booked["next_run"]["id"]


def _session(server: Server, agent: str | None, given: dict[str, Any]) -> str:
    return given.get("session") or server.post("sessions", body={"agent_id": server.agent_id(agent)})["id"]


def _without_nothing(body: dict[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in body.items() if each is not None}


def _wait_for(server: Server, run_id: str) -> dict[str, Any]:
    while (found := server.get("runs", run_id))["status"] not in _ENDED:
        time.sleep(0.5)
    return found
