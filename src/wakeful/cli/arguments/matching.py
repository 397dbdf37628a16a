"""Choosing the one of several things that a person named."""

from collections.abc import Sequence
from typing import NamedTuple

from wakeful.cli.fail import WRONG, fail
from wakeful.cli.show import harmless

_MAX_LISTED = 10


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
