"""Why a wake ran or did not: everything that was decided about it, in order."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from wakeful.domain.types import Decision, Run, Wake


def explain(wake: Wake, decisions: Sequence[Decision], runs: Sequence[Run]) -> list[Decision]:
    """Put together, in order of time, everything that was decided about a wake and its occurrences."""
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
        chain += _story(wake, run)
    if wake.status not in ("pending", "queued", "running"):
        ended = {"reason": wake.reason, "error": wake.error}
        chain.append(
            Decision(
                wake_id=wake.id,
                nominal_at=wake.nominal_at,
                at=wake.updated_at,
                code=f"wake_{wake.status}",
                detail=ended,
            )
        )
    # Of two bookings of one slot at the same time, the one that reads the clock first may be saved last. It then ends
    # the other at a time before that one was booked.
    return [booked, *sorted(chain, key=lambda decision: decision.at)]


def _first_planned(wake: Wake) -> datetime:
    """Return the instant that was booked; a recurring or edited wake has moved on since."""
    return wake.nominal_at if wake.booking is None else datetime.fromisoformat(wake.booking["final"])


def _story(wake: Wake, run: Run) -> list[Decision]:
    def said(at: datetime, code: str, **detail: Any) -> Decision:
        return Decision(wake_id=wake.id, nominal_at=run.nominal_at, at=at, code=code, run_id=run.id, detail=detail)

    told = [said(run.queued_at, "queued" if run.trigger == "wake" else "run_now", covers=run.covers)]
    if run.status == "skipped" and run.started_at is None and run.queued_at == run.finished_at:
        told = []
    if run.started_at is not None:
        late = run.started_at - run.nominal_at
        told.append(said(run.started_at, "started", late_seconds=round(late.total_seconds(), 3), attempt=run.attempt))
    if run.finished_at is not None:
        outcome = {"reason": run.reason, "error": run.error, "covers": run.covers}
        told.append(said(run.finished_at, run.status, **outcome, **({} if run.note is None else {"note": run.note})))
    return told
