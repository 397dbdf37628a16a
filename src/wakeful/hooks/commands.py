"""`wakeful hook …`: addresses at which other systems start work of an agent."""

from typing import Annotated, Any, Literal

import typer

from wakeful.cli.arguments import Yes, confirm, read_secret
from wakeful.cli.nouns import Noun, NounCommands, find_id, find_session_id
from wakeful.cli.output import (
    AsJson,
    Limit,
    OutputZone,
    PageOption,
    echo,
    print_note,
    printable,
    show_done,
    show_json,
    show_list,
)
from wakeful.cli.server import Server, connect, to_body

HOOK = Noun(name="hook")
app = NounCommands(HOOK)

Named = Annotated[str, HOOK.argument]
AskSecret = Annotated[
    bool,
    typer.Option(
        "--ask-secret", help="Read the secret that the sender has made, as Stripe does, from the terminal or stdin."
    ),
]
_SESSION = (
    "Everything that is sent stays in that session's transcript, and every later run there reads it, with all of the "
    "agent's tools. Land there?"
)
# Where each sender wants the address and the secret.
_NEXT = {
    "github": "At GitHub: Settings → Webhooks → Add webhook; content type application/json.",
    "gitlab": "At GitLab: Settings → Webhooks → Add new webhook; the secret is the “Secret token”.",
    "stripe": "At Stripe: Developers → Webhooks → Add destination. Stripe makes the secret: give it to the hook with "
    "`wakeful hook rotate {name} --ask-secret`.",
    "standard": "Give the sender the address and the secret. If it has made a secret itself: "
    "`wakeful hook rotate {name} --ask-secret`.",
    "bearer": "Send the header 'Authorization: Bearer SECRET' with each delivery.",
}


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="A name for it.")],
    scheme: Annotated[
        Literal["github", "gitlab", "stripe", "standard", "bearer"],
        typer.Option("--from", help="Who sends: this decides how a delivery is proven."),
    ],
    do: Annotated[str, typer.Option("--do", help="What the agent reads before what was sent.")] = "",
    agent: Annotated[str | None, typer.Option(help="The agent, by name or id; needed if you have several.")] = None,
    event: Annotated[
        list[str] | None, typer.Option(help="An event it is for, such as push; repeatable. Default: all.")
    ] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option(help="A tool of its runs; repeatable. Default: those that change nothing outside of the agent."),
    ] = None,
    coalesce: Annotated[int | None, typer.Option(help="Fold the deliveries of this many seconds into one run.")] = None,
    per_minute: Annotated[int | None, typer.Option(help="Deliveries that it takes in a minute.")] = None,
    notify: Annotated[bool, typer.Option("--notify", help="Notify you, without a model, instead of a run.")] = False,
    session: Annotated[
        str | None, typer.Option(help="Land in this session instead of a new one for each run; asks you to confirm.")
    ] = None,
    ask_secret: AskSecret = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Make a hook, and print its address and its secret, which is shown only once."""
    server = connect()
    agent_id = server.agent(agent)["id"]
    session_id = find_session_id(server, session)
    if session_id is not None:
        confirm(_SESSION, yes)
    body = to_body(
        {
            "name": name,
            "scheme": scheme,
            "instructions": do,
            "events": event or [],
            "tools": tool,
            "coalesce_seconds": coalesce,
            "per_minute": per_minute,
            "mode": "notify" if notify else "run",
            "session_id": session_id,
            "confirm_session": True if session_id is not None else None,
            "secret": read_secret("Secret") if ask_secret else None,
        }
    )
    made = server.post("agents", agent_id, "hooks", body=body)
    if as_json:
        show_json(made)
        return
    _show_secret(server, made)
    print_note(_NEXT[scheme].format(name=made["name"]))
    print_note(f"Try it with `wakeful hook test {made['id']}`.")


app.ls(
    "List your hooks, and when each last accepted and refused something.",
    ("id", "name", "scheme", "mode", "enabled", "last_at", "refused_at", "refused_why"),
    empty="No hooks. Make one with `wakeful hook add NAME --from github --do TEXT`.",
)
app.show(
    "Show a hook: its address, and what it does. Its secret is not shown again.",
    lambda server, hook: {**hook, "url": _address(server, hook), "path": None},
)
app.act(
    "test",
    "Send a signed test delivery to a hook. It starts a run, or notifies you, as any other would.",
    tell=lambda _server, did: echo(
        f"{did['status']}, run {did['run_id']}. `wakeful runs` shows it." if did.get("run_id") else f"{did['status']}."
    ),
)


@app.command()
def rotate(hook: Named, ask_secret: AskSecret = False, as_json: AsJson = False) -> None:
    """Replace the secret of a hook. The one before is accepted for another 24 hours."""
    server = connect()
    body = {"secret": read_secret("Secret")} if ask_secret else {}
    made = server.post("hooks", find_id(server, HOOK, hook), "rotate", body=body)
    if as_json:
        show_json(made)
        return
    _show_secret(server, made)
    print_note("The secret before is accepted for another 24 hours.")


app.switch(off="Switch a hook off: deliveries get 404 until it is on again.", on="Switch a hook on.")
app.rm(
    "Delete a hook with its deliveries. Its runs that have not begun are cancelled.",
    question="Delete the hook {} and its list of deliveries?",
)


@app.command()
def deliveries(
    hook: Named,
    delivery: Annotated[str | None, typer.Argument(help="Show the body of this one, by its whole id.")] = None,
    limit: Limit = 50,
    page: PageOption = None,
    _zone: OutputZone = None,
    as_json: AsJson = False,
) -> None:
    """List what a hook has accepted in the last 30 days, or show the body of one delivery."""
    server = connect()
    hook_id = find_id(server, HOOK, hook)
    if delivery is not None:
        found = server.get("hooks", hook_id, "deliveries", delivery)
        show_done(found, printable(found["payload"] or "Its body was deleted, or never kept."), as_json)
        return
    found = server.get("hooks", hook_id, "deliveries", limit=limit, page=page)
    columns = ("id", "at", "event", "outcome", "size", "run_id", "delivery_id")
    show_list(found, found["deliveries"], columns, empty="Nothing was delivered yet.", as_json=as_json)


def _address(server: Server, hook: dict[str, Any]) -> str:
    """Return the address to send to; without the setting public_url, the one that this command uses."""
    return hook["url"] or f"{server.address}/hooks/{hook['id']}"


def _show_secret(server: Server, made: dict[str, Any]) -> None:
    """Print the address and the secret, a line each."""
    echo(f"address {_address(server, made)}")
    if made["secret"] is not None:
        echo(f"secret  {made['secret']}")
        print_note("The secret is not shown again.")
    if made["url"] is None:
        print_note("Other machines need another address: set public_url to the one that they reach this server at.")
