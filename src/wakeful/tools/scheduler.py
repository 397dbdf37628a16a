"""The toolset `scheduler`: an agent books messages to itself and new sessions, once each, within a day."""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from wakeful.domain.doors import session_config
from wakeful.domain.doors.schedule import Schedule, ScheduleRequest
from wakeful.domain.errors import Invalid
from wakeful.service.wakes.schedules import Schedules
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolDeps, ToolResult, tool, with_fields

_TEXTS = {"type": "array", "items": {"type": "string"}}
# For the model only; `domain.doors.session_config` validates, with the same error texts for every caller.
_CONFIG = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "session_name": {"type": "string"},
        "system_prompt": {"type": "string", "description": "Added after your owner's."},
        "model": {"type": "string", "description": "Your own, or another that your owner allows."},
        "thinking_level": {"enum": ["off", "low", "medium", "high"]},
        "skills": _TEXTS | {"description": "Only these of your skills, by name."},
        "tool_ids": _TEXTS | {"description": "Only these of your tools."},
        "developer_prompt": {"type": "string"},
        "developer_prompt_source": {"type": "string"},
        "preloaded_messages": {
            "type": "array",
            "maxItems": session_config.MAX_PRELOADED,
            "items": {
                "type": "object",
                "required": ["role", "content"],
                "properties": {
                    "role": {"enum": ["user", "assistant"]},
                    "content": {"type": "string"},
                    "timestamp": {"type": "string", "description": "When it was sent: ISO 8601 with offset or Z."},
                },
            },
        },
        "cache_breakpoints": {"type": "array", "items": {"enum": ["system", "tools", "messages"]}},
        "prompt_component_selection": {
            "type": "array",
            "items": {"enum": ["base", "tools", "schema", "skills", "preamble"]},
        },
    },
}


class SchedulerOp(Arguments):
    op: Literal["create", "list", "cancel"] = Field(
        description="create books one, list shows those of this session, cancel ends a pending or queued one."
    )


_Create = with_fields(SchedulerOp, ScheduleRequest, without=("when", "timezone"), is_optional=True)


class SchedulerTool(_Create):
    session_config: Annotated[Any, WithJsonSchema(_CONFIG)] = Field(
        None, description=_Create.model_fields["session_config"].description
    )
    schedule_id: str | None = Field(None, description="For cancel: such as sch-….")


_OF_OP = {
    "create": tuple(name for name in _Create.model_fields if name != "op"),
    "list": (),
    "cancel": ("schedule_id",),
}


def make_tools(deps: ToolDeps) -> list[Tool]:
    service = deps[Schedules]

    async def create(context: ToolContext, asked: SchedulerTool) -> ToolResult:
        request = _request(asked)
        booked = await service.book_in_run(request, context.run, context.agent, context.only)
        schedule = booked.schedule
        where = "begin in a fresh session" if schedule.kind == "session" else "be read here"
        warning = "" if booked.warning is None else f" {booked.warning}"
        return ToolResult(
            text=f"Booked: your message will {where} at {booked.told}. Schedule id: {schedule.id}.{warning}",
            metadata=_to_metadata(schedule),
        )

    async def listed(context: ToolContext, _asked: SchedulerTool) -> ToolResult:
        found = await service.pending(context.run.session_id, context.run.user_id, by=context.acting)
        lines = [_line(schedule, service.describe_time(schedule.fire_at, context.agent)) for schedule in found]
        return ToolResult(
            text="\n".join(lines) or "Nothing is scheduled in this session.",
            metadata={"schedules": [_to_metadata(schedule) for schedule in found]},
        )

    async def cancel(context: ToolContext, asked: SchedulerTool) -> ToolResult:
        if asked.schedule_id is None:
            raise Invalid(
                "`schedule_id` is missing. Give one that op 'list' shows, such as sch-….", field="schedule_id"
            )
        run = context.run
        schedule = await service.cancel(asked.schedule_id, run.user_id, run.session_id, by=context.acting)
        when = service.describe_time(schedule.fire_at, context.agent)
        text = f"Cancelled what was booked for {when}. Schedule id: {schedule.id}."
        return ToolResult(text=text, metadata=_to_metadata(schedule))

    ops = {"create": create, "list": listed, "cancel": cancel}

    async def scheduler(context: ToolContext, asked: SchedulerTool) -> ToolResult:
        _check_fields(asked)
        return await ops[asked.op](context, asked)

    text = (
        "Book something for later, once, from a second to a day ahead: a message to yourself in this session, or a "
        "fresh session that starts with it. At most 50 can be pending per session. Prefer delay_ms; cancel those that "
        "you no longer need."
    )
    return [tool("scheduler", scheduler, SchedulerTool, text)]


def _check_fields(asked: SchedulerTool) -> None:
    """Refuse a field of another op: ignoring it would hide that the call does not do what the model wants."""
    takes = _OF_OP[asked.op]
    for name in sorted(asked.model_fields_set - {"op", *takes}):
        value = getattr(asked, name)
        if value is not None:
            raise Invalid(
                f"op {asked.op!r} must not have `{name}`, got {repr(value)[:80]}. "
                f"It takes: {', '.join(takes) or 'nothing'}.",
                field=name,
            )


def _request(asked: SchedulerTool) -> ScheduleRequest:
    given = asked.model_dump(exclude_none=True)
    if "kind" not in given:
        raise Invalid(
            "`kind` is missing. Accepted: 'message' (into this session) or 'session' (a fresh one).", field="kind"
        )
    if "message" not in given:
        raise Invalid("`message` is missing. Write what is to be read then.", field="message")
    return asked.to_request(ScheduleRequest)


def _line(schedule: Schedule, when: str) -> str:
    label = f" ({schedule.label})" if schedule.label else ""
    return f"{schedule.id} {schedule.kind}{label}: {schedule.status}, {when}."


def _to_metadata(schedule: Schedule) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "schedule_id": schedule.id,
        "kind": schedule.kind,
        "label": schedule.label,
        "status": schedule.status,
        "origin_session_id": schedule.origin_session_id,
        "fire_at": schedule.fire_at.isoformat(),
    }
    if schedule.session_config_summary is not None:
        metadata["session_config_summary"] = schedule.session_config_summary
    return metadata
