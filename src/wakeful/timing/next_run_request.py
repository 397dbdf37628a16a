"""Requests for a next run, of which an agent has at most one. The field names are those of Osaurus."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

from wakeful.core.errors import Forbidden, Invalid, NotFound
from wakeful.core.texts import check_text, show
from wakeful.core.types import FOREVER, Agent, OnMiss, Priority, Rules, Run, ScheduledBy, Wake
from wakeful.core.values import MAX_TIME_TEXT, Param
from wakeful.timing.bounds import Clamped
from wakeful.timing.lifecycle import MAX_INSTRUCTIONS, RequestedTime, create, requested_time
from wakeful.timing.when import BadTime, parse_when, read_instant

MAX_SECONDS = 10 * 366 * 86_400  # ten years; the agent's own horizon is shorter
_EARLIEST = datetime(1970, 1, 2, tzinfo=UTC)
_ISO_FORM = "ISO 8601 with a UTC offset or Z, such as '2026-11-16T09:00:00+01:00'"


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRunRequest:
    """A request for a next run."""

    in_seconds: Annotated[
        int | None,
        Param("Seconds from now. Give this or scheduled_at, not both; this is the safer one.", ge=-(2**53), le=2**53),
    ] = None
    scheduled_at: Annotated[
        str | None,
        Param("ISO 8601 with a UTC offset or Z, such as 2026-11-16T09:00:00+01:00.", max_length=MAX_TIME_TEXT),
    ] = None
    when: Annotated[str | None, Param(max_length=MAX_TIME_TEXT)] = None  # as text, for people, instead of the two
    timezone: Annotated[str | None, Param(max_length=MAX_TIME_TEXT)] = None  # of `when`
    instructions: Annotated[
        str,
        Param(
            "The brief you will read when you wake, in a fresh session that knows nothing of this one: what to do, "
            "with which tools, files or URLs, and whether to book the run after it."
        ),
    ]
    context_views: Annotated[
        tuple[str, ...], Param("Names of saved views of your database to be shown with the brief.")
    ] = ()
    priority: Annotated[Priority, Param("low is skipped if your user is talking with you when it is due.")] = "normal"
    on_miss: Annotated[OnMiss | None, Param("What to do if the server was down at the time. Default: skip.")] = None


class UnknownView(Invalid):
    code = "unknown_view"

    def __init__(self, name: str, known: Collection[str], field: str) -> None:
        there_are = f"It has: {', '.join(sorted(known))}." if known else f"It has none: leave {field!r} out."
        super().__init__(f"There is no view {show(name)} in this agent's database. {there_are}", field=field)


class ViewNeedsParameters(Invalid):
    code = "view_needs_parameters"

    def __init__(self, name: str, needed: Sequence[str]) -> None:
        super().__init__(
            f"The view {show(name)} cannot be run without its parameters {', '.join(needed)}. Name one that can, or "
            "define it again with defaults.",
            field="context_views",
        )


class NoNextRun(NotFound):
    code = "no_next_run"

    def __init__(self, agent_id: str) -> None:
        super().__init__(
            f"No next run is booked for agent {agent_id!r}, so there is nothing to change, run or cancel. Book one "
            "first."
        )


class SelfSchedulingOff(Forbidden):
    code = "self_scheduling_off"

    def __init__(self, agent: Agent) -> None:
        super().__init__(
            f"Self-scheduling (`self_scheduling`) is off for agent {agent.name!r}, so it cannot book, change "
            "or notify. Its user can turn it on."
        )


def slot_of(agent_id: str) -> str:
    """Return the slot of an agent's next run."""
    return f"agent:{agent_id}"


def is_own(booked: Run | Wake) -> bool:
    """Return whether this is a next run that the agent itself booked."""
    return booked.kind == "next_run" and booked.scheduled_by == "agent"


def read_time(request: NextRunRequest, now: datetime, known_zone: str | None = None) -> RequestedTime:
    """Return the requested instant, past or not; raises an error that says what is wrong with it."""
    if request.when is not None:
        if request.scheduled_at is not None or request.in_seconds is not None:
            raise BadTime(
                f"`when` is {show(request.when)}, and another time is given too. Give exactly one of them.",
                field="when",
            )
        zone = request.timezone or known_zone
        return requested_time(request.when, parse_when(request.when, now, zone), zone)
    if request.scheduled_at is not None and request.in_seconds is not None:
        raise BadTime(
            f"Both 'scheduled_at' ({show(request.scheduled_at)}) and 'in_seconds' ({request.in_seconds}) are given. "
            "Give exactly one of them.",
            field="in_seconds",
        )
    if request.in_seconds is not None:
        return RequestedTime(requested=f"in {request.in_seconds} s", at=_read_seconds(request.in_seconds, now))
    if request.scheduled_at is not None:
        at = read_instant(request.scheduled_at, "scheduled_at", "in_seconds")
        if not _EARLIEST <= at < FOREVER:  # outside the range of datetime in some time zone
            raise BadTime(
                f"`scheduled_at` is {show(request.scheduled_at)}, which is out of range. Give a time between 1970 and "
                "9998.",
                field="scheduled_at",
            )
        return RequestedTime(requested=request.scheduled_at, at=at)
    raise BadTime(
        "No time is given. Give exactly one of 'in_seconds' (a whole number of seconds from now) and 'scheduled_at' "
        f"({_ISO_FORM}).",
        field="in_seconds",
    )


def check_views(names: Collection[str], known: Mapping[str, Sequence[str]]) -> None:
    """Refuse views that cannot be run by name alone. `known` has the required parameters of each view."""
    for name in names:
        check_view(name, known, "context_views")
        if known[name]:
            raise ViewNeedsParameters(name, known[name])


def check_view(name: str, known: Collection[str], field: str) -> None:
    """Refuse the name of a view that the agent's database does not have."""
    if name not in known:
        raise UnknownView(name, known, field)


def make(
    request: NextRunRequest,
    asked_time: RequestedTime,
    clamped: Clamped,
    agent: Agent,
    now: datetime,
    rules: Rules,
    *,
    by: ScheduledBy,
    booked_by_run: str | None = None,
    tools: tuple[str, ...] | None = None,
) -> Wake:
    """Create the wake of a next run. It has no session: it gets a new one, and outlives the one it was booked in."""
    return create(
        kind="next_run",
        agent_id=agent.id,
        user_id=agent.user_id,
        session_id=None,
        call_type="once",
        instructions=check_text("instructions", request.instructions, MAX_INSTRUCTIONS),
        timezone=agent.known_zone,
        scheduled_by=by,
        now=now,
        rules=rules,
        at=clamped.at,
        asked_time=replace(asked_time, moved_by=(*asked_time.moved_by, *clamped.reasons)),
        context_views=request.context_views,
        priority=request.priority,
        on_miss=request.on_miss,
        booked_by_run=booked_by_run,
        tools=tools,
    )


def _read_seconds(seconds: int, now: datetime) -> datetime:
    if abs(seconds) > MAX_SECONDS:
        raise BadTime(
            f"'in_seconds' is {show(seconds)}, further than any agent's horizon. "
            f"Give a whole number of seconds, at most {MAX_SECONDS}.",
            field="in_seconds",
        )
    return now + timedelta(seconds=seconds)
