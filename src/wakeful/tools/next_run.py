"""The toolset `next_run`: an agent books its own next run. There is one slot, and each run must book the next."""

from wakeful.domain.bounds.clamp import BookingRefused
from wakeful.domain.doors.next_run import NextRunRequest
from wakeful.service.wakes.next_runs import BookedNextRun, NextRuns
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolDeps, ToolResult, tool, with_fields


class ScheduleNextRun(with_fields(Arguments, NextRunRequest, without=("when", "timezone"))):
    pass


class CancelNextRun(Arguments):
    pass


def make_tools(deps: ToolDeps) -> list[Tool]:
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
