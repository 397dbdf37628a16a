"""`wakeful agenda`, `wakeful pause`, `wakeful resume`."""

from typing import Annotated, Any, Literal

import typer

from wakeful.cli.client import connect
from wakeful.cli.show import AsJson, in_words, show_done, show_list
from wakeful.cli.zone import send_zone

Agent = Annotated[str | None, typer.Option(help="Only this agent, by id or name; without it, all of them.")]


def agenda(
    start: Annotated[str | None, typer.Option("--from", help="ISO 8601 with offset; without it, a day ago.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="ISO 8601 with offset; without it, in a week.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what ran and what will run."""
    found = connect().get("agenda", **{"from": start, "to": end})
    ran = [{**run, "at": run["queued_at"], "label": run["error"] or in_words(run["note"])} for run in found["ran"]]
    planned = [{**each, "status": "planned", "label": each["comment"]} for each in found["planned"]]
    columns = ("at", "nominal_at", "kind", "status", "reason", "label")
    show_list(found, [*ran, *planned], columns, empty="Nothing ran, and nothing is planned.", as_json=as_json)


def pause(
    agent: Agent = None,
    length: Annotated[
        Literal["1h", "4h", "tomorrow", "indefinitely"], typer.Option("--for", help="How long.")
    ] = "indefinitely",
    until: Annotated[str | None, typer.Option(help="Until when, ISO 8601 with offset; instead of --for.")] = None,
    reason: Annotated[str, typer.Option(help="Why, for people.")] = "",
    stop: Annotated[bool, typer.Option("--stop", help="Also stop running runs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Hold back the wakes of one agent, or of all your agents."""
    body: dict[str, Any] = {"reason": reason, "stop": stop}
    body |= {"preset": length} if until is None else {"until": until}
    server = connect()
    if until is None and length == "tomorrow":
        send_zone(server)
    made = server.put(*_path(server.agent_id(agent)), body=body)
    show_done(made, f"Paused until {made['pause']['until'] or 'you resume it'}.", as_json)


def resume(agent: Agent = None, as_json: AsJson = False) -> None:
    """End a pause. Wakes that came due meanwhile do not count as missed."""
    server = connect()
    done = server.delete(*_path(server.agent_id(agent)))
    show_done(done, "Resumed." if done["ok"] else "It was not paused.", as_json)


def _path(agent: str | None) -> tuple[str, ...]:
    return ("pause",) if agent is None else ("agents", agent, "pause")
