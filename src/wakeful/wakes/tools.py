"""The toolsets `recall`, `scheduler` and `next_run`."""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from wakeful.core.errors import Invalid
from wakeful.core.frames import recall_status
from wakeful.core.types import Wake
from wakeful.timing import session_config
from wakeful.timing.bounds import BookingRefused
from wakeful.timing.next_run_request import NextRunRequest
from wakeful.timing.recall_request import RecallRequest
from wakeful.timing.schedule_request import Schedule, ScheduleRequest
from wakeful.toolbox.registry import Arguments, Tool, ToolContext, ToolDeps, ToolResult, tool, with_fields
from wakeful.wakes.next_runs import BookedNextRun, NextRuns
from wakeful.wakes.recalls import Recalls
from wakeful.wakes.schedules import Schedules

# ── The toolset `recall` ──────────────────────────────────────────────────────────────────────────────────────────────

# An agent books a time at which it wakes in the same session and reads its own message.


class ScheduleRecall(with_fields(Arguments, RecallRequest)):
    pass


class ManageRecall(Arguments):
    action: Literal["cancel", "skip", "list"] = Field(
        description="cancel ends the pending recall; do it before you book another. skip skips the next time of a "
        "recurring one. list shows all of them."
    )
    session_id: str | None = Field(None, description="Another session of your user; without it, this one.")


def recall_tools(deps: ToolDeps) -> list[Tool]:
    service = deps[Recalls]

    async def schedule_recall(context: ToolContext, asked: ScheduleRecall) -> ToolResult:
        request = asked.to_request(RecallRequest)
        booked = await service.book_in_run(request, context.run, context.agent, context.only)
        wake = booked.wake
        again = f", then {_rhythm(wake)}" if wake.is_recurring else ""
        return ToolResult(
            text=f"Booked: you will wake {booked.told}{again}. Recall id: {wake.id}.",
            metadata={"recall_id": wake.id, "trigger_at": wake.nominal_at.isoformat()},
        )

    async def manage_recall(context: ToolContext, asked: ManageRecall) -> ToolResult:
        session_id = context.run.session_id if asked.session_id is None else asked.session_id
        user_id = await service.reach(session_id, context.run)
        if asked.action == "list":
            found = await service.listed(session_id, user_id, by=context.acting)
            lines = [_recall_line(wake, service.describe_time(wake.nominal_at, context.agent)) for wake in found]
            return ToolResult(text="\n".join(lines) or "There is no recall in this session.")
        if asked.action == "skip":
            wake = await service.skip(session_id, user_id, by=context.acting)
            when = service.describe_time(wake.nominal_at, context.agent)
            outcome = f"The next time is {when}." if wake.is_live else "That was the last time, so it has ended."
            return ToolResult(text=f"Skipped. {outcome} Recall id: {wake.id}.")
        wake = await service.cancel(session_id, user_id, by=context.acting)
        if wake is None:
            return ToolResult(text="No recall was pending in this session, so there was nothing to cancel.")
        when = service.describe_time(wake.nominal_at, context.agent)
        return ToolResult(text=f"Cancelled the recall of {when}. Recall id: {wake.id}.")

    alarm = (
        "Set your own alarm: you will wake in this session, also when your user is not there, and read the message "
        "that you leave for yourself here. One recall can be pending per session: cancel it with manage_recall before "
        "you book another. For long work, book the next phase at the end of each one."
    )
    return [
        tool("recall", schedule_recall, ScheduleRecall, alarm),
        tool("recall", manage_recall, ManageRecall, "Cancel, skip or list the recalls of a session."),
    ]


def _rhythm(wake: Wake) -> str:
    return f"by cron {wake.cron!r}" if wake.every is None else f"every {int(wake.every.total_seconds())} s"


def _recall_line(wake: Wake, when: str) -> str:
    label = f" ({wake.comment})" if wake.comment else ""
    reason = f", {wake.reason}" if wake.reason else ""
    return f"{when} {wake.call_type}{label}: {recall_status(wake.status)}{reason}. Id: {wake.id}."


# ── The toolset `scheduler` ───────────────────────────────────────────────────────────────────────────────────────────

# An agent books messages to itself and new sessions, once each, within a day.


_TEXTS = {"type": "array", "items": {"type": "string"}}
# For the model only; `timing.session_config` validates, with the same error texts for every caller.
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


def scheduler_tools(deps: ToolDeps) -> list[Tool]:
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
        lines = [_schedule_line(schedule, service.describe_time(schedule.fire_at, context.agent)) for schedule in found]
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


def _schedule_line(schedule: Schedule, when: str) -> str:
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


# ── The toolset `next_run` ────────────────────────────────────────────────────────────────────────────────────────────

# An agent books its own next run. There is one slot, and each run must book the next.


class ScheduleNextRun(with_fields(Arguments, NextRunRequest, without=("when", "timezone"))):
    pass


class CancelNextRun(Arguments):
    pass


def next_run_tools(deps: ToolDeps) -> list[Tool]:
    service = deps[NextRuns]

    async def schedule_next_run(context: ToolContext, asked: ScheduleNextRun) -> ToolResult:
        request = asked.to_request(NextRunRequest)
        try:
            run, agent = context.run, context.agent
            return _booked(await service.book_in_run(request, run, agent, context.only, context.approved))
        except BookingRefused as refused:
            return _refused(refused)

    async def cancel_next_run(context: ToolContext, _asked: CancelNextRun) -> ToolResult:
        wake = await service.cancel(context.run.agent_id, context.run.user_id, by=context.acting)
        if wake is None:
            return ToolResult(text="No next run was booked, so there was nothing to cancel. The slot is empty.")
        when = service.describe_time(wake.nominal_at, context.agent)
        return ToolResult(text=f"Cancelled the next run of {when}. Next run id: {wake.id}.")

    book = (
        "Book your next run: you will wake in a fresh session, also when your user is not there, and read your "
        "instructions. There is one slot: a new booking replaces the one before. Each booking fires once, so book "
        "again in every run for as long as you want to go on. Your user's settings limit the time; the answer says "
        "whether and why it was moved, and how many runs are left today."
    )
    clear = "Clear your next run, if one is booked, without booking another."
    return [
        tool("next_run", schedule_next_run, ScheduleNextRun, book),
        tool("next_run", cancel_next_run, CancelNextRun, clear),
    ]


def _booked(booked: BookedNextRun) -> ToolResult:
    wake, clamped = booked.wake, booked.clamped
    moved = f" Moved from {booked.asked}; clamp_reasons: {', '.join(clamped.reasons)}." if clamped.clamped else ""
    return ToolResult(
        text=f"Booked: your next run is at {booked.told}.{moved} remaining_budget_today: {clamped.remaining_today}. "
        f"Next run id: {wake.id}.",
        metadata={
            "next_run_id": wake.id,
            "scheduled_at": clamped.at.isoformat(),
            "requested_at": clamped.requested.isoformat(),
            "clamped": clamped.clamped,
            "clamp_reasons": list(clamped.reasons),
            "remaining_budget_today": clamped.remaining_today,
        },
    )


def _refused(refused: BookingRefused) -> ToolResult:
    earliest = None if refused.earliest is None else refused.earliest.isoformat()
    return ToolResult(
        text=f"{refused.message} Reasons: {', '.join(refused.reasons)}. Nothing was booked.",
        success=False,
        metadata={"code": refused.code, "reasons": list(refused.reasons), "earliest": earliest},
    )
