"""Effects of the end of a run on its wake."""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Literal

from wakeful.domain.bounds.limits import Rules
from wakeful.domain.doors import next_run
from wakeful.domain.inbox import notices
from wakeful.domain.types import Decision, Run, Wake
from wakeful.domain.wakes import edits
from wakeful.store.agents.agents import NoSuchAgent
from wakeful.store.store import Tx


async def cancel_wake(tx: Tx, wake: Wake, reason: str | None, now: datetime, *, run_reason: str) -> Wake:
    """Cancel a live wake, and skip its runs that have not begun."""
    after = edits.cancel(wake, reason, now)
    await tx.runs.end_queued_of_wakes([wake.id], "skipped", run_reason, now)
    await tx.wakes.move([(after, "cancelled")])
    await tx.notices.record([edits.say_cancelled(wake, reason, now)])
    return after


async def end_wake(
    tx: Tx,
    run: Run,
    status: Literal["fired", "skipped", "failed"],
    reason: str | None,
    now: datetime,
    error: str | None = None,
) -> bool:
    """End the wake of a run that did not succeed; a recurring one continues with its next occurrence.

    Return whether its owner has a notice that no next run is scheduled.
    """
    if run.wake_id is None:
        return False
    wake = await tx.wakes.get(run.wake_id)
    if wake.status in ("queued", "running"):
        action = status
        if status == "fired":  # stopped: a run that has begun was announced then, any other never begins
            action = None if wake.status == "running" else "cancelled"
        await tx.wakes.move([(replace(wake, status=status, reason=reason, error=error, updated_at=now), action)])
    elif status == "skipped":
        await tx.wakes.move([(replace(wake, updated_at=max(wake.updated_at, now)), "skipped")])
    return await note_loop_end(tx, run, now)


async def note_loop_end(tx: Tx, run: Run, now: datetime) -> bool:
    """Add one notice when an agent that booked its own next runs has no further one, not even a person's.

    Call it after the run's row and its wake were saved. It reads nothing for runs that the agent did not book.
    """
    if not next_run.is_own(run) or await _goes_on(tx, run, now):
        return False
    ended = await tx.runs.read(run.id)
    try:
        agent = await tx.agents.get(run.agent_id, run.user_id)
    except NoSuchAgent:
        return False
    if not agent.self_scheduling or run.wake_id is None:
        return False  # the person who turned it off knows
    if await tx.notices.add(notices.loop_ended(ended, agent, now)):
        said = Decision(wake_id=run.wake_id, nominal_at=run.nominal_at, at=now, code="loop_ended", run_id=run.id)
        await tx.notices.record([said])
    return True


async def note_unkept_promise(tx: Tx, run: Run, now: datetime) -> None:
    """Add a notice about a run that promised later work and booked nothing."""
    with suppress(NoSuchAgent):
        agent = await tx.agents.get(run.agent_id, run.user_id)
        await tx.notices.add(notices.unkept_promise(run, agent, now))


async def _goes_on(tx: Tx, run: Run, now: datetime) -> bool:
    """Return whether a next run is pending, or another one that the agent booked is running and may still book one."""
    waiting = await tx.wakes.in_slot(next_run.slot_of(run.agent_id))
    return waiting is not None or await tx.runs.is_another_under_way(run, now)


async def note_failure(tx: Tx, run: Run, reason: str | None, error: str | None, now: datetime, rules: Rules) -> None:
    """Fail a run's wake if it fires once, and tell its owner; a recurring one continues, later if it keeps failing."""
    if run.wake_id is None:
        return
    wake = await tx.wakes.get(run.wake_id)
    if not wake.is_recurring:
        is_told = await end_wake(tx, run, "failed", reason, now, error)
        is_news = wake.status in ("queued", "running") and reason != "interrupted"  # which has a notice of its own
        if is_news and not is_told:
            await tx.notices.add(notices.wake_failed(run, wake, error, now))
        return
    after = edits.back_off(wake, now, rules)
    await tx.wakes.move([(after, "failed")])
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
