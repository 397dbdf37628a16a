"""`wakeful channel …`: how notifications reach you besides the inbox."""

import sys
from typing import Annotated

import typer

from wakeful.cli.client import Server, connect, fail
from wakeful.cli.show import AsJson, show_done, show_list

app = typer.Typer(help="Set up how notifications reach you.", no_args_is_help=True, rich_markup_mode=None)

Named = Annotated[str, typer.Argument(help="The name or the id of a channel, as `wakeful channel ls` shows it.")]


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="A name for it.")],
    url: Annotated[
        str | None,
        typer.Argument(help="Its apprise URL; without it, or with -, it is read from stdin."),
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Do not use it yet.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add a channel. Its address is a secret: it is never shown again."""
    if url in (None, "-"):
        url = typer.prompt("Address", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline().strip()
    made = connect().post("channels", body={"name": name, "url": url, "enabled": not off})
    show_done(made, f"Added {made['name']} ({made['url']}). Try it with `wakeful channel test {made['id']}`.", as_json)


@app.command(name="ls")
def list_channels(as_json: AsJson = False) -> None:
    """List channels, when each was last used, and its last error."""
    found = connect().get("channels")
    columns = ("id", "name", "url", "enabled", "last_sent_at", "last_error")
    empty = "No channels. Add one with `wakeful channel add NAME URL`."
    show_list(found, found["channels"], columns, empty=empty, as_json=as_json)


@app.command(name="test")
def try_out(channel: Named, as_json: AsJson = False) -> None:
    """Send a test message over a channel; exit 0 only if it was accepted."""
    server = connect()
    did = server.post("channels", _find(server, channel), "test")
    reason = f": {did['reason']}" if did.get("reason") else ""
    show_done(did, f"{did['outcome']}{reason}", as_json)
    if did["outcome"] != "sent":
        raise typer.Exit(1)


@app.command()
def rm(channel: Named, as_json: AsJson = False) -> None:
    """Delete a channel."""
    server = connect()
    done = server.delete("channels", _find(server, channel))
    show_done(done, "Deleted.", as_json)


def _find(server: Server, named: str) -> str:
    found = [each["id"] for each in server.get("channels")["channels"] if named in (each["id"], each["name"])]
    if not found:
        fail(f"You have no channel {named!r}. `wakeful channel ls` shows those you have.")
    return str(found[0])
