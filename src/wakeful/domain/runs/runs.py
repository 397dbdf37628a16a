"""Outcomes of runs, and recovery of runs whose owner died."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from wakeful.domain.bounds.limits import Rules
from wakeful.domain.errors import Conflict
from wakeful.domain.events import ErrorFrame, RunFrame, StreamStopped
from wakeful.domain.types import Run, RunNote

OUTAGE = "outage"  # why a run waits whose model did not answer
OUTAGES = frozenset({"model_busy", "model_cut_off"})  # codes of errors that may be over later
_FIRST_PAUSE = timedelta(minutes=1)

OutcomeStatus = Literal["success", "failed", "stopped"]


class SessionBusy(Conflict):
    code = "session_busy"

    def __init__(self, run: Run) -> None:
        what = "a scheduled run" if run.is_headless else "another message"
        super().__init__(
            f"The agent is still working on {what} in this session (run {run.id!r}). "
            "Wait for its end or stop it, then send the message again."
        )
        self.run = run


class LeaseLost(Conflict):
    """A process tried to write whose lease has expired; another one may hold the run by now."""

    code = "lease_lost"

    def __init__(self, run: Run) -> None:
        super().__init__(f"Run {run.id!r} is no longer held by this process (fence {run.fence}).")


class NothingToContinue(Conflict):
    code = "nothing_to_continue"

    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id!r} is {run.status}, so there is nothing to continue. "
            "Only a run that was interrupted, failed or was stopped can be continued."
        )


class NotFromAWake(Conflict):
    code = "not_from_a_wake"

    def __init__(self, run: Run) -> None:
        super().__init__(f"Run {run.id!r} answered a message. To have it answered again, send the message again.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of executing a run."""

    status: OutcomeStatus
    reason: str | None = None
    note: RunNote | None = None  # worth knowing about a run that succeeded
    error: str | None = None


def recover(run: Run, now: datetime, rules: Rules) -> Run:
    """Decide about a run whose lease has expired: another attempt from its last saved step, or the end.

    A start that reached no model or tool call does not count as an attempt. Such starts have their own limit, so that a
    run that crashes the process early does not do so for ever.
    """
    freed = replace(run, owner=None, lease_until=None)
    if not run.has_called:
        freed = replace(freed, attempt=run.attempt - 1, lost_starts=run.lost_starts + 1)
    if run.stop_requested_at is not None:
        return replace(freed, status="stopped", reason="stopped", finished_at=now)
    if run.has_called and run.attempt >= rules.max_attempts:
        error = f"The process died {run.attempt} times while it executed this run."
        return replace(freed, status="interrupted", reason="attempts_used_up", error=error, finished_at=now)
    if freed.lost_starts >= rules.max_lost_starts:
        error = f"The process died {freed.lost_starts} times before this run reached a model or tool call."
        return replace(freed, status="interrupted", reason="starts_used_up", error=error, finished_at=now)
    if not run.is_headless and run.lease_until is not None and now - run.lease_until > rules.resume_chat_within:
        error = "The server was down for too long to continue by itself."
        return replace(freed, status="interrupted", reason="away_too_long", error=error, finished_at=now)
    return replace(freed, status="queued", reason="resumed", is_resuming=True)


def try_again_at(since: datetime, now: datetime, rules: Rules) -> datetime | None:
    """Return when to try a run again whose model has not answered since a time; None: it has been held long enough.

    The pause is as long as the outage so far, and the last try is at the end of the hold.
    """
    ends_at = since + rules.outage_hold
    if now >= ends_at:
        return None
    return min(now + min(max(now - since, _FIRST_PAUSE), rules.max_outage_pause), ends_at)


def interrupt_restored(run: Run, now: datetime) -> Run | None:
    """End a run that was not over when a backup was made: the server of that time may have finished it.

    None: it is left as it is, because a pause holds it.
    """
    if run.status == "queued" and run.trigger == "wake" and run.started_at is None:
        return None
    error = "It was not over when the backup was made that this server was restored from."
    return replace(
        run, status="interrupted", reason="restored", error=error, finished_at=now, owner=None, lease_until=None
    )


def last_frame(run: Run) -> RunFrame | None:
    """Return the frame that ends the stream of a recovered run; None: the run continues."""
    if run.status == "stopped":
        return StreamStopped()
    if run.status == "interrupted":
        return ErrorFrame(message=run.error or "The run was interrupted.", code="interrupted")
    return None
