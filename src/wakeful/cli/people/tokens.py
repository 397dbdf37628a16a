"""`wakeful token …`: access tokens of people and programs."""

from typing import Annotated, Literal

import typer

from wakeful.cli.arguments.confirm import Yes, confirm
from wakeful.cli.arguments.durations import read_seconds
from wakeful.cli.arguments.ids import TOKEN, USER, find_id
from wakeful.cli.client import connect, to_body
from wakeful.cli.printable import echo
from wakeful.cli.show import (
    AsJson,
    OutputZone,
    harmless,
    print_note,
    show_done,
    show_json,
    show_list,
    show_time_and_zone,
)

app = typer.Typer(
    help="List, create and revoke access tokens.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)

TokenName = Annotated[str, typer.Argument(metavar="TOKEN", help="A token, by name, id or the beginning of the id.")]


@app.command(name="ls")
def list_tokens(_zone: OutputZone = None, as_json: AsJson = False) -> None:
    """List your tokens. Their secrets are not stored, so they cannot be shown."""
    server = connect()
    found = server.get("tokens")
    mine = server.get("me")["token_id"]
    rows = [
        {**each, "name": f"{each['name']} (this one)" if each["id"] == mine else each["name"]}
        for each in found["tokens"]
    ]
    columns = ("id", "kind", "scope", "created_at", "expires_at", "name")
    show_list(found, rows, columns, empty="No tokens.", as_json=as_json)


@app.command()
def add(
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


@app.command()
def rm(token: TokenName, yes: Yes = False, as_json: AsJson = False) -> None:
    """Revoke a token; programs that use it lose access within a second."""
    server = connect()
    token_id = find_id(server, TOKEN, token)
    me = server.get("me")["token_id"]
    own = "It is the token of this command, which cannot be used afterwards. " if token_id == me else ""
    confirm(f"{own}This cannot be undone. Revoke the token {harmless(token)}?", yes)
    done = server.delete("tokens", token_id)
    show_done(done, "Revoked.", as_json)
