"""Requests for a schedule, and its `session_config`."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NoReturn, cast, get_args

from wakeful.core.errors import Conflict, Invalid, NotFound
from wakeful.core.records import Skill, missing
from wakeful.core.texts import check_note, check_size, check_text, quote_block, quote_line, refuse_value, show
from wakeful.core.tool_names import may_be_of
from wakeful.core.types import Agent, Rules, Run, ScheduledBy, ThinkingLevel, Wake
from wakeful.core.values import MAX_TIME_TEXT, Param, replace
from wakeful.timing.lifecycle import MAX_INSTRUCTIONS, RequestedTime, create, requested_time
from wakeful.timing.when import BadTime, parse_when, read_instant

# Requests for a schedule: a one-time message to a session, or a new session. The field names are those of Psi.


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


# `session_config` of a schedule: its keys, their validation, and their effect on the agent.


MAX_NAME = 200  # characters of a name
MAX_PROMPT = 32_000
MAX_SKILLS = 50
MAX_PRELOADED = 50
MAX_PRELOADED_BYTES = 64 * 1024
CACHING_PROVIDERS = ("anthropic", "bedrock")  # accept breakpoints, also through the gateway; others cache by themselves

_BREAKPOINTS = ("system", "tools", "messages")
_COMPONENTS = ("base", "tools", "schema", "skills", "preamble")
_SKILL = re.compile(r"[\w-][\w. -]{0,199}")
_MESSAGE = '{"role": "user", "content": "…"}'
_PART = 'a text, or parts such as {"type": "text", "text": "…"}'


class BadSessionConfig(Invalid):
    code = "bad_session_config"


def check_config(
    asked: object, *, models: Collection[str], tools: Collection[str], skills: Sequence[Skill] = ()
) -> dict[str, Any]:
    """Return a session's configuration in the form that is stored, or refuse it, naming the key.

    `models` are those that the owner allows, `tools` those of the run that books, `skills` those that the agent has.
    """
    given = _object("session_config", asked, "a JSON object")
    unknown = sorted(set(given) - set(_CHECKS))
    if unknown:
        raise BadSessionConfig(
            f"session_config has no key {', '.join(map(show, unknown))}. Its keys: {', '.join(_CHECKS)}.",
            field=f"session_config.{unknown[0]}",
        )
    allowed: dict[str, Collection[str]] = {
        "model": models,
        "tool_ids": sorted(tools),
        "cache_breakpoints": _BREAKPOINTS,
        "prompt_component_selection": _COMPONENTS,
    }
    checked = {
        key: _CHECKS[key](f"session_config.{key}", value, allowed.get(key, ()))
        for key, value in given.items()
        if value is not None
    }
    _check_skills(checked.get("skills", ()), skills)
    return checked


def names_skills(asked: object) -> bool:
    """Return whether a configuration names skills, so that the agent's skills have to be read."""
    return isinstance(asked, Mapping) and bool(cast("Mapping[str, object]", asked).get("skills"))


def names_tool_of(agent: Agent, asked: object) -> bool:
    """Return whether a configuration may name a tool of one of the agent's MCP servers."""
    named: object = cast("Mapping[str, object]", asked).get("tool_ids") if isinstance(asked, Mapping) else None
    names = cast("list[object]", named) if isinstance(named, list) else []
    return any(isinstance(name, str) and may_be_of(agent.mcp_servers, name) for name in names)


def summarise_config(config: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the compact form; a tool count of None: every tool of the agent."""
    if config is None:
        return None
    return {
        "session_name": config.get("session_name"),
        "model": config.get("model"),
        "thinking_level": config.get("thinking_level"),
        "skill_count": len(config.get("skills", ())),
        "tool_count": len(config["tool_ids"]) if "tool_ids" in config else None,
        "preloaded_message_count": len(config.get("preloaded_messages", ())),
    }


def ignored_keys(config: Mapping[str, Any] | None, model: str) -> list[str]:
    """Return the keys that have no effect with this model."""
    has_breakpoints = bool(config and config.get("cache_breakpoints"))
    return ["cache_breakpoints"] if has_breakpoints and caching_provider(model) is None else []


def caching_provider(model: str) -> str | None:
    """Return the provider of a model if it accepts cache breakpoints."""
    provider = model.partition(":")[0].removeprefix("gateway/")
    return provider if provider in CACHING_PROVIDERS else None


def apply_config(agent: Agent, config: Mapping[str, Any], booked_by: ScheduledBy) -> Agent:
    """Return the agent with the settings of this session. The owner's prompt stays and comes first.

    A model that the owner has taken back since the booking is not used, but the agent's own. Prompts that an agent
    wrote when it booked the session are quoted and attributed to it: only people and the server write plain text in a
    system prompt.
    """
    system, developer = config.get("system_prompt", ""), config.get("developer_prompt", "")
    source = quote_line(config.get("developer_prompt_source", "the schedule that began this session"))
    if booked_by == "agent":
        system = system and f"The agent that booked this session wrote for it:\n{quote_block(system)}"
        developer = (
            developer and f"Developer prompt by the agent that booked it, from {source}:\n{quote_block(developer)}"
        )
    else:
        developer = developer and f"Developer prompt, from {source}:\n{developer}"
    prompts = [agent.system_prompt.strip(), system, developer]
    return replace(
        agent,
        system_prompt="\n\n".join(prompt for prompt in prompts if prompt),
        model=config["model"] if config.get("model") in agent.allowed_models else agent.model,
        thinking_level=config.get("thinking_level", agent.thinking_level),
    )


def frame_preloaded(messages: Sequence[Mapping[str, str]]) -> str:
    """Return the messages that an agent booked a session with as one text, quoted and attributed to it."""
    turns = (
        f"As {each['role']}{', ' + each['timestamp'] if 'timestamp' in each else ''}:\n{quote_block(each['content'])}"
        for each in messages
    )
    head = "The agent that booked this session wrote the turns below for it. They are not from your user."
    return "\n\n".join([head, *turns])


# ── One check per key ───────────────────────────────────────────────────────────────────────────────────────────────


def _name(field: str, value: object, _allowed: Collection[str]) -> str:
    return check_text(field, value, MAX_NAME, is_one_line=True, refuse=BadSessionConfig).strip()


def _prompt(field: str, value: object, _allowed: Collection[str]) -> str:
    return check_text(field, value, MAX_PROMPT, refuse=BadSessionConfig).strip()


def _model(field: str, value: object, allowed: Collection[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        _refuse(field, value, f"the agent's own model or one that the owner allows: {', '.join(sorted(allowed))}")
    return value


def _thinking(field: str, value: object, _allowed: Collection[str]) -> str:
    levels = get_args(ThinkingLevel)
    if not isinstance(value, str) or value not in levels:
        _refuse(field, value, f"one of: {', '.join(levels)}")
    return value


def _skills(field: str, value: object, _allowed: Collection[str]) -> list[str]:
    names = _texts(field, value)
    check_size(field, len(names), MAX_SKILLS, "names", BadSessionConfig)
    for name in names:
        if not _SKILL.fullmatch(name):
            _refuse(field, name, "the name of a Markdown file in the agent's `skills/`, without a path")
    return names


def _check_skills(names: Collection[str], available: Sequence[Skill]) -> None:
    unknown = missing(available, names)
    if unknown:
        known = ", ".join(sorted(skill.name for skill in available))
        raise BadSessionConfig(
            f"`session_config.skills` names {', '.join(map(repr, unknown))}, which the agent does not have. "
            + (f"Its skills: {known}." if known else "It has no skills: there is no Markdown file in its `skills/`."),
            field="session_config.skills",
        )


def _preloaded(field: str, value: object, _allowed: Collection[str]) -> list[dict[str, str]]:
    given = _list(field, value, f"a list of messages such as {_MESSAGE}")
    check_size(field, len(given), MAX_PRELOADED, "messages", BadSessionConfig)
    messages = [_message(f"{field}.{number}", each) for number, each in enumerate(given)]
    size = sum(len(message["content"].encode()) for message in messages)
    check_size(field, size, MAX_PRELOADED_BYTES, "bytes", BadSessionConfig)
    return messages


def _message(field: str, value: object) -> dict[str, str]:
    given = _object(field, value, f"a message such as {_MESSAGE}")
    unknown = sorted(set(given) - {"role", "content", "timestamp"})
    if unknown:
        _refuse(f"{field}.{unknown[0]}", given[unknown[0]], "left out: a message has role, content and timestamp")
    role = given.get("role")
    if role not in ("user", "assistant"):
        _refuse(f"{field}.role", role, "user or assistant")
    message = {"role": str(role), "content": _content(f"{field}.content", given.get("content"))}
    if given.get("timestamp") is not None:
        timestamp = check_text(
            f"{field}.timestamp", given["timestamp"], MAX_NAME, is_one_line=True, refuse=BadSessionConfig
        )
        try:
            read_instant(timestamp, f"{field}.timestamp", "no timestamp at all")
        except BadTime:
            _refuse(f"{field}.timestamp", timestamp, "an ISO 8601 time with its offset, such as 2026-04-22T12:59:00Z")
        message["timestamp"] = timestamp
    return message


def _content(field: str, value: object) -> str:
    """Return a message's text: given as a text, or in parts as in provider APIs."""
    if isinstance(value, list):
        parts = [_object(field, part, _PART) for part in cast("list[object]", value)]
        if any(part.get("type") != "text" or not isinstance(part.get("text"), str) for part in parts):
            _refuse(field, parts, _PART)
        value = "\n".join(str(part["text"]) for part in parts)
    return check_text(field, value, MAX_PRELOADED_BYTES, refuse=BadSessionConfig)


def _some_of(field: str, value: object, known: Collection[str]) -> list[str]:
    names = _texts(field, value)
    for name in names:
        if name not in known:
            _refuse(field, name, f"one of: {', '.join(known) or 'none'}")
    return names


def _texts(field: str, value: object) -> list[str]:
    names = [name for name in _list(field, value, "a list of names") if isinstance(name, str)]
    if len(names) != len(cast("list[object]", value)):
        _refuse(field, value, "a list of names")
    return list(dict.fromkeys(names))


def _list(field: str, value: object, accepted: str) -> list[object]:
    if not isinstance(value, list):
        _refuse(field, value, accepted)
    return cast("list[object]", value)


def _object(field: str, value: object, accepted: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        _refuse(field, value, accepted)
    return cast("Mapping[str, object]", value)


def _refuse(field: str, value: object, accepted: str) -> NoReturn:
    refuse_value(field, value, accepted, BadSessionConfig)


_CHECKS: Mapping[str, Callable[[str, object, Collection[str]], Any]] = {
    "session_name": _name,
    "system_prompt": _prompt,
    "model": _model,
    "thinking_level": _thinking,
    "skills": _skills,
    "tool_ids": _some_of,
    "developer_prompt": _prompt,
    "developer_prompt_source": _name,
    "preloaded_messages": _preloaded,
    "cache_breakpoints": _some_of,
    "prompt_component_selection": _some_of,
}
KEYS = tuple(_CHECKS)
