"""Detects a model that is stuck: the same text or the same call over and over, or call after call that is invalid.

Of text only exact repeats count, and many of them: a ruler of dashes, a table of equal rows or a refrain is no fault.
"""

from collections.abc import Mapping
from typing import Any

from wakeful.core.types import RunNote

MIN_REPEATS = 12
MIN_LENGTH = 3_000  # characters of the repeated part, so that a long line of dashes is allowed
MAX_UNIT = 1_000  # characters of what is repeated
KEPT_REPEATS = 2
_LOOK_EVERY = 500  # characters
_TAIL = MAX_UNIT * MIN_REPEATS
_PROBE = 48  # characters: the shortest period of the end is that of its last few characters


REPEATED_CALLS = 3
MAX_BAD_CALLS = 10  # in a row
_BAD = ("bad_arguments", "unknown_tool")


class RepetitionBrake:
    """Reads a text piece by piece, and notices when its end is the same unit over and over."""

    def __init__(self) -> None:
        self._tail = ""
        self._pieces: list[str] = []
        self._unread = 0
        self.is_on = False

    def read(self, piece: str) -> None:
        """Add a piece of the text. It is looked at now and then: a piece has a few characters only."""
        self._pieces.append(piece)
        self._unread += len(piece)
        if self._unread < _LOOK_EVERY or self.is_on:
            return
        self._tail = (self._tail + "".join(self._pieces))[-_TAIL:]
        self._pieces.clear()
        self._unread = 0
        self.is_on = repeated_unit(self._tail) is not None


class Mishaps:
    """Detects a model that makes no progress: the same call with the same result, or invalid calls."""

    def __init__(self) -> None:
        self._last: tuple[str, Mapping[str, Any], str] | None = None
        self._times = 0
        self._bad = 0

    def note(self, tool: str, args: Mapping[str, Any], result: str, code: object) -> None:
        """Count a call, with the code of its failure if it has one."""
        call = (tool, dict(args), result)
        self._times = self._times + 1 if call == self._last else 1
        self._last = call
        self._bad = self._bad + 1 if code in _BAD else 0

    def reason(self) -> RunNote | None:
        """Return why the run should end, if it should."""
        if self._times >= REPEATED_CALLS:
            return "repeated_calls"
        return "bad_calls" if self._bad >= MAX_BAD_CALLS else None


def repeated_unit(text: str) -> str | None:
    """Return what the end of a text repeats, if it repeats it often enough to be a fault."""
    if len(text) < MIN_LENGTH:
        return None
    probe = text[-_PROBE:]
    found = text.rfind(probe, 0, len(text) - 1)
    period = len(text) - _PROBE - found
    if found < 0 or period > MAX_UNIT:
        return None
    length = max(MIN_LENGTH, period * MIN_REPEATS)
    is_repeated = len(text) >= length and text[-length:-period] == text[len(text) - length + period :]
    return text[-period:] if is_repeated else None


def without_repeats(text: str) -> str:
    """Return a text whose end repeats itself with that end only a few times: the rest says nothing new."""
    unit = repeated_unit(text)
    if unit is None:
        return text
    period, start = len(unit), len(text) - len(unit)
    while start >= period and text[start - period : start] == unit:
        start -= period
    return text[: start + period * KEPT_REPEATS].rstrip() + " …"
