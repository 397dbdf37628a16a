"""The toolset `subagents`: give a task to another agent. `runtime/loop/subagents.py` runs it."""

from pydantic import Field

from wakeful.domain.errors import Conflict
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolDeps, ToolResult, tool

MAX_TASK = 32_000  # characters


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


def make_tools(_: ToolDeps) -> list[Tool]:
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
