"""Show, add, change and delete rows of an agent's database."""

from typing import Annotated

import typer

from wakeful.cli.database.request import Agent, Limit, Show, Table, call, read_pairs
from wakeful.cli.printable import echo
from wakeful.cli.show import AsJson, show_done, show_found, show_json

app = typer.Typer()
RowIds = Annotated[list[int], typer.Argument(help="Row ids, as `wakeful db rows` shows them.")]
Values = Annotated[list[str], typer.Option("--set", help="COLUMN=VALUE; VALUE may be null, a number or JSON.")]


@app.command()
def rows(
    table: Table,
    agent: Agent = None,
    show: Show = "active",
    where: Annotated[str | None, typer.Option(help='A condition, as JSON: {"done": false}.')] = None,
    sort: Annotated[str | None, typer.Option(help="A column.")] = None,
    desc: Annotated[bool, typer.Option("--desc", help="Largest first.")] = False,
    limit: Limit = 100,
    offset: Annotated[int, typer.Option(help="How many to skip.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Show rows of a table."""
    asked = {"show": show, "where": where, "sort": sort, "desc": desc, "limit": limit, "offset": offset}
    found = call(agent, "get", "tables", table, "rows", **asked)
    if as_json:
        show_json(found)
        return
    show_found(found)
    if found["row_count"] < found["total"]:
        echo(f"{found['row_count']} of {found['total']} rows.")


@app.command()
def add(table: Table, values: Values, agent: Agent = None, as_json: AsJson = False) -> None:
    """Add a row."""
    done = call(agent, "post", "tables", table, "rows", body={"rows": [read_pairs(values, "--set")]})
    show_done(done, f"Added row {done['row_ids'][0]}.", as_json)


@app.command()
def upsert(
    table: Table,
    values: Values,
    by: Annotated[list[str], typer.Option("--by", help="A column that identifies a row; may be repeated.")],
    agent: Agent = None,
    as_json: AsJson = False,
) -> None:
    """Add a row, or change the one with the same values in the --by columns; a deleted one is restored."""
    done = call(
        agent,
        "post",
        "tables",
        table,
        "rows",
        "upsert",
        body={"rows": [read_pairs(values, "--set")], "conflict_columns": by},
    )
    show_done(done, f"{done['outcomes'][0].capitalize()} row {done['row_ids'][0]}.", as_json)


@app.command()
def edit(table: Table, row_ids: RowIds, values: Values, agent: Agent = None, as_json: AsJson = False) -> None:
    """Change rows."""
    done = call(
        agent, "patch", "tables", table, "rows", body={"row_ids": row_ids, "changes": read_pairs(values, "--set")}
    )
    show_done(done, f"Changed {done['updated']}.", as_json)


@app.command()
def delete(table: Table, row_ids: RowIds, agent: Agent = None, as_json: AsJson = False) -> None:
    """Soft-delete rows; `wakeful db restore` restores them."""
    done = call(agent, "post", "tables", table, "rows", "delete", body={"row_ids": row_ids})
    show_done(done, f"Deleted {done['deleted']}.", as_json)


@app.command()
def restore(table: Table, row_ids: RowIds, agent: Agent = None, as_json: AsJson = False) -> None:
    """Restore soft-deleted rows."""
    done = call(agent, "post", "tables", table, "rows", "restore", body={"row_ids": row_ids})
    show_done(done, f"Restored {done['restored']}.", as_json)
