"""`wakeful user …`: the people who use a server. For owners."""

from typing import Annotated, Literal

import typer

from wakeful.cli.arguments.confirm import Yes, confirm
from wakeful.cli.arguments.ids import USER, find_id
from wakeful.cli.client import connect
from wakeful.cli.show import AsJson, OutputZone, harmless, show_deleted, show_done, show_list

app = typer.Typer(
    help="List, add and remove users; for owners.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)

UserName = Annotated[str, typer.Argument(metavar="USER", help="A user, by name, id or the beginning of the id.")]
Role = Literal["user", "owner"]


@app.command(name="ls")
def list_users(_zone: OutputZone = None, as_json: AsJson = False) -> None:
    """List all users."""
    found = connect().get("users")
    show_list(
        found, found["users"], ("id", "name", "role", "timezone", "created_at"), empty="No users.", as_json=as_json
    )


@app.command()
def add(
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


@app.command()
def role(user: UserName, role: Annotated[Role, typer.Argument(help="The new role.")], as_json: AsJson = False) -> None:
    """Make a user an owner, or an owner a user."""
    server = connect()
    changed = server.patch("users", find_id(server, USER, user), body={"role": role})
    show_done(changed, f"{harmless(changed['name'])} is now {'an owner' if role == 'owner' else 'a user'}.", as_json)


@app.command()
def rm(user: UserName, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove a user: their tokens are revoked, their wakes cancelled and their runs stopped."""
    server = connect()
    found = server.get("users", find_id(server, USER, user))
    confirm(
        "Their tokens are revoked, their wakes cancelled and their runs stopped. This cannot be undone.\n"
        f"Remove the user {harmless(found['name'])} ({found['id']})?",
        yes,
    )
    done = server.delete("users", found["id"])
    show_deleted(done, "Removed.", as_json)
