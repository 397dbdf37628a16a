"""Rules of runs: outcomes, recovery, approvals, versions of a turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from wakeful.core.errors import Conflict, Invalid, NotFound
from wakeful.core.events import ErrorFrame, RunFrame, StreamStopped
from wakeful.core.records import Allowance, Approval
from wakeful.core.types import Message, Rules, Run, Wake

# ── Outcomes, and recovery of runs whose owner died ───────────────────────────────────────────────────────────────────


OUTAGE = "outage"  # why a run waits whose model did not answer
OUTAGES = frozenset({"model_busy", "model_cut_off"})  # codes of errors that may be over later
_FIRST_PAUSE = timedelta(minutes=1)


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


# ── Tool calls that need a person's approval ──────────────────────────────────────────────────────────────────────────


MAX_NOTICES = 5  # of one run
GRANT = "granted:"  # prefix of the id of a call of an earlier run that was approved for this one


class AlwaysNeedsApproval(Invalid):
    code = "always_needs_approval"

    def __init__(self) -> None:
        super().__init__("`always` must be false if the call is refused. Set `approve` to true.", field="always")


class NoSuchApproval(NotFound):
    code = "no_such_approval"

    def __init__(self, run_id: str, call_id: str) -> None:
        super().__init__(
            f"Run {run_id!r} has not asked about a call {call_id[:100]!r}. GET /runs/{run_id}/approvals lists what it "
            "asks."
        )


class AlreadyAnswered(Conflict):
    code = "already_answered"

    def __init__(self, approval: Approval) -> None:
        super().__init__(
            f"The call {approval.call_id[:100]!r} was {approval.status} already, and a run asks once. Write to the "
            "agent if you have changed your mind."
        )


class RunIsOver(Conflict):
    code = "run_is_over"

    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id!r} is {run.status}, so it no longer waits for an answer. Send the agent a new message."
        )


def is_granted(grant: Approval, tool: str, args: Mapping[str, Any]) -> bool:
    """Return whether a person approved exactly this call for this run beforehand."""
    return (
        grant.call_id.startswith(GRANT)
        and grant.status == "approved"
        and (grant.tool, grant.args) == (tool, dict(args))
    )


def covers(allowance: Allowance, asked: Approval) -> bool:
    """Return whether a call waits for an answer that is no longer needed, because its tool is allowed now."""
    is_same = (asked.session_id, asked.agent_id, asked.tool) == (
        allowance.session_id,
        allowance.agent_id,
        allowance.tool,
    )
    return is_same and asked.status == "pending"


# ── The text that a run was given, and its answer ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTexts:
    """Both are empty if there is none: the session was deleted, or the run has not answered."""

    brief: str
    answer: str


def texts_of(messages: Sequence[Message], wake: Wake | None) -> RunTexts:
    """Read both from the messages of a run; one that has not begun is given the instructions of its wake."""
    asked = [each.content for each in messages if each.role == "user" and each.source != "preloaded"]
    replies = [each.content for each in messages if each.role == "assistant" and each.source != "preloaded"]
    brief = asked[0] if asked else "" if wake is None else wake.instructions
    return RunTexts(brief=brief, answer=next((each for each in reversed(replies) if each.strip()), ""))


# ── Versions of a turn ────────────────────────────────────────────────────────────────────────────────────────────────

# A person edits their last message, or has it answered again. Earlier versions stay readable.


class NoSuchMessage(NotFound):
    code = "no_such_message"

    def __init__(self, message_id: str) -> None:
        super().__init__(
            f"There is no message {message_id!r} in this session. GET the session: its messages have their ids."
        )


class NotTheLastMessage(Conflict):
    code = "not_the_last_message"

    def __init__(self) -> None:
        super().__init__(
            "Only your last message can be edited or answered again, and only until a scheduled run follows it. Send a "
            "new message instead."
        )


class ReplacedByVersion(Conflict):
    code = "replaced_by_version"

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"Run {run_id!r} belongs to an earlier version of the conversation, so it cannot be continued. Continue "
            "the run that replaced it, or send a new message."
        )


def current_version(messages: Sequence[Message]) -> list[Message]:
    """Return the messages that are part of the conversation, without earlier versions."""
    return [message for message in messages if message.superseded_by is None]


def find_last_asked(messages: Sequence[Message], message_id: str) -> Message:
    """Return a person's last message, if this is it: only that one can be replaced."""
    asked = next((message for message in messages if message.id == message_id), None)
    if asked is None:
        raise NoSuchMessage(message_id)
    last = next((message for message in reversed(current_version(messages)) if message.role == "user"), None)
    if asked is not last or asked.wake_id is not None or asked.source is not None:
        raise NotTheLastMessage
    return asked
