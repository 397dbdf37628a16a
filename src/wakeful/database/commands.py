"""`wakeful db …`: an agent's own database, with its tables, rows, SQL, files, changelog and keys."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from wakeful.cli.nouns import RUN, Commands, find_id
from wakeful.cli.output import (
    AsJson,
    Limit,
    echo,
    fail,
    printable,
    printable_json,
    show_done,
    show_found,
    show_json,
    show_list,
    show_one,
    show_table,
)
from wakeful.cli.server import connect

app = Commands()

Agent = Annotated[str | None, typer.Option(help="The agent, by name or id; not needed if you have only one.")]
Table = Annotated[str, typer.Argument(help="A table, as `wakeful db tables` shows it.")]
Params = Annotated[list[str] | None, typer.Option("--param", help="NAME=VALUE, for each parameter.")]
Show = Annotated[Literal["active", "deleted", "all"], typer.Option(help="Which rows.")]
RowLimit = Annotated[int, typer.Option(help="How many at most.", min=1, max=1_000)]
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


# Tables


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


# Rows


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
    limit: RowLimit = 100,
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


# SQL and saved views


View = Annotated[str, typer.Argument(help="A view, as `wakeful db views` shows it.")]


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help="One SELECT.")],
    params: Params = None,
    agent: Agent = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Include soft-deleted rows.")] = False,
    limit: RowLimit = 1_000,
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
def view(
    name: View, params: Params = None, agent: Agent = None, limit: RowLimit = 1_000, as_json: AsJson = False
) -> None:
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


# Files


Format = Literal["csv", "json", "jsonl"]


@app.command()
def export(
    table: Annotated[str | None, typer.Argument(help="A table; or give --view.")] = None,
    view_name: Annotated[str | None, typer.Option("--view", help="A saved view, instead of a table.")] = None,
    params: Params = None,
    kind: Annotated[Format, typer.Option("--format", help="The format of the file.")] = "csv",
    show: Show = "active",
    to: Annotated[Path | None, typer.Option(help="The file to write; without it, the terminal.")] = None,
    agent: Agent = None,
    as_json: AsJson = False,
) -> None:
    """Export a table, or the result of a view, to a file. --json is short for --format json."""
    if (table is None) == (view_name is None):
        fail("Name either a table, or a view with --view.", 2)
    form = "json" if as_json else kind
    if table is not None:
        text = call(agent, "get_text", "tables", table, "export", format=form, show=show)
    else:
        given = json.dumps(read_pairs(params, "--param")) if params else None
        text = call(agent, "get_text", "views", cast("str", view_name), "export", format=form, params=given)
    if to is None:
        echo(text, nl=False, escape=printable if form == "csv" else printable_json)
        return
    try:
        to.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        fail(f"The file {str(to)!r} cannot be written: {error.strerror}.")
    echo(f"Exported to {to}.")


@app.command(name="import")
def import_file(
    table: Annotated[str, typer.Argument(help="An existing table, or a new one.")],
    file: Annotated[Path, typer.Argument(help="A CSV, JSON or JSONL file.")],
    kind: Annotated[
        Format | None, typer.Option("--format", help="Without it, the extension of the file's name.")
    ] = None,
    create: Annotated[bool, typer.Option(help="Create the table if it does not exist.")] = True,
    agent: Agent = None,
    as_json: AsJson = False,
) -> None:
    """Import the rows of a file, all or none."""
    form = kind or file.suffix.removeprefix(".").lower()
    if form not in ("csv", "json", "jsonl"):
        fail(f"The name {file.name!r} does not show the format. Give --format csv, json or jsonl.", 2)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"The file {str(file)!r} cannot be read: {error}.")
    body = {"table": table, "format": form, "text": text, "create": create, "source": file.name[:200]}
    done = call(agent, "post", "import", body=body)
    if as_json:
        show_json(done)
        return
    made = " a new table" if done["created_table"] else ""
    echo(f"Imported {done['imported']} rows into{made} {done['table']}.")
    for old, new in done["renamed_columns"].items():
        echo(f"The column {old} was renamed to {new}: SQLite uses that name for its row id.")


# The changelog, undo, and snapshots


@app.command()
def log(
    run: Annotated[str | None, typer.Option(help="Only what this run changed.")] = None,
    table: Annotated[str | None, typer.Option(help="Only this table.")] = None,
    row: Annotated[int | None, typer.Option(help="Only this row.")] = None,
    before: Annotated[int | None, typer.Option("--before", "--page", help="Only older entries than this one.")] = None,
    limit: Limit = 50,
    agent: Agent = None,
    as_json: AsJson = False,
) -> None:
    """Show what changed, the newest first."""
    run_id = None if run is None else find_id(connect(), RUN, run)
    asked = {"run_id": run_id, "table": table, "row_id": row, "before": before, "limit": limit}
    found = call(agent, "get", "changelog", **asked)
    columns = ("id", "at", "actor", "op", "table_name", "row_id", "before", "after", "detail", "run_id")
    show_list(found, found["changes"], columns, empty="Nothing has changed yet.", as_json=as_json)


@app.command()
def undo(
    run_id: Annotated[str, typer.Argument(help="A run, by id or the beginning of it; `wakeful runs` shows ids.")],
    as_json: AsJson = False,
) -> None:
    """Undo a run's changes of rows, except of rows that were changed again since."""
    server = connect()
    done = server.post("runs", find_id(server, RUN, run_id), "undo-data")
    if as_json:
        show_json(done)
        return
    echo(f"Undid the changes of {done['undone']} rows; left {done['left_count']} as they are.")
    if done["left"]:
        show_table(done["left"], ("table", "row_id", "why"), empty="")


@app.command()
def revert(
    change_id: Annotated[int, typer.Argument(help="A migration, by its number in `wakeful db log`.", min=1)],
    agent: Agent = None,
    as_json: AsJson = False,
) -> None:
    """Revert a migration with its own down statements."""
    done = call(agent, "post", "changelog", str(change_id), "take-back")
    (show_json if as_json else show_one)(done)


@app.command()
def snapshots(agent: Agent = None, as_json: AsJson = False) -> None:
    """List the snapshots that were made before migrations."""
    found = call(agent, "get", "snapshots")["snapshots"]
    columns = ("name", "at", "bytes", "kept_until")
    show_list(found, found, columns, empty="There are no snapshots yet.", as_json=as_json)


@app.command()
def recover(
    snapshot: Annotated[str, typer.Argument(help="A snapshot, as `wakeful db snapshots` shows it.")],
    table: Annotated[str, typer.Argument(help="A table that is in it.")],
    new_name: Annotated[str | None, typer.Option("--as", help="Another name, if the table's own is taken.")] = None,
    agent: Agent = None,
    as_json: AsJson = False,
) -> None:
    """Copy a table of a snapshot into the database."""
    body = {"table": table, "new_name": new_name}
    done = call(agent, "post", "snapshots", snapshot, "recover", body=body)
    show_done(done, f"Recovered {done['recovered']} rows as {done['table']}.", as_json)


@app.command()
def verify(agent: Agent = None, as_json: AsJson = False) -> None:
    """Check that nobody tampered with the changelog; exit 1 if someone did."""
    found = call(agent, "get", "verify")
    if as_json:
        show_json(found)
    elif found["intact"]:
        echo("The changelog is intact.")
    if found["is_cut_off"]:
        fail(f"The changelog was truncated: entry {found['broken_at']} and those after it are missing or changed.")
    if not found["intact"]:
        fail(f"The changelog was tampered with, from entry {found['broken_at']} on.")


# Keys


_KEY_WARNING = "This key opens the whole database. Type the agent's name to see it"


@app.command()
def rekey(agent: Agent = None, as_json: AsJson = False) -> None:
    """Encrypt a database with a new key."""
    done = call(agent, "post", "rotate-key")
    show_done(done, "The database is now encrypted with a new key.", as_json)


@app.command()
def key(
    agent: Annotated[str, typer.Option(help="The agent, by name or id.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for the agent's name.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the key of a database, for other programs that open SQLCipher files. Owners only; it is recorded."""
    server = connect()
    chosen = server.agent(agent)
    name = chosen["name"] if yes else typer.prompt(_KEY_WARNING, err=True)
    found = server.post("agents", chosen["id"], "db", "key", body={"confirm": name})
    if as_json:
        show_json(found)
        return
    echo(f"-- {found['cipher']}, with its default settings. Stop the server before you copy the file.")
    echo(f"-- {found['path']}")
    echo(found["pragma"])


@app.command()
def erase(
    agent: Annotated[str, typer.Option(help="The agent, by name or id.")],
    confirm: Annotated[str | None, typer.Option(help="The agent's name, to skip the question.")] = None,
    as_json: AsJson = False,
) -> None:
    """Erase a database permanently by destroying its key; copies become unreadable too."""
    server = connect()
    chosen = server.agent(agent)
    name = (
        confirm
        if confirm is not None
        else typer.prompt("This cannot be undone. Type the agent's name to erase its database", err=True)
    )
    done = server.delete("agents", chosen["id"], "db", body={"confirm": name})
    show_done(done, "Erased.", as_json)
