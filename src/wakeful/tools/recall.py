"""An agent's own alarm: book a time at which it wakes in this session and reads what it told itself."""

from typing import Literal

from pydantic import Field

from wakeful.domain.doors.recall import RecallRequest
from wakeful.domain.frames import recall_status
from wakeful.domain.types import Wake
from wakeful.domain.wakes.when import ACCEPTED
from wakeful.service.wakes.recalls import Recalls
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolResult


class ScheduleRecall(Arguments):
    call_type: Literal["once", "recurring", "immediate"] = Field(
        description="once: at `when`. recurring: from `when` on, again and again. immediate: right after this run; use "
        "it when you are near your limit of model calls and have more to do."
    )
    when: str | None = Field(
        None,
        description=f"For once and recurring. Relative is best. Accepted forms: {ACCEPTED}. A wall-clock time is meant "
        "in `timezone`, else in your own zone, else in your user's. With cron: not before this.",
    )
    timezone: str | None = Field(None, description="IANA name of the zone that `when` and `cron` are meant in.")
    timezone_offset: str | None = Field(None, description="±HH:MM, if only the offset is known.")
    interval_seconds: int | None = Field(None, description="For recurring: seconds from one time to the next.")
    cron: str | None = Field(None, description="For recurring, instead of an interval: five fields, as in crontab.")
    until: str | None = Field(None, description="For recurring: the last moment, written like `when`.")
    max_runs: int | None = Field(None, description="For recurring: how many times at most.")
    on_miss: Literal["skip", "run_once", "run_catchup"] | None = Field(
        None, description="What to do about times missed while the server was away. run_once unless you say otherwise."
    )
    priority: Literal["normal", "low"] = Field("normal", description="low gives way to a user who is talking.")
    internal_comment: str = Field("", description="A short label for people.")
    additional_context_message: str = Field(
        description="What you will read when you wake: a todo for yourself that names the tools, files or URLs to use, "
        "such as 'Read build.log with read_file. If it ends in an error, quote the last 50 lines.'"
    )


class ManageRecall(Arguments):
    action: Literal["cancel", "skip", "list"] = Field(
        description="cancel ends the pending recall; do it before you book another. skip leaves out the next time of a "
        "recurring one. list shows all of them."
    )
    session_id: str | None = Field(None, description="Another session of your user; without it, this one.")


def recall_tools(service: Recalls) -> list[Tool]:
    """Make the tools of the toolset `recall`."""

    async def schedule(context: ToolContext, asked: ScheduleRecall) -> ToolResult:
        request = RecallRequest(
            call_type=asked.call_type,
            instructions=asked.additional_context_message,
            when=asked.when,
            timezone=asked.timezone,
            timezone_offset=asked.timezone_offset,
            interval_seconds=asked.interval_seconds,
            cron=asked.cron,
            until=asked.until,
            max_runs=asked.max_runs,
            on_miss=asked.on_miss,
            priority=asked.priority,
            comment=asked.internal_comment,
        )
        booked = await service.book_in_run(request, context.run, context.agent, context.only)
        wake = booked.wake
        again = "" if not wake.is_recurring else f", then {_rhythm(wake)}"
        return ToolResult(
            text=f"Booked: you will wake {booked.told}{again}. Recall id: {wake.id}.",
            metadata={"recall_id": wake.id, "trigger_at": wake.nominal_at.isoformat()},
        )

    async def manage(context: ToolContext, asked: ManageRecall) -> ToolResult:
        session_id = context.run.session_id if asked.session_id is None else asked.session_id
        user_id = await service.reach(session_id, context.run)
        if asked.action == "list":
            found = await service.listed(session_id, user_id)
            lines = [_line(wake, service.tell_time(wake.nominal_at, context.agent)) for wake in found]
            return ToolResult(text="\n".join(lines) or "There is no recall in this session.")
        if asked.action == "skip":
            wake = await service.skip(session_id, user_id, by="agent")
            when = service.tell_time(wake.nominal_at, context.agent)
            return ToolResult(text=f"{_skipped(wake, when)} Recall id: {wake.id}.")
        wake = await service.cancel(session_id, user_id)
        if wake is None:
            return ToolResult(text="No recall was pending in this session, so there was nothing to cancel.")
        when = service.tell_time(wake.nominal_at, context.agent)
        return ToolResult(text=f"Cancelled the recall of {when}. Recall id: {wake.id}.")

    return [
        Tool(
            name="schedule_recall",
            toolset="recall",
            description=(
                "Set your own alarm: you will be woken in this session, with nobody present, and read the message you "
                "leave for yourself here. One recall can be pending per session: cancel it with manage_recall before "
                "you book another. For long work, book the next phase at the end of each one."
            ),
            arguments=ScheduleRecall,
            act=schedule,
        ),
        Tool(
            name="manage_recall",
            toolset="recall",
            description="Cancel, skip or list the recalls of a session.",
            arguments=ManageRecall,
            act=manage,
        ),
    ]


def _rhythm(wake: Wake) -> str:
    return f"by cron {wake.cron!r}" if wake.every is None else f"every {int(wake.every.total_seconds())} s"


def _skipped(wake: Wake, when: str) -> str:
    return f"Skipped. The next time is {when}." if wake.is_live else "Skipped. That was the last time, so it has ended."


def _line(wake: Wake, when: str) -> str:
    label = f" ({wake.comment})" if wake.comment else ""
    reason = f", {wake.reason}" if wake.reason else ""
    status = recall_status(wake.status)
    return f"{when} {wake.call_type}{label}: {status}{reason}. Id: {wake.id}."
