"""The history of a wake: every decision about it and its runs, in order."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from wakeful.domain.types import Decision, Run, Wake
from wakeful.domain.wakes.fire import decision


def explain(wake: Wake, decisions: Sequence[Decision], runs: Sequence[Run]) -> list[Decision]:
    """Return every decision about a wake and its runs, in order of time."""
    by: dict[str, Any] = {"by": wake.scheduled_by}
    if wake.tools is not None:
        by |= {"run_id": wake.booked_by_run, "tools": list(wake.tools)}
    booked = Decision(
        wake_id=wake.id,
        nominal_at=_first_planned(wake),
        at=wake.created_at,
        code="booked",
        detail=by | dict(wake.booking or {}),
    )
    chain = list(decisions)
    for run in runs:
        chain += _history(wake, run)
    if wake.status not in ("pending", "queued", "running"):
        chain.append(decision(wake, wake.updated_at, f"wake_{wake.status}", reason=wake.reason, error=wake.error))
    # Of two bookings of one slot at the same time, the one that reads the clock first may be saved last. It then ends
    # the other at a time before that one was booked.
    return [booked, *sorted(chain, key=lambda decision: decision.at)]


def _first_planned(wake: Wake) -> datetime:
    """Return the instant that was booked; a recurring or edited wake has moved on since."""
    return wake.nominal_at if wake.booking is None else datetime.fromisoformat(wake.booking["final"])


def _history(wake: Wake, run: Run) -> list[Decision]:
    def said(at: datetime, code: str, **detail: Any) -> Decision:
        return Decision(wake_id=wake.id, nominal_at=run.nominal_at, at=at, code=code, run_id=run.id, detail=detail)

    found = [said(run.queued_at, "queued" if run.trigger == "wake" else "run_now", covers=run.covers)]
    if run.status == "skipped" and run.started_at is None and run.queued_at == run.finished_at:
        found = []
    if run.started_at is not None:
        late = run.started_at - run.nominal_at
        found.append(said(run.started_at, "started", late_seconds=round(late.total_seconds(), 3), attempt=run.attempt))
    if run.finished_at is not None:
        outcome = {"reason": run.reason, "error": run.error, "covers": run.covers}
        found.append(said(run.finished_at, run.status, **outcome, **({} if run.note is None else {"note": run.note})))
    return found
