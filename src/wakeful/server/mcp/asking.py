"""Tools that ask an agent, and wait for runs. A call ends in time, and returns the run's id if that has not ended."""

from datetime import timedelta
from typing import Annotated

import orjson
from pydantic import Field

from wakeful.domain.labels import REASONS, RUN_NOTES, RUN_STATUSES
from wakeful.domain.types import Run, RunNote, RunStatus
from wakeful.server.mcp.reading import find_agent
from wakeful.server.mcp.tool import Answer, Arguments, Call, McpTool, Told, finish
from wakeful.server.rest.runs.runs import StopAnswer, UsageShape
from wakeful.server.rest.shapes import Id, Shape
from wakeful.server.ws.incoming import read_message

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


TOOLS = (
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
