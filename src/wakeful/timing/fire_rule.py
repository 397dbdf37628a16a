"""Fire a due wake: the whole decision as a pure function of the wake, the facts about it, and the time.

The scheduler writes the verdict in one transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from wakeful.core import ids
from wakeful.core.events import RecallAction
from wakeful.core.labels import is_braked
from wakeful.core.texts import title_of
from wakeful.core.types import (
    Bounds,
    Decision,
    Notice,
    Pause,
    Rules,
    Run,
    RunStatus,
    Session,
    Wake,
    WakeStatus,
    kind_of,
)
from wakeful.core.values import replace, value
from wakeful.notices.texts import make_notice
from wakeful.timing import recurrence
from wakeful.timing.bounds import free_from, next_midnight


@value
class Facts:
    """Facts about a due wake that its row does not contain."""

    agent_timezone: str
    bounds: Bounds | None = None  # None: they do not apply to this wake
    pauses: Sequence[Pause] = ()
    used_today: int = 0  # of the agent's daily cap
    started_lately: int = 0  # runs that the agent's own bookings started in the last hour
    first_lately: datetime | None = None
    token_started: int = 0  # runs that the token which booked it started in the last hour, if it has a brake
    token_first: datetime | None = None
    busy_run_id: str | None = None  # the run that executes in its session
    waiting_run_id: str | None = None  # an earlier occurrence that has not started
    running_run_id: str | None = None  # an earlier occurrence that is running
    is_user_talking: bool = False
    gone: str | None = None  # the user or the agent no longer exists


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Planned times that are added to an earlier occurrence which is still queued."""

    into: str
    run: Run  # queued instead if that one has started meanwhile


@value
class Verdict:
    """The changes that firing one wake makes, written in one transaction."""

    wake: Wake
    action: RecallAction | None = None  # sent to subscribers; None: nothing visible has changed
    runs: tuple[Run, ...] = ()
    sessions: tuple[Session, ...] = ()
    fold: Fold | None = None
    decisions: tuple[Decision, ...] = ()
    notice: Notice | None = None


def fire(wake: Wake, facts: Facts, now: datetime, rules: Rules) -> Verdict:
    """Decide about a due wake: hold it, defer it, run it, catch up on it, or record that it did not run."""
    if facts.gone is not None:
        ended = end(wake, "cancelled", facts.gone, now)
        return Verdict(wake=ended, action="cancelled", decisions=(decision(wake, now, facts.gone),))
    hold = _find_hold(wake, facts, now, rules)
    if hold is not None:
        return _hold(wake, *hold, now)
    lateness = _judge_lateness(wake, facts, now, rules)
    plan = recurrence.divide_missed(wake, lateness, now, most=_max_runs(wake, facts, rules))
    if plan.runs and not _gives_way(wake, facts) and _must_defer(wake, facts, rules):
        return _defer(wake, lateness, now, rules)
    return _record(wake, lateness, plan, facts, now)


def _find_hold(wake: Wake, facts: Facts, now: datetime, rules: Rules) -> tuple[datetime, str] | None:
    # A pause holds even if the clock was set back since, to a time before the pause started.
    pauses = [replace(pause, started_at=min(pause.started_at, now)) for pause in facts.pauses]
    free_at, reasons = free_from(now, facts.bounds, facts.agent_timezone, pauses)
    if free_at > now:
        return free_at, reasons[0]
    if facts.bounds is not None and facts.used_today >= facts.bounds.daily_cap:
        return next_midnight(now, facts.agent_timezone), "daily_cap"
    if wake.scheduled_by == "agent" and facts.started_lately >= rules.runs_per_hour:
        return (facts.first_lately or now) + timedelta(hours=1), "brake"
    if is_braked(wake) and facts.token_started >= rules.runs_per_token:
        return (facts.token_first or now) + timedelta(hours=1), "token_brake"
    return None


def _hold(wake: Wake, until: datetime, reason: str, now: datetime) -> Verdict:
    held = replace(wake, attempt_at=until, held_by=reason, updated_at=now)
    if wake.held_by == reason:  # recorded already
        return Verdict(wake=held)
    return Verdict(
        wake=held,
        decisions=(decision(wake, now, reason, until=until.isoformat()),),
        notice=_notice_of_brake(wake, until, reason, now),
    )


def _notice_of_brake(wake: Wake, until: datetime, reason: str, now: datetime) -> Notice | None:
    if reason == "brake":
        return make_notice("brake", wake, now, until=until)
    if reason == "token_brake":
        return make_notice("hook_brake" if wake.door == "hook" else "token_brake", wake, now, until=until)
    return None


def _judge_lateness(wake: Wake, facts: Facts, now: datetime, rules: Rules) -> recurrence.Lateness:
    """Decide once whether the wake was missed; time in which a pause or a limit held it does not count."""
    if wake.first_due_at is not None:
        return recurrence.Lateness(wake.first_due_at, is_missed=wake.is_missed, grace=rules.grace)
    free_at, _ = free_from(wake.nominal_at, facts.bounds, facts.agent_timezone, facts.pauses)
    if wake.held_by is not None:
        free_at = max(free_at, wake.attempt_at)
    return recurrence.Lateness(now, is_missed=now - free_at > rules.grace, grace=rules.grace)


def _max_runs(wake: Wake, facts: Facts, rules: Rules) -> int:
    most = rules.max_catchup
    if wake.max_runs is not None:
        most = min(most, wake.max_runs - wake.runs_started)
    if wake.scheduled_by == "agent":
        most = min(most, rules.runs_per_hour - facts.started_lately)
    if is_braked(wake):
        most = min(most, rules.runs_per_token - facts.token_started)
    return most


def _gives_way(wake: Wake, facts: Facts) -> bool:
    return wake.priority == "low" and facts.is_user_talking


def _must_defer(wake: Wake, facts: Facts, rules: Rules) -> bool:
    """Return whether a recall is deferred for a busy session: a few times, and never for the run that booked it."""
    can_defer = kind_of(wake).can_defer and wake.deferrals < rules.max_deferrals
    return can_defer and _waits_for_session(wake, facts) and facts.busy_run_id != wake.booked_by_run


def _waits_for_session(wake: Wake, facts: Facts) -> bool:
    """Return whether another run executes in the session of this wake; its own earlier occurrence is an overlap."""
    return kind_of(wake).landing == "origin" and facts.busy_run_id not in (None, facts.running_run_id)


def _defer(wake: Wake, lateness: recurrence.Lateness, now: datetime, rules: Rules) -> Verdict:
    deferred = replace(
        wake,
        attempt_at=now + rules.defer_by,
        first_due_at=lateness.first_due_at,
        is_missed=lateness.is_missed,
        held_by="deferred",
        deferrals=wake.deferrals + 1,
        updated_at=now,
    )
    why = decision(wake, now, "deferred", until=deferred.attempt_at.isoformat(), deferrals=deferred.deferrals)
    return Verdict(wake=deferred, action="deferred", decisions=(why,))


def _record(wake: Wake, lateness: recurrence.Lateness, plan: recurrence.Plan, facts: Facts, now: datetime) -> Verdict:
    """Give every planned time up to now exactly one row, and move the wake to its next time."""
    rows = [make_run(wake, piece, "skipped", "missed", now) for piece in plan.skipped]
    fold: Fold | None = None
    queued: list[Run] = []
    if _gives_way(wake, facts):
        rows += [make_run(wake, piece, "skipped", "user_active", now) for piece in plan.runs]
    elif plan.runs and (facts.waiting_run_id or facts.running_run_id):
        overlap = make_run(wake, recurrence.join_missed(plan.runs), "queued", "overlap", now)
        if facts.waiting_run_id is not None:
            fold = Fold(into=facts.waiting_run_id, run=overlap)
        else:
            queued = [overlap]
    else:
        queued = [
            make_run(wake, piece, "queued", "missed" if lateness.covers(piece.first) else None, now)
            for piece in plan.runs
        ]
    is_behind = _waits_for_session(wake, facts) and bool(queued or fold)
    return Verdict(
        wake=move_on(wake, lateness, plan.next_at, queued, rows, now),
        action=None if queued or fold else "skipped",  # a queued run announces "fired" when it starts
        runs=(*rows, *queued),
        sessions=tuple(fresh_session(wake, run, now) for run in queued if run.session_id != wake.session_id),
        fold=fold,
        decisions=_explain(wake, lateness, plan, is_behind, fold, now),
    )


def _explain(
    wake: Wake, lateness: recurrence.Lateness, plan: recurrence.Plan, is_behind: bool, fold: Fold | None, now: datetime
) -> tuple[Decision, ...]:
    """Return what was unusual; the rest is in the run itself."""
    found: list[Decision] = []
    if lateness.is_missed:
        late = round((lateness.first_due_at - wake.nominal_at).total_seconds())
        found.append(decision(wake, now, "missed", policy=wake.on_miss, late_seconds=late, count=plan.missed))
    if is_behind:
        found.append(decision(wake, now, "queued_while_busy", deferrals=wake.deferrals))
    if fold is not None:
        found.append(decision(wake, now, "folded", run_id=fold.into, count=fold.run.covers))
    return tuple(found)


# ── Used by edits too ───────────────────────────────────────────────────────────────────────────────────────────────


def make_run(wake: Wake, piece: recurrence.Piece, status: RunStatus, reason: str | None, now: datetime) -> Run:
    """Return the run of a planned time; its id is made from that time, so an occurrence cannot become two runs."""
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
        has_ping=wake.ping_to is not None,
        traceparent=wake.traceparent,
        door=wake.door,
        token_id=wake.token_id,
        token_name=wake.token_name,
        outside_sources=wake.outside_sources,
    )


def fresh_session(wake: Wake, run: Run, now: datetime) -> Session:
    """Return the new session in which a run of this wake executes."""
    assert run.session_id is not None
    return Session(
        id=run.session_id,
        agent_id=wake.agent_id,
        user_id=wake.user_id,
        title=str((wake.session_config or {}).get("session_name") or title_of(wake.comment, wake.instructions)),
        created_at=now,
        updated_at=now,
        origin_session_id=wake.session_id,
        origin_wake_id=wake.id,
        origin_label=wake.comment or None,
    )


def move_on(
    wake: Wake,
    lateness: recurrence.Lateness,
    next_at: datetime | None,
    queued: Sequence[Run],
    skipped: Sequence[Run],
    now: datetime,
) -> Wake:
    """Move a wake past the planned times of these runs.

    A recurring wake moves when it fires, not when its run ends, so a cancel made inside its own run stays.
    """
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
    is_used_up = wake.max_runs is not None and started >= wake.max_runs
    if is_used_up or next_at is None:
        return replace(end(wake, "fired", "max_runs" if is_used_up else "until", now), runs_started=started)
    return replace(plan_for(wake, next_at), error=None, runs_started=started, updated_at=now)


def plan_for(wake: Wake, at: datetime) -> Wake:
    """Return a wake planned for a time, without the holds and deferrals of the time before."""
    return replace(wake, nominal_at=at, attempt_at=at, first_due_at=None, is_missed=False, held_by=None, deferrals=0)


def end(wake: Wake, status: WakeStatus, reason: str | None, now: datetime) -> Wake:
    return replace(wake, status=status, reason=reason, held_by=None, updated_at=now)


def decision(wake: Wake, now: datetime, code: str, *, run_id: str | None = None, **detail: Any) -> Decision:
    return Decision(wake_id=wake.id, nominal_at=wake.nominal_at, at=now, code=code, run_id=run_id, detail=detail)
