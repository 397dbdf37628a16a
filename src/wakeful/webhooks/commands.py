"""`wakeful webhook …`: messages about events to other systems."""

import sys
from typing import Annotated

import typer

from wakeful.cli.arguments import WEBHOOK, Yes, confirm, find_id
from wakeful.cli.output import (
    AsJson,
    OutputZone,
    PageOption,
    echo,
    harmless,
    print_note,
    show_done,
    show_json,
    show_list,
    show_one,
)
from wakeful.cli.server import connect, to_body

app = typer.Typer(
    help="Tell other systems of runs and notifications.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Named = Annotated[
    str,
    typer.Argument(
        metavar="WEBHOOK", help="A webhook, by name, id or the beginning of the id; `wakeful webhook ls` shows them."
    ),
]
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
    if url in (None, "-"):
        url = typer.prompt("Address", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline().strip()
    body = to_body(
        {
            "name": name,
            "url": url,
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


@app.command(name="ls")
def list_webhooks(_zone: OutputZone = None, as_json: AsJson = False) -> None:
    """List your webhooks, when each was last used, and its last error."""
    found = connect().get("webhooks")
    columns = ("id", "name", "url", "events", "enabled", "last_sent_at", "last_error")
    empty = "No webhooks. Add one with `wakeful webhook add NAME URL`."
    show_list(found, found["webhooks"], columns, empty=empty, as_json=as_json)


@app.command()
def show(webhook: Named, _zone: OutputZone = None, as_json: AsJson = False) -> None:
    """Show a webhook. Of its address only the host is shown."""
    server = connect()
    found = server.get("webhooks", find_id(server, WEBHOOK, webhook))
    show_json(found) if as_json else show_one(found)


@app.command(name="test")
def try_out(webhook: Named, as_json: AsJson = False) -> None:
    """Send a test message; exit 0 only if it was accepted."""
    server = connect()
    did = server.post("webhooks", find_id(server, WEBHOOK, webhook), "test")
    reason = f": {harmless(did['last_error'])}" if did["last_error"] else ""
    show_done(did, f"{did['status']}{reason}", as_json)
    if did["status"] != "sent":
        raise typer.Exit(1)


@app.command()
def rotate(webhook: Named, as_json: AsJson = False) -> None:
    """Replace the secret of a webhook. For 24 hours messages are signed with the one before too."""
    server = connect()
    made = server.post("webhooks", find_id(server, WEBHOOK, webhook), "rotate")
    if as_json:
        show_json(made)
        return
    echo(f"secret  {made['secret']}")
    print_note("For 24 hours messages are signed with the secret before too.")


@app.command()
def off(webhook: Named, as_json: AsJson = False) -> None:
    """Switch a webhook off, and give up what waits to be sent."""
    _switch(webhook, False, as_json)


@app.command()
def on(webhook: Named, as_json: AsJson = False) -> None:
    """Switch a webhook on."""
    _switch(webhook, True, as_json)


@app.command()
def rm(webhook: Named, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a webhook with its deliveries."""
    server = connect()
    webhook_id = find_id(server, WEBHOOK, webhook)
    confirm(f"Its address cannot be shown again. Delete the webhook {harmless(webhook)}?", yes)
    show_done(server.delete("webhooks", webhook_id), "Deleted.", as_json)


@app.command()
def deliveries(
    webhook: Named,
    limit: Annotated[int, typer.Option(help="How many at most.", min=1, max=200)] = 50,
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


def _switch(webhook: str, enabled: bool, as_json: bool) -> None:
    server = connect()
    changed = server.patch("webhooks", find_id(server, WEBHOOK, webhook), body={"enabled": enabled})
    show_done(changed, f"{changed['name']} is {'on' if enabled else 'off'}.", as_json)
