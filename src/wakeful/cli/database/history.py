"""The changelog of an agent's database, undo, and snapshots."""

from typing import Annotated

import typer

from wakeful.cli.arguments.ids import RUN, find_id
from wakeful.cli.client import connect
from wakeful.cli.database.request import Agent, call
from wakeful.cli.fail import fail
from wakeful.cli.printable import echo
from wakeful.cli.show import AsJson, show_done, show_json, show_list, show_one, show_table

app = typer.Typer()


@app.command()
def log(
    run: Annotated[str | None, typer.Option(help="Only what this run changed.")] = None,
    table: Annotated[str | None, typer.Option(help="Only this table.")] = None,
    row: Annotated[int | None, typer.Option(help="Only this row.")] = None,
    before: Annotated[int | None, typer.Option("--before", "--page", help="Only older entries than this one.")] = None,
    limit: Annotated[int, typer.Option(help="How many at most.", min=1, max=200)] = 50,
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
