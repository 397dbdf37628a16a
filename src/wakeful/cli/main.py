"""The `wakeful` command. Only the module of the subcommand that is called is imported."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup


class Lazy(NamedTuple):
    """The place of a subcommand, and its line in the list of commands."""

    place: str  # module:name, below wakeful.cli
    help: str


COMMANDS = {
    "serve": Lazy("server:serve", "Run the server until Ctrl-C or SIGTERM."),
    "migrate": Lazy("server:migrate", "Bring the store's schema up to date."),
    "version": Lazy("server:version", "Print the version."),
    "runs": Lazy("agents:runs", "List runs and what each used, the latest first."),
    "agenda": Lazy("agenda:agenda", "Show what ran and what will run."),
    "pause": Lazy("agenda:pause", "Hold back the wakes of one agent, or of all your agents."),
    "resume": Lazy("agenda:resume", "End a pause."),
    "zone": Lazy("zone:zone", "Show your time zone, or set it."),
    "wake": Lazy("wakes:app", "Book, list and change wakes."),
    "agent": Lazy("agents:app", "List, create and change agents."),
    "channel": Lazy("channels:app", "Set up how notifications reach you."),
    "db": Lazy("data:app", "Show and change an agent's own database."),
    "key": Lazy("keys:app", "Show, restore and rotate the device key."),
}


class LazyGroup(TyperGroup):
    """Lists subcommands without importing them, and imports the one that is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, lazy in COMMANDS.items():
            self.add_command(TyperCommand(name, help=lazy.help))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name in COMMANDS:
            self.add_command(load(name), name)
        return super().resolve_command(ctx, args)


def load(name: str) -> Any:
    """Import a subcommand."""
    module, _, attribute = COMMANDS[name].place.partition(":")
    found: typer.Typer | Callable[..., None] = getattr(import_module(f"wakeful.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        group = typer.main.get_command(found)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name)(found)
    return typer.main.get_command(alone)


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # loading rich, for boxes around the help, takes longer than everything else
)


@app.callback()
def wakeful() -> None:
    """Run and use a server for agents that set their own alarm."""
