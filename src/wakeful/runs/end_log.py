"""Log lines about the ends of runs, collected for a moment: a record for each would cost a tenth of the fires."""

import asyncio
import logging
import time
from contextvars import Context

from wakeful.core.records import Outcome
from wakeful.runs.held_run import HeldRun
from wakeful.telemetry.logs import log_each

log = logging.getLogger(__name__)

_TOGETHER = 0.05  # seconds


class EndLog:
    """Logs how runs ended, those of the same moment with one record."""

    def __init__(self) -> None:
        self._ended: dict[tuple[str, ...], list[tuple[object, ...]]] = {}  # by the names of their fields

    def add(self, held: HeldRun, outcome: Outcome) -> None:
        if not log.isEnabledFor(logging.INFO):
            return
        names, values = _fields_of(held, outcome)
        if not self._ended:
            asyncio.get_running_loop().call_later(_TOGETHER, self.write, context=Context())
        self._ended.setdefault(names, []).append(values)

    def write(self) -> None:
        """Log what is collected."""
        ended, self._ended = self._ended, {}
        for names, rows in ended.items():
            log_each(log, "run ended", names, rows)


_END = ("run_id", "session_id", "agent_id", "trigger", "status", "seconds")
_END_OF_WAKE = (*_END, "wake_id")
_USAGE = ("model", "input_tokens", "output_tokens", "cost_dollars")


def _fields_of(held: HeldRun, outcome: Outcome) -> tuple[tuple[str, ...], tuple[object, ...]]:
    """Return the fields of the log line about the end of a run: their names and their values."""
    run, usage, trace_id = held.run, held.usage, held.span.trace_id
    seconds = round(time.monotonic() - held.claimed_at, 3)
    names, values = _END, (run.id, run.session_id, run.agent_id, run.trigger, outcome.status, seconds)
    if run.wake_id is not None:
        names, values = _END_OF_WAKE, (*values, run.wake_id)
    if outcome.reason is not None:
        names, values = (*names, "reason"), (*values, outcome.reason)
    if usage is not None:
        cost = None if usage.cost_micros is None else usage.cost_micros / 1_000_000
        names, values = (*names, *_USAGE), (*values, usage.model, usage.input_tokens, usage.output_tokens, cost)
    return (names, values) if trace_id is None else ((*names, "trace_id"), (*values, trace_id))
