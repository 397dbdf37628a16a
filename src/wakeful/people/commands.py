"""`wakeful user …`, `wakeful token …`, and the ways of a browser in: `wakeful login` and `wakeful open`."""

import os
import sys
from typing import Annotated, Any, Literal

import typer

from wakeful.cli.arguments import read_seconds
from wakeful.cli.nouns import Noun, NounCommands, find_id
from wakeful.cli.output import (
    AsJson,
    OutputZone,
    describe_deletion,
    echo,
    fail,
    harmless,
    print_note,
    show_done,
    show_json,
    show_time_and_zone,
)
from wakeful.cli.server import Server, connect, to_body
from wakeful.cli.target import origin, read_settings

USER = Noun(name="user")
TOKEN = Noun(name="token")
users = NounCommands(USER)
tokens = NounCommands(TOKEN)

Role = Literal["user", "owner"]


users.ls("List all users.", ("id", "name", "role", "timezone", "created_at"), empty="No users.")


@users.command(name="add")
def add_user(
    name: Annotated[str, typer.Argument(help="Their name.")],
    role: Annotated[Role, typer.Option(help="An owner manages users and the server.")] = "user",
    as_json: AsJson = False,
) -> None:
    """Add a user, who then needs a login link or a token."""
    made = connect().post("users", body={"name": name, "role": role})
    show_done(
        made,
        f"Added {harmless(made['name'])} ({made['role']}), {made['id']}.\n"
        f"For their browser: wakeful login --user {made['id']}\n"
        f"For a program of theirs: wakeful token add NAME --scope chat --user {made['id']}",
        as_json,
    )


@users.command()
def role(
    user: Annotated[str, USER.argument],
    role: Annotated[Role, typer.Argument(help="The new role.")],
    as_json: AsJson = False,
) -> None:
    """Make a user an owner, or an owner a user."""
    server = connect()
    changed = server.patch("users", find_id(server, USER, user), body={"role": role})
    show_done(changed, f"{harmless(changed['name'])} is now {'an owner' if role == 'owner' else 'a user'}.", as_json)


def _ask_about_user(server: Server, user_id: str, _name: str) -> str:
    found = server.get("users", user_id)
    return (
        "Their tokens are revoked, their wakes cancelled and their runs stopped. This cannot be undone.\n"
        f"Remove the user {harmless(found['name'])} ({found['id']})?"
    )


users.rm(
    "Remove a user: their tokens are revoked, their wakes cancelled and their runs stopped.",
    question=_ask_about_user,
    tell=lambda _server, done: echo(describe_deletion(done, "Removed.")),
)


def _mark_own(server: Server, found: dict[str, Any]) -> list[dict[str, Any]]:
    own = server.get("me")["token_id"]
    return [{**each, "name": f"{each['name']} (this one)"} if each["id"] == own else each for each in found["tokens"]]


tokens.ls(
    "List your tokens. Their secrets are not stored, so they cannot be shown.",
    ("id", "kind", "scope", "created_at", "expires_at", "name"),
    empty="No tokens.",
    rows=_mark_own,
)


@tokens.command(name="add")
def add_token(
    name: Annotated[str, typer.Argument(help="What it is for.")],
    scope: Annotated[
        Literal["read", "chat", "schedule", "admin"],
        typer.Option(help="What it allows; each scope includes those before it."),
    ],
    expires_in: Annotated[
        str | None, typer.Option(help="How long it is valid, such as 12h or 90 days; default: for ever.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="For this user; owners only.")] = None,
    _zone: OutputZone = None,
    as_json: AsJson = False,
) -> None:
    """Create a token. Its secret is printed once, alone on standard output."""
    server = connect()
    body = to_body({"name": name, "scope": scope})
    if expires_in is not None:
        body["expires_in"] = read_seconds(expires_in, "--expires-in")
    if user is not None:
        body["user_id"] = find_id(server, USER, user)
    made = server.post("tokens", body=body)
    if as_json:
        show_json(made)
        return
    end = made["token"]["expires_at"]
    until = f"until {show_time_and_zone(end)}" if end else "until it is revoked"
    print_note(f"Created the token {harmless(name)} ({scope}), valid {until}. The secret is not shown again:")
    echo(made["secret"])


def _ask_about_token(server: Server, token_id: str, name: str) -> str:
    is_own = server.get("me")["token_id"] == token_id
    warning = "It is the token of this command, which cannot be used afterwards. " if is_own else ""
    return f"{warning}This cannot be undone. Revoke the token {name}?"


tokens.rm(
    "Revoke a token; programs that use it lose access within a second.", question=_ask_about_token, tell="Revoked."
)


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
