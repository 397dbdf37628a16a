"""The `wakeful` command."""

import asyncio
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

from wakeful.app import StartError, Wakeful, build, serve
from wakeful.cli.logs import setup_logging
from wakeful.config import ConfigError, Settings, load_settings

app = typer.Typer(
    help="A server for agents that set their own alarm.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command(name="serve")
def serve_command(
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on; 0 takes any free one.")] = None,
) -> None:
    """Run the server until it is told to stop (Ctrl-C or SIGTERM)."""
    settings = _read_settings(host=host, port=port)
    setup_logging(settings.log_level, settings.log_format)
    node = _build(settings)

    def announce(address: str, login: str) -> None:
        typer.echo(f"Wakeful {version('wakeful')} on {address} · {_describe_store(settings)}")
        typer.echo(f"Log in (once, within 10 minutes): {address}{login}")
        if settings.token is None:
            typer.echo(f"Programs send the token in {settings.config_dir / 'token'} as a bearer token.")
        if settings.model == "demo":
            typer.echo("The model is the built-in demo, which is not an LLM. Set WAKEFUL_MODEL for a real one.")

    try:
        asyncio.run(serve(node, announce))
    except StartError as error:
        _fail(str(error))


@app.command()
def migrate() -> None:
    """Bring the store's schema up to date. The server does so too when it starts."""
    node = _build(_read_settings())

    async def open_and_close() -> None:
        async with node.opened():
            pass

    try:
        asyncio.run(open_and_close())
    except StartError as error:
        _fail(str(error))
    typer.echo("The schema is up to date.")


@app.command(name="version")
def version_command() -> None:
    """Print the version."""
    typer.echo(version("wakeful"))


def _read_settings(host: str | None = None, port: int | None = None) -> Settings:
    try:
        return load_settings(host=host, port=port)
    except ConfigError as error:
        _fail(str(error))


def _build(settings: Settings) -> Wakeful:
    try:
        return build(settings)
    except StartError as error:
        _fail(str(error))


def _describe_store(settings: Settings) -> str:
    if settings.database_url is not None:
        return "store on PostgreSQL"
    return f"store in {settings.data_dir}" + ("" if settings.store_encryption else " (not encrypted)")


def _fail(message: str) -> NoReturn:
    typer.secho(message, fg=typer.colors.RED, err=True)
    raise typer.Exit(1)
