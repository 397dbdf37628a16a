"""`wakeful logs`: the last lines of the server's log."""

import os
import sys
import time
from typing import Annotated, Any, Literal

import typer

from wakeful.cli.client import connect, fail
from wakeful.cli.remote.asking import NotReached, ask
from wakeful.cli.remote.target import Target, find_running_server, target_of
from wakeful.cli.show import harmless, print_note, show_json

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
