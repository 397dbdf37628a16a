"""Edit, skip, cancel or run a wake on request, and back off after failures."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from wakeful.domain import ids
from wakeful.domain.bounds.limits import Rules
from wakeful.domain.errors import Conflict, Invalid
from wakeful.domain.types import Decision, Wake
from wakeful.domain.values import replace
from wakeful.domain.wakes import missed
from wakeful.domain.wakes.create import check_end, check_fields, first_by_cron
from wakeful.domain.wakes.fire import Verdict, decision, end, fresh_session, make_run, move_on, plan_for


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


def say_cancelled(wake: Wake, reason: str | None, now: datetime) -> Decision:
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
    in_time = missed.Lateness(now, is_missed=False)
    plan = missed.divide(wake, in_time, max(wake.nominal_at, now), most=1)
    row = make_run(wake, missed.join(plan.runs), "skipped", "skipped_by_request", now)
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
    run = replace(make_run(wake, missed.Piece(wake.nominal_at, 1), "queued", None, now), trigger="run_now")
    if wake.is_recurring:
        return Verdict(wake=wake, runs=(replace(run, id=ids.new_id(now), nominal_at=now, covers=0),))
    sessions = (fresh_session(wake, run, now),) if run.session_id != wake.session_id else ()
    used_up = move_on(wake, missed.Lateness(now, is_missed=False), None, [run], [], now)
    return Verdict(wake=used_up, runs=(run,), sessions=sessions)


def run_again(wake: Wake, now: datetime) -> Verdict:
    """Run a wake once more by hand, whatever its status; the wake stays as it is."""
    run_id = ids.new_id(now)
    run = replace(make_run(wake, missed.Piece(now, 0), "queued", None, now), id=run_id, trigger="run_now")
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
