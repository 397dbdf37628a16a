"""Requests for a schedule: a one-time message to a session, or a new session. The field names are those of Psi."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from wakeful.core.errors import Conflict, Invalid, NotFound
from wakeful.core.records import Skill
from wakeful.core.texts import check_note, check_text, show
from wakeful.core.types import Agent, Rules, Run, ScheduledBy, Wake
from wakeful.core.values import MAX_TIME_TEXT, Param
from wakeful.timing.lifecycle import MAX_INSTRUCTIONS, RequestedTime, create, requested_time
from wakeful.timing.session_config import KEYS, check_config, summarise_config
from wakeful.timing.when import BadTime, parse_when, read_instant

ScheduleKind = Literal["message", "session"]
ScheduleStatus = Literal["pending", "queued", "delivered", "cancelled", "failed"]

PREFIX = "sch-"
MIN_DELAY_MS = 1_000
MAX_DELAY_MS = 24 * 60 * 60 * 1_000
MAX_LABEL = 200

_STATUS: dict[str, ScheduleStatus] = {
    "pending": "pending",
    "queued": "queued",
    "running": "delivered",
    "fired": "delivered",
    "failed": "failed",
    "cancelled": "cancelled",
    "superseded": "cancelled",
    "skipped": "failed",
}
_MILLISECOND = timedelta(milliseconds=1)
_UNEXPECTED = re.compile(r"([A-Za-z_]\w*): (.*)", re.DOTALL)  # how an exception is stored


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRequest:
    """A request for a schedule."""

    kind: Annotated[
        ScheduleKind,
        Param(
            "For create. message: you read it in this session, once it is idle. session: it starts a fresh session of "
            "yours, whatever happens in this one."
        ),
    ]
    message: Annotated[str, Param("For create: what you will read then, as a task for yourself.")]
    delay_ms: Annotated[
        int | None,
        Param(
            f"For create, unless `at` is given: milliseconds from now, {MIN_DELAY_MS} to {MAX_DELAY_MS} (24 h).",
            ge=-(2**62),
            le=2**62,
        ),
    ] = None
    at: Annotated[
        str | None,
        Param(
            "For create, unless `delay_ms` is given: ISO 8601 with offset or Z, at most 24 h ahead; a past time fires "
            "at once.",
            max_length=MAX_TIME_TEXT,
        ),
    ] = None
    when: Annotated[str | None, Param(max_length=MAX_TIME_TEXT)] = None  # as text, for people
    timezone: Annotated[str | None, Param(max_length=MAX_TIME_TEXT)] = None  # of `when`
    label: Annotated[str, Param("For create: a short name for people.")] = ""
    session_config: Annotated[
        object, Param("For create: required for kind session ({} is enough), not allowed for kind message.")
    ] = None
    ephemeral: Annotated[bool, Param("For create: true if it may be forgotten when the server restarts.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSummary:
    """Why a schedule failed or was cancelled."""

    message: str
    kind: str  # its code, or the class of an unexpected exception; shown as `class`
    data: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Public attributes of a schedule, live or ended."""

    id: str
    kind: ScheduleKind
    status: ScheduleStatus
    label: str
    fire_at: datetime
    origin_session_id: str | None
    created_session_id: str | None
    delivery_phase: str | None  # where the delivery failed
    error_summary: ErrorSummary | None
    session_config_summary: dict[str, Any] | None
    run_status: str | None
    created_at: datetime


class NoSuchSchedule(NotFound):
    code = "no_such_schedule"

    def __init__(self, schedule_id: str) -> None:
        super().__init__(
            f"There is no schedule {schedule_id!r} here. A list of this session's schedules (op 'list', or "
            "GET /sessions/ID/schedules) shows their ids.",
            field="schedule_id",
        )


class NotCancellable(Conflict):
    code = "schedule_not_cancellable"

    def __init__(self, schedule: Schedule) -> None:
        next_step = "If its run is still running, stop it." if schedule.status == "delivered" else "It has ended."
        super().__init__(
            f"Schedule {schedule.id!r} is {schedule.status}, so it cannot be cancelled: only pending and queued ones "
            f"can. {next_step}",
            field="schedule_id",
        )


class DelayOutOfBounds(Invalid):
    code = "delay_out_of_bounds"

    def __init__(self, field: str, value: object, delay_ms: int) -> None:
        meant = f" ({delay_ms:,} ms ahead)" if field == "at" else ""
        shown = f"{value:,} ms" if isinstance(value, int) and abs(value) < 10**30 else show(value)
        super().__init__(
            f"`{field}` must be {MIN_DELAY_MS:,} to {MAX_DELAY_MS:,} ms (24 h) ahead, got {shown}{meant}.",
            field=field,
        )


def make(
    request: ScheduleRequest,
    agent: Agent,
    session_id: str | None,
    user_id: str,
    now: datetime,
    rules: Rules,
    *,
    models: Collection[str],
    tools: Collection[str],
    skills: Sequence[Skill] = (),
    by: ScheduledBy,
    booked_by_run: str | None = None,
) -> Wake:
    """Create the wake of a schedule; raises an error that says what is wrong with the request."""
    message = check_text("message", request.message, MAX_INSTRUCTIONS)
    label = check_note("label", request.label.strip(), MAX_LABEL, is_one_line=True)
    if request.kind == "session" and request.session_config is None:
        raise Invalid(
            f"A schedule of kind 'session' needs `session_config`; {{}} is valid. Its keys: {', '.join(KEYS)}.",
            field="session_config",
        )
    if request.kind == "message" and request.session_config is not None:
        raise Invalid(
            "A schedule of kind 'message' lands in this session, so it takes no `session_config`. Leave it out, or "
            "ask for kind 'session'.",
            field="session_config",
        )
    config = None
    if request.session_config is not None:
        config = check_config(request.session_config, models=models, tools=tools, skills=skills)
    at, asked_time = _read_time(request, agent, now)
    return create(
        kind=request.kind,
        agent_id=agent.id,
        user_id=user_id,
        session_id=session_id,
        call_type="once",
        instructions=message,
        timezone=agent.known_zone,
        scheduled_by=by,
        now=now,
        rules=rules,
        at=at,
        asked_time=asked_time,
        comment=label,
        session_config=config,
        booked_by_run=booked_by_run,
        tools=None if by == "user" else tuple(tools),
        ephemeral=request.ephemeral,
    )


def _read_time(request: ScheduleRequest, agent: Agent, now: datetime) -> tuple[datetime, RequestedTime]:
    """Return the planned instant, and the time that was asked for."""
    if request.when is not None:
        if request.delay_ms is not None or request.at is not None:
            raise BadTime(
                f"`when` is {show(request.when)}, and another time is given too. Give exactly one of them.",
                field="when",
            )
        zone = request.timezone or agent.known_zone
        meant = parse_when(request.when, now, zone)
        check_ahead("when", meant.at - now)
        return meant.at, requested_time(request.when, meant, zone)
    at = fire_at(request.delay_ms, request.at, now)
    if request.at is None:
        return at, RequestedTime(requested=f"in {request.delay_ms} ms", at=at)
    asked_at = read_instant(request.at, "at", "delay_ms")
    return at, RequestedTime(requested=request.at, at=asked_at, moved_by=("past",) if at > asked_at else ())


def fire_at(delay_ms: int | None, at: str | None, now: datetime) -> datetime:
    """Return the planned instant: now for an `at` that is past or less than a millisecond ahead."""
    if (delay_ms is None) == (at is None):
        given = "neither is given" if at is None else f"they are {show(delay_ms)} and {show(at)}"
        raise BadTime(
            f"Exactly one of `delay_ms` and `at` is needed, and {given}. Accepted: `delay_ms` from {MIN_DELAY_MS:,} to "
            f"{MAX_DELAY_MS:,}, or `at` such as '2026-11-16T09:00:00Z'.",
            field="delay_ms",
        )
    if delay_ms is not None:
        if not MIN_DELAY_MS <= delay_ms <= MAX_DELAY_MS:
            raise DelayOutOfBounds("delay_ms", delay_ms, delay_ms)
        return now + timedelta(milliseconds=delay_ms)
    assert at is not None
    moment = read_instant(at, "at", "delay_ms")
    ahead = (moment - now) // _MILLISECOND
    if ahead <= 0:
        return now
    if not MIN_DELAY_MS <= ahead <= MAX_DELAY_MS:
        raise DelayOutOfBounds("at", at, ahead)
    return moment


def check_ahead(field: str, ahead: timedelta) -> None:
    """Refuse a new time of a schedule outside the bounds for booking one."""
    delay_ms = ahead // _MILLISECOND
    if not MIN_DELAY_MS <= delay_ms <= MAX_DELAY_MS:
        raise DelayOutOfBounds(field, delay_ms, delay_ms)


def wake_id_of(schedule_id: str) -> str:
    """Return the id of a schedule's wake, with or without the prefix."""
    return schedule_id.strip().removeprefix(PREFIX)


def describe(wake: Wake, run: Run | None = None, *, has_arrived: bool = False) -> Schedule:
    """Return the schedule of a wake, given its run and whether the prompt was saved in the session."""
    assert wake.kind in ("message", "session")
    status = _STATUS[wake.status]
    if status == "failed" and has_arrived:  # its run shows how it went on
        status = "delivered"
    return Schedule(
        id=f"{PREFIX}{wake.id}",
        kind="session" if wake.kind == "session" else "message",
        status=status,
        label=wake.comment,
        fire_at=wake.nominal_at,
        origin_session_id=wake.session_id,
        created_session_id=wake.created_session_id,
        delivery_phase=_phase(wake, status),
        error_summary=_summarise(wake, status, run),
        session_config_summary=summarise_config(wake.session_config),
        run_status=None if run is None else run.status,
        created_at=wake.created_at,
    )


def _summarise(wake: Wake, status: ScheduleStatus, run: Run | None) -> ErrorSummary | None:
    text = wake.error or (wake.reason if status in ("failed", "cancelled") else None)
    if text is None:
        return None
    unexpected = _UNEXPECTED.fullmatch(text) if wake.reason in (None, "error") else None
    kind, message = (unexpected[1], unexpected[2]) if unexpected else (wake.reason or "error", text)
    known = {
        "reason": wake.reason,
        "delivery_phase": _phase(wake, status),
        "created_session_id": wake.created_session_id,
        "run_id": None if run is None else run.id,
    }
    return ErrorSummary(
        message=message, kind=kind, data={name: value for name, value in known.items() if value is not None}
    )


def _phase(wake: Wake, status: ScheduleStatus) -> str | None:
    """Return where a delivery failed. A message that could not be queued is retried, so it is still pending."""
    if wake.delivery_phase is not None:
        return wake.delivery_phase
    has_failed = wake.held_by == "error" or (status == "failed" and wake.status == "failed")
    return "prompt_submit" if has_failed else None
