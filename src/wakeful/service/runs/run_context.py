"""The run that the current task works on, for the log lines that it writes."""

from collections.abc import Mapping
from contextvars import ContextVar

from wakeful.domain.types import ClaimedRun

_fields: ContextVar[Mapping[str, str] | None] = ContextVar("wakeful_run", default=None)


def enter_run(run: ClaimedRun, trace_id: str | None = None) -> None:
    """Mark the current task, and those that it starts, as working on a run."""
    fields = {"run_id": run.id, "session_id": run.session_id}
    _fields.set(fields if trace_id is None else {**fields, "trace_id": trace_id})


def run_fields() -> Mapping[str, str]:
    """Return the ids of the current run, and of its trace if there is one; empty outside of a run."""
    return _fields.get() or {}
