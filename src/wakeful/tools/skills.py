"""Tools for an agent's skills, in `skills/` next to its workspace; it may write them only if its owner allows it."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from pydantic import Field

from wakeful.domain.agents import skills
from wakeful.domain.agents.instruction_files import MAX_FILE, SKILLS_FOLDER
from wakeful.domain.errors import Invalid, NotFound
from wakeful.domain.types import Agent
from wakeful.service.agents.instruction_files import InstructionFiles
from wakeful.service.agents.workspace import Workspace, WorkspaceLimits
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolResult, tool

_LIMITS = WorkspaceLimits(bytes=1_000_000, file_bytes=MAX_FILE, files=skills.MAX_SKILLS)


class NoSuchSkill(NotFound):
    code = "no_such_skill"

    def __init__(self, name: str, known: list[str]) -> None:
        there_are = f"There are: {', '.join(known)}." if known else "There are none."
        super().__init__(f"There is no skill {name[:100]!r}. {there_are}")


class BadSkillName(Invalid):
    code = "bad_skill_name"

    def __init__(self, name: str) -> None:
        super().__init__(
            "The name of a skill must have at most 100 letters, digits, spaces, '-', '_' and '.', and must not be a "
            f"path; got {name[:100]!r}.",
            field="name",
        )


class ReadSkill(Arguments):
    name: str = Field(min_length=1, max_length=200, description="As in the list of your skills.")


class WriteSkill(Arguments):
    name: str = Field(min_length=1, max_length=100, description="Such as 'weekly-report'. An existing one is replaced.")
    description: str = Field(min_length=1, max_length=skills.MAX_DESCRIPTION, description="One line: when to read it.")
    body: str = Field(min_length=1, max_length=50_000, description="The instructions, as Markdown.")


def skill_tools(workspace_of: Callable[[str], Path], instructions: InstructionFiles) -> list[Tool]:
    """Return the tools. They belong to no toolset: agents that have skills, or may write them, have these tools."""

    def has_skills(agent: Agent) -> bool:
        folder = workspace_of(agent.id).parent / SKILLS_FOLDER
        return agent.may_write_skills or (folder.is_dir() and any(folder.glob("*.md")))

    def may_write(agent: Agent) -> bool:
        return agent.may_write_skills

    async def read_skill(context: ToolContext, asked: ReadSkill) -> ToolResult:
        there = await instructions.for_prompt(context.agent)
        here = skills.chosen(there.skills, context.skills)
        found = skills.chosen(here, [asked.name])
        if not found:
            raise NoSuchSkill(asked.name, [skill.name for skill in here])
        return ToolResult(text=found[0].body or "(The skill is empty.)", metadata={"skill": found[0].name})

    async def write_skill(context: ToolContext, asked: WriteSkill) -> ToolResult:
        if not skills.is_name(asked.name):
            raise BadSkillName(asked.name)
        try:
            data = skills.write(asked.name, asked.description, asked.body).encode()
        except UnicodeEncodeError:
            raise Invalid("The skill has a lone surrogate, half of a character. Nothing was written.") from None
        file = f"{asked.name.removesuffix('.md')}.md"
        place = Workspace(context.workspace.parent / SKILLS_FOLDER)
        await instructions.accept_written(context.agent, f"{SKILLS_FOLDER}/{file}", data)
        size = await asyncio.to_thread(place.write, file, data, append=False, limits=_LIMITS, may_instruct=True)
        return ToolResult(
            text=f"Wrote the skill {asked.name!r}; it has {size:,} bytes.", metadata={"skill": asked.name}
        )

    reads = "Read one of your skills: instructions on how something is done, listed by name above."
    writes = "Save instructions on how something is done as a skill, for later runs to read."
    return [
        tool(None, read_skill, ReadSkill, reads, is_repeatable=True, is_shown_to=has_skills),
        tool(
            None,
            write_skill,
            WriteSkill,
            writes,
            is_repeatable=True,
            is_shown_to=may_write,
            makes_files_at_once=True,
        ),
    ]
