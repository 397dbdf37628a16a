"""Requests for a recall: a wake that runs in its own session. The field names are those of Navi."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Annotated, Any

from wakeful.core.errors import Invalid, NotFound
from wakeful.core.texts import check_note, check_text, show
from wakeful.core.types import Agent, CallType, OnMiss, Priority, Rules, ScheduledBy, Wake
from wakeful.core.values import MAX_TIME_TEXT, Param
from wakeful.core.zones import load_zone, offset_zone
from wakeful.timing.lifecycle import MAX_COMMENT, MAX_INSTRUCTIONS, RequestedTime, create, requested_time
from wakeful.timing.when import ACCEPTED, BadWhen, parse_when

MAX_SECONDS = 10 * 365 * 86_400
MAX_RUNS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """A request for a recall."""

    call_type: Annotated[
        CallType,
        Param(
            "once: at `when`. recurring: from `when` on, again and again. immediate: right after this run; use it when "
            "you are near your limit of model calls and have more to do."
        ),
    ]
    when: Annotated[
        str | None,
        Param(
            f"For once and recurring. Relative is best. Accepted forms: {ACCEPTED}. A wall-clock time is in "
            "`timezone`, else in your own zone, else in your user's. With cron: not before this.",
            max_length=MAX_TIME_TEXT,
        ),
    ] = None
    timezone: Annotated[str | None, Param("IANA name of the zone of `when` and `cron`.", max_length=MAX_TIME_TEXT)] = (
        None  # wins over the offset
    )
    timezone_offset: Annotated[str | None, Param("±HH:MM, if only the offset is known.", max_length=MAX_TIME_TEXT)] = (
        None
    )
    interval_seconds: Annotated[
        int | None, Param("For recurring: seconds from one time to the next.", ge=1, le=MAX_SECONDS)
    ] = None
    cron: Annotated[
        str | None,
        Param("For recurring, instead of an interval: five fields, as in crontab.", max_length=MAX_TIME_TEXT),
    ] = None
    until: Annotated[
        str | None, Param("For recurring: when to end, written like `when`.", max_length=MAX_TIME_TEXT)
    ] = None
    max_runs: Annotated[int | None, Param("For recurring: how many times at most.", ge=1, le=MAX_RUNS)] = None
    on_miss: Annotated[
        OnMiss | None,
        Param("What to do about times that were missed while the server was down. Default: run_once."),
    ] = None
    priority: Annotated[Priority, Param("low is skipped if your user is talking with you when it is due.")] = "normal"
    internal_comment: Annotated[str, Param("A short label for people.")] = ""
    additional_context_message: Annotated[
        str,
        Param(
            "What you will read when you wake: a task for yourself that names the tools, files or URLs to use, such as "
            "'Read build.log with read_file. If it ends in an error, quote the last 50 lines.'"
        ),
    ]


class NoRecall(NotFound):
    code = "no_recall"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"No recall is pending in session {session_id!r}, so there is nothing to change, run or cancel. Book one "
            "first."
        )


class OutOfReach(NotFound):
    code = "no_such_session"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"There is no session {session_id!r} that you can use. Leave `session_id` out for the current one.",
            field="session_id",
        )


class NotRecurring(Invalid):
    code = "not_recurring"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"No recurring recall is pending in session {session_id!r}, so there is no next time to skip to. "
            "Cancel a recall that fires once instead."
        )


def make(
    request: RecallRequest,
    agent: Agent,
    session_id: str,
    user_id: str,
    now: datetime,
    rules: Rules,
    *,
    by: ScheduledBy,
    booked_by_run: str | None = None,
    tools: tuple[str, ...] | None = None,
) -> Wake:
    """Create the wake of a recall; raises an error that says what is wrong with the request."""
    check_text("additional_context_message", request.additional_context_message, MAX_INSTRUCTIONS)
    check_note("internal_comment", request.internal_comment, MAX_COMMENT)
    _check_call_type(request)
    _check_number("interval_seconds", request.interval_seconds, MAX_SECONDS)
    _check_number("max_runs", request.max_runs, MAX_RUNS)
    zone, name = _zone(request, agent)
    meant = None if request.when is None else parse_when(request.when, now, zone)
    asked_time = RequestedTime(requested=request.cron or request.call_type)
    if request.when is not None and meant is not None:
        asked_time = requested_time(request.when, meant, _zone_name(request, name))
    if meant is not None and meant.zone is not None and request.cron is None:
        name = meant.zone
    return create(
        kind="recall",
        agent_id=agent.id,
        user_id=user_id,
        session_id=session_id,
        call_type=request.call_type,
        instructions=request.additional_context_message,
        timezone=name,
        scheduled_by=by,
        now=now,
        rules=rules,
        at=None if meant is None else meant.at,
        asked_time=asked_time,
        wall_clock=None if meant is None else meant.wall_clock,
        every=None if request.interval_seconds is None else timedelta(seconds=request.interval_seconds),
        cron=request.cron,
        until=None if request.until is None else _read_until(request.until, now, zone),
        max_runs=request.max_runs,
        comment=request.internal_comment,
        priority=request.priority,
        on_miss=request.on_miss,
        booked_by_run=booked_by_run,
        tools=tools,
    )


def read_changes(
    asked: Mapping[str, Any], wake: Wake, now: datetime, known_zone: str | None
) -> tuple[dict[str, Any], RequestedTime | None]:
    """Return the changes of a wake's fields that a request asks for, and the requested time, if there is one.

    `known_zone` is the agent's or its user's, for a wake without one.
    """
    if "additional_context_message" in asked:
        check_text("additional_context_message", asked["additional_context_message"], MAX_INSTRUCTIONS)
    if "internal_comment" in asked:
        check_note("internal_comment", asked["internal_comment"], MAX_COMMENT)
    changes: dict[str, Any] = {_FIELDS.get(name, name): value for name, value in asked.items()}
    # A new rule replaces the earlier one, whether interval or cron.
    if (changes.get("every") is None) != (changes.get("cron") is None):
        changes = {"every": None, "cron": None} | changes
    # The wake's own zone counts only if its rule or time uses it; otherwise it is just the agent's at that time.
    own = wake.timezone if wake.cron or wake.wall_clock else None
    zone, asked_time = changes.get("timezone") or own or known_zone or wake.timezone, None
    if changes.get("cron") is not None and zone != wake.timezone:
        changes["timezone"] = zone
    if "when" in changes:
        text = changes.pop("when")
        meant = parse_when(text, now, zone)
        asked_time = requested_time(text, meant, zone)
        changes |= {"nominal_at": meant.at, "wall_clock": meant.wall_clock}
        if asked_time.zone not in (None, wake.timezone) and changes.get("cron", wake.cron) is None:
            changes["timezone"] = asked_time.zone
    if changes.get("until") is not None:
        changes["until"] = _read_until(changes["until"], now, zone)
    if changes.get("every") is not None:
        changes["every"] = timedelta(seconds=changes["every"])
    return changes, asked_time


_FIELDS = {
    "additional_context_message": "instructions",
    "internal_comment": "comment",
    "interval_seconds": "every",
}


def _check_call_type(request: RecallRequest) -> None:
    """Refuse fields that have no effect with this call type."""
    kind = request.call_type
    if kind == "immediate" and request.when is not None:
        raise Invalid(
            f"`when` is {show(request.when)}, but a recall of type 'immediate' fires right after this run. Leave it "
            "out, or ask for 'once'.",
            field="when",
        )
    if kind != "immediate" and request.when is None and request.cron is None:
        raise Invalid(
            f"`when` is missing: a recall of type {kind!r} needs it, such as '30m' or 'tomorrow at 09:00'.",
            field="when",
        )
    if kind == "recurring":
        return
    for name in ("interval_seconds", "cron", "until", "max_runs"):
        value = getattr(request, name)
        if value is not None:
            raise Invalid(
                f"`{name}` is {show(value)}, but a recall of type {kind!r} fires once. Leave it out, or ask for "
                "'recurring'.",
                field=name,
            )


def _check_number(field: str, value: int | None, most: int) -> None:
    if value is not None and not 1 <= value <= most:
        raise Invalid(f"`{field}` must be a whole number from 1 to {most}, got {show(value)}.", field=field)


def _read_until(text: str, now: datetime, zone: str | tzinfo | None) -> datetime:
    try:
        return parse_when(text, now, zone).at
    except BadWhen as refused:
        refused.field = "until"
        raise


def _zone_name(request: RecallRequest, name: str | None) -> str | None:
    return name if request.timezone is not None else request.timezone_offset or name


def _zone(request: RecallRequest, agent: Agent) -> tuple[tzinfo | None, str | None]:
    """Return the zone for parsing `when`, and the zone of the wake; None: none is known."""
    if request.timezone is not None:
        return load_zone(request.timezone), request.timezone
    if request.timezone_offset is not None:
        zone = offset_zone(request.timezone_offset)
        if request.cron is not None:
            raise Invalid(
                "A cron rule needs `timezone` (an IANA name such as 'Europe/Berlin'): an offset does not know when the "
                "clocks change.",
                field="timezone",
            )
        return zone, agent.known_zone
    return None if agent.known_zone is None else load_zone(agent.known_zone), agent.known_zone
