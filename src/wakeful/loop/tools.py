"""The tools of the loop itself: `finish_step` ticks off a step of the plan, `spawn_agent` starts a subagent.

A model with a small context window is offered only some tools of its run; `more_tools` gives it the others.

Folding changes what is shown, not what the run may do: a folded tool that the model calls by its name is called. The
tools that are offered follow from the messages that the model is sent, so a resumed run offers the same ones.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import cast

from pydantic import Field
from pydantic_ai.messages import ToolCallPart

from wakeful.core.errors import Conflict
from wakeful.core.labels import TOOLSETS
from wakeful.core.types import Message
from wakeful.loop.arguments import UnreadableArguments, read_arguments
from wakeful.loop.context import tokens_in, view
from wakeful.loop.state import RunState
from wakeful.timing.brief import named_tools
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


# Offers a model with a small context window only some tools of its run; the tool `more_tools` gives it the others.
#
# Folding changes what is shown, not what the run may do: a folded tool that the model calls by its name is called. The
# tools that are offered follow from the messages that the model is sent, so a resumed run offers the same ones.


MORE_TOOLS = "more_tools"
ALWAYS = 1 / 8  # of the window, for the tools that are offered from the start
WANTED = 1 / 4  # of the window, for those that the messages name or use, the latest first
MAX_NAMES = 20  # of one toolset, in the description of `more_tools`


class MoreTools(Arguments):
    names: list[str] = Field(description="Names of tools, or of a toolset for all of its tools.")


def offered_tools(state: RunState) -> list[Tool]:
    """Return the tools that the model of a run is shown in its next request."""
    if state.abilities.tool_calls == "none":
        return []
    tools = list(state.tools.values())
    if not _is_folding(state):
        return tools
    wanted = wanted_tools(view(state.messages, state.window), state.tools)
    return fold_tools(tools, wanted, state.window)


def fold_tools(tools: Sequence[Tool], wanted: Sequence[str], window: int) -> list[Tool]:
    """Return the tools to show, the wanted ones first; if some are left out, `more_tools` lists them."""
    size = {tool.name: tokens_of_tool(tool) for tool in tools}
    if sum(size.values()) <= window * ALWAYS:
        return list(tools)
    shown = set[str]()
    room = window * WANTED
    for name in wanted:
        if size[name] <= room or not shown:  # one at least
            shown.add(name)
            room -= size[name]
    room = window * ALWAYS - tokens_of_tool(_more_tools(tools))
    for _, group in groupby(tools, lambda tool: tool.toolset):
        rest = [tool.name for tool in group if tool.name not in shown]
        needs = sum(size[name] for name in rest)
        if needs <= room:
            shown.update(rest)
            room -= needs
    folded = [tool for tool in tools if tool.name not in shown]
    kept = [tool for tool in tools if tool.name in shown]
    return [*kept, _more_tools(folded)] if folded else kept


def wanted_tools(messages: Sequence[Message], tools: Collection[str]) -> list[str]:
    """Return the tools that messages of a person or the server name, or that the model asked for or called, the latest
    first. Names in a tool's result do not count.
    """
    wanted: dict[str, None] = {}
    for message in reversed(messages):
        data = message.data or {}
        names: Iterable[str] = ()
        if message.role in ("user", "notice"):
            names = named_tools(message.content, tools)
        elif message.role == "tool":
            names = data["metadata"].get("tools", ()) if data["tool"] == MORE_TOOLS else [data["tool"]]
        wanted.update(dict.fromkeys(name for name in names if name in tools))
    return list(wanted)


def tokens_of_tool(tool: Tool) -> int:
    return tokens_in(tool.name + tool.description + json.dumps(tool.schema, separators=(",", ":")))


def is_more_tools(call: ToolCallPart) -> bool:
    return call.tool_name == MORE_TOOLS


def unfold_tools(state: RunState, call: ToolCallPart) -> ToolResult:
    """Return the result of a call of `more_tools`; its metadata has the tools that are offered from now on."""
    try:
        names = _names_in(read_arguments(call))
    except UnreadableArguments as error:
        return ToolResult(text=error.message, success=False, metadata={"code": error.code})
    groups = _by_toolset(state.tools.values())
    known = {name.lower(): [name] for name in state.tools} | groups
    asked = [name for name in names if name.lower() in known]
    if not asked:
        text = f"{', '.join(map(repr, names)) or 'Nothing'} is not the name of a tool or a toolset. {_listed(groups)}"
        return ToolResult(text=text, success=False, metadata={"code": "bad_arguments"})
    found = list(dict.fromkeys(tool for name in asked for tool in known[name.lower()]))
    if _is_folding(state) and sum(tokens_of_tool(state.tools[name]) for name in found) > state.window * WANTED:
        lines = [f"- {name}: {_first_sentence(state.tools[name])}" for name in found]
        text = "\n".join(["These are too many at once. Ask for the one or two that you need:", *lines])
        return ToolResult(text=text)
    return ToolResult(text=f"You can call these now: {', '.join(found)}.", metadata={"tools": found})


def _is_folding(state: RunState) -> bool:
    return state.window <= state.deps.small_window


def _more_tools(folded: Sequence[Tool]) -> Tool:
    return Tool(
        name=MORE_TOOLS,
        toolset=None,
        description="Get more of your tools; they are not all shown, to save space. Call this with their names, then "
        f"call them. {_listed(_by_toolset(folded))}",
        arguments=MoreTools,
        act=_never,
    )


async def _never(_context: ToolContext, _asked: MoreTools) -> ToolResult:
    raise NotImplementedError("the loop answers calls of more_tools by itself")


def _by_toolset(tools: Iterable[Tool]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for each in tools:
        groups.setdefault(each.toolset or "other", []).append(each.name)
    return groups


def _listed(groups: Mapping[str, Sequence[str]]) -> str:
    lines: list[str] = []
    for toolset, names in groups.items():
        hint = f" ({TOOLSETS[toolset].hint})" if toolset in TOOLSETS else ""
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        lines.append(f"{toolset}{hint}: {', '.join(names[:MAX_NAMES])}{more}")
    return "Toolsets and their tools: " + "; ".join(lines) + "."


def _names_in(args: Mapping[str, object]) -> list[str]:
    """Return the names in the arguments; a small model may send a text, or `name`, instead of a list."""
    given = next((args[key] for key in ("names", "name", "tools", "toolset") if key in args), "")
    names = cast("list[object]", given) if isinstance(given, list) else str(given).replace(",", " ").split()
    return [str(name)[:100] for name in names][:100]


def _first_sentence(tool: Tool) -> str:
    return tool.description.partition(". ")[0].removesuffix(".") + "."
