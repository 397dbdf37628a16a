"""The run that the current task works on, for the log lines that it writes."""

from collections.abc import Mapping
from contextvars import ContextVar

from wakeful.domain.types import ClaimedRun

_fields: ContextVar[Mapping[str, str] | None] = ContextVar("wakeful_run", default=None)


def enter_run(run: ClaimedRun) -> None:
    """Mark the current task, and those that it starts, as working on a run."""
    _fields.set({"run_id": run.id, "session_id": run.session_id})


def run_fields() -> Mapping[str, str]:
    """Return the ids of the current run; empty outside of one."""
    return _fields.get() or {}
