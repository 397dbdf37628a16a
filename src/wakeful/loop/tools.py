"""The tools of the loop itself: `finish_step`, to tick off a step of the plan, and `spawn_agent`, for subagents."""

from pydantic import Field

from wakeful.core.errors import Conflict
from wakeful.toolbox.registry import Arguments, Tool, ToolContext, ToolDeps, ToolResult, tool

FINISH_STEP = "finish_step"
MAX_TASK = 32_000  # characters


class FinishStep(Arguments):
    step: int = Field(ge=1, le=100, description="The number of the step in your plan.")


def planning_tools() -> list[Tool]:
    """Return the tool. It belongs to no toolset: agents that plan have it."""

    async def act(_context: ToolContext, asked: FinishStep) -> ToolResult:
        return ToolResult(text=f"Step {asked.step} is ticked off.", metadata={"step": asked.step})

    return [
        Tool(
            name=FINISH_STEP,
            toolset=None,
            description="Tick off a step of your plan when it is done. Call it together with your next calls.",
            arguments=FinishStep,
            act=act,
            is_repeatable=True,
            is_shown_to=lambda agent: agent.planning,
        )
    ]


class SpawnAgent(Arguments):
    agent: str = Field(description="The name or id of one of the agents you may give a task to.", max_length=200)
    task: str = Field(
        description="Everything it must know: it sees nothing of this conversation, only this text.",
        min_length=1,
        max_length=MAX_TASK,
    )


class NoRoomForSubagents(Conflict):
    code = "no_subagents_here"

    def __init__(self) -> None:
        super().__init__("Tasks can only be given to agents inside a run.")


def subagent_tools(_: ToolDeps) -> list[Tool]:
    async def spawn_agent(context: ToolContext, asked: SpawnAgent) -> ToolResult:
        if context.spawn is None:
            raise NoRoomForSubagents
        return await context.spawn(asked.agent, asked.task)

    text = (
        "Give a task to another agent and get its answer. It works in your workspace with at most your tools, and "
        "cannot book wakes. Call this several times in one answer to run tasks in parallel. What it uses counts as "
        "yours, so use it where it is worth it: for long reading, or several things at once."
    )
    return [tool("subagents", spawn_agent, SpawnAgent, text, is_side_by_side=True)]
