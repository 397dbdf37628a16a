"""What commands ask on the terminal, and durations such as `2h`, `1h30m` or `3 days` in their options."""

import re
import sys
from typing import Annotated

import typer

from wakeful.cli.output import WRONG, fail, printable

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def confirm(question: str, yes: bool, option: str = "--yes") -> None:
    """Ask on the terminal; end the command unless the answer is yes. Without a terminal, only the option answers."""
    if yes:
        return
    if not sys.stdin.isatty():
        fail(f"{question}\nThere is no terminal to ask on. Give {option} if you are sure; nothing was changed.", WRONG)
    if not typer.confirm(printable(question), err=True):
        fail("Nothing was changed.")


def read_secret(question: str) -> str:
    """Read a secret from the terminal or stdin. Never from an argument: the shell would keep it in its history."""
    return typer.prompt(question, hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline().strip()


_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_TERM = re.compile(
    r"(\d+(?:\.\d+)?)\s*(w|wks?|weeks?|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)(?![a-z])[\s,]*",
    re.ASCII,
)
EXAMPLES = "90s, 30m, 2h, 1h30m or 3 days"


def read_seconds(text: str, option: str, also: str = "") -> int:
    """Return a duration in whole seconds; a bare number counts seconds. Ends the command if it is not one."""
    words = text.strip().lower()
    if words.isdecimal() and words.isascii():
        return int(words)
    terms = list(_TERM.finditer(words))
    if not terms or "".join(term[0] for term in terms) != words:
        fail(f"{option} must be a duration such as {EXAMPLES}{also}, got {text!r}.", WRONG)
    return round(sum(float(term[1]) * _SECONDS[term[2][0]] for term in terms))


def show_seconds(seconds: float, units: int = 2) -> str:
    """Return a duration in its largest units, such as `1 h 30 min` or `12 s`."""
    left, parts = round(seconds), list[str]()
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:units]) or "0 s"
