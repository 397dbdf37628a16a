"""`wakeful status`: one screen about the server and what it does now."""

import os
import sys
import time
from shlex import quote
from typing import Annotated, Any, Literal

import typer

from wakeful.cli.output import NOT_REACHED, AsJson, echo, fail, harmless, print_note, show_json, show_time
from wakeful.cli.server import NotReached, Server, ask, connect
from wakeful.cli.target import Target, find_running_server, target_of

_MAX_SHOWN = 5


def status(as_json: AsJson = False) -> None:
    """Show the server on one screen: address, version, readiness, model, next wakes, running runs, disk.

    Exit 0 if it is ready, 1 if it is not, 3 if none answers.
    """
    server = connect()
    found = _collect(server)
    if as_json:
        show_json(found)
    else:
        for name, lines in _describe(found).items():
            for number, line in enumerate(lines):
                echo(f"{name if number == 0 else '':<9}{harmless(line)}")
    if not found["ready"]:
        raise typer.Exit(1)


def _collect(server: Server) -> dict[str, Any]:
    me, about = server.get("me"), server.get("about")
    is_owner = me["user"]["role"] == "owner"
    try:
        readiness = ask(server.target, "GET", "/readyz")
    except NotReached as error:
        fail(str(error), NOT_REACHED)
    return {
        "address": server.address,
        "user": me["user"]["name"],
        "scope": me["scope"],
        "version": about["version"],
        "model": about["model"],
        "is_demo": about["is_demo"],
        "is_model_removed": about["is_model_removed"],
        "store": about["store"],
        "ready": readiness.status == 200,
        "problems": readiness.fields.get("problems", []),
        **_collect_pauses(server),
        "wakes": server.get("wakes", live=True, limit=_MAX_SHOWN)["wakes"],
        "running": server.get("runs", status="running", limit=_MAX_SHOWN)["runs"],
        "storage": server.get("storage") if is_owner else None,
    }


def _collect_pauses(server: Server) -> dict[str, Any]:
    """Return the pause of all agents, and those of single agents with their names."""
    found = server.get("pause")
    names = {agent["id"]: agent["name"] for agent in server.get("agents")["agents"]} if found["agents"] else {}
    paused = [{**each, "agent": names.get(each["agent_id"], each["agent_id"])} for each in found["agents"]]
    return {"pause": found["pause"], "paused_agents": paused}


def _describe(found: dict[str, Any]) -> dict[str, list[str]]:
    model = found["model"] + (" (built in, not an LLM)" if found["is_demo"] else "")
    if found["is_model_removed"]:
        model += ", which was REMOVED: choose another one with `wakeful model default NAME`"
    sections = {
        "server": [f"{found['address']} · Wakeful {found['version']} · {found['user']}, scope {found['scope']}"],
        "ready": ["yes"] if found["ready"] else [f"NO: {each}" for each in found["problems"] or ["no reason given"]],
        "model": [model],
        "paused": _describe_pauses(found["pause"], found["paused_agents"]),
        "running": [_describe_run(run) for run in found["running"]] or ["nothing"],
        "next": [_describe_wake(wake) for wake in found["wakes"]] or ["no wakes; book one with `wakeful wake add`"],
        "store": [_describe_store(found["store"], found["storage"])],
    }
    if found["storage"] is not None:
        sections["disk"] = [f"{_size(found['storage']['free_bytes'])} free"]
    return sections


def _describe_pauses(everything: dict[str, Any] | None, agents: list[dict[str, Any]]) -> list[str]:
    lines = [] if everything is None else [_describe_pause(everything, "all agents", "wakeful resume")]
    shown = agents[:_MAX_SHOWN]
    lines += [_describe_pause(each, each["agent"], f"wakeful resume --agent {quote(each['agent'])}") for each in shown]
    if len(agents) > len(shown):
        lines.append(f"{len(agents) - len(shown)} more agents")
    return lines or ["no"]


def _describe_pause(pause: dict[str, Any], name: str, command: str) -> str:
    until = "until you resume it" if pause["until"] is None else f"until {show_time(pause['until'])}"
    reason = f" ({pause['reason']})" if pause["reason"] else ""
    return f"{name}, {until}{reason}; end it with `{command}`"


def _describe_run(run: dict[str, Any]) -> str:
    return f"{run['id']}  {run['kind'] or run['trigger']}, since {show_time(run['started_at'] or run['queued_at'])}"


def _describe_wake(wake: dict[str, Any]) -> str:
    label = wake["comment"] or wake["instructions"].partition("\n")[0][:60]
    return f"{show_time(wake['nominal_at'])}  {wake['kind'].replace('_', ' ')}  {label}"


def _describe_store(kind: str, storage: dict[str, Any] | None) -> str:
    name = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}.get(kind, kind)
    if storage is None:
        return name
    return (
        f"{name}, {_size(storage['store_bytes'])}; workspaces {_size(storage['workspace_bytes'])}, "
        f"agents' databases {_size(storage['database_bytes'])}"
    )


def _size(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


# ── `wakeful logs` ───────────────────────────────────────────────────────────────────────────────────────────────────

_WAIT = 20  # seconds until the server answers without a new line
_RETRY = 1.0  # seconds
_COLOURS = {"warning": "yellow", "error": "red", "critical": "red", "debug": "bright_black"}
_FINAL = (401, 403)  # the token was revoked, or is no longer an owner's


def logs(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many of the last lines.", min=1, max=10_000)] = 100,
    since: Annotated[
        str | None, typer.Option(help="Only lines since then: 10m, 2h, or ISO 8601 with offset.", metavar="TIME")
    ] = None,
    level: Annotated[
        Literal["debug", "info", "warning", "error"] | None, typer.Option(help="Only this severity and above.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each line as a JSON object.")] = False,
) -> None:
    """Show the last lines of the server's log. Owners only; the server keeps 10,000 lines, without secrets."""
    server = connect()
    page = server.get("logs", since=since, level=level, limit=lines)
    _show(page, as_json)
    if follow:
        _follow(server.target, page["next"], level, as_json)
    elif not page["lines"]:
        print_note("There are no such lines. The server keeps lines since its start, from its setting log_level up.")


def _follow(target: Target, place: str, level: str | None, as_json: bool) -> None:
    """Print new lines until Ctrl-C, also after the server was restarted."""
    is_lost = False
    try:
        while True:
            try:
                answer = ask(target, "GET", "/logs", after=place, level=level, limit=10_000, wait=_WAIT)
            except NotReached as error:
                if not is_lost:
                    print_note(f"{error} Waiting for it.")
                is_lost = True
            else:
                if answer.status in _FINAL:
                    fail(answer.message)
                is_lost = not answer.is_ok  # it is starting, or a proxy before it answers
                if answer.is_ok:
                    _show(answer.body, as_json)
                    place = answer.body["next"]
            if is_lost:
                time.sleep(_RETRY)
                target = _find_again(target)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _find_again(target: Target) -> Target:
    """Return this machine's server, which may have another port after a restart."""
    running = find_running_server() if target.is_local else None
    return target if running is None else target_of(running) or target


def _show(page: dict[str, Any], as_json: bool) -> None:
    if page["missed"]:
        print_note(f"{page['missed']:,} lines were dropped before they could be read.")
    for line in page["lines"]:
        show_json(line, indent=None) if as_json else typer.echo(_format(line))  # noqa: TID251  (it is harmless)
    sys.stdout.flush()  # for a pipe


def _format(line: dict[str, Any]) -> str:
    fields = "".join(f" {key}={value}" for key, value in line["fields"].items())
    text = harmless(f"{line['logger'].removeprefix('wakeful.')}: {line['message']}{fields}")
    trace = "".join(f"\n  {harmless(each)}" for each in (line["exception"] or "").splitlines())
    return f"{harmless(line['at'][:23])}Z {_paint(harmless(line['level']))} {text}{trace}"


def _paint(level: str) -> str:
    is_plain = "NO_COLOR" in os.environ or not sys.stdout.isatty()
    return f"{level:7}" if is_plain else typer.style(f"{level:7}", fg=_COLOURS.get(level))
