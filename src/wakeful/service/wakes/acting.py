"""Runs that change bookings: each change is checked against what the run has read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from wakeful.domain import outside
from wakeful.domain.outside import Change
from wakeful.domain.types import Run, Wake
from wakeful.service.wakes.time_words import describe_time
from wakeful.store.store import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class ActingRun:
    """A run that changes bookings, and the id of one that a person has let it change."""

    run: Run
    approved: str | None = None


async def check_change(tx: Tx, by: ActingRun | None, wake: Wake, change: Change, now: datetime) -> None:
    """Refuse a change that a run may not make, or may not make unasked. None: a person makes it."""
    if by is not None:
        agent = await tx.agents.get(wake.agent_id, wake.user_id)
        when = describe_time(wake.nominal_at, agent, now)
        outside.check(wake, by.run, await _hook_of(tx, by.run), change, when, by.approved)


async def find_visible(tx: Tx, by: ActingRun | None, wakes: Sequence[Wake]) -> list[Wake]:
    """Return those wakes that a run may see: a run of a hook sees only what runs of that hook have booked."""
    hook = None if by is None else await _hook_of(tx, by.run)
    return [wake for wake in wakes if hook is None or outside.hook_of(wake) == hook]


async def _hook_of(tx: Tx, run: Run) -> str | None:
    return None if run.wake_id is None else outside.hook_of(await tx.wakes.find(run.wake_id))
