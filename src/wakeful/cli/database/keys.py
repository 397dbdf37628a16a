"""Keys of agents' databases."""

from typing import Annotated

import typer

from wakeful.cli.client import connect
from wakeful.cli.database.request import Agent, call
from wakeful.cli.printable import echo
from wakeful.cli.show import AsJson, show_done, show_json

app = typer.Typer()
_KEY_WARNING = "This key opens the whole database. Type the agent's name to see it"


@app.command()
def rekey(agent: Agent = None, as_json: AsJson = False) -> None:
    """Encrypt a database with a new key."""
    done = call(agent, "post", "rotate-key")
    show_done(done, "The database is now encrypted with a new key.", as_json)


@app.command()
def key(
    agent: Annotated[str, typer.Option(help="The agent, by name or id.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for the agent's name.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the key of a database, for other programs that open SQLCipher files. Owners only; it is recorded."""
    server = connect()
    chosen = server.agent(agent)
    name = chosen["name"] if yes else typer.prompt(_KEY_WARNING, err=True)
    found = server.post("agents", chosen["id"], "db", "key", body={"confirm": name})
    if as_json:
        show_json(found)
        return
    echo(f"-- {found['cipher']}, with its default settings. Stop the server before you copy the file.")
    echo(f"-- {found['path']}")
    echo(found["pragma"])


@app.command()
def erase(
    agent: Annotated[str, typer.Option(help="The agent, by name or id.")],
    confirm: Annotated[str | None, typer.Option(help="The agent's name, to skip the question.")] = None,
    as_json: AsJson = False,
) -> None:
    """Erase a database permanently by destroying its key; copies become unreadable too."""
    server = connect()
    chosen = server.agent(agent)
    name = (
        confirm
        if confirm is not None
        else typer.prompt("This cannot be undone. Type the agent's name to erase its database", err=True)
    )
    done = server.delete("agents", chosen["id"], "db", body={"confirm": name})
    show_done(done, "Erased.", as_json)
