"""The rules of a wake: creating, firing, editing and ending it.

`fire` is the whole decision about one due wake: pure, from the wake, the facts around it and the time. The scheduler
does what the verdict says, in one transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from wakeful.domain import ids
from wakeful.domain.bounds import bounds as bounds_rule
from wakeful.domain.bounds.limits import Rules
from wakeful.domain.errors import Conflict, Invalid, LimitReached
from wakeful.domain.events import RecallAction
from wakeful.domain.inbox import notices
from wakeful.domain.texts import first_words
from wakeful.domain.types import (
    Bounds,
    CallType,
    Decision,
    Notice,
    OnMiss,
    Pause,
    Priority,
    Run,
    RunStatus,
    ScheduledBy,
    Session,
    Wake,
    WakeKind,
    WakeStatus,
)
from wakeful.domain.values import replace, value
from wakeful.domain.wakes import missed, recurrence
from wakeful.domain.wakes.kinds import KINDS, kind_of, slot_of
from wakeful.domain.wakes.when import When
from wakeful.domain.zones import load_zone

MAX_INSTRUCTIONS = 32_000
MAX_COMMENT = 1_000
MAX_LIVE_SCHEDULES = 50


class WakeFiresOnce(Invalid):
    code = "wake_fires_once"

    def __init__(self, wake_id: str) -> None:
        super().__init__(f"Wake {wake_id!r} fires once, so it has no next time to skip to. Cancel it instead.")


class WakeNotLive(Conflict):
    code = "wake_not_live"

    def __init__(self, wake: Wake) -> None:
        next_step = "Stop its run instead." if wake.status == "running" else "Book a new one."
        super().__init__(f"Wake {wake.id!r} is {wake.status}, so it can no longer be changed. {next_step}")


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

    def __init__(self) -> None:
        super().__init__(
            f"This session has {MAX_LIVE_SCHEDULES} schedules waiting, and that is the most. "
            "Cancel one that is no longer needed, then book the new one."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The time that someone asked for, to be kept beside the time that was booked."""

    requested: str  # as it was given
    at: datetime | None = None  # what that means
    zone: str | None = None  # in which zone it was read, if it is a wall clock
    moved_by: tuple[str, ...] = ()  # why the booked time is another one, in the order of the moves


# ── Making one ──────────────────────────────────────────────────────────────────────────────────────────────────────


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
    wish: Wish | None = None,
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
    """Make a wake from a request, or say what is wrong with the request."""
    _check_texts(instructions, comment)
    if timezone is not None:
        load_zone(timezone)
    if KINDS[kind].landing == "origin" and session_id is None:
        raise Invalid(f"A {kind} lands in a session, so it needs one.", field="session_id")
    if call_type == "recurring":
        _check_recurrence(kind, every, cron, timezone, rules)
    else:
        _check_once(call_type, every, cron)
    nominal_at = _first_instant(call_type, at, cron, timezone, now)
    _check_end(until, max_runs, nominal_at)
    return Wake(
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
        booking=None if wish is None else wish_detail(wish, at, nominal_at, cron),
        nominal_at=nominal_at,
        attempt_at=nominal_at,
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


def wish_of(text: str, meant: When, zone: str | None) -> Wish:
    """Keep the words of a time with what they mean in a zone."""
    read_in = None if meant.wall_clock is None else meant.zone or zone
    return Wish(requested=text, at=meant.at, zone=read_in, moved_by=meant.moved_by)


def wish_detail(wish: Wish, at: datetime | None, final: datetime, cron: str | None) -> dict[str, Any]:
    """Write down what was asked for and what became of it; `at` is the time before the rule of the wake was applied."""
    moved_by = list(wish.moved_by)
    if at is not None and final != at:
        moved_by.append("past" if cron is None else "cron")
    told: dict[str, Any] = {
        "requested": wish.requested,
        "requested_at": None if wish.at is None else wish.at.isoformat(),
        "moved_by": moved_by,
        "final": final.isoformat(),
    }
    return told if wish.zone is None else {**told, "zone": wish.zone}


def _first_instant(
    call_type: CallType, at: datetime | None, cron: str | None, timezone: str | None, now: datetime
) -> datetime:
    if call_type == "immediate":
        if at is not None:
            raise Invalid(
                "An immediate wake has no time of its own. Leave the time out, or ask for 'once'.", field="when"
            )
        return now
    if cron is not None:
        return _first_by_cron(cron, timezone, at, now)
    if at is None:
        raise Invalid(f"A {call_type!r} wake needs a time.", field="when")
    return max(at, now)


def _first_by_cron(cron: str, timezone: str | None, not_before: datetime | None, now: datetime) -> datetime:
    after = now if not_before is None else max(not_before - timedelta(microseconds=1), now)
    return recurrence.Grid(every=None, cron=cron, timezone=timezone).next_after(now, after=after)


def _check_texts(instructions: str, comment: str) -> None:
    if not instructions.strip():
        raise Invalid("The instructions are empty. Write what is to be done on waking.", field="instructions")
    if len(instructions) > MAX_INSTRUCTIONS:
        raise Invalid(
            f"The instructions are {len(instructions):,} characters long; {MAX_INSTRUCTIONS:,} is the most. "
            "Put the details into a file and name the file.",
            field="instructions",
        )
    if len(comment) > MAX_COMMENT:
        raise Invalid(
            f"The comment is {len(comment):,} characters long; {MAX_COMMENT:,} is the most. Shorten it.",
            field="comment",
        )


def _check_recurrence(
    kind: WakeKind, every: timedelta | None, cron: str | None, timezone: str | None, rules: Rules
) -> None:
    if not KINDS[kind].can_recur:
        raise Invalid(f"A {kind} fires once; only a recall can be recurring.", field="call_type")
    if (every is None) == (cron is None):
        raise Invalid(
            "A recurring wake needs an interval or a cron rule: exactly one of them.", field="interval_seconds"
        )
    if every is not None and every < rules.min_every:
        raise Invalid(
            f"An interval of {every.total_seconds():g} s is too short; it must be at least "
            f"{rules.min_every.total_seconds():g} s.",
            field="interval_seconds",
        )
    if every is not None and every.microseconds:
        raise Invalid("An interval is a whole number of seconds.", field="interval_seconds")
    if cron is not None:
        recurrence.check_cron(cron)
        if timezone is None:
            raise recurrence.CronNeedsZone(cron)


def _check_once(call_type: CallType, every: timedelta | None, cron: str | None) -> None:
    if every is not None or cron is not None:
        name, value = ("cron", cron) if every is None else ("interval_seconds", int(every.total_seconds()))
        raise Invalid(
            f"`{name}` is {value!r}, and only a recurring wake has an interval or a cron rule; this one is "
            f"{call_type!r}. Leave it out, or ask for 'recurring'.",
            field=name,
        )


def _check_end(until: datetime | None, max_runs: int | None, nominal_at: datetime) -> None:
    if until is not None and until < nominal_at:
        raise Invalid(
            f"It would end ({until.isoformat()}) before its first time ({nominal_at.isoformat()}). Move one of them.",
            field="until",
        )
    if max_runs is not None and max_runs < 1:
        raise Invalid(f"max_runs is {max_runs!r}; at least 1 is needed.", field="max_runs")


# ── When it is due ──────────────────────────────────────────────────────────────────────────────────────────────────


@value
class Facts:
    """Facts about a due wake that its row does not contain."""

    agent_timezone: str
    bounds: Bounds | None = None  # None: this wake is not bound by them
    pauses: Sequence[Pause] = ()
    used_today: int = 0  # of the agent's daily cap
    started_lately: int = 0  # by the agent's own bookings, in the last hour
    first_lately: datetime | None = None
    busy_run_id: str | None = None  # what its session is doing
    waiting_run_id: str | None = None  # an earlier occurrence that has not begun
    running_run_id: str | None = None  # an earlier occurrence that is running
    is_user_talking: bool = False
    gone: str | None = None  # the user or the agent no longer exists


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Planned instants that an occurrence which still waits takes along."""

    into: str
    run: Run  # what they become if that one has begun meanwhile


@value
class Verdict:
    """The changes that firing one wake makes, written in one transaction."""

    wake: Wake
    action: RecallAction | None = None  # what subscribers are shown; None: nothing that they can see has changed
    runs: tuple[Run, ...] = ()
    sessions: tuple[Session, ...] = ()
    fold: Fold | None = None
    decisions: tuple[Decision, ...] = ()
    notice: Notice | None = None


def fire(wake: Wake, facts: Facts, now: datetime, rules: Rules) -> Verdict:
    """Decide about a due wake: hold it, put it off, run it, make up for it, or record that it did not run."""
    if facts.gone is not None:
        ended = _end(wake, "cancelled", facts.gone, now)
        return Verdict(wake=ended, action="cancelled", decisions=(_say(wake, now, facts.gone),))
    hold = _find_hold(wake, facts, now, rules)
    if hold is not None:
        return _hold(wake, *hold, now)
    lateness = _judge_lateness(wake, facts, now, rules)
    plan = missed.divide(wake, lateness, now, most=_most_runs(wake, facts, rules))
    if plan.runs and not _gives_way(wake, facts) and _must_defer(wake, facts, rules):
        return _defer(wake, lateness, now, rules)
    return _record(wake, lateness, plan, facts, now)


def _find_hold(wake: Wake, facts: Facts, now: datetime, rules: Rules) -> tuple[datetime, str] | None:
    # A pause that was asked for holds, even if the clock has gone back since to before it began.
    pauses = [replace(pause, started_at=min(pause.started_at, now)) for pause in facts.pauses]
    free_at, reasons = bounds_rule.free_from(now, facts.bounds, facts.agent_timezone, pauses)
    if free_at > now:
        return free_at, reasons[0]
    if facts.bounds is not None and facts.used_today >= facts.bounds.daily_cap:
        return bounds_rule.next_midnight(now, facts.agent_timezone), "daily_cap"
    if wake.scheduled_by == "agent" and facts.started_lately >= rules.runs_per_hour:
        return (facts.first_lately or now) + timedelta(hours=1), "brake"
    return None


def _hold(wake: Wake, until: datetime, reason: str, now: datetime) -> Verdict:
    held = replace(wake, attempt_at=until, held_by=reason, updated_at=now)
    if wake.held_by == reason:  # said already
        return Verdict(wake=held)
    return Verdict(
        wake=held,
        decisions=(_say(wake, now, reason, until=until.isoformat()),),
        notice=notices.braked(wake, until, now) if reason == "brake" else None,
    )


def _judge_lateness(wake: Wake, facts: Facts, now: datetime, rules: Rules) -> missed.Lateness:
    """Judge once whether it was missed: only lateness that no hold of ours explains counts."""
    if wake.first_due_at is not None:
        return missed.Lateness(wake.first_due_at, is_missed=wake.is_missed, grace=rules.grace)
    free_at, _ = bounds_rule.free_from(wake.nominal_at, facts.bounds, facts.agent_timezone, facts.pauses)
    if wake.held_by is not None:
        free_at = max(free_at, wake.attempt_at)
    return missed.Lateness(now, is_missed=now - free_at > rules.grace, grace=rules.grace)


def _most_runs(wake: Wake, facts: Facts, rules: Rules) -> int:
    most = rules.max_catchup
    if wake.max_runs is not None:
        most = min(most, wake.max_runs - wake.runs_started)
    if wake.scheduled_by == "agent":
        most = min(most, rules.runs_per_hour - facts.started_lately)
    return most


def _gives_way(wake: Wake, facts: Facts) -> bool:
    return wake.priority == "low" and facts.is_user_talking


def _must_defer(wake: Wake, facts: Facts, rules: Rules) -> bool:
    """Return whether a recall waits for a busy session: not for ever, and not for the run that booked it."""
    is_put_off = kind_of(wake).can_defer and wake.deferrals < rules.max_deferrals
    return is_put_off and _waits_for_session(wake, facts) and facts.busy_run_id != wake.booked_by_run


def _waits_for_session(wake: Wake, facts: Facts) -> bool:
    """Return whether another run executes in the session of this wake; its own earlier occurrence is an overlap."""
    return kind_of(wake).landing == "origin" and facts.busy_run_id not in (None, facts.running_run_id)


def _defer(wake: Wake, lateness: missed.Lateness, now: datetime, rules: Rules) -> Verdict:
    deferred = replace(
        wake,
        attempt_at=now + rules.defer_by,
        first_due_at=lateness.first_due_at,
        is_missed=lateness.is_missed,
        held_by="deferred",
        deferrals=wake.deferrals + 1,
        updated_at=now,
    )
    said = _say(wake, now, "deferred", until=deferred.attempt_at.isoformat(), deferrals=deferred.deferrals)
    return Verdict(wake=deferred, action="deferred", decisions=(said,))


def _record(wake: Wake, lateness: missed.Lateness, plan: missed.Plan, facts: Facts, now: datetime) -> Verdict:
    """Give every planned instant up to now its one row, and move the wake on."""
    rows = [_run(wake, piece, "skipped", "missed", now) for piece in plan.skipped]
    fold: Fold | None = None
    queued: list[Run] = []
    if _gives_way(wake, facts):
        rows += [_run(wake, piece, "skipped", "user_active", now) for piece in plan.runs]
    elif plan.runs and facts.waiting_run_id is not None:
        overlap = _run(wake, missed.join(plan.runs), "queued", "overlap", now)
        fold = Fold(into=facts.waiting_run_id, run=overlap)
    elif plan.runs and facts.running_run_id is not None:
        queued = [_run(wake, missed.join(plan.runs), "queued", "overlap", now)]
    else:
        queued = [
            _run(wake, piece, "queued", "missed" if lateness.covers(piece.first) else None, now) for piece in plan.runs
        ]
    sessions = tuple(_fresh_session(wake, run, now) for run in queued if run.session_id != wake.session_id)
    return Verdict(
        wake=_move_on(wake, lateness, plan.next_at, queued, rows, now),
        action=None if queued or fold else "skipped",  # what is queued says that it fired when its run begins
        runs=(*rows, *queued),
        sessions=sessions,
        fold=fold,
        decisions=_explain(wake, lateness, plan, _waits_for_session(wake, facts) and bool(queued or fold), fold, now),
    )


def _explain(
    wake: Wake, lateness: missed.Lateness, plan: missed.Plan, is_behind: bool, fold: Fold | None, now: datetime
) -> tuple[Decision, ...]:
    """Say what was out of the ordinary; the plain course stands in the run itself."""
    said: list[Decision] = []
    if lateness.is_missed:
        late = round((lateness.first_due_at - wake.nominal_at).total_seconds())
        said.append(_say(wake, now, "missed", policy=wake.on_miss, late_seconds=late, count=plan.missed))
    if is_behind:
        said.append(_say(wake, now, "queued_while_busy", deferrals=wake.deferrals))
    if fold is not None:
        said.append(_say(wake, now, "folded", run_id=fold.into, count=fold.run.covers))
    return tuple(said)


def _run(wake: Wake, piece: missed.Piece, status: RunStatus, reason: str | None, now: datetime) -> Run:
    run = ids.run_id(wake.id, piece.first)
    is_fresh = kind_of(wake).landing == "fresh" and status == "queued"
    return Run(
        id=run,
        agent_id=wake.agent_id,
        user_id=wake.user_id,
        session_id=ids.session_id_of(run, now) if is_fresh else wake.session_id,
        wake_id=wake.id,
        kind=wake.kind,
        trigger="wake",
        scheduled_by=wake.scheduled_by,
        nominal_at=piece.first,
        covers=piece.covers,
        priority=wake.priority,
        status=status,
        reason=reason,
        queued_at=now,
        finished_at=now if status == "skipped" else None,
    )


def _fresh_session(wake: Wake, run: Run, now: datetime) -> Session:
    assert run.session_id is not None
    return Session(
        id=run.session_id,
        agent_id=wake.agent_id,
        user_id=wake.user_id,
        title=str((wake.session_config or {}).get("session_name") or wake.comment or first_words(wake.instructions)),
        created_at=now,
        updated_at=now,
        origin_session_id=wake.session_id,
        origin_wake_id=wake.id,
        origin_label=wake.comment or None,
    )


def _move_on(
    wake: Wake,
    lateness: missed.Lateness,
    next_at: datetime | None,
    queued: list[Run],
    skipped: list[Run],
    now: datetime,
) -> Wake:
    """A recurring wake goes to its next planned instant here, so a cancel made inside its own run stays."""
    started = wake.runs_started + len(queued)
    if not wake.is_recurring:
        is_fresh = bool(queued) and queued[0].session_id != wake.session_id
        return replace(
            wake,
            status="queued" if queued else "skipped",
            reason=None if queued else skipped[-1].reason,
            first_due_at=lateness.first_due_at,
            is_missed=lateness.is_missed,
            created_session_id=queued[0].session_id if is_fresh else None,
            runs_started=started,
            held_by=None,
            error=None,
            updated_at=now,
        )
    if wake.max_runs is not None and started >= wake.max_runs:
        return replace(_end(wake, "fired", "max_runs", now), runs_started=started)
    if next_at is None:
        return replace(_end(wake, "fired", "until", now), runs_started=started)
    return replace(
        wake,
        nominal_at=next_at,
        attempt_at=next_at,
        first_due_at=None,
        is_missed=False,
        held_by=None,
        error=None,
        deferrals=0,
        runs_started=started,
        updated_at=now,
    )


# ── Changing and ending one ─────────────────────────────────────────────────────────────────────────────────────────


def cancel(wake: Wake, reason: str | None, now: datetime) -> Wake:
    """End a live wake; the row stays."""
    if not wake.is_live:
        raise WakeNotLive(wake)
    return _end(wake, "cancelled", reason, now)


def say_cancelled(wake: Wake, reason: str | None, now: datetime) -> Decision:
    """Record that someone or something ended a wake before its time."""
    return _say(wake, now, "cancelled", reason=reason)


def supersede(wake: Wake, now: datetime) -> Wake:
    """Make room in its slot for a newer one."""
    return _end(wake, "superseded", None, now)


def skip(wake: Wake, now: datetime) -> Verdict:
    """Leave out the next planned instant of a recurring wake and go on after it, never into the past."""
    if not wake.is_recurring:
        raise WakeFiresOnce(wake.id)
    if wake.status != "pending":
        raise WakeNotLive(wake)
    in_time = missed.Lateness(now, is_missed=False)
    plan = missed.divide(wake, in_time, max(wake.nominal_at, now), most=1)
    row = _run(wake, missed.join(plan.runs), "skipped", "skipped_by_request", now)
    return Verdict(wake=_move_on(wake, in_time, plan.next_at, [], [row], now), action="skipped", runs=(row,))


def edit(wake: Wake, changes: Mapping[str, Any], now: datetime, rules: Rules) -> Wake:
    """Change a pending wake for a person. A new time or rule starts afresh; what has fired already stays."""
    if wake.status != "pending":
        raise WakeNotLive(wake)
    is_planned = bool(changes.keys() & {"nominal_at", "every", "cron", "timezone"})
    changed = replace(wake, **changes, seen_at=now, updated_at=now if is_planned else max(wake.updated_at, now))
    _check_texts(changed.instructions, changed.comment)
    if changed.timezone is not None:
        load_zone(changed.timezone)
    if changed.is_recurring:
        _check_recurrence(changed.kind, changed.every, changed.cron, changed.timezone, rules)
    else:
        _check_once(changed.call_type, changed.every, changed.cron)
    if is_planned:
        changed = _plan_afresh(changed, changes.get("nominal_at"), now)
    _check_end(changed.until, changed.max_runs, changed.nominal_at)
    if changed.max_runs is not None and changed.max_runs <= changed.runs_started:
        raise Invalid(
            f"max_runs is {changed.max_runs}, and {changed.runs_started} have begun already. Give more, or cancel it.",
            field="max_runs",
        )
    return changed


def _plan_afresh(wake: Wake, not_before: datetime | None, now: datetime) -> Wake:
    if wake.cron is not None:
        nominal_at = _first_by_cron(wake.cron, wake.timezone, not_before, now)
    else:
        nominal_at = max(wake.nominal_at, now)
    return replace(
        wake,
        nominal_at=nominal_at,
        attempt_at=nominal_at,
        first_due_at=None,
        is_missed=False,
        held_by=None,
        deferrals=0,
    )


def run_now(wake: Wake, now: datetime) -> Verdict:
    """Run a pending wake because a person said so: a once-wake is used up, a recurring one keeps its times."""
    if wake.status != "pending":
        raise WakeNotLive(wake)
    run = replace(_run(wake, missed.Piece(wake.nominal_at, 1), "queued", None, now), trigger="run_now")
    if wake.is_recurring:
        return Verdict(wake=wake, runs=(replace(run, id=ids.new_id(now), nominal_at=now, covers=0),))
    sessions = (_fresh_session(wake, run, now),) if run.session_id != wake.session_id else ()
    return Verdict(
        wake=_move_on(wake, missed.Lateness(now, is_missed=False), None, [run], [], now), runs=(run,), sessions=sessions
    )


def run_again(wake: Wake, now: datetime) -> Verdict:
    """Run a wake once more because a person said so, whatever became of it; it stays as it is."""
    run_id = ids.new_id(now)
    run = replace(_run(wake, missed.Piece(now, 0), "queued", None, now), id=run_id, trigger="run_now")
    if run.session_id != wake.session_id:
        run = replace(run, session_id=ids.session_id_of(run_id, now))
        return Verdict(wake=wake, runs=(run,), sessions=(_fresh_session(wake, run, now),))
    return Verdict(wake=wake, runs=(run,))


def back_off(wake: Wake, now: datetime, rules: Rules) -> Wake:
    """Count a failure of a recurring wake; after several in a row it comes back later each time, never not at all."""
    failures = wake.failures + 1
    # Left alone if it lies ahead: so it shows that a wrong clock has planned this wake.
    counted = replace(wake, failures=failures, updated_at=max(wake.updated_at, now))
    if failures < rules.failures_before_backoff or wake.status != "pending":
        return counted
    doublings = failures - rules.failures_before_backoff + 1
    seconds = min(
        _usual_pause(wake, now).total_seconds() * 2.0 ** min(doublings, 64), rules.max_backoff.total_seconds()
    )
    # From the planned instant, not from a hold's end: a pause that is lifted lets go only of what it holds itself.
    return replace(counted, attempt_at=max(wake.nominal_at, now + timedelta(seconds=seconds)), held_by="backoff")


def _usual_pause(wake: Wake, now: datetime) -> timedelta:
    return wake.every or max(wake.nominal_at - now, timedelta(minutes=1))


def _end(wake: Wake, status: WakeStatus, reason: str | None, now: datetime) -> Wake:
    return replace(wake, status=status, reason=reason, held_by=None, updated_at=now)


def _say(wake: Wake, now: datetime, code: str, *, run_id: str | None = None, **detail: Any) -> Decision:
    return Decision(wake_id=wake.id, nominal_at=wake.nominal_at, at=now, code=code, run_id=run_id, detail=detail)
