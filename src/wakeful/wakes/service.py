"""Book, edit, skip, cancel, run and explain wakes."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from wakeful.core import outside
from wakeful.core.clock import Clock
from wakeful.core.errors import Invalid, WakefulError
from wakeful.core.labels import LOOP_ENDED, Via, is_braked, stamp, via_of
from wakeful.core.outside import ActingRun, Change
from wakeful.core.texts import title_of
from wakeful.core.types import Agent, Rules, Run, Session, Wake, is_schedule, kind_of
from wakeful.core.values import replace
from wakeful.core.zones import format_duration, load_zone
from wakeful.notices.texts import make_notice
from wakeful.runs.claims import cancel_wake
from wakeful.runs.service import check_brake
from wakeful.store.drivers.database import Together
from wakeful.store.store import Store, Tx
from wakeful.telemetry.tracing import current_traceparent
from wakeful.timing import bounds, explain, lifecycle, recall_request, schedule_request
from wakeful.timing.booking_request import KeyTaken, is_repeat, is_same_task
from wakeful.timing.explain import Step
from wakeful.timing.fire_rule import decision
from wakeful.timing.lifecycle import RequestedTime, SlotTaken, TooManySchedules, booking_detail
from wakeful.timing.next_run_request import SelfSchedulingOff

log = logging.getLogger(__name__)

_NEAR = timedelta(hours=12)  # of the time that someone asks about
_LOOKED_AT = 500  # runs and wakes


class _NoRoom(Exception):
    """The slot of a wake is taken, or its session has too many schedules."""


class WakeService:
    def __init__(self, store: Store, clock: Clock, rules: Rules) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules
        # While PostgreSQL executes one batch, the next one can be collected.
        at_once = 2 if store.is_shared else 1
        self._add_together = Together(self._add_all, at_once=at_once, key=_session_or_own)

    async def book(self, wake: Wake, *, key: str | None = None, opening: Session | None = None) -> Wake:
        """Book a wake. It is durable when this returns.

        A recall needs a free slot; a next run replaces the one in its slot; schedules are limited in number. A booking
        of a program counts against the brake of its token; if it repeats an earlier one, that one is returned. With
        `opening`, the session of the wake is opened in the same transaction.
        """
        if (traceparent := current_traceparent()) is not None:
            wake = replace(wake, traceparent=traceparent)
        if wake.kind == "next_run":
            return await self._replace_in_slot(wake)
        if is_braked(wake) or opening is not None:
            return await self._book_once(wake, key, opening)
        refusal = await self._add_together(wake)
        if refusal is not None:
            raise refusal
        return wake

    async def find(
        self,
        user_id: str,
        *,
        agent_id: str | None = None,
        status: str | None = None,
        is_live: bool = False,
        after: tuple[datetime, str] | None = None,
        most: int = 50,
    ) -> list[Wake]:
        """Return a page of a user's wakes, the soonest first."""
        return await self._store.read(
            lambda tx: tx.wakes.of_user(
                user_id, agent_id=agent_id, status=status, is_live=is_live, after=after, most=most
            )
        )

    async def get(self, wake_id: str, user_id: str) -> Wake:
        return await self._store.read(lambda tx: tx.wakes.read(wake_id, user_id))

    async def last_runs(self, wakes_listed: Sequence[Wake]) -> dict[str, Run]:
        """Return the latest run of each wake that has ended, by the wake's id."""
        return await self._store.read(lambda tx: tx.runs.last_of_wakes([wake.id for wake in wakes_listed]))

    async def edit(self, wake_id: str, user_id: str, asked: Mapping[str, Any]) -> Wake:
        """Change a pending wake of any kind as a user asked."""
        now = self._clock.now()

        async def work(tx: Tx) -> Wake:
            return await edit_as_asked(tx, await tx.wakes.get(wake_id, user_id), asked, now, self._rules)

        return await self._store.write(work)

    async def cancel(
        self, wake_id: str, user_id: str, reason: str | None = None, *, by: ActingRun | None = None
    ) -> Wake:
        """Cancel a live wake and its runs that have not begun."""
        now = self._clock.now()

        async def work(tx: Tx) -> Wake:
            wake = await tx.wakes.get(wake_id, user_id)
            await check_change(tx, by, wake, "cancel", now)
            return await cancel_wake(tx, wake, reason, now, run_reason="cancelled")

        return await self._store.write(work)

    async def mute(self, wake_id: str, user_id: str, muted: bool) -> Wake:
        """Send a wake's notices only to the inbox, or to the channels again."""
        now = self._clock.now()

        async def work(tx: Tx) -> Wake:
            await tx.wakes.get(wake_id, user_id)
            return await tx.wakes.mute(wake_id, muted, now)

        return await self._store.write(work)

    async def cancel_forgotten(self, wake_id: str, before: datetime, days: int) -> None:
        """Cancel a recurring recall that the user has not touched since, with a notice."""
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            wake = await tx.wakes.get(wake_id)
            if wake_id not in await tx.wakes.forgotten_recalls(before, wake_id=wake_id):
                return  # another node was first, or its user came back
            await cancel_wake(tx, wake, "forgotten", now, run_reason="forgotten")
            await tx.notices.add(
                make_notice("forgotten", wake, now, wake=title_of(wake.comment, wake.instructions), days=days)
            )

        await self._store.write(work)

    async def skip(self, wake_id: str, user_id: str, *, by: ActingRun | None = None) -> Wake:
        """Skip the next occurrence of a recurring wake."""
        now = self._clock.now()

        async def work(tx: Tx) -> Wake:
            before = await tx.wakes.get(wake_id, user_id)
            await check_change(tx, by, before, "skip", now)
            verdict = lifecycle.skip(before, now)
            await tx.wakes.move([(verdict.wake, verdict.action)])
            await tx.runs.add(verdict.runs)
            if by is None:
                await tx.wakes.mark_seen(wake_id, now)
            return verdict.wake

        return await self._store.write(work)

    async def run_now(self, wake_id: str, user_id: str, via: Via | None = None) -> Run:
        """Run a pending wake at once, even if paused. A once-wake is used up; a recurring one keeps its times."""
        now = self._clock.now()

        async def work(tx: Tx) -> Run:
            await check_brake(tx, via, now, self._rules)
            wake = await tx.wakes.get(wake_id, user_id)
            await tx.wakes.mark_seen(wake_id, now)
            if wake.status == "queued":  # its run exists, and waits for a slot, its session or a pause
                return (await tx.runs.hurry(wake_id))[0]
            verdict = lifecycle.run_now(wake, now)
            await tx.wakes.move([(verdict.wake, verdict.action)])
            run = stamp(verdict.runs[0], via)
            await tx.sessions.add(verdict.sessions)
            await tx.runs.add([run])
            return run

        run = await self._store.write(work)
        log.info("wake fired by a person", extra={"wake_id": wake_id, "run_id": run.id, "agent_id": run.agent_id})
        return run

    async def find_at(self, agent_id: str, user_id: str, at: datetime) -> Wake:
        """Return the wake of an agent whose planned time, past or future, is nearest to an instant."""

        async def work(tx: Tx) -> Wake:
            await tx.agents.get(agent_id, user_id)
            ran = await tx.runs.of_user(user_id, agent_id=agent_id, before=(at + _NEAR, "~"), most=_LOOKED_AT)
            planned = await tx.wakes.of_user(user_id, agent_id=agent_id, after=(at - _NEAR, ""), most=_LOOKED_AT)
            times = [(run.nominal_at, run.wake_id) for run in ran if run.wake_id is not None]
            times += [(wake.nominal_at, wake.id) for wake in planned]
            near = [(abs(planned_at - at), wake_id) for planned_at, wake_id in times if abs(planned_at - at) <= _NEAR]
            if not near:
                raise explain.NothingPlanned(at)
            return await tx.wakes.read(min(near)[1], user_id)

        return await self._store.read(work)

    async def why(self, wake_id: str, user_id: str) -> list[Step]:
        """Return the decisions about each occurrence of a wake, with their times and reasons."""

        async def work(tx: Tx) -> list[Step]:
            wake = await tx.wakes.read(wake_id, user_id)
            runs = await tx.runs.of_wake(wake_id)
            agents = {agent.id: agent for agent in await tx.agents.of_user(user_id)}
            agent = agents.get(wake.agent_id)
            return explain.explain(
                wake,
                await tx.notices.decisions_of(wake_id),
                runs,
                await tx.wakes.booked_by([run.id for run in runs if run.started_at is not None]),
                "An agent that was deleted" if agent is None else agent.name,
                "UTC" if agent is None else agent.zone,
            )

        return await self._store.read(work)

    async def _book_once(self, wake: Wake, key: str | None, opening: Session | None) -> Wake:
        now = self._clock.now()

        async def work(tx: Tx) -> Wake:
            known = await tx.wakes.find(wake.id)  # an earlier attempt, whose answer was lost, booked it
            if known is None and is_braked(wake):
                known = await find_repeated(tx, wake, key, now)
            if known is not None:
                return known
            await check_brake(tx, via_of(wake), now, self._rules)
            if opening is not None:
                await tx.sessions.add([opening])
            if wake.id not in await tx.wakes.add([wake]):
                raise _NoRoom  # which undoes the rest
            return wake

        try:
            return await self._store.write(work, is_repeatable=True)
        except _NoRoom:
            raise await self._refusal(wake) from None

    async def _add_all(self, batch: Sequence[Wake]) -> list[WakefulError | None]:
        added = await self._store.add_wakes(batch)
        return [None if wake.id in added else await self._refusal(wake) for wake in batch]

    async def _refusal(self, wake: Wake) -> WakefulError:
        agent = await self._store.read(lambda tx: tx.agents.get(wake.agent_id, wake.user_id))
        if wake.scheduled_by == "agent" and not agent.self_scheduling:
            return SelfSchedulingOff(agent)
        if wake.slot is None:
            return TooManySchedules()
        slot = wake.slot
        return SlotTaken(await self._store.write(lambda tx: tx.wakes.live_in_slot(slot)) or wake)

    async def _replace_in_slot(self, wake: Wake) -> Wake:
        now = self._clock.now()

        # Another node may fill the empty slot between our read and our insert; then we replace its booking.
        while not await self._store.write(lambda tx: put_in_slot(tx, wake, now), is_repeatable=True):
            continue
        return wake


async def put_in_slot(tx: Tx, wake: Wake, now: datetime, by: ActingRun | None = None) -> bool:
    """Book a wake in place of the one in its slot. False if another one took the slot meanwhile: try again."""
    assert wake.slot is not None
    before = await tx.wakes.live_in_slot(wake.slot)
    if before is not None and before.id == wake.id:
        return True  # an earlier attempt, whose answer was lost, booked it
    if before is not None:
        await check_change(tx, by, before, "replace", now)
        await tx.runs.end_queued_of_wakes([before.id], "skipped", "superseded", now)
        await tx.wakes.move([(lifecycle.supersede(before, now), "cancelled")])
        await tx.notices.record([decision(before, now, "superseded", by=wake.id)])
    if not await tx.wakes.add([wake]):
        return False
    await tx.notices.resolve(wake.user_id, wake.agent_id, LOOP_ENDED, now)
    return True


def _session_or_own(wake: Wake) -> str:
    """Return the batching key: bookings of one session must not run at once, because schedules are counted first."""
    return wake.session_id or wake.id


# ── Edits ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

# As people ask for them, with the limits that each kind of wake has.


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
    changes, asked_time = recall_request.read_changes(asked, wake, now, agent.known_zone)
    if asked_time is not None:
        changes["nominal_at"], asked_time = _bound(wake, agent, changes["nominal_at"], asked_time, now)
    after = lifecycle.edit(wake, changes, now, rules)
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
        schedule_request.check_ahead("when", at - now)
    if wake.kind != "next_run":
        return at, asked_time
    clamped = bounds.clamp(at, now, agent.bounds, agent.zone, (), 0, "user")
    return clamped.at, replace(asked_time, moved_by=(*asked_time.moved_by, *clamped.reasons))


# ── Repeated bookings ─────────────────────────────────────────────────────────────────────────────────────────────────

# Programs retry, and a request that is sent twice books once.


_RETRIED_WITHIN = timedelta(seconds=60)


async def find_repeated(tx: Tx, wake: Wake, key: str | None, now: datetime) -> Wake | None:
    """Return the wake that an earlier request of the same token booked, if this request repeats it.

    With a key, that of the last 24 hours; without one, the same booking within a minute. Until the transaction ends,
    no other one of this token looks.
    """
    assert wake.token_id is not None
    await tx.token_uses.lock(wake.token_id)
    if key is None:
        found = await tx.booking_keys.latest(wake, now - _RETRIED_WITHIN, now + _RETRIED_WITHIN)
        return next((first for first in found if is_repeat(first, wake)), None)
    first_id = await tx.booking_keys.claim(wake.token_id, key, wake.id, now)
    first = None if first_id == wake.id else await tx.wakes.find(first_id)
    if first is not None and not is_same_task(first, wake):
        raise KeyTaken(key, first)
    return first


# ── Times as text ─────────────────────────────────────────────────────────────────────────────────────────────────────


def describe_time(at: datetime, agent: Agent, now: datetime) -> str:
    """Return a time as text: absolute with offset and zone, and relative."""
    local = at.astimezone(load_zone(agent.zone))
    relative = (
        "now" if at == now else f"in {format_duration(at - now)}" if at > now else f"{format_duration(now - at)} ago"
    )
    return f"{local.isoformat(sep=' ', timespec='seconds')} {agent.zone} ({relative})"


# ── Changes by runs ───────────────────────────────────────────────────────────────────────────────────────────────────

# Each change that a run makes to a booking is checked against what the run has read.


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
