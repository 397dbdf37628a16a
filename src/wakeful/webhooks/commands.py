"""`wakeful webhook …`: messages about events to other systems."""

from typing import Annotated

import typer

from wakeful.cli.arguments import read_secret
from wakeful.cli.nouns import Noun, NounCommands, find_id
from wakeful.cli.output import (
    AsJson,
    Limit,
    OutputZone,
    PageOption,
    echo,
    harmless,
    print_note,
    show_done,
    show_json,
    show_list,
)
from wakeful.cli.server import connect, to_body

WEBHOOK = Noun(name="webhook")
app = NounCommands(WEBHOOK)

Named = Annotated[str, WEBHOOK.argument]
_EVENTS = "run.finished, run.failed, wake.missed, loop.ended, notification"


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="A name for it.")],
    url: Annotated[
        str | None, typer.Argument(help="Its address; without it, or with -, it is read from stdin.")
    ] = None,
    event: Annotated[
        list[str] | None,
        typer.Option(help=f"The events it gets: {_EVENTS}; repeatable. Default: run.failed and notification."),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only events of this agent, by name or id.")] = None,
    off: Annotated[bool, typer.Option("--off", help="Do not use it yet.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add a webhook, and print the secret of its signatures, which is shown only once."""
    server = connect()
    body = to_body(
        {
            "name": name,
            "url": read_secret("Address") if url in (None, "-") else url,
            "events": event or ["run.failed", "notification"],
            "agent_id": server.agent_id(agent),
            "enabled": not off,
        }
    )
    made = server.post("webhooks", body=body)
    if as_json:
        show_json(made)
        return
    echo(f"secret  {made['secret']}")
    print_note("The secret is not shown again. The receiver checks signatures with it (Standard Webhooks).")
    print_note(f"Try it with `wakeful webhook test {made['id']}`.")


app.ls(
    "List your webhooks, when each was last used, and its last error.",
    ("id", "name", "url", "events", "enabled", "last_sent_at", "last_error"),
    empty="No webhooks. Add one with `wakeful webhook add NAME URL`.",
)
app.show("Show a webhook. Of its address only the host is shown.")
app.test("Send a test message; exit 0 only if it was accepted.", outcome="status", reason="last_error")
app.act(
    "rotate",
    "Replace the secret of a webhook. For 24 hours messages are signed with the one before too.",
    tell="secret  {secret}",
    note="For 24 hours messages are signed with the secret before too.",
)
app.switch(off="Switch a webhook off, and give up what waits to be sent.", on="Switch a webhook on.")
app.rm(
    "Delete a webhook with its deliveries.",
    question="Its address cannot be shown again. Delete the webhook {}?",
)


@app.command()
def deliveries(
    webhook: Named,
    limit: Limit = 50,
    page: PageOption = None,
    _zone: OutputZone = None,
    as_json: AsJson = False,
) -> None:
    """List what a webhook was sent in the last 30 days, and what waits."""
    server = connect()
    found = server.get("webhooks", find_id(server, WEBHOOK, webhook), "deliveries", limit=limit, page=page)
    columns = ("id", "created_at", "event", "status", "attempts", "next_at", "last_error")
    show_list(found, found["deliveries"], columns, empty="Nothing was sent yet.", as_json=as_json)


@app.command()
def replay(
    webhook: Named,
    delivery: Annotated[str, typer.Argument(help="A delivery, by its whole id.")],
    as_json: AsJson = False,
) -> None:
    """Send a delivery again, under its own id."""
    server = connect()
    did = server.post("webhooks", find_id(server, WEBHOOK, webhook), "deliveries", delivery, "replay")
    show_done(did, f"It is sent again. `wakeful webhook deliveries {harmless(webhook)}` shows the result.", as_json)
