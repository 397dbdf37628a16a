"""An agent's own alarm: book a time at which it wakes in this session and reads what it told itself."""

from typing import Literal

from pydantic import Field

from wakeful.domain.events import RecallUpdate
from wakeful.service.wakes import WakeService
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolResult


class ScheduleRecall(Arguments):
    call_type: Literal["once", "immediate"] = Field(description="once: at `when`. immediate: right after this run.")
    when: str | None = Field(
        None, description="When to wake, for once. Relative is best: 30m, 2h 15m, in 3 hours, tomorrow at 09:00."
    )
    internal_comment: str = Field("", description="A short label for people.")
    additional_context_message: str = Field(
        description="What you will read when you wake: a todo for yourself that names the tools, files or URLs to use."
    )


def recall_tools(wakes: WakeService) -> list[Tool]:
    """Make the tools of the toolset `recall`."""

    async def schedule(context: ToolContext, asked: ScheduleRecall) -> ToolResult:
        booked = await wakes.book_recall(
            context.run,
            context.agent,
            call_type=asked.call_type,
            when=asked.when,
            comment=asked.internal_comment,
            instructions=asked.additional_context_message,
        )
        wake = booked.wake
        assert wake.session_id is not None
        return ToolResult(
            text=f"Booked: you will wake {booked.told}. Recall id: {wake.id}.",
            metadata={"recall_id": wake.id, "trigger_at": wake.nominal_at.isoformat()},
            frames=(
                RecallUpdate(
                    session_id=wake.session_id,
                    recall_id=wake.id,
                    call_type=wake.call_type,
                    trigger_at=wake.nominal_at,
                    status="pending",
                    action="scheduled",
                ),
            ),
        )

    return [
        Tool(
            name="schedule_recall",
            toolset="recall",
            description=(
                "Set your own alarm: you will be woken in this session, with nobody present, and read the message you "
                "leave for yourself here. One recall can be pending per session."
            ),
            arguments=ScheduleRecall,
            act=schedule,
        )
    ]
