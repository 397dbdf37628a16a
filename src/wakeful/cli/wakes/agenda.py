"""`wakeful agenda`, `wakeful pause`, `wakeful resume`."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from wakeful.cli.arguments.durations import read_seconds
from wakeful.cli.client import Server, connect
from wakeful.cli.people.zone import send_zone
from wakeful.cli.show import AsJson, OutputZone, in_words, show_done, show_list, show_time, show_time_and_zone

Agent = Annotated[str | None, typer.Option(help="Only this agent, by id or name; without it, all of them.")]
_PRESETS = ("tomorrow", "indefinitely")


def _complete_preset(incomplete: str) -> list[str]:
    return [preset for preset in _PRESETS if preset.startswith(incomplete)]


_FOLD_FROM = 3  # entries of one wake on one day


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


def _path(agent: str | None) -> tuple[str, ...]:
    return ("pause",) if agent is None else ("agents", agent, "pause")
