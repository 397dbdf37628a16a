"""Log lines of many similar events at the cost of one record: an engine that fires thousands of wakes logs each."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

EACH = "wakeful_each"  # attribute of a record: the fields of each of its lines


def log_each(log: logging.Logger, message: str, lines: Sequence[Mapping[str, Any]]) -> None:
    """Log a line for each of these events, at `info`. Making a record takes longer than writing its line."""
    if len(lines) == 1:
        log.info(message, extra=lines[0])
    elif lines:
        log.info(message, extra={EACH: lines})
