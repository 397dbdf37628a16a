"""The commands that are the server. Apart, because to load everything takes two seconds that other commands spare."""

import asyncio
import sys
from importlib.metadata import version

import typer

from wakeful.app.building import Wakeful, build
from wakeful.app.files import StartError
from wakeful.app.serving import hide_memory, serve
from wakeful.app.set_aside import find_earlier, set_aside
from wakeful.cli.client import fail
from wakeful.cli.logs import setup_logging
from wakeful.config import TOKEN_FILE, Settings, secrets_of


def run_server(settings: Settings) -> None:
    """Run the server until it is told to stop."""
    hide_memory()  # it holds keys, and so does its environment
    setup_logging(settings.log_level, settings.log_format, secrets_of(settings))
    node = _build(settings)

    def announce(address: str, login: str) -> None:
        typer.echo(f"Wakeful {version('wakeful')} on {address} · {_describe_store(settings)}")
        typer.echo(f"Log in (once, within 10 minutes): {address}{login}")
        if settings.token is None:
            typer.echo(f"Programs send the token in {settings.config_dir / TOKEN_FILE} as a bearer token.")
        if node.recovery_key is not None:
            typer.echo(
                "Recovery key, not shown at later starts; write it down and keep it apart from this machine: "
                f"{node.recovery_key}"
            )
        if settings.model == "demo":
            typer.echo("The model is the built-in demo, which is not an LLM. Set WAKEFUL_MODEL for a real one.")

    try:
        asyncio.run(serve(node, announce))
    except StartError as error:
        fail(str(error))


def begin_anew(settings: Settings, *, is_confirmed: bool) -> None:
    """Move what an earlier server left aside, after asking, so that the start is a first one."""
    try:
        earlier = find_earlier(settings)
        if earlier is None:
            return
        typer.echo(f"{earlier.why} These would be moved into a folder set-aside-TIME in {earlier.data_dir}:")
        for line in earlier.describe():
            typer.echo(f"  {line}")
        if not is_confirmed:
            if not sys.stdin.isatty():
                fail("Nobody can be asked here whether that is meant, so nothing was changed. Add --yes if it is.")
            if not typer.confirm("Nothing is deleted. Move them and begin anew?"):
                fail("Nothing was changed.")
        folder = set_aside(settings, earlier)
    except StartError as error:
        fail(str(error))
    typer.echo(f"Moved into {folder}: {', '.join(earlier.names)}.")


def bring_up_to_date(settings: Settings) -> None:
    """Apply what is missing of the schema."""
    node = _build(settings)

    async def open_and_close() -> None:
        async with node.opened():
            pass

    try:
        asyncio.run(open_and_close())
    except StartError as error:
        fail(str(error))
    typer.echo("The schema is up to date.")


def _build(settings: Settings) -> Wakeful:
    try:
        return build(settings)
    except StartError as error:
        fail(str(error))


def _describe_store(settings: Settings) -> str:
    if settings.database_url is not None:
        return "store on PostgreSQL"
    return f"store in {settings.data_dir}" + ("" if settings.store_encryption else " (not encrypted)")
