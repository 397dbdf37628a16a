"""The `wakeful` command. Only the module of the subcommand that is called is imported."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from wakeful.cli import options


class Lazy(NamedTuple):
    """The place of a subcommand, and its line in the list of commands."""

    place: str  # module:name, below wakeful
    help: str
    is_local: bool = False  # it works on this machine alone, so it takes no --url


COMMANDS = {
    "chat": Lazy("cli.chat.commands:chat", "Talk to an agent."),
    "ask": Lazy("cli.chat.commands:ask", "Send one message to an agent and print its answer."),
    "serve": Lazy("app.commands:serve", "Run the server until Ctrl-C or SIGTERM.", is_local=True),
    "migrate": Lazy(
        "app.commands:migrate", "Bring the store's schema up to date, after copying the store.", is_local=True
    ),
    "move": Lazy("datadir.commands:move", "Move the embedded store to PostgreSQL, for several nodes.", is_local=True),
    "backup": Lazy(
        "backup.commands:backup",
        "Write everything into one encrypted file, while the server runs or not; then read it back.",
    ),
    "restore": Lazy(
        "backup.commands:restore",
        "Restore a backup: check all of it, put it into place, and leave everything paused.",
        is_local=True,
    ),
    "version": Lazy("cli.options:version", "Print the version.", is_local=True),
    "completion": Lazy(
        "cli.completion:completion", "Print a script that completes commands in your shell.", is_local=True
    ),
    "open": Lazy("people.commands:open_page", "Open the page in a browser, logged in."),
    "login": Lazy("people.commands:login", "Print a new link that logs a browser in, once."),
    "status": Lazy(
        "operations.commands:status",
        "Show the server on one screen: address, version, readiness, model, next wakes, running runs, disk.",
    ),
    "doctor": Lazy(
        "doctor.commands:doctor",
        "Check settings, keys, disk, clock, database, model, MCP servers, port and versions; say what to do.",
    ),
    "logs": Lazy("operations.commands:logs", "Show the last lines of the server's log."),
    "runs": Lazy("runs.commands:runs", "List runs and what each used, the latest first."),
    "agenda": Lazy("wakes.commands:agenda", "Show what ran and what will run."),
    "pause": Lazy("wakes.commands:pause", "Hold back the wakes of one agent, or of all your agents."),
    "resume": Lazy("wakes.commands:resume", "End a pause."),
    "zone": Lazy("cli.zone:zone", "Show your time zone, or set it."),
    "context": Lazy("cli.commands:app", "Save servers, and choose the one that commands use."),
    "wake": Lazy("wakes.commands:app", "Book, list and change wakes."),
    "session": Lazy("sessions.commands:app", "List, read and change sessions."),
    "search": Lazy("sessions.commands:search", "Search your messages and session titles, the latest first."),
    "inbox": Lazy("notices.commands:app", "Read notifications, and act on them."),
    "agent": Lazy("agents.commands:app", "List, create and change agents."),
    "model": Lazy("models.commands:app", "Add, test and choose models."),
    "user": Lazy("people.commands:users", "List, add and remove users; for owners."),
    "token": Lazy("people.commands:tokens", "List, create and revoke access tokens."),
    "channel": Lazy("outgoing.commands:app", "Set up how notifications reach you."),
    "hook": Lazy("hooks.commands:app", "Let other systems start work of an agent."),
    "webhook": Lazy("webhooks.commands:app", "Tell other systems of runs and notifications."),
    "db": Lazy("database.commands:app", "Show and change an agent's own database."),
    "node": Lazy("nodes.commands:app", "List the nodes that share a store, and drain them; for owners."),
    "config": Lazy("config.commands:app", "Show and check the settings of this machine.", is_local=True),
    "mcp": Lazy(
        "app.mcp_commands:app",
        "Let programs use your agents over MCP; and add, list and test MCP servers that agents use.",
        is_local=True,
    ),
    "service": Lazy("operations.systemd:app", "Run the server as a service of systemd.", is_local=True),
    "key": Lazy("datadir.commands:app", "Show, restore and rotate the device key.", is_local=True),
}


_TYPERS_OWN = ("install_completion", "show_completion")


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

    def _main_shell_completion(self, ctx_args: Any, prog_name: str, complete_var: str | None = None) -> None:
        """Answer a shell that asks for the next word. Typer's own answer would import rich for the help texts."""
        if os.environ.get(complete_var or "_WAKEFUL_COMPLETE"):
            from wakeful.cli.completion import print_next_words

            print_next_words(self, ctx_args, prog_name)
            sys.exit(0)


def load(name: str) -> Any:
    """Import a subcommand."""
    module, _, attribute = COMMANDS[name].place.partition(":")
    found: typer.Typer | Callable[..., None] = getattr(import_module(f"wakeful.{module}"), attribute)
    if isinstance(found, typer.Typer):
        command = typer.main.get_command(found)
        command.name, command.help = name, command.help or COMMANDS[name].help
        # Typer's own options would install a completion of the group alone; `wakeful completion` is for all commands.
        command.params = [each for each in command.params if each.name not in _TYPERS_OWN]
    else:
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(found)
        command = typer.main.get_command(alone)
    if not COMMANDS[name].is_local:
        options.add_to(command)
    return command


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # loading rich, for boxes around the help, takes longer than everything else
)


app.callback()(options.wakeful)
