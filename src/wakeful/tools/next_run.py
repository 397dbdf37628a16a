"""An agent's own next run: one slot, booked anew from inside each run, or the loop ends."""

from typing import Literal

from pydantic import Field

from wakeful.domain.bounds.clamp import BookingRefused
from wakeful.domain.doors.next_run import NextRunRequest
from wakeful.service.wakes.next_runs import BookedNextRun, NextRuns
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolResult


class ScheduleNextRun(Arguments):
    in_seconds: int | None = Field(
        None, description="Seconds from now. Give this or scheduled_at, not both; this is the safer one."
    )
    scheduled_at: str | None = Field(
        None, description="ISO 8601 with a UTC offset or Z, such as 2026-11-16T09:00:00+01:00."
    )
    instructions: str = Field(
        description="The brief you will read when you wake, in a fresh session that knows nothing of this one: what to "
        "do, with which tools, files or URLs, and whether to book the run after it."
    )
    context_views: list[str] = Field(
        default_factory=list, description="Names of saved views of your database to be shown with the brief."
    )
    priority: Literal["normal", "low"] = Field(
        "normal", description="low is skipped if your user is talking with you when it is due."
    )
    on_miss: Literal["skip", "run_once", "run_catchup"] | None = Field(
        None, description="What to do if the server was away at the time. skip unless you say otherwise."
    )


class CancelNextRun(Arguments):
    pass


def next_run_tools(service: NextRuns) -> list[Tool]:
    """Make the tools of the toolset `next_run`."""

    async def schedule(context: ToolContext, asked: ScheduleNextRun) -> ToolResult:
        request = NextRunRequest(
            instructions=asked.instructions,
            scheduled_at=asked.scheduled_at,
            in_seconds=asked.in_seconds,
            context_views=tuple(asked.context_views),
            priority=asked.priority,
            on_miss=asked.on_miss,
        )
        try:
            return _tell(await service.book_in_run(request, context.run, context.agent, context.only))
        except BookingRefused as refused:
            return _tell_refusal(refused)

    async def cancel(context: ToolContext, _asked: CancelNextRun) -> ToolResult:
        wake = await service.cancel(context.run.agent_id, context.run.user_id)
        if wake is None:
            return ToolResult(text="No next run was booked, so there was nothing to cancel. The slot is empty.")
        when = service.describe_time(wake.nominal_at, context.agent)
        return ToolResult(text=f"Cancelled the next run of {when}. Next run id: {wake.id}.")

    return [
        Tool(
            name="schedule_next_run",
            toolset="next_run",
            description=(
                "Book your next run: you will wake in a fresh session, with nobody present, and read your "
                "instructions. There is one slot: a new booking takes the place of the one before. Each booking fires "
                "once, so book again from inside every run for as long as you want to go on. Your user's settings "
                "bound the time; the answer says whether and why it was moved, and how many runs are left today."
            ),
            arguments=ScheduleNextRun,
            act=schedule,
        ),
        Tool(
            name="cancel_next_run",
            toolset="next_run",
            description="Clear your next run, if one is booked, without booking another.",
            arguments=CancelNextRun,
            act=cancel,
        ),
    ]


def _tell(booked: BookedNextRun) -> ToolResult:
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


def _tell_refusal(refused: BookingRefused) -> ToolResult:
    earliest = None if refused.earliest is None else refused.earliest.isoformat()
    return ToolResult(
        text=f"{refused.message} Reasons: {', '.join(refused.reasons)}. Nothing was booked.",
        success=False,
        metadata={"code": refused.code, "reasons": list(refused.reasons), "earliest": earliest},
    )
