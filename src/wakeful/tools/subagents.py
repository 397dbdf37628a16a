"""Giving a task to another agent. The work itself is the runtime's; here is what the model sees of it."""

from pydantic import Field

from wakeful.domain.errors import Conflict
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolResult

MAX_TASK = 32_000  # characters


class SpawnAgent(Arguments):
    agent: str = Field(description="The name or id of one of the agents you may give a task to.", max_length=200)
    task: str = Field(
        description="Everything it must know: it sees nothing of this conversation, only these words.",
        min_length=1,
        max_length=MAX_TASK,
    )


class NoRoomForSubagents(Conflict):
    code = "no_subagents_here"

    def __init__(self) -> None:
        super().__init__("Tasks can only be given away from within a run.")


def subagent_tools() -> list[Tool]:
    """Make the tool of the toolset `subagents`."""

    async def spawn_agent(context: ToolContext, asked: SpawnAgent) -> ToolResult:
        if context.spawn is None:
            raise NoRoomForSubagents
        return await context.spawn(asked.agent, asked.task)

    return [
        Tool(
            name="spawn_agent",
            toolset="subagents",
            description=(
                "Give a task to another agent and get its answer. It works in your workspace with at most your tools, "
                "and books nothing. Call this several times in one answer to have tasks done side by side. What it "
                "uses counts as yours, so give away what is worth it: long reading, or several things at once."
            ),
            arguments=SpawnAgent,
            act=spawn_agent,
            is_side_by_side=True,
        )
    ]
