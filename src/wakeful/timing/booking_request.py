"""Requests for a wake of any kind, as programs outside make them. A request becomes that of one of the other doors."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from wakeful.core.errors import Conflict, Invalid, WakefulError
from wakeful.core.types import Agent, OnMiss, Wake
from wakeful.core.values import MAX_TIME_TEXT, Param
from wakeful.timing.next_run_request import NextRunRequest
from wakeful.timing.recall_request import MAX_SECONDS, RecallRequest
from wakeful.timing.schedule_request import ScheduleRequest
from wakeful.timing.when import ACCEPTED

BookingDoor = Literal["recall", "session", "next_run"]
MAX_KEY = 200
_NAMES = {
    "additional_context_message": "instructions",
    "message": "instructions",
    "internal_comment": "comment",
    "label": "comment",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingRequest:
    """A request for a wake."""

    agent: Annotated[
        str | None, Param("Name or id of the agent. Left out: that of session_id, else the first one.", max_length=200)
    ] = None
    instructions: Annotated[
        str,
        Param(
            "The task that the agent reads when it wakes, complete in itself: what to do, with which files or "
            "addresses, and how to report the result."
        ),
    ]
    when: Annotated[
        str | None,
        Param(
            f"The time. Relative is best. Accepted: {ACCEPTED}. With interval_seconds the first time, with cron not "
            "before this.",
            max_length=MAX_TIME_TEXT,
        ),
    ] = None
    interval_seconds: Annotated[
        int | None,
        Param("Repeat after this number of seconds; first at `when`, else after one interval.", ge=1, le=MAX_SECONDS),
    ] = None
    cron: Annotated[
        str | None, Param("Repeat by a cron rule of five fields, instead of an interval.", max_length=MAX_TIME_TEXT)
    ] = None
    timezone: Annotated[
        str | None, Param("IANA zone of `when` and `cron`; left out: the agent's.", max_length=MAX_TIME_TEXT)
    ] = None
    door: Annotated[
        BookingDoor,
        Param(
            "recall: in session_id or in a new session, once or repeatedly. session: once, in a new session, within "
            "24 h. next_run: the agent's one next run; replaces the pending one."
        ),
    ] = "recall"
    session_id: Annotated[
        str | None, Param("For recall: the session to run in. For session: where it is booked.", max_length=64)
    ] = None
    on_miss: Annotated[
        OnMiss | None, Param("For recall and next_run: what to do about times when the server was down.")
    ] = None
    comment: Annotated[str | None, Param("For recall and session: a short label for people.", max_length=1_000)] = None
    key: Annotated[
        str | None,
        Param(
            "Your own name for this booking. Repeat it when you retry: the same key books once within 24 hours.",
            max_length=MAX_KEY,
        ),
    ] = None


class NoBookingTime(Invalid):
    code = "no_booking_time"

    def __init__(self) -> None:
        super().__init__("No time is given. Give `when`, or `interval_seconds` or `cron` to repeat it.", field="when")


class NotOfThisDoor(Invalid):
    code = "not_of_this_door"

    def __init__(self, name: str, door: BookingDoor) -> None:
        instead = "Leave it out" if name == "session_id" else "Leave it out, or use door 'recall'"
        super().__init__(f"`{name}` does not go with door {door!r}. {instead}.", field=name)


class OtherAgentsSession(Invalid):
    code = "other_agents_session"

    def __init__(self, session_id: str, agent: Agent) -> None:
        super().__init__(
            f"Session {session_id!r} is one of the agent {agent.name!r}. Leave `agent` out, or name that one.",
            field="agent",
        )


class KeyTaken(Conflict):
    """A key that was used for another booking."""

    code = "key_taken"

    def __init__(self, key: str, first: Wake) -> None:
        super().__init__(
            f"The key {key!r} was used within 24 hours for another booking, wake {first.id!r}. Nothing was booked. "
            "Use a new key.",
            field="key",
        )


def to_recall(request: BookingRequest) -> RecallRequest:
    """Return the request for a recall, once or recurring."""
    is_recurring = request.interval_seconds is not None or request.cron is not None
    when = request.when
    if when is None and request.interval_seconds is not None and request.cron is None:
        when = f"in {request.interval_seconds} seconds"
    if when is None and not is_recurring:
        raise NoBookingTime
    return RecallRequest(
        call_type="recurring" if is_recurring else "once",
        when=when,
        timezone=request.timezone,
        interval_seconds=request.interval_seconds,
        cron=request.cron,
        additional_context_message=request.instructions,
        **_given(on_miss=request.on_miss, internal_comment=request.comment),
    )


def to_schedule(request: BookingRequest) -> ScheduleRequest:
    """Return the request for a session that starts by itself."""
    _refuse(request, ("cron", "interval_seconds", "on_miss"))
    return ScheduleRequest(
        kind="session",
        message=request.instructions,
        when=request.when,
        timezone=request.timezone,
        session_config={},
        **_given(label=request.comment),
    )


def to_next_run(request: BookingRequest) -> NextRunRequest:
    """Return the request for an agent's next run."""
    _refuse(request, ("cron", "interval_seconds", "session_id", "comment"))
    return NextRunRequest(
        when=request.when, timezone=request.timezone, instructions=request.instructions, on_miss=request.on_miss
    )


def is_repeat(first: Wake, wake: Wake) -> bool:
    """Return whether a booking is the same as an earlier one: same agent, text, rule and time."""
    same = ("agent_id", "kind", "instructions", "call_type", "every", "cron")
    if any(getattr(first, name) != getattr(wake, name) for name in same):
        return False
    # A relative time that is sent again means a later instant, but the same request.
    return first.nominal_at == wake.nominal_at or _requested(first) == _requested(wake) is not None


def is_same_task(first: Wake, wake: Wake) -> bool:
    """Return whether two bookings with one key are about the same: then the second is a retry."""
    return (first.agent_id, first.kind, first.instructions) == (wake.agent_id, wake.kind, wake.instructions)


def _requested(wake: Wake) -> Any:
    return (wake.booking or {}).get("requested")


def _refuse(request: BookingRequest, names: Sequence[str]) -> None:
    for name in names:
        if getattr(request, name) is not None:
            raise NotOfThisDoor(name, request.door)
    if request.when is None:
        raise NoBookingTime


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


@contextmanager
def rename_fields() -> Generator[None]:
    """Let errors of the other doors name the fields of this one."""
    try:
        yield
    except WakefulError as error:
        name = _NAMES.get(error.field or "")
        if name is not None:
            error.message = error.message.replace(f"`{error.field}`", f"`{name}`")
            error.field = name
        raise
