"""Export tables and views of an agent's database, and import files."""

import json
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from wakeful.cli.database.request import Agent, Params, Show, call, read_pairs
from wakeful.cli.fail import fail
from wakeful.cli.printable import echo, printable, printable_json
from wakeful.cli.show import AsJson, show_json

app = typer.Typer()
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
