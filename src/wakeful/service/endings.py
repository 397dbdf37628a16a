"""What the end of a run means for its wake."""

from dataclasses import replace
from datetime import datetime

from wakeful.domain import notices, wakes
from wakeful.domain.rules import Rules
from wakeful.domain.types import Decision, Run, WakeStatus
from wakeful.store.store import Tx


async def end_once_wake(
    tx: Tx, run: Run, status: WakeStatus, reason: str | None, now: datetime, error: str | None = None
) -> None:
    """End the once-wake of a run that ended without success; a recurring one goes on."""
    if run.wake_id is None:
        return
    wake = await tx.wakes.get(run.wake_id)
    if wake.status in ("queued", "running"):
        await tx.wakes.move([replace(wake, status=status, reason=reason, error=error, updated_at=now)])


async def note_failure(tx: Tx, run: Run, reason: str | None, error: str | None, now: datetime, rules: Rules) -> None:
    """A once-wake has failed with its run; a recurring one comes back, later each time if it keeps failing."""
    if run.wake_id is None:
        return
    wake = await tx.wakes.get(run.wake_id)
    if not wake.is_recurring:
        await end_once_wake(tx, run, "failed", reason, now, error)
        return
    after = wakes.back_off(wake, now, rules)
    await tx.wakes.move([after])
    if after.held_by == "backoff":
        said = Decision(
            wake_id=wake.id,
            nominal_at=wake.nominal_at,
            at=now,
            code="backoff",
            run_id=run.id,
            detail={"failures": after.failures, "until": after.attempt_at.isoformat()},
        )
        await tx.notices.record([said])
        await tx.notices.add(notices.backing_off(after, now))
