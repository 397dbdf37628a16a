"""Run SQL and saved views of an agent's database."""

from typing import Annotated, Any, Literal

import typer

from wakeful.cli.database.request import Agent, Limit, Params, call, read_pairs, read_value
from wakeful.cli.printable import echo
from wakeful.cli.show import AsJson, show_done, show_found, show_json, show_list

app = typer.Typer()
View = Annotated[str, typer.Argument(help="A view, as `wakeful db views` shows it.")]


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help="One SELECT.")],
    params: Params = None,
    agent: Agent = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Include soft-deleted rows.")] = False,
    limit: Limit = 1_000,
    as_json: AsJson = False,
) -> None:
    """Run a SELECT."""
    body: dict[str, Any] = {"sql": sql, "limit": limit, "include_deleted": deleted}
    if params:
        body["params"] = read_pairs(params, "--param")
    found = call(agent, "post", "query", body=body)
    (show_json if as_json else show_found)(found)


@app.command()
def execute(
    sql: Annotated[str, typer.Argument(help="One INSERT or UPDATE.")],
    params: Params = None,
    agent: Agent = None,
    as_json: AsJson = False,
) -> None:
    """Run an INSERT or UPDATE, in the sandbox of the agent's own SQL."""
    body = {"sql": sql, "params": read_pairs(params, "--param") if params else None}
    done = call(agent, "post", "execute", body=body)
    if as_json:
        show_json(done)
        return
    echo(f"Changed {done['changed']}.")
    if "rows" in done:
        show_found(done)


@app.command()
def views(agent: Agent = None, as_json: AsJson = False) -> None:
    """List saved views."""
    found = call(agent, "get", "views")
    columns = ("name", "render", "pinned", "required_parameters", "description")
    show_list(found, found["views"], columns, empty="There are no views yet.", as_json=as_json)


@app.command()
def view(name: View, params: Params = None, agent: Agent = None, limit: Limit = 1_000, as_json: AsJson = False) -> None:
    """Run a saved view."""
    body = {"params": read_pairs(params or [], "--param"), "limit": limit}
    found = call(agent, "post", "views", name, "run", body=body)
    (show_json if as_json else show_found)(found)


@app.command(name="save-view")
def save_view(
    name: Annotated[str, typer.Argument(help="Its name; a view of that name is replaced.")],
    sql: Annotated[str, typer.Argument(help="One SELECT, with parameters as :name.")],
    description: Annotated[str, typer.Option(help="What it shows.")] = "",
    params: Annotated[
        list[str] | None, typer.Option("--param", help="NAME of a parameter, or NAME=DEFAULT; may be repeated.")
    ] = None,
    render: Annotated[Literal["table", "bar", "line", "pie", "number"], typer.Option(help="How to draw it.")] = "table",
    pinned: Annotated[
        bool | None, typer.Option("--pin/--no-pin", help="Whether it is pinned to the agent's home page.")
    ] = None,
    agent: Agent = None,
    as_json: AsJson = False,
) -> None:
    """Save a SELECT as a view."""
    parameters = [
        {"name": each.partition("=")[0]} | ({"default": read_value(each.partition("=")[2])} if "=" in each else {})
        for each in params or []
    ]
    body = {"sql": sql, "description": description, "parameters": parameters, "render": render, "pinned": pinned}
    done = call(agent, "put", "views", name, body=body)
    show_done(done, f"{done['outcome'].capitalize()} the view {done['view']}.", as_json)


@app.command()
def pin(
    name: View,
    off: Annotated[bool, typer.Option("--off", help="Unpin it.")] = False,
    agent: Agent = None,
    as_json: AsJson = False,
) -> None:
    """Pin a view to the agent's home page."""
    done = call(agent, "put", "views", name, "pin", body={"pinned": not off})
    show_done(done, "Unpinned." if off else "Pinned.", as_json)


@app.command(name="drop-view")
def drop_view(name: View, agent: Agent = None, as_json: AsJson = False) -> None:
    """Delete a view; the changelog keeps its definition."""
    done = call(agent, "delete", "views", name)
    show_done(done, "Deleted.", as_json)
