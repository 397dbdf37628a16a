"""List, create and change tables of an agent's database."""

from typing import Annotated, Any

import typer

from wakeful.cli.database.request import Agent, Table, call
from wakeful.cli.fail import fail
from wakeful.cli.printable import echo
from wakeful.cli.show import AsJson, show_done, show_json, show_list, show_table

app = typer.Typer()
Columns = Annotated[
    list[str],
    typer.Option("--column", help="NAME:TYPE, such as price:real; after it :required, :unique or :key. Repeatable."),
]


@app.command()
def tables(agent: Agent = None, as_json: AsJson = False) -> None:
    """List tables, and how full the database is."""
    found = call(agent, "get")
    if as_json:
        show_json(found)
        return
    if found["state"] == "locked":
        fail("The database is locked: its key is missing or wrong. See `wakeful key restore --help`.")
    show_table(found["tables"], ("name", "rows", "deleted_rows", "purpose"), empty="There are no tables yet.")
    echo(f"{found['used_bytes']:,} of {found['quota_bytes']:,} bytes are used.")


@app.command()
def schema(
    agent: Agent = None,
    system: Annotated[bool, typer.Option("--system", help="Also the system tables.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show tables with their columns."""
    found = call(agent, "get", "schema", system=system)
    listed = [
        {"table": table["name"], **column, "type": column["declared"] or column["type"]}
        for table in (*found["tables"], *found["system_tables"])
        for column in table["columns"]
    ]
    columns = ("table", "name", "type", "required", "primary_key")
    show_list(found, listed, columns, empty="There are no tables yet.", as_json=as_json)


@app.command()
def create(
    table: Annotated[str, typer.Argument(help="Its name: letters, digits and _.")],
    columns: Columns,
    purpose: Annotated[str, typer.Option(help="What it is for; the agent reads it.")],
    agent: Agent = None,
    as_json: AsJson = False,
) -> None:
    """Create a table."""
    body = {"name": table, "purpose": purpose, "columns": [_column(each) for each in columns]}
    done = call(agent, "post", "tables", body=body)
    show_done(done, f"Created the table {done['table']}.", as_json)


@app.command()
def alter(table: Table, columns: Columns, agent: Agent = None, as_json: AsJson = False) -> None:
    """Add columns to a table."""
    body = {"columns": [_column(each) for each in columns]}
    done = call(agent, "post", "tables", table, "columns", body=body)
    show_done(done, f"{done['table']} has the columns {', '.join(done['columns'])}.", as_json)


@app.command()
def migrate(
    sql: Annotated[str, typer.Argument(help="Statements, separated by ;.")],
    purpose: Annotated[str, typer.Option(help="Why the schema changes.")],
    down: Annotated[str, typer.Option(help="Statements with which `wakeful db revert` reverts it.")] = "",
    agent: Agent = None,
    as_json: AsJson = False,
) -> None:
    """Change the schema with SQL, in one transaction, after a snapshot."""
    body = {"purpose": purpose, "up_sql": sql, "down_sql": down}
    done = call(agent, "post", "migrate", body=body)
    show_done(done, f"Statements run: {done['statements']}. Tables: {', '.join(done['tables'])}.", as_json)


def _column(given: str) -> dict[str, Any]:
    """Read NAME:TYPE and its options."""
    name, *rest = given.split(":")
    kind = rest[0] if rest else "text"
    known = {"required": "required", "unique": "unique", "key": "primary_key"}
    unknown = [word for word in rest[1:] if word not in known]
    if unknown:
        fail(f"--column must be NAME:TYPE, then any of {', '.join(f':{each}' for each in known)}; got {given!r}.", 2)
    return {"name": name, "type": kind, **{known[word]: True for word in rest[1:]}}
