"""`wakeful runs`."""

from typing import Annotated, Any

import typer

from wakeful.cli.nouns import WAKE, find_id, find_session_id
from wakeful.cli.output import AsJson, Limit, OutputZone, PageOption, in_words, show_list
from wakeful.cli.server import connect


def runs(
    status: Annotated[str | None, typer.Option(help="Only runs with this status.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent's, by id or name.")] = None,
    wake: Annotated[str | None, typer.Option(help="Only runs of this wake.")] = None,
    session: Annotated[str | None, typer.Option(help="Only runs in this session.")] = None,
    limit: Limit = 50,
    page: PageOption = None,
    _zone: OutputZone = None,
    as_json: AsJson = False,
) -> None:
    """List runs and what each used, the latest first."""
    server = connect()
    found = server.get(
        "runs",
        status=status,
        agent_id=server.agent_id(agent),
        wake_id=None if wake is None else find_id(server, WAKE, wake),
        session_id=find_session_id(server, session),
        limit=limit,
        page=page,
    )
    columns = (
        "id",
        "nominal_at",
        "trigger",
        "kind",
        "status",
        "note",
        "tokens",
        "cost",
        "reason",
        "error",
        "through",
        "about",
    )
    rows = [_with_usage(run) for run in found["runs"]]
    show_list(found, rows, columns, empty="Nothing has run yet.", as_json=as_json)


def _with_usage(run: dict[str, Any]) -> dict[str, Any]:
    run = {**run, "note": in_words(run["note"])}
    used = run["usage"]
    if used is None:
        return run
    cost = None if used["cost"] is None else f"${used['cost']:.4f}"
    return {**run, "tokens": used["input_tokens"] + used["output_tokens"], "cost": cost}
