"""`wakeful login` and `wakeful open`: a browser's way in."""

import os
import sys
from typing import Annotated, Any

import typer

from wakeful.cli.client import Server, connect, fail, read_settings
from wakeful.cli.printable import echo
from wakeful.cli.remote.target import origin
from wakeful.cli.show import AsJson, print_note, show_json

User = Annotated[
    str | None,
    typer.Option(metavar="USER", help="Log in as this user, by id or name; only for owners. Without it: as yourself."),
]


def login(user: User = None, as_json: AsJson = False) -> None:
    """Print a new link that logs a browser in, once."""
    server = connect()
    link, made = _make_link(server, user)
    if as_json:
        show_json({"url": link, "expires_in": made["expires_in"]})
        return
    echo(link)
    print_note(f"It works once, within {made['expires_in'] // 60} minutes. Anyone who opens it is logged in.")


def open_page(user: User = None) -> None:
    """Open the page in a browser, logged in. Without a browser, print the link."""
    link, _ = _make_link(connect(), user)
    if _has_browser() and _open(link):
        echo(f"Opened {link.partition('/login')[0]} in your browser.")
        return
    print_note("There is no browser here. Open this link in one; it works once, within 10 minutes:")
    echo(link)


def _make_link(server: Server, user: str | None) -> tuple[str, dict[str, Any]]:
    made = server.post("login-links", body={} if user is None else {"user_id": _find_user(server, user)})
    link = str(made.get("url") or f"{server.address}{made['path']}")
    public = read_settings().public_address if server.target.is_local and not _is_at(link, server.address) else None
    if not _is_at(link, public or server.address):
        fail(
            f"{link!r} is not a link to {server.address}, which was asked for one. If the server is there too, name "
            "that address with --url; for this machine's server, set public_url in its settings file."
        )
    return link, made


def _is_at(link: str, address: str) -> bool:
    """Return whether a link of a server, which a browser opens as the user, leads to an address."""
    try:
        return all("!" <= each <= "~" and each != "\\" for each in link) and origin(link) == origin(address)
    except ValueError:  # its port is not a number
        return False


def _find_user(server: Server, wanted: str) -> str:
    users = server.get("users")["users"]
    found = [each["id"] for each in users if wanted in (each["id"], each["name"])]
    if len(found) != 1:
        listed = "\n".join(f"  {each['id']}  {each['name']}" for each in users)
        fail(f"{'Several users are' if found else 'There is no user'} {wanted!r}. Give one of these ids:\n{listed}")
    return found[0]


def _has_browser() -> bool:
    """Return whether a browser would have a screen; the ones for a text terminal cannot run the page."""
    return sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")
    )


def _open(link: str) -> bool:
    import webbrowser

    try:
        return webbrowser.open(link)
    except webbrowser.Error:
        return False
