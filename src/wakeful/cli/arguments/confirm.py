"""Asking before something that cannot be undone."""

import sys
from typing import Annotated

import typer

from wakeful.cli.fail import WRONG, fail
from wakeful.cli.printable import printable

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def confirm(question: str, yes: bool, option: str = "--yes") -> None:
    """Ask on the terminal; end the command unless the answer is yes. Without a terminal, only the option answers."""
    if yes:
        return
    if not sys.stdin.isatty():
        fail(f"{question}\nThere is no terminal to ask on. Give {option} if you are sure; nothing was changed.", WRONG)
    if not typer.confirm(printable(question), err=True):
        fail("Nothing was changed.")
