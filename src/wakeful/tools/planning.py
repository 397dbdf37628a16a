"""The tool `finish_step`: an agent that plans ticks off the steps of its plan, for people to see."""

from pydantic import Field

from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolResult

FINISH_STEP = "finish_step"


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
