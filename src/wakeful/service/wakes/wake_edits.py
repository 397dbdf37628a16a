"""Edits of pending wakes as people ask for them, with the limits that each kind has."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wakeful.domain.bounds import clamp
from wakeful.domain.bounds.limits import Rules
from wakeful.domain.doors import recall, schedule
from wakeful.domain.errors import Invalid
from wakeful.domain.types import Agent, Wake
from wakeful.domain.values import replace
from wakeful.domain.wakes import edits, explain
from wakeful.domain.wakes.create import RequestedTime, booking_detail
from wakeful.domain.wakes.fire import decision
from wakeful.domain.wakes.kinds import is_schedule, kind_of
from wakeful.store.store import Tx

_ONLY_IF_RECURRING = frozenset({"interval_seconds", "cron", "until", "max_runs", "timezone"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeEdit:
    """A pending wake as it was and as it will be, with the names of the changed fields."""

    before: Wake
    after: Wake
    changed: tuple[str, ...]
    has_new_time: bool = False


async def plan_edit(tx: Tx, wake: Wake, asked: Mapping[str, Any], now: datetime, rules: Rules) -> WakeEdit:
    """Return what a change of a pending wake would make of it, with the checks that its kind has for people."""
    _check_recurrence(wake, asked)
    agent = await tx.agents.get(wake.agent_id, wake.user_id)
    changes, asked_time = recall.read_changes(asked, wake, now, agent.known_zone)
    if asked_time is not None:
        changes["nominal_at"], asked_time = _bound(wake, agent, changes["nominal_at"], asked_time, now)
    after = edits.edit(wake, changes, now, rules)
    if asked_time is not None:
        booking = booking_detail(asked_time, changes["nominal_at"], after.nominal_at, after.cron)
        after = replace(after, booking={**booking, "changed_by": "user"})
    return WakeEdit(before=wake, after=after, changed=tuple(sorted(changes)), has_new_time=asked_time is not None)


async def edit_as_asked(tx: Tx, wake: Wake, asked: Mapping[str, Any], now: datetime, rules: Rules) -> Wake:
    """Change a pending wake that this transaction has locked as a person asked."""
    return await save_edit(tx, await plan_edit(tx, wake, asked, now, rules), now)


async def save_edit(tx: Tx, edit: WakeEdit, now: datetime) -> Wake:
    """Save a changed wake, and record the change with the requested time."""
    wake = edit.before
    if edit.has_new_time and "booked" not in [each.code for each in await tx.notices.decisions_of(wake.id)]:
        # The row keeps the request for its current time; the first one is saved where `why` reads it.
        await tx.notices.record([explain.booked(wake)])
    await tx.wakes.edit(edit.after)
    # The page sends the zone of the browser with each new time, whether it is another one or not.
    detail: dict[str, Any] = {
        "changed": [name for name in edit.changed if getattr(wake, name) != getattr(edit.after, name)]
    }
    if edit.has_new_time:
        detail |= edit.after.booking or {}
    await tx.notices.record([decision(wake, now, "edited", **detail)])
    return edit.after


def _check_recurrence(wake: Wake, asked: Mapping[str, Any]) -> None:
    """Refuse fields of recurrence for a kind that fires once; `timezone` may say in which zone `when` is."""
    if kind_of(wake).can_recur:
        return
    for name in asked.keys() & _ONLY_IF_RECURRING - ({"timezone"} if "when" in asked else set()):
        raise Invalid(
            f"`{name}` must be left out for a {wake.kind}, which fires once; got {asked[name]!r}.", field=name
        )


def _bound(
    wake: Wake, agent: Agent, at: datetime, asked_time: RequestedTime, now: datetime
) -> tuple[datetime, RequestedTime]:
    """Hold a new time to the limits for people that its kind has when it is booked."""
    if is_schedule(wake):
        schedule.check_ahead("when", at - now)
    if wake.kind != "next_run":
        return at, asked_time
    clamped = clamp.clamp(at, now, agent.bounds, agent.zone, (), 0, "user")
    return clamped.at, replace(asked_time, moved_by=(*asked_time.moved_by, *clamped.reasons))
