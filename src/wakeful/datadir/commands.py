"""`wakeful key …`, the device key of this machine, and `wakeful move`, which moves the embedded store to PostgreSQL.

Neither needs a server; for `rotate` and `move`, none may run.
"""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wakeful.cli.arguments import Yes, confirm
from wakeful.cli.nouns import Commands
from wakeful.cli.output import WRONG, AsJson, echo, fail, show_done, show_json
from wakeful.cli.server import failing
from wakeful.cli.target import read_settings, refuse_remote

if TYPE_CHECKING:
    from wakeful.config.settings import Settings


app = Commands()

_CLEAR = "\r\x1b[K"


@app.callback()
def _stay_here() -> None:
    refuse_remote("`wakeful key` is about the device key of")


@app.command()
def show(as_json: AsJson = False) -> None:
    """Print the recovery key. It decrypts everything here, so keep it secret."""
    settings = read_settings()
    from wakeful.datadir.device_key import show_recovery_key

    with failing():
        text = show_recovery_key(settings)
    show_done({"recovery_key": text}, text, as_json)


@app.command()
def restore(
    file: Annotated[
        Path | None, typer.Option(help="A file with the recovery key; without it, you are asked for it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Restore the device key from its recovery key. An existing key is moved aside, not overwritten."""
    settings = read_settings()
    from wakeful.datadir.device_key import restore_device_key

    try:
        # Never as an argument: the shell would keep it in its history.
        text = typer.prompt("Recovery key", err=True) if file is None else file.read_text(encoding="utf-8")
        with failing():
            path = restore_device_key(settings, text)
    except (OSError, UnicodeDecodeError) as error:
        fail(f"The file {str(file)!r} cannot be read: {error}.")
    if as_json:
        show_json({"path": str(path)})
    else:
        echo(f"Restored the device key at {path}. Restart the server, so that it uses it.")


@app.command()
def rotate(as_json: AsJson = False) -> None:
    """Replace the device key; the old one is kept beside it. Stop the server first."""
    settings = read_settings()
    from wakeful.datadir.device_key import rotate_device_key

    with failing():
        text, locked = rotate_device_key(settings)
    if as_json:
        show_json({"recovery_key": text, "locked": locked})
        return
    echo(f"The device key was replaced. The new recovery key, which replaces yours: {text}")
    if locked:
        echo(f"The databases of these agents were locked before, and neither key opens them: {', '.join(locked)}")


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
    from wakeful.datadir.move import move_store, place_of, undo_move

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
    from wakeful.config.settings import is_postgres

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
