"""`wakeful wake …`: what will happen, and why something did or did not."""

import time
from typing import Annotated, Any

import typer

from wakeful.cli.client import Server, connect, fail
from wakeful.cli.show import AsJson, show_json, show_one, show_table

app = typer.Typer(help="Book, look at and change wakes.", no_args_is_help=True)

WakeId = Annotated[str, typer.Argument(help="The id of a wake, as `wakeful wake ls` shows it.")]
_ENDED = ("success", "failed", "stopped", "skipped", "interrupted")


@app.command()
def add(
    instructions: Annotated[str, typer.Argument(help="What the agent reads when it wakes.")],
    when: Annotated[str | None, typer.Option(help="When: 30m, 'tomorrow at 09:00', ISO 8601.")] = None,
    session: Annotated[str | None, typer.Option(help="Where it lands; without it, in a new session.")] = None,
    agent: Annotated[str | None, typer.Option(help="Whose, for a new session; without it, the first agent's.")] = None,
    every: Annotated[int | None, typer.Option(help="Again after so many seconds.")] = None,
    cron: Annotated[str | None, typer.Option(help="Again by a cron rule of five fields.")] = None,
    zone: Annotated[str | None, typer.Option(help="IANA zone of the time and the rule.")] = None,
    until: Annotated[str | None, typer.Option(help="The last moment of a recurring one.")] = None,
    max_runs: Annotated[int | None, typer.Option(help="How many times at most.")] = None,
    comment: Annotated[str, typer.Option(help="A label.")] = "",
    as_json: AsJson = False,
) -> None:
    """Book a wake. Without a time it comes at once."""
    server = connect()
    recurring = every is not None or cron is not None
    call_type = "recurring" if recurring else "once" if when is not None else "immediate"
    body = {
        "call_type": call_type,
        "additional_context_message": instructions,
        "when": when,
        "timezone": zone,
        "interval_seconds": every,
        "cron": cron,
        "until": until,
        "max_runs": max_runs,
        "internal_comment": comment,
    }
    where = session or server.post("sessions", body={"agent_id": agent})["id"]
    booked = server.post(
        "sessions", where, "recall", body={key: each for key, each in body.items() if each is not None}
    )
    if as_json:
        show_json(booked)
        return
    typer.echo(f"Booked {booked['told']}. Wake {booked['recall']['id']} in session {where}.")
    if booked.get("warning"):
        typer.secho(f"Note: {booked['warning']}", fg=typer.colors.YELLOW)


@app.command(name="ls")
def list_wakes(
    status: Annotated[str | None, typer.Option(help="Only those with this status.")] = "pending",
    every_status: Annotated[bool, typer.Option("--all", help="Ended ones too.")] = False,
    agent: Annotated[str | None, typer.Option(help="Only this agent's.")] = None,
    limit: Annotated[int, typer.Option(help="How many at most.", min=1, max=200)] = 50,
    as_json: AsJson = False,
) -> None:
    """List wakes, the soonest first."""
    found = connect().get("wakes", status=None if every_status else status, agent_id=agent, limit=limit)
    if as_json:
        show_json(found)
        return
    columns = ("id", "nominal_at", "kind", "call_type", "status", "scheduled_by", "comment")
    show_table(found["wakes"], columns, empty="No wakes. Book one with `wakeful wake add`.")


@app.command()
def show(wake_id: WakeId, as_json: AsJson = False) -> None:
    """Show a wake."""
    found = connect().get("wakes", wake_id)
    (show_json if as_json else show_one)(found)


@app.command()
def edit(
    wake_id: WakeId,
    when: Annotated[str | None, typer.Option(help="A new time.")] = None,
    instructions: Annotated[str | None, typer.Option(help="A new text.")] = None,
    every: Annotated[int | None, typer.Option(help="A new interval in seconds.")] = None,
    cron: Annotated[str | None, typer.Option(help="A new cron rule.")] = None,
    comment: Annotated[str | None, typer.Option(help="A new label.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change a recall that waits."""
    server = connect()
    given = {
        "when": when,
        "additional_context_message": instructions,
        "interval_seconds": every,
        "cron": cron,
        "internal_comment": comment,
    }
    body = {name: value for name, value in given.items() if value is not None}
    if not body:
        fail("Nothing to change: give at least one of --when, --instructions, --every, --cron, --comment.", 2)
    changed = server.patch("sessions", _recall_session(server, wake_id), "recall", body=body)["recall"]
    (show_json if as_json else show_one)(changed)


@app.command()
def cancel(wake_id: WakeId, as_json: AsJson = False) -> None:
    """Cancel a wake that waits."""
    server = connect()
    wake = server.get("wakes", wake_id)
    match wake["kind"]:
        case "recall":
            done = server.delete("sessions", _recall_session(server, wake_id), "recall")
        case "next_run":
            done = server.delete("agents", wake["agent_id"], "next-run")
        case _:
            done = server.delete("schedules", wake_id)
    show_json(done) if as_json else typer.echo("Cancelled.")


@app.command()
def skip(wake_id: WakeId, as_json: AsJson = False) -> None:
    """Leave out the next time of a recurring recall."""
    server = connect()
    done = server.post("sessions", _recall_session(server, wake_id), "recall", "skip")
    if as_json:
        show_json(done)
    else:
        typer.echo(f"Skipped. The next time is {server.get('wakes', wake_id)['nominal_at']}.")


@app.command()
def run(
    wake_id: WakeId,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end; exit 0 only if it succeeded.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a wake at once, paused or not."""
    server = connect()
    wake = server.get("wakes", wake_id)
    if wake["kind"] == "next_run":
        begun = server.post("agents", wake["agent_id"], "next-run", "run-now")
    else:
        begun = server.post("sessions", _recall_session(server, wake_id), "recall", "run-now")
    ended = _wait_for(server, begun["id"]) if wait else begun
    (show_json if as_json else show_one)(ended)
    if wait and ended["status"] != "success":
        raise typer.Exit(1)


@app.command()
def why(wake_id: WakeId, as_json: AsJson = False) -> None:
    """Tell what was decided about each planned time, and for which reason."""
    found = connect().get("wakes", wake_id, "why")
    if as_json:
        show_json(found)
        return
    show_table(found["decisions"], ("nominal_at", "at", "code", "run_id", "detail"), empty="Nothing was decided yet.")


def _recall_session(server: Server, wake_id: str) -> str:
    """Return the session in which this very recall waits."""
    wake = server.get("wakes", wake_id)
    if wake["kind"] != "recall":
        fail(f"Wake {wake_id} is a {wake['kind']}, and this command is for recalls.")
    pending: dict[str, Any] | None = server.get("sessions", wake["session_id"], "recall")["recall"]
    if pending is None or pending["id"] != wake_id:
        fail(f"Wake {wake_id} is {wake['status']}, so it waits no more.")
    return str(wake["session_id"])


def _wait_for(server: Server, run_id: str) -> dict[str, Any]:
    while (found := server.get("runs", run_id))["status"] not in _ENDED:
        time.sleep(0.5)
    return found
