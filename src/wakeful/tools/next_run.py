"""An agent's own next run: one slot, booked anew from inside each run, or the loop ends."""

from wakeful.domain.bounds.clamp import BookingRefused
from wakeful.domain.doors.next_run import NextRunRequest
from wakeful.service.wakes.next_runs import BookedNextRun, NextRuns
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolResult, with_fields


class ScheduleNextRun(with_fields(Arguments, NextRunRequest, without=("when", "timezone"))):
    pass


class CancelNextRun(Arguments):
    pass


def next_run_tools(service: NextRuns) -> list[Tool]:
    """Make the tools of the toolset `next_run`."""

    async def schedule(context: ToolContext, asked: ScheduleNextRun) -> ToolResult:
        request = asked.to_request(NextRunRequest)
        try:
            return _tell(await service.book_in_run(request, context.run, context.agent, context.only))
        except BookingRefused as refused:
            return _tell_refusal(refused)

    async def cancel(context: ToolContext, _asked: CancelNextRun) -> ToolResult:
        wake = await service.cancel(context.run.agent_id, context.run.user_id)
        if wake is None:
            return ToolResult(text="No next run was booked, so there was nothing to cancel. The slot is empty.")
        when = service.tell_time(wake.nominal_at, context.agent)
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
