"""`wakeful zone`, and sending this machine's time zone to a server that does not know its user's."""

import os
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from wakeful.cli.output import AsJson, echo, print_note, show_json
from wakeful.cli.server import Server, connect

_LINK, _FILE = Path("/etc/localtime"), Path("/etc/timezone")


def zone(
    name: Annotated[
        str | None, typer.Argument(help="An IANA name such as Europe/Berlin; without it, your zone is shown.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show your time zone, or set it. Agents without a zone of their own use it."""
    server = connect()
    user = server.get("me")["user"]
    if name is not None:
        user = server.patch("users", user["id"], body={"timezone": name})
    if as_json:
        show_json({"timezone": user["timezone"]})
    else:
        echo(user["timezone"] or "Not known yet. Set it with `wakeful zone NAME`.")


def send_zone(server: Server) -> None:
    """Send this machine's time zone if the server does not know the user's, and print that."""
    me: dict[str, Any] = server.get("me")
    name = machine_zone()
    if me["user"]["timezone"] is None and me["scope"] == "admin" and name is not None:
        server.patch("users", me["user"]["id"], body={"timezone": name})
        print_note(f"Your time zone is now {name}, as on this machine. `wakeful zone NAME` changes it.")


def machine_zone() -> str | None:
    """Return the IANA name of this machine's time zone, if it can be found."""
    written = os.environ.get("TZ", "").removeprefix(":")
    for name in (written, *(() if written else (_linked(), _listed()))):
        try:
            if name:
                return ZoneInfo(name).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue  # such as TZ=CET-1CEST, which is not an IANA name
    return None


def _linked() -> str:
    try:
        return str(_LINK.resolve(strict=True)).partition("zoneinfo/")[2]
    except OSError:
        return ""


def _listed() -> str:
    try:
        return _FILE.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
