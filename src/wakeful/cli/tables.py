"""Fits tables into a terminal."""

import re
from collections.abc import Sequence
from typing import NamedTuple
from unicodedata import category, east_asian_width

NOTHING = "–"
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-.*")
_SHORT_ID = 13  # characters: the time at which it was made, to the millisecond
_MIN_CUT = 8  # a last column of fewer characters is not cut


class Cell(NamedTuple):
    """A text and its colour."""

    text: str
    colour: str | None = None


Line = Sequence[Cell]


def fit(lines: Sequence[Line], columns: int) -> Sequence[Line]:
    """Make a table, whose first line are its headers, narrow enough for a terminal, as far as that is possible.

    Columns without any value are left out, then ids are shortened to beginnings that still differ, then the last
    column is cut.
    """
    for narrow in (_drop_empty, _shorten_ids):
        if _total(lines) <= columns:
            return lines
        lines = narrow(lines)
    free = columns - _total([line[:-1] for line in lines]) - 2
    if free < _MIN_CUT:
        return lines
    return [[*line[:-1], _cut(line[-1], free)] for line in lines]


def widths_of(lines: Sequence[Line]) -> list[int]:
    """Return the width of each column."""
    return [max(width_of(line[number].text) for line in lines) for number in range(len(lines[0]))]


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(0 if category(each) == "Mn" else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def _total(lines: Sequence[Line]) -> int:
    widths = widths_of(lines)
    return sum(widths) + 2 * (len(widths) - 1)


def _drop_empty(lines: Sequence[Line]) -> Sequence[Line]:
    kept = [number for number in range(len(lines[0])) if any(line[number].text != NOTHING for line in lines[1:])]
    return [[line[number] for number in kept] for line in lines]


def _shorten_ids(lines: Sequence[Line]) -> Sequence[Line]:
    lengths = [_shortest([line[number].text for line in lines[1:]]) for number in range(len(lines[0]))]
    return [
        [
            cell._replace(text=cell.text[:length]) if length and _ID.match(cell.text) else cell
            for cell, length in zip(line, lengths, strict=True)
        ]
        for line in lines
    ]


def _shortest(texts: Sequence[str]) -> int | None:
    """Return how much of the ids in a column is needed to tell them apart; None if there are none."""
    ids = {text for text in texts if _ID.match(text)}
    if not ids:
        return None
    return next(size for size in range(_SHORT_ID, 37) if len({each[:size] for each in ids}) == len(ids))


def _cut(cell: Cell, width: int) -> Cell:
    """Return a cell that takes at most this number of columns."""
    if width_of(cell.text) <= width:
        return cell
    text = cell.text
    while width_of(text) > width - 1:
        text = text[:-1]
    return Cell(f"{text}…", cell.colour)
