"""Tool calls that need a person's approval."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from wakeful.domain.errors import Conflict, Invalid, NotFound
from wakeful.domain.runs.call_words import ShownArgument, show_arguments
from wakeful.domain.types import Run

# refused: no person was present. used: the call was started, so after a crash it is not known whether it happened.
ApprovalStatus = Literal["pending", "approved", "denied", "refused", "used"]

MAX_NOTICES = 5  # of one run
GRANT = "granted:"  # prefix of the id of a call of an earlier run that was approved for this one


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One call, and the answer of a person."""

    run_id: str
    call_id: str
    user_id: str
    session_id: str
    agent_id: str | None = None  # the agent that makes the call; None: asked before 0.2
    tool: str
    args: Mapping[str, Any]
    status: ApprovalStatus
    sentence: str = ""  # what the call would do, in the host's words; empty: asked before 0.2
    note: str | None = None
    asked_at: datetime
    answered_at: datetime | None = None

    @property
    def shown(self) -> tuple[ShownArgument, ...]:
        """Return every argument, for people to read before they answer."""
        return show_arguments(self.args)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A tool that a person lets an agent call in a session without being asked each time."""

    id: str
    user_id: str
    agent_id: str
    session_id: str
    tool: str
    created_at: datetime


class NoSuchAllowance(NotFound):
    code = "no_such_allowance"

    def __init__(self, allowance_id: str) -> None:
        super().__init__(
            f"There is no allowed tool {allowance_id!r} of this agent. It may have been revoked, or its session was "
            "deleted. GET /agents/ID/allowances lists them."
        )


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
