"""Create, edit, skip, cancel or run a wake."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from wakeful.core import ids
from wakeful.core.errors import Conflict, Invalid, LimitReached
from wakeful.core.texts import check_note, check_text
from wakeful.core.types import (
    KINDS,
    CallType,
    Decision,
    OnMiss,
    Priority,
    Rules,
    ScheduledBy,
    Wake,
    WakeKind,
    kind_of,
    slot_of,
)
from wakeful.core.values import replace
from wakeful.core.zones import load_zone
from wakeful.timing import recurrence
from wakeful.timing.fire_rule import Verdict, decision, end, fresh_session, make_run, move_on, plan_for
from wakeful.timing.when import When

MAX_INSTRUCTIONS = 32_000
MAX_COMMENT = 1_000
MAX_LIVE_SCHEDULES = 50


class SlotTaken(Conflict):
    code = "slot_taken"

    def __init__(self, pending: Wake) -> None:
        super().__init__(
            f"This session already has a pending recall ({pending.id!r}, for {pending.nominal_at.isoformat()}). "
            "Cancel that one first, then book the new one."
        )
        self.pending = pending


class TooManySchedules(LimitReached):
    code = "too_many_schedules"
    text = (
        f"This session has {MAX_LIVE_SCHEDULES} pending schedules, which is the limit. "
        "Cancel one that is no longer needed, then book the new one."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedTime:
    """The time that was asked for, saved with the time that was booked."""

    requested: str  # as written
    at: datetime | None = None  # the instant it means
    zone: str | None = None  # the zone of a wall-clock time
    moved_by: tuple[str, ...] = ()  # why the booked time is a different one, in order


def create(
    *,
    kind: WakeKind,
    agent_id: str,
    user_id: str,
    session_id: str | None,
    call_type: CallType,
    instructions: str,
    timezone: str | None,
    scheduled_by: ScheduledBy,
    now: datetime,
    rules: Rules,
    at: datetime | None = None,
    asked_time: RequestedTime | None = None,
    wall_clock: str | None = None,
    every: timedelta | None = None,
    cron: str | None = None,
    until: datetime | None = None,
    max_runs: int | None = None,
    comment: str = "",
    context_views: tuple[str, ...] = (),
    session_config: Mapping[str, Any] | None = None,
    priority: Priority = "normal",
    on_miss: OnMiss | None = None,
    booked_by_run: str | None = None,
    tools: tuple[str, ...] | None = None,
    ephemeral: bool = False,
) -> Wake:
    """Return a new wake, or raise what is wrong with the request."""
    wake = Wake(
        id=ids.new_id(now),
        kind=kind,
        agent_id=agent_id,
        user_id=user_id,
        session_id=session_id,
        slot=slot_of(kind, agent_id, session_id),
        call_type=call_type,
        every=every,
        cron=cron,
        timezone=timezone,
        wall_clock=wall_clock,
        until=until,
        max_runs=max_runs,
        nominal_at=now,
        attempt_at=now,
        comment=comment,
        instructions=instructions,
        context_views=context_views,
        session_config=session_config,
        priority=priority,
        on_miss=on_miss or KINDS[kind].on_miss,
        scheduled_by=scheduled_by,
        booked_by_run=booked_by_run,
        tools=tools,
        ephemeral=ephemeral,
        created_at=now,
        updated_at=now,
    )
    check_fields(wake, rules)
    first = _first_time(wake, at, now)
    booking = None if asked_time is None else booking_detail(asked_time, at, first, cron)
    wake = replace(wake, nominal_at=first, attempt_at=first, booking=booking)
    check_end(wake)
    return wake


def requested_time(text: str, meant: When, zone: str | None) -> RequestedTime:
    """Return a time as it was written, with the instant it means in a zone."""
    read_in = None if meant.wall_clock is None else meant.zone or zone
    return RequestedTime(requested=text, at=meant.at, zone=read_in, moved_by=meant.moved_by)


def booking_detail(asked_time: RequestedTime, at: datetime | None, final: datetime, cron: str | None) -> dict[str, Any]:
    """Return the requested and the booked time for the record; `at` is the time before the wake's rule was applied."""
    moved_by = list(asked_time.moved_by)
    if at is not None and final != at:
        moved_by.append("past" if cron is None else "cron")
    detail: dict[str, Any] = {
        "requested": asked_time.requested,
        "requested_at": None if asked_time.at is None else asked_time.at.isoformat(),
        "moved_by": moved_by,
        "final": final.isoformat(),
    }
    return detail if asked_time.zone is None else {**detail, "zone": asked_time.zone}


def first_by_cron(cron: str, timezone: str | None, not_before: datetime | None, now: datetime) -> datetime:
    """Return the first time of a cron rule that is in the future and not before an instant."""
    after = now if not_before is None else max(not_before - recurrence.MICROSECOND, now)
    return recurrence.Grid(every=None, cron=cron, timezone=timezone).next_after(now, after=after)


def check_fields(wake: Wake, rules: Rules) -> None:
    """Refuse texts, time zones and recurrence rules that cannot be used."""
    check_text("instructions", wake.instructions, MAX_INSTRUCTIONS)
    check_note("comment", wake.comment, MAX_COMMENT)
    if wake.timezone is not None:
        load_zone(wake.timezone)
    if kind_of(wake).landing == "origin" and wake.session_id is None:
        raise Invalid(f"A {wake.kind} runs in a session, so it needs one.", field="session_id")
    if wake.is_recurring:
        _check_recurrence(wake, rules)
    elif wake.every is not None or wake.cron is not None:
        name = "cron" if wake.every is None else "interval_seconds"
        raise Invalid(
            f"`{name}` is only for recurring wakes; this one is {wake.call_type!r}. Leave it out, or ask for "
            "'recurring'.",
            field=name,
        )


def check_end(wake: Wake) -> None:
    """Refuse an end that comes before the first time, and a number of runs that is used up."""
    if wake.until is not None and wake.until < wake.nominal_at:
        raise Invalid(
            f"`until` ({wake.until.isoformat()}) must not be before the first time ({wake.nominal_at.isoformat()}).",
            field="until",
        )
    if wake.max_runs is not None and wake.max_runs <= wake.runs_started:
        started = f": {wake.runs_started} runs have started" if wake.runs_started else ""
        least = wake.runs_started + 1
        raise Invalid(f"`max_runs` must be at least {least}, got {wake.max_runs}{started}.", field="max_runs")


def _first_time(wake: Wake, at: datetime | None, now: datetime) -> datetime:
    if wake.call_type == "immediate":
        if at is not None:
            raise Invalid("An immediate wake has no time. Leave the time out, or ask for 'once'.", field="when")
        return now
    if wake.cron is not None:
        return first_by_cron(wake.cron, wake.timezone, at, now)
    if at is None:
        raise Invalid(f"A {wake.call_type!r} wake needs a time.", field="when")
    return max(at, now)


def _check_recurrence(wake: Wake, rules: Rules) -> None:
    field, every, cron = "interval_seconds", wake.every, wake.cron
    if not kind_of(wake).can_recur:
        raise Invalid(f"A {wake.kind} fires once; only a recall can be recurring.", field="call_type")
    if (every is None) == (cron is None):
        raise Invalid("A recurring wake needs exactly one of an interval and a cron rule.", field=field)
    if every is not None and every < rules.min_every:
        least, got = rules.min_every.total_seconds(), every.total_seconds()
        raise Invalid(f"`{field}` must be at least {least:g} s, got {got:g} s.", field=field)
    if every is not None and every.microseconds:
        raise Invalid(f"`{field}` must be a whole number, got {every.total_seconds():g}.", field=field)
    if cron is not None:
        recurrence.check_cron(cron)
        if wake.timezone is None:
            raise recurrence.CronNeedsZone(cron)


# ── Changes on request, and backing off after failures ────────────────────────────────────────────────────────────────


class WakeFiresOnce(Invalid):
    code = "wake_fires_once"

    def __init__(self, wake_id: str) -> None:
        super().__init__(f"Wake {wake_id!r} fires once, so it has no next time to skip to. Cancel it instead.")


_NEXT_STEPS = {"running": "Stop its run instead.", "queued": "Cancel it and book a new one."}


class WakeNotLive(Conflict):
    code = "wake_not_live"

    def __init__(self, wake: Wake) -> None:
        next_step = _NEXT_STEPS.get(wake.status, "Book a new one.")
        super().__init__(f"Wake {wake.id!r} is {wake.status}, so it can no longer be changed. {next_step}")


def check_live(wake: Wake) -> None:
    """Refuse a wake that is over."""
    if not wake.is_live:
        raise WakeNotLive(wake)


def cancel(wake: Wake, reason: str | None, now: datetime) -> Wake:
    """End a live wake; the row stays."""
    check_live(wake)
    return end(wake, "cancelled", reason, now)


def explain_cancelled(wake: Wake, reason: str | None, now: datetime) -> Decision:
    """Return the record of a cancellation."""
    return decision(wake, now, "cancelled", reason=reason)


def supersede(wake: Wake, now: datetime) -> Wake:
    """End a wake whose slot a newer one takes."""
    return end(wake, "superseded", None, now)


def skip(wake: Wake, now: datetime) -> Verdict:
    """Skip the next planned time of a recurring wake and move to the one after it, never into the past."""
    if not wake.is_recurring:
        raise WakeFiresOnce(wake.id)
    _check_pending(wake)
    in_time = recurrence.Lateness(now, is_missed=False)
    plan = recurrence.divide_missed(wake, in_time, max(wake.nominal_at, now), most=1)
    row = make_run(wake, recurrence.join_missed(plan.runs), "skipped", "skipped_by_request", now)
    return Verdict(wake=move_on(wake, in_time, plan.next_at, [], [row], now), action="skipped", runs=(row,))


def edit(wake: Wake, changes: Mapping[str, Any], now: datetime, rules: Rules) -> Wake:
    """Change a pending wake. A new time or rule is planned from now; runs that have fired stay."""
    _check_pending(wake)
    is_planned = bool(changes.keys() & {"nominal_at", "every", "cron", "timezone"})
    changed = replace(wake, **changes, seen_at=now, updated_at=now if is_planned else max(wake.updated_at, now))
    check_fields(changed, rules)
    if is_planned and changed.cron is not None:
        changed = plan_for(changed, first_by_cron(changed.cron, changed.timezone, changes.get("nominal_at"), now))
    elif is_planned:
        changed = plan_for(changed, max(changed.nominal_at, now))
    check_end(changed)
    return changed


def run_now(wake: Wake, now: datetime) -> Verdict:
    """Run a pending wake by hand: a wake that fires once is used up, a recurring one keeps its times."""
    _check_pending(wake)
    run = replace(make_run(wake, recurrence.Piece(wake.nominal_at, 1), "queued", None, now), trigger="run_now")
    if wake.is_recurring:
        return Verdict(wake=wake, runs=(replace(run, id=ids.new_id(now), nominal_at=now, covers=0),))
    sessions = (fresh_session(wake, run, now),) if run.session_id != wake.session_id else ()
    used_up = move_on(wake, recurrence.Lateness(now, is_missed=False), None, [run], [], now)
    return Verdict(wake=used_up, runs=(run,), sessions=sessions)


def run_again(wake: Wake, now: datetime) -> Verdict:
    """Run a wake once more by hand, whatever its status; the wake stays as it is."""
    run_id = ids.new_id(now)
    run = replace(make_run(wake, recurrence.Piece(now, 0), "queued", None, now), id=run_id, trigger="run_now")
    if run.session_id != wake.session_id:
        run = replace(run, session_id=ids.session_id_of(run_id, now))
        return Verdict(wake=wake, runs=(run,), sessions=(fresh_session(wake, run, now),))
    return Verdict(wake=wake, runs=(run,))


def back_off(wake: Wake, now: datetime, rules: Rules) -> Wake:
    """Count a failure of a recurring wake; after several in a row the pause doubles each time, up to a limit."""
    failures = wake.failures + 1
    # An `updated_at` in the future is kept: it shows that this wake was planned while the clock was ahead.
    counted = replace(wake, failures=failures, updated_at=max(wake.updated_at, now))
    if failures < rules.failures_before_backoff or wake.status != "pending":
        return counted
    doublings = min(failures - rules.failures_before_backoff + 1, 64)
    pause = wake.every or max(wake.nominal_at - now, timedelta(minutes=1))
    seconds = min(pause.total_seconds() * 2.0**doublings, rules.max_backoff.total_seconds())
    # From the planned time: `attempt_at` may be the end of a pause, and lifting the pause releases only what it holds.
    return replace(counted, attempt_at=max(wake.nominal_at, now + timedelta(seconds=seconds)), held_by="backoff")


def _check_pending(wake: Wake) -> None:
    if wake.status != "pending":
        raise WakeNotLive(wake)
