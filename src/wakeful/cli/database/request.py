"""The arguments of the database commands, and the requests that they send."""

import json
from typing import Annotated, Any, Literal

import typer

from wakeful.cli.client import connect
from wakeful.cli.fail import fail

Agent = Annotated[str | None, typer.Option(help="The agent, by name or id; not needed if you have only one.")]
Table = Annotated[str, typer.Argument(help="A table, as `wakeful db tables` shows it.")]
Params = Annotated[list[str] | None, typer.Option("--param", help="NAME=VALUE, for each parameter.")]
Show = Annotated[Literal["active", "deleted", "all"], typer.Option(help="Which rows.")]
Limit = Annotated[int, typer.Option(help="How many at most.", min=1, max=1_000)]
Method = Literal["get", "get_text", "post", "put", "patch", "delete"]


def call(agent: str | None, method: Method, *path: str, **request: Any) -> Any:
    """Call a route of an agent's database."""
    server = connect()
    return getattr(server, method)("agents", server.agent(agent)["id"], "db", *path, **request)


def read_pairs(given: list[str], option: str) -> dict[str, Any]:
    """Read NAME=VALUE; a VALUE that is not JSON is text."""
    pairs: dict[str, Any] = {}
    for each in given:
        name, sign, text = each.partition("=")
        if not sign or not name:
            fail(f"{option} must be NAME=VALUE, got {each!r}.", 2)
        pairs[name] = read_value(text)
    return pairs


def read_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
