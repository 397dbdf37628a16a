"""Log lines of many similar events at the cost of one record: an engine that fires thousands of wakes logs each."""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

EACH = "wakeful_each"  # attribute of a record: the fields of each of its lines


class Lines(NamedTuple):
    """Fields of lines: their names once, and the values of each line in that order."""

    names: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]

    def as_dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.names, row, strict=True)) for row in self.rows]


def log_each(log: logging.Logger, message: str, names: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> None:
    """Log a line for each of these events, at `info`. Making a record takes longer than writing its line."""
    if len(rows) == 1:
        log.info(message, extra=dict(zip(names, rows[0], strict=True)))
    elif rows:
        log.info(message, extra={EACH: Lines(names, rows)})
