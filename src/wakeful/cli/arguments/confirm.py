"""Asking before something that cannot be undone."""

import sys
from typing import Annotated

import typer

from wakeful.cli.fail import WRONG, fail

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def confirm(question: str, yes: bool) -> None:
    """Ask on the terminal; end the command unless the answer is yes. Without a terminal, only --yes answers."""
    if yes:
        return
    if not sys.stdin.isatty():
        fail(f"{question}\nThere is no terminal to ask on. Give --yes if you are sure; nothing was changed.", WRONG)
    if not typer.confirm(question, err=True):
        fail("Nothing was changed.")
