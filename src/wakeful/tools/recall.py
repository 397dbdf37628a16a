"""The toolset `recall`: an agent books a time at which it wakes in the same session and reads its own message."""

from typing import Literal

from pydantic import Field

from wakeful.domain.doors.recall import RecallRequest
from wakeful.domain.frames import recall_status
from wakeful.domain.types import Wake
from wakeful.service.wakes.recalls import Recalls
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolDeps, ToolResult, tool, with_fields


class ScheduleRecall(with_fields(Arguments, RecallRequest)):
    pass


class ManageRecall(Arguments):
    action: Literal["cancel", "skip", "list"] = Field(
        description="cancel ends the pending recall; do it before you book another. skip skips the next time of a "
        "recurring one. list shows all of them."
    )
    session_id: str | None = Field(None, description="Another session of your user; without it, this one.")


def make_tools(deps: ToolDeps) -> list[Tool]:
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
            lines = [_line(wake, service.describe_time(wake.nominal_at, context.agent)) for wake in found]
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


def _line(wake: Wake, when: str) -> str:
    label = f" ({wake.comment})" if wake.comment else ""
    reason = f", {wake.reason}" if wake.reason else ""
    return f"{when} {wake.call_type}{label}: {recall_status(wake.status)}{reason}. Id: {wake.id}."
