"""The options of every command that choose a server, before or after the command's name."""

from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from wakeful.cli.output import echo


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The server that the command line asks for."""

    url: str | None = None
    context: str | None = None
    token: str | None = None
    token_file: Path | None = None
    ca: Path | None = None
    insecure: bool = False

    def is_server_named(self) -> bool:
        return self.url is not None or self.context is not None


_asked: ContextVar[Asked] = ContextVar("asked", default=Asked())  # noqa: B039  (it is frozen)


def read_options() -> Asked:
    return _asked.get()


def _print_version(is_asked: bool) -> None:
    if is_asked:
        version()
        raise typer.Exit


def wakeful(
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The server to use, such as https://wakeful.example.org. [WAKEFUL_URL]"),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A server saved with `wakeful context add`. [WAKEFUL_CONTEXT]"),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help="The token for it. Other users of this machine can see it while the command runs: use --token-file or "
            "WAKEFUL_TOKEN if there are any.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with the token. [WAKEFUL_TOKEN_FILE]")
    ] = None,
    ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Trust certificates of this authority (PEM) instead of the system's."),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Send the token to another machine over http://, unencrypted.")
    ] = False,
    version: Annotated[  # noqa: ARG001  (its callback acts on it)
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Run and use a server for agents that set their own alarm."""
    _asked.set(Asked(url=url, context=context, token=token, token_file=token_file, ca=ca, insecure=insecure))


def add_to(command: Any) -> None:
    """Let a command, or each command of a group, take the options after its name too. Its help does not list them."""
    params = _make_params()  # once for all of them: that takes 2 ms
    for each in command.commands.values() if hasattr(command, "commands") else [command]:
        taken = {name for param in each.params for name in param.opts}
        each.params += [param for param in params if not taken.intersection(param.opts)]


def _make_params() -> list[Any]:
    found, _, _ = typer.main.get_params_convertors_ctx_param_name_from_function(wakeful)
    params = [param for param in cast("list[Any]", found) if param.name != "version"]
    for param in params:
        param.name = f"server_{param.name}"  # a command may have an argument called url
        param.hidden, param.expose_value, param.callback = True, False, _note
    return params


def _note(_context: Any, param: Any, value: Any) -> None:
    if value not in (None, False):
        name = param.name.removeprefix("server_")
        _asked.set(replace(_asked.get(), **{name: Path(value) if name in ("token_file", "ca") else value}))


def version() -> None:
    """Print the version."""
    echo(read_version())


def read_version() -> str:
    from importlib.metadata import version

    return version("wakeful")
