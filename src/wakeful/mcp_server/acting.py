"""Tools that act: they ask an agent and wait for runs, or book wakes.

A call ends in time, and returns the run's id if that has not ended.
"""

from datetime import timedelta
from typing import Annotated

import orjson
from pydantic import AwareDatetime, Field

from wakeful.core.labels import REASONS, RUN_NOTES, RUN_STATUSES
from wakeful.core.types import Run, RunNote, RunStatus, Wake, WakeKind, WakeStatus
from wakeful.http.shapes import Id, Shape, StopAnswer
from wakeful.mcp_server.tools import (
    Answer,
    Arguments,
    Call,
    McpTool,
    Told,
    WakeId,
    arguments_of,
    describe_wake,
    find_agent,
    finish,
    show_wake,
)
from wakeful.runs.rest import RunShape, UsageShape
from wakeful.sessions.messages import read_message
from wakeful.timing.booking_request import BookingRequest
from wakeful.wakes.bookings import BookedWake
from wakeful.wakes.rest import WakeShape

PROGRESS_EVERY = timedelta(seconds=10)  # clients give up on a call that says nothing for some minutes
MAX_WAIT = 240  # seconds; some clients end every call after five minutes, others after one
_MAX_FRAMES = 1_000
_TOOL_FRAMES = ('{"type":"tool_started"', '{"type":"tool_call"')

Wait = Annotated[int, Field(ge=0, le=MAX_WAIT, description="How long to wait for the end of the run, in seconds.")]
RunId = Annotated[Id, Field(description="Id of a run, from ask_agent or run_wake_now.")]


class Question(Arguments):
    agent: (
        Annotated[str, Field(max_length=200, description="Name or id of the agent; left out: the first one.")] | None
    ) = None
    message: Annotated[str, Field(min_length=1, max_length=100_000, description="The message to the agent.")]
    session_id: (
        Annotated[Id, Field(description="Continue this session, which also decides the agent; left out: a new one.")]
        | None
    ) = None
    wait_seconds: Wait = 45


class OneRun(Arguments):
    run_id: RunId
    wait_seconds: Wait = 0


class RunToStop(Arguments):
    run_id: RunId


class ToolStep(Shape):
    """A tool that the agent called in the run."""

    tool: str
    success: bool | None = Field(description="Null: it has not returned.")


class Stopping(Told, StopAnswer):
    pass


class RunState(Told):
    """A run as it is now."""

    run_id: str
    agent_id: str
    session_id: str | None
    status: RunStatus = Field(description="queued and running: not over. Call get_run with the run_id.")
    is_over: bool
    answer: str = Field(description="What the agent wrote last; empty if it has not answered.")
    verdict: str = Field(description="How the run ended, in words, or what it does.")
    note: RunNote | None
    reason: str | None
    error: str | None
    steps: list[ToolStep] = Field(description="The latest tools that it called, while its frames are kept.")
    usage: UsageShape | None


async def ask_agent(call: Call, asked: Question) -> Answer:
    content = read_message({"content": asked.message}).content
    runs, via = call.services.runs, call.caller.via
    with call.waiting(asked.wait_seconds):  # from before the run, so that one too many starts none
        if asked.session_id is not None:
            run = await finish(runs.ask(asked.session_id, call.user_id, content, via=via))
        else:
            agent = await find_agent(call, asked.agent)
            run = await finish(runs.ask_in_new_session(agent.id, call.user_id, content, via))
        return await _wait(call, run.id, asked.wait_seconds)


async def get_run(call: Call, asked: OneRun) -> Answer:
    with call.waiting(asked.wait_seconds):
        return await _wait(call, asked.run_id, asked.wait_seconds)


async def stop_run(call: Call, asked: RunToStop) -> Answer:
    stopped = Stopping.of(await finish(call.services.runs.stop(asked.run_id, call.user_id)))
    later = f" But {stopped.reason}." if stopped.reason else ""
    message = f"Stopping.{later}" if stopped.ok else "It is over already."
    return Answer(stopped.model_copy(update={"message": message}))


async def _wait(call: Call, run_id: str, seconds: int) -> Answer:
    """Wait for the end of a run, and report to the client now and then which tool is running."""
    waits, began = call.services.run_waits, call.services.run_waits.now()
    until = began + timedelta(seconds=seconds)
    run = await waits.wait(run_id, call.user_id, min(until, began + PROGRESS_EVERY))
    steps, after = await _steps(call, run, 0)
    while run.finished_at is None and waits.now() < until:
        await call.progress((waits.now() - began).total_seconds(), seconds, _doing(run, steps))
        run = await waits.wait(run_id, call.user_id, min(until, waits.now() + PROGRESS_EVERY))
        more, after = await _steps(call, run, after)
        steps = _join(steps, more)
    return await _show(call, run, steps)


async def _steps(call: Call, run: Run, after: int) -> tuple[list[ToolStep], int]:
    """Return the tools that a run called after a frame, and the number of the last frame."""
    frames = await call.services.stream.of_run(run, after, _MAX_FRAMES)
    found = [orjson.loads(frame.text) for frame in frames if frame.text.startswith(_TOOL_FRAMES)]
    steps = [ToolStep(tool=each["tool"], success=each.get("success")) for each in found]
    return _join([], steps), frames[-1].seq if frames else after


def _join(steps: list[ToolStep], more: list[ToolStep]) -> list[ToolStep]:
    """Put the end of a call in the place of its beginning."""
    for step in more:
        if step.success is not None and (begun := ToolStep(tool=step.tool, success=None)) in steps:
            steps.remove(begun)
        steps.append(step)
    return steps[-50:]


async def _show(call: Call, run: Run, steps: list[ToolStep]) -> Answer:
    texts = await call.services.runs.texts(run)
    usage = (await call.services.runs.usage([run.id])).get(run.id)
    is_over, message = run.finished_at is not None, _verdict(run, steps)
    if not is_over:
        message += f" Call get_run with run_id {run.id!r} to see what came of it."
    elif run.status == "success" and texts.answer and run.note is None:
        message = ""  # the answer says everything
    state = RunState(
        message=message,
        run_id=run.id,
        agent_id=run.agent_id,
        session_id=run.session_id,
        status=run.status,
        is_over=is_over,
        answer=texts.answer,
        verdict=_verdict(run, steps),
        note=run.note,
        reason=run.reason,
        error=run.error,
        steps=steps,
        usage=None if usage is None else UsageShape.model_validate(usage),
    )
    return Answer(state, texts.answer if is_over else "")


def _verdict(run: Run, steps: list[ToolStep]) -> str:
    if run.finished_at is None:
        return f"Run {run.id}: {_doing(run, steps)}."
    reason = None if run.reason in (run.status, "error") else run.reason  # said already; the error says more
    why = RUN_NOTES.get(run.note) if run.note else REASONS.get(reason or "", reason)
    parts = [part for part in (why, run.error) if part]
    return f"Run {run.id}: {RUN_STATUSES[run.status]}{': ' if parts else ''}{'. '.join(parts).rstrip('.')}."


def _doing(run: Run, steps: list[ToolStep]) -> str:
    if run.status == "queued":
        return "waiting to begin"
    running = [step.tool for step in steps if step.success is None]
    return f"working with {running[-1]}" if running else "the model is working"


ASKING_TOOLS = (
    McpTool(
        name="ask_agent",
        title="Ask an agent",
        description=(
            "Send an agent a message and wait for its answer. If it takes longer than wait_seconds, the run goes on: "
            "the result has its run_id for get_run."
        ),
        scope="chat",
        arguments=Question,
        answer=RunState,
        act=ask_agent,
    ),
    McpTool(
        name="get_run",
        title="Get a run",
        description="Return what became of a run: its status, answer, steps and cost. May wait for its end.",
        scope="read",
        arguments=OneRun,
        answer=RunState,
        act=get_run,
        is_read_only=True,
    ),
    McpTool(
        name="stop_run",
        title="Stop a run",
        description="Stop a run that is waiting or running.",
        scope="chat",
        arguments=RunToStop,
        answer=Stopping,
        act=stop_run,
        is_destructive=True,
        is_idempotent=True,
    ),
)


# Tools that book, skip, cancel and run wakes.


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


BOOKING_TOOLS = (
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
