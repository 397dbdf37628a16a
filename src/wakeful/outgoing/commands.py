"""`wakeful channel …`: how notifications reach you besides the inbox."""

from typing import Annotated

import typer

from wakeful.cli.arguments import read_secret
from wakeful.cli.nouns import Noun, NounCommands
from wakeful.cli.output import AsJson, show_done
from wakeful.cli.server import connect

app = NounCommands(Noun(name="channel"))


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
    address = read_secret("Address") if url in (None, "-") else url
    made = connect().post("channels", body={"name": name, "url": address, "enabled": not off})
    show_done(made, f"Added {made['name']} ({made['url']}). Try it with `wakeful channel test {made['id']}`.", as_json)


app.ls(
    "List channels, when each was last used, and its last error.",
    ("id", "name", "url", "enabled", "last_sent_at", "last_error"),
    empty="No channels. Add one with `wakeful channel add NAME URL`.",
)
app.test("Send a test message over a channel; exit 0 only if it was accepted.", outcome="outcome", reason="reason")
app.rm(
    "Delete a channel. Its address is not shown anywhere, so note it down first if you need it again.",
    question="Its address cannot be shown again. Delete the channel {}?",
)
