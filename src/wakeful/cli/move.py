"""`wakeful move`: move the embedded store to PostgreSQL. No server is needed, and none may run."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from wakeful.cli.arguments.confirm import Yes, confirm
from wakeful.cli.client import WRONG, fail, failing, read_settings
from wakeful.cli.printable import echo
from wakeful.cli.remote.target import refuse_remote
from wakeful.cli.show import AsJson, show_done

if TYPE_CHECKING:
    from wakeful.config import Settings

_CLEAR = "\r\x1b[K"


def move(
    to: Annotated[
        str | None,
        typer.Option(
            help="The address of an empty PostgreSQL database, postgresql://…; without it, WAKEFUL_DATABASE_URL."
        ),
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Go back to the embedded store; the copy in PostgreSQL stays, unused.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Move the embedded store to PostgreSQL, for several nodes. After an interruption, the same command goes on."""
    refuse_remote("`wakeful move` moves the store of")
    settings = read_settings()
    url = _address(to, settings)
    from wakeful.app.data.moving import move_store, place_of, undo_move

    place, store = place_of(url), settings.data_dir
    with failing():
        if undo:
            begun = asyncio.run(undo_move(settings, url, lambda question: confirm(question, yes)))
            show_done(
                {"undone": begun.to},
                f"The move to {begun.to} is undone. Unset WAKEFUL_DATABASE_URL (database_url), and start the server "
                f"with the embedded store in {store}. No server starts on the copy in PostgreSQL; delete it when you "
                "like.",
                as_json,
            )
            return
        confirm(f"Move the store in {store} to {place}? The embedded store is kept under another name.", yes)
        moved = asyncio.run(move_store(settings, url, _print_step))
    show_done(
        {"to": moved.to, "rows": moved.rows, "kept": str(moved.kept)},
        f"Moved to {moved.to}; all {moved.rows:,} rows were compared. Agents' files stay in {store / 'agents'}.\n"
        f"Next: set WAKEFUL_DATABASE_URL (database_url) to this database wherever the server is started, and start it. "
        f"More nodes need the same setting and a copy of {settings.config_dir / 'device.key'}.\n"
        f"The embedded store is kept as {moved.kept} and is not started again; `wakeful move --undo` goes back to it.",
        as_json,
    )


def _address(to: str | None, settings: "Settings") -> str:
    if to is None and settings.database_url is not None:
        return settings.database_url.get_secret_value()
    if to is None:
        fail(
            "Give the database: --to postgresql://…, or WAKEFUL_DATABASE_URL, which keeps its password out of the "
            "shell's history.",
            WRONG,
        )
    from wakeful.config import is_postgres

    if not is_postgres(to):
        fail("--to must start with postgresql:// or postgres://, and have its password percent-encoded.", WRONG)
    return to


def _print_step(step: str, done: int, total: int) -> None:
    """Show progress on one line of a terminal; elsewhere as lines."""
    words = f"{step} · {done:,} of {total:,} rows"
    if sys.stderr.isatty():
        sys.stderr.write(f"{_CLEAR}{words}" + (f"{_CLEAR}" if step.startswith("renamed") else ""))
        sys.stderr.flush()
    else:
        echo(words, err=True)
