"""Tools that book wakes, and skip, cancel and run them."""

from pydantic import AwareDatetime, Field

from wakeful.domain.doors.booking import BookingRequest
from wakeful.domain.labels import REASONS
from wakeful.domain.types import Wake, WakeKind, WakeStatus
from wakeful.server.mcp.reading import WakeId, describe_wake, show_wake
from wakeful.server.mcp.tool import Answer, Arguments, Call, McpTool, Told, arguments_of, finish
from wakeful.server.rest.runs.runs import RunShape
from wakeful.server.rest.wakes.wakes import WakeShape
from wakeful.service.wakes.bookings import BookedWake


class Booking(arguments_of(BookingRequest)):
    """A wake to book."""


class Booked(Told):
    """The wake that was booked, or that an earlier request had booked."""

    wake_id: str
    agent_id: str
    agent: str
    session_id: str | None = Field(description="The session that it runs in; null: a new one, at its time.")
    kind: WakeKind
    status: WakeStatus
    at: AwareDatetime
    told: str = Field(description="The time in words: absolute with its zone, and relative.")
    moved_by: list[str] = Field(description="Why the time is not the one that was asked for.")
    warning: str | None = Field(description="What may be wrong with the instructions.")
    repeated: bool = Field(description="An earlier request booked it, and this one booked nothing.")


class OneWake(Arguments):
    wake_id: WakeId


class Changed(Told):
    wake: WakeShape


class Begun(Told):
    run: RunShape


async def book_wake(call: Call, asked: Booking) -> Answer:
    request = asked.to_request(BookingRequest)
    booked = await finish(call.services.bookings.book(request, call.user_id, call.caller.via))
    wake = booked.wake
    return Answer(
        Booked(
            message=_describe(booked, request.key),
            wake_id=wake.id,
            agent_id=wake.agent_id,
            agent=booked.agent.name,
            session_id=wake.session_id if wake.kind == "recall" else None,
            kind=wake.kind,
            status=wake.status,
            at=wake.nominal_at,
            told=booked.told,
            moved_by=_moves(booked),
            warning=booked.warning,
            repeated=booked.is_repeated,
        ),
    )


async def cancel_wake(call: Call, asked: OneWake) -> Answer:
    wake = await finish(call.services.wakes.cancel(asked.wake_id, call.user_id))
    return await _changed(call, wake, "Cancelled:")


async def skip_wake(call: Call, asked: OneWake) -> Answer:
    wake = await finish(call.services.wakes.skip(asked.wake_id, call.user_id))
    return await _changed(call, wake, "Skipped. Next:" if wake.is_live else "Skipped. That was the last time:")


async def run_wake_now(call: Call, asked: OneWake) -> Answer:
    run = await finish(call.services.wakes.run_now(asked.wake_id, call.user_id, call.caller.via))
    message = f"Run {run.id} is {run.status}. Call get_run with this id to see its answer."
    return Answer(Begun(message=message, run=RunShape.model_validate(run)))


async def _changed(call: Call, wake: Wake, said: str) -> Answer:
    return Answer(Changed(message=f"{said} {describe_wake(wake)}", wake=await show_wake(call, wake)))


def _describe(booked: BookedWake, key: str | None) -> str:
    wake = booked.wake
    if booked.is_repeated:
        how = "the same booking within a minute" if key is None else f"the same key {key!r}"
        return (
            f"Booked already, by an earlier request with {how}: wake {wake.id} for {booked.told}, now {wake.status}. "
            "Nothing new was booked."
        )
    text = f"Booked: {booked.agent.name} wakes at {booked.told}. Wake {wake.id}."
    moves = [REASONS.get(code, code.replace("_", " ")) for code in _moves(booked)]
    if moves:
        text += f" The time was moved: {', then '.join(moves)}."
    return text if booked.warning is None else f"{text} {booked.warning}"


def _moves(booked: BookedWake) -> list[str]:
    return list((booked.wake.booking or {}).get("moved_by") or ())


TOOLS = (
    McpTool(
        name="book_wake",
        title="Book a wake",
        description=(
            "Let an agent wake by itself, once or repeatedly, and do a task. The booking outlives this conversation "
            "and every restart. If you retry, send the same key."
        ),
        scope="schedule",
        arguments=Booking,
        answer=Booked,
        act=book_wake,
    ),
    McpTool(
        name="cancel_wake",
        title="Cancel a wake",
        description="Cancel a wake that has not fired yet.",
        scope="schedule",
        arguments=OneWake,
        answer=Changed,
        act=cancel_wake,
        is_destructive=True,
        is_idempotent=True,
    ),
    McpTool(
        name="skip_wake",
        title="Skip the next time",
        description="Skip the next time of a recurring wake; the times after it stay.",
        scope="schedule",
        arguments=OneWake,
        answer=Changed,
        act=skip_wake,
    ),
    McpTool(
        name="run_wake_now",
        title="Run a wake now",
        description="Run a wake now, even if it is paused. One that fires once is over then.",
        scope="schedule",
        arguments=OneWake,
        answer=Begun,
        act=run_wake_now,
    ),
)
