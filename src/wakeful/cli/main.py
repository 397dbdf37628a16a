"""The `wakeful` command."""

from importlib.metadata import version
from typing import Annotated

import typer

from wakeful.cli import agenda, agents, channels, data, keys, wakes, zone
from wakeful.cli.client import fail
from wakeful.config import ConfigError, Settings, load_settings

app = typer.Typer(
    help="A server for agents that set their own alarm.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on; 0 takes any free one.")] = None,
    new: Annotated[
        bool,
        typer.Option("--new", help="Begin anew if the store is lost: what is left is moved aside, not deleted."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --new: do not ask.")] = False,
) -> None:
    """Run the server until it is told to stop (Ctrl-C or SIGTERM)."""
    if yes and not new:
        fail("--yes answers the question that --new asks, so it is of no use without it.", 2)
    settings = _read_settings(host=host, port=port)
    from wakeful.cli.server import begin_anew, run_server

    if new:
        begin_anew(settings, is_confirmed=yes)
    run_server(settings)


@app.command()
def migrate() -> None:
    """Bring the store's schema up to date. The server does so too when it starts."""
    settings = _read_settings()
    from wakeful.cli.server import bring_up_to_date

    bring_up_to_date(settings)


@app.command(name="version")
def version_command() -> None:
    """Print the version."""
    typer.echo(version("wakeful"))


app.add_typer(wakes.app, name="wake")
app.add_typer(agents.app, name="agent")
app.add_typer(channels.app, name="channel")
app.add_typer(data.app, name="db")
app.add_typer(keys.app, name="key")
app.command(name="runs")(agents.runs)
app.command(name="agenda")(agenda.agenda)
app.command(name="pause")(agenda.pause)
app.command(name="resume")(agenda.resume)
app.command(name="zone")(zone.zone)


def _read_settings(host: str | None = None, port: int | None = None) -> Settings:
    try:
        return load_settings(host=host, port=port)
    except ConfigError as error:
        fail(str(error))
