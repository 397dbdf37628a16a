"""`wakeful serve` and `wakeful migrate`. The server is imported only when one is called, since that takes seconds."""

import asyncio
import logging
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from wakeful.cli.options import read_version
from wakeful.cli.output import echo, fail, print_note
from wakeful.cli.server import failing
from wakeful.cli.target import read_settings, refuse_remote
from wakeful.core.sources import TOKEN_FILE

if TYPE_CHECKING:
    from wakeful.config.settings import Settings


log = logging.getLogger(__name__)

NoBackup = Annotated[
    bool,
    typer.Option("--no-backup", help="Do not copy the store before its schema is migrated; only if you have a backup."),
]


def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on; 0 takes any free one.")] = None,
    new: Annotated[
        bool,
        typer.Option("--new", help="Start over if the store is lost: other data is moved aside, not deleted."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --new: do not ask.")] = False,
    no_backup: NoBackup = False,
) -> None:
    """Run the server until Ctrl-C or SIGTERM."""
    if yes and not new:
        fail("--yes confirms --new, so it needs --new.", 2)
    _fill_closed_outputs()
    refuse_remote("`wakeful serve` starts a server on")
    settings = read_settings(host=host, port=port)
    if new:
        _set_data_aside(settings, is_confirmed=yes)
    _show_start(settings)
    from wakeful.app.listening import load_node
    from wakeful.app.listening import serve as listen
    from wakeful.config.settings import name_of, secrets_of
    from wakeful.core.resources import hide_memory
    from wakeful.telemetry.log_writer import write_apart
    from wakeful.telemetry.logs import setup_logging

    is_hidden = hide_memory()  # no core dump or debugger may read the keys in it
    writer = setup_logging(settings.log_level, settings.log_format, secrets_of(settings), name_of(settings))
    if not is_hidden:
        log.warning("other programs of this user can read the server's memory and its keys; only Linux prevents it")

    def announce(address: str, login: str, recovery_key: str | None, model: str) -> None:
        writer.flush()  # so that the login link is the last line on a terminal
        lines = [f"Wakeful {read_version()} on {address} · {_describe_store(settings)}"]
        if settings.token is None:
            lines.append(f"Programs send the token in {settings.config_dir / TOKEN_FILE} as a bearer token.")
        if recovery_key is not None:
            lines.append(
                "Recovery key, not shown at later starts; write it down and keep it apart from this machine: "
                + recovery_key
            )
        if model == "demo":
            lines.append(
                "The model is the built-in demo, which is not an LLM. "
                "Connect a real one on the page, or with `wakeful model add`."
            )
        lines.append(f"Log in (once, within 10 minutes): {settings.public_address or address}{login}")
        write_apart(sys.stdout, "".join(f"{line}\n" for line in lines))

    try:
        with failing():
            asyncio.run(listen(settings, lambda: load_node(settings, is_backed_up=not no_backup), announce))
    finally:
        writer.flush()


def migrate(no_backup: NoBackup = False) -> None:
    """Bring the store's schema up to date, after copying the store. The server also does this when it starts."""
    refuse_remote("`wakeful migrate` changes the store of")
    settings = read_settings()
    from wakeful.app.listening import load_node

    async def open_and_close() -> None:
        async with load_node(settings, is_backed_up=not no_backup).opened():
            pass

    with failing():
        asyncio.run(open_and_close())
    echo("The schema is up to date.")


def _set_data_aside(settings: "Settings", *, is_confirmed: bool) -> None:
    """Move the data of an earlier server aside, after asking, so that the server starts like a new one."""
    from wakeful.datadir.set_aside import find_earlier, set_aside

    with failing():
        earlier = find_earlier(settings)
        if earlier is None:
            return
        echo(f"{earlier.why} These would be moved into a folder set-aside-TIME in {earlier.data_dir}:")
        for line in earlier.describe():
            echo(f"  {line}")
        if not is_confirmed:
            if not sys.stdin.isatty():
                fail("This must be confirmed, and there is no terminal. Nothing was changed. Add --yes to confirm.")
            if not typer.confirm("Nothing is deleted. Move them and start over?"):
                fail("Nothing was changed.")
        folder = set_aside(settings, earlier)
    echo(f"Moved into {folder}: {', '.join(earlier.names)}.")


def _fill_closed_outputs() -> None:
    """Open /dev/null in place of a standard stream that is closed; else the next file would get its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115  (Python has None for a closed one)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _show_start(settings: "Settings") -> None:
    """Print on a terminal what takes the next seconds. A log that is not a terminal has lines of its own."""
    if not sys.stderr.isatty():
        return
    from wakeful.datadir.lost_data import is_first_start

    if is_first_start(settings):
        print_note(f"First start: creating a store in {settings.data_dir} and a device key in {settings.config_dir} …")
    else:
        print_note(f"Starting with {_describe_store(settings)} …")


def _describe_store(settings: "Settings") -> str:
    if settings.database_url is not None:
        return "store on PostgreSQL"
    return f"store in {settings.data_dir}" + ("" if settings.store_encryption else " (not encrypted)")
