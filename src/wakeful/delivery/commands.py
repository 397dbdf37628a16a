"""`wakeful channel …`: how notifications reach you besides the inbox."""

import sys
from typing import Annotated

import typer

from wakeful.cli.arguments import CHANNEL, Yes, confirm, find_id
from wakeful.cli.output import AsJson, harmless, show_done, show_list
from wakeful.cli.server import connect

app = typer.Typer(
    help="Set up how notifications reach you.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)

Named = Annotated[
    str, typer.Argument(help="A channel, by name, id or the beginning of the id; `wakeful channel ls` shows them.")
]


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
    did = server.post("channels", find_id(server, CHANNEL, channel), "test")
    reason = f": {did['reason']}" if did.get("reason") else ""
    show_done(did, f"{did['outcome']}{reason}", as_json)
    if did["outcome"] != "sent":
        raise typer.Exit(1)


@app.command()
def rm(channel: Named, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a channel. Its address is not shown anywhere, so note it down first if you need it again."""
    server = connect()
    channel_id = find_id(server, CHANNEL, channel)
    confirm(f"Its address cannot be shown again. Delete the channel {harmless(channel)}?", yes)
    done = server.delete("channels", channel_id)
    show_done(done, "Deleted.", as_json)
