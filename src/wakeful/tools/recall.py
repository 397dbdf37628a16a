"""An agent's own alarm: book a time at which it wakes in this session and reads what it told itself."""

from typing import Literal

from pydantic import Field

from wakeful.domain.doors.recall import RecallRequest
from wakeful.domain.frames import recall_status
from wakeful.domain.types import Wake
from wakeful.service.wakes.recalls import Recalls
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolResult, with_fields


class ScheduleRecall(with_fields(Arguments, RecallRequest)):
    pass


class ManageRecall(Arguments):
    action: Literal["cancel", "skip", "list"] = Field(
        description="cancel ends the pending recall; do it before you book another. skip leaves out the next time of a "
        "recurring one. list shows all of them."
    )
    session_id: str | None = Field(None, description="Another session of your user; without it, this one.")


def recall_tools(service: Recalls) -> list[Tool]:
    """Make the tools of the toolset `recall`."""

    async def schedule(context: ToolContext, asked: ScheduleRecall) -> ToolResult:
        request = asked.to_request(RecallRequest)
        booked = await service.book_in_run(request, context.run, context.agent, context.only)
        wake = booked.wake
        again = "" if not wake.is_recurring else f", then {_rhythm(wake)}"
        return ToolResult(
            text=f"Booked: you will wake {booked.told}{again}. Recall id: {wake.id}.",
            metadata={"recall_id": wake.id, "trigger_at": wake.nominal_at.isoformat()},
        )

    async def manage(context: ToolContext, asked: ManageRecall) -> ToolResult:
        assert context.run.session_id is not None
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
