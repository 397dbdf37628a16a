"""Texts by models, rows and other servers, which must not control the terminal that shows them."""

import json
import sys
from collections.abc import Callable

import typer


def harmless(text: str) -> str:
    """Escape control characters, so that a text by a model cannot control the terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def printable(text: str) -> str:
    """Escape control characters except line breaks and tabs, so that a text by a model cannot control the terminal."""
    return "\n".join(map(harmless, text.replace("\r\n", "\n").expandtabs(4).split("\n")))


def printable_json(text: str) -> str:
    """Escape the control characters that JSON may contain, as JSON does, so that it has the same value."""
    return "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text)


def echo(text: str, *, err: bool = False, nl: bool = True, escape: Callable[[str], str] = printable) -> None:
    """Print a text, escaped on a terminal and unchanged elsewhere."""
    is_terminal = (sys.stderr if err else sys.stdout).isatty()
    typer.echo(escape(text) if is_terminal else text, err=err, nl=nl)  # noqa: TID251  (it is escaped)
