"""Fields of log lines: the run that the current task works on, and those of many similar events at once.

An engine that fires thousands of wakes logs each of them, at the cost of one record.
"""

import logging
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from wakeful.core.types import ClaimedRun

_fields: ContextVar[Mapping[str, str] | None] = ContextVar("wakeful_run", default=None)


def enter_run(run: ClaimedRun, trace_id: str | None = None) -> None:
    """Mark the current task, and those that it starts, as working on a run."""
    fields = {"run_id": run.id, "session_id": run.session_id}
    _fields.set(fields if trace_id is None else {**fields, "trace_id": trace_id})


def run_fields() -> Mapping[str, str]:
    """Return the ids of the current run, and of its trace if there is one; empty outside of a run."""
    return _fields.get() or {}


# ── Many similar events ──────────────────────────────────────────────────────────────────────────────────────────────

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
