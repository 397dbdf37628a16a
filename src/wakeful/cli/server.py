"""`wakeful serve` and `wakeful migrate`. The server is imported only when one is called, since that takes seconds."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from wakeful.cli.client import fail, failing, read_settings
from wakeful.sources import TOKEN_FILE

if TYPE_CHECKING:
    from wakeful.config import Settings


def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on; 0 takes any free one.")] = None,
    new: Annotated[
        bool,
        typer.Option("--new", help="Start over if the store is lost: other data is moved aside, not deleted."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --new: do not ask.")] = False,
) -> None:
    """Run the server until Ctrl-C or SIGTERM."""
    if yes and not new:
        fail("--yes confirms --new, so it needs --new.", 2)
    settings = read_settings(host=host, port=port)
    from wakeful.cli.logs import setup_logging
    from wakeful.config import secrets_of

    if new:
        _set_data_aside(settings, is_confirmed=yes)
    from wakeful.app.listening import hide_memory, load_node
    from wakeful.app.listening import serve as listen

    hide_memory()  # no core dump or debugger may read the keys in it
    setup_logging(settings.log_level, settings.log_format, secrets_of(settings))

    def announce(address: str, login: str, recovery_key: str | None) -> None:
        typer.echo(f"Wakeful {_version()} on {address} · {_describe_store(settings)}")
        typer.echo(f"Log in (once, within 10 minutes): {address}{login}")
        if settings.token is None:
            typer.echo(f"Programs send the token in {settings.config_dir / TOKEN_FILE} as a bearer token.")
        if recovery_key is not None:
            typer.echo(
                "Recovery key, not shown at later starts; write it down and keep it apart from this machine: "
                + recovery_key
            )
        if settings.model == "demo":
            typer.echo("The model is the built-in demo, which is not an LLM. Set WAKEFUL_MODEL for a real one.")

    with failing():
        asyncio.run(listen(settings, lambda: load_node(settings), announce))


def migrate() -> None:
    """Bring the store's schema up to date. The server also does this when it starts."""
    settings = read_settings()
    from wakeful.app.listening import load_node

    async def open_and_close() -> None:
        async with load_node(settings).opened():
            pass

    with failing():
        asyncio.run(open_and_close())
    typer.echo("The schema is up to date.")


def version() -> None:
    """Print the version."""
    typer.echo(_version())


def _version() -> str:
    from importlib.metadata import version

    return version("wakeful")


def _set_data_aside(settings: "Settings", *, is_confirmed: bool) -> None:
    """Move the data of an earlier server aside, after asking, so that the server starts like a new one."""
    from wakeful.app.set_aside import find_earlier, set_aside

    with failing():
        earlier = find_earlier(settings)
        if earlier is None:
            return
        typer.echo(f"{earlier.why} These would be moved into a folder set-aside-TIME in {earlier.data_dir}:")
        for line in earlier.describe():
            typer.echo(f"  {line}")
        if not is_confirmed:
            if not sys.stdin.isatty():
                fail("This must be confirmed, and there is no terminal. Nothing was changed. Add --yes to confirm.")
            if not typer.confirm("Nothing is deleted. Move them and start over?"):
                fail("Nothing was changed.")
        folder = set_aside(settings, earlier)
    typer.echo(f"Moved into {folder}: {', '.join(earlier.names)}.")


def _describe_store(settings: "Settings") -> str:
    if settings.database_url is not None:
        return "store on PostgreSQL"
    return f"store in {settings.data_dir}" + ("" if settings.store_encryption else " (not encrypted)")
