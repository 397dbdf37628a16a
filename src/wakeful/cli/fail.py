"""Ending a command with a message and an exit code."""

import os
from typing import Any, NoReturn

import typer

from wakeful.cli.printable import printable

REFUSED, WRONG, NOT_REACHED = 1, 2, 3  # exit codes: the server refused, wrong usage, no server


class Failed(typer.BadParameter):
    """The reason why a command cannot go on; unless it is caught, the command ends with its message and exit code.

    It is a BadParameter because typer prints these by their `show`, which is all that is used of it.
    """

    def __init__(self, message: str, code: int = REFUSED) -> None:
        super().__init__(message)
        self.exit_code = code

    def show(self, file: Any = None) -> None:
        colour = None if "NO_COLOR" in os.environ else typer.colors.RED
        typer.secho(printable(self.message), fg=colour, err=True, file=file)


class Refused(Failed):
    """The server refused a request; `reason` is the code of its error, such as `session_busy`."""

    def __init__(self, message: str, reason: str | None) -> None:
        super().__init__(message)
        self.reason = reason


def fail(message: str, code: int = REFUSED) -> NoReturn:
    """End the command with a message for people."""
    raise Failed(message, code)
