"""What a user types: answers to questions, durations such as `2h` or `1h30m`, and the names of things."""

import re
import sys
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import typer

from wakeful.cli.output import WRONG, fail, harmless, printable

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
EXAMPLES = "90s, 30m, 2h, 1h30m or 3 days"

_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_TERM = re.compile(
    r"(\d+(?:\.\d+)?)\s*(w|wks?|weeks?|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)(?![a-z])[\s,]*",
    re.ASCII,
)
_MAX_LISTED = 10


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


class Candidate(NamedTuple):
    """A thing that can be named by its id, the beginning of its id or, if it has one, its name."""

    id: str
    label: str
    name: str | None = None


def pick(candidates: Sequence[Candidate], wanted: str, noun: str, command: str) -> Candidate:
    """Return the candidate that was named, or end the command with those that it could be.

    A whole id or name wins over the beginning of an id.
    """
    exact = [each for each in candidates if wanted in (each.id, each.name)]
    fitting = exact or [each for each in candidates if wanted and each.id.startswith(wanted.lower())]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        what = f"Which {noun}? {len(fitting)} fit {wanted!r}. Give one of these ids:"
        fail(f"{what}\n{_list(fitting)}", WRONG)
    known = f"`{command}` shows these:\n{_list(candidates)}" if candidates else f"`{command}` shows none."
    return fail(f"There is no {noun} {wanted!r}. {known}")


def _list(candidates: Sequence[Candidate]) -> str:
    lines = [f"  {each.id}  {harmless(each.label)}"[:120] for each in candidates[:_MAX_LISTED]]
    more = len(candidates) - _MAX_LISTED
    return "\n".join([*lines, f"  … and {more} more"] if more > 0 else lines)
