"""Skills of an agent, in `skills/` beside its workspace: read on demand, and written only if its owner allows it."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from pydantic import Field

from wakeful.domain import skills
from wakeful.domain.errors import Invalid, NotFound, WakefulError
from wakeful.domain.skills import Skill
from wakeful.domain.types import Agent
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolResult
from wakeful.tools.workspace import Limits, NoSuchPath, Workspace

FOLDER = "skills"
AGENTS_FILE = "AGENTS.md"
MOST_SKILL = 64_000  # bytes of one file
MOST_AGENTS_FILE = 16_000  # bytes that are shown
_LIMITS = Limits(bytes=1_000_000, file_bytes=MOST_SKILL, files=skills.MOST_SKILLS)


class NoSuchSkill(NotFound):
    code = "no_such_skill"

    def __init__(self, name: str, known: list[str]) -> None:
        there_are = f"There are: {', '.join(known)}." if known else "There are none."
        super().__init__(f"There is no skill {name[:100]!r}. {there_are}")


class BadSkillName(Invalid):
    code = "bad_skill_name"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name[:100]!r} cannot be the name of a skill: it has letters, digits, spaces, '-', '_' and '.', is no "
            "path, and has at most 100 characters.",
            field="name",
        )


class ReadSkill(Arguments):
    name: str = Field(min_length=1, max_length=200, description="As in the list of your skills.")


class WriteSkill(Arguments):
    name: str = Field(min_length=1, max_length=100, description="Short, like 'weekly-report'. An old one is replaced.")
    description: str = Field(min_length=1, max_length=skills.MOST_DESCRIPTION, description="One line: when to read it.")
    body: str = Field(min_length=1, max_length=50_000, description="How it is done, as Markdown.")


def folder_of(workspace: Path) -> Path:
    """Return where the skills of the agent with this workspace lie."""
    return workspace.parent / FOLDER


def read_all(folder: Path) -> list[Skill]:
    """Read an agent's skills, the first fifty by name. Links, and what is no text, are left out. Blocks."""
    place = Workspace(folder)
    if not folder.is_dir():
        return []
    found: dict[str, Skill] = {}
    for entry in place.entries():
        if entry.kind != "file" or not entry.path.endswith(".md") or not skills.is_name(entry.path):
            continue
        try:
            text = place.read(entry.path, offset=0, limit=MOST_SKILL).data.decode()
        except (WakefulError, UnicodeDecodeError):  # gone or exchanged since, or no text: then it is no skill
            continue
        skill = skills.read(entry.path, text.replace("\x00", "\N{REPLACEMENT CHARACTER}"))
        found.setdefault(skill.name, skill)
        if len(found) == skills.MOST_SKILLS:
            break
    return list(found.values())


def read_agents_file(workspace: Path) -> str:
    """Read AGENTS.md, as much of it as is shown; no file is an empty one, a link in its place is refused. Blocks."""
    try:
        stretch = Workspace(workspace).read(AGENTS_FILE, offset=0, limit=MOST_AGENTS_FILE)
    except NoSuchPath:
        return ""
    text = stretch.data.decode(errors="replace").replace("\x00", "\N{REPLACEMENT CHARACTER}").strip()
    if stretch.size > MOST_AGENTS_FILE:
        text += f"\n[The first {MOST_AGENTS_FILE:,} of {stretch.size:,} bytes.]"
    return text


def skill_tools(workspace_of: Callable[[str], Path]) -> list[Tool]:
    """Make the tools for skills. They belong to no toolset: having skills, or the right to write them, shows them."""

    def has_skills(agent: Agent) -> bool:
        folder = folder_of(workspace_of(agent.id))
        return agent.may_write_skills or (folder.is_dir() and any(folder.glob("*.md")))

    return [
        Tool(
            name="read_skill",
            toolset=None,
            description="Read one of your skills: instructions on how something is done, listed by name above.",
            arguments=ReadSkill,
            act=_read,
            is_repeatable=True,
            is_shown_to=has_skills,
        ),
        Tool(
            name="write_skill",
            toolset=None,
            description="Keep how something is done as a skill of yours, for later runs to read.",
            arguments=WriteSkill,
            act=_write,
            makes_files=True,
            is_repeatable=True,
            is_shown_to=lambda agent: agent.may_write_skills,
        ),
    ]


async def _read(context: ToolContext, asked: ReadSkill) -> ToolResult:
    there = await asyncio.to_thread(read_all, folder_of(context.workspace))
    here = skills.chosen(there, context.skills)
    found = skills.chosen(here, [asked.name])
    if not found:
        raise NoSuchSkill(asked.name, [skill.name for skill in here])
    return ToolResult(text=found[0].body or "(The skill is empty.)", metadata={"skill": found[0].name})


async def _write(context: ToolContext, asked: WriteSkill) -> ToolResult:
    if not skills.is_name(asked.name):
        raise BadSkillName(asked.name)
    try:
        data = skills.write(asked.name, asked.description, asked.body).encode()
    except UnicodeEncodeError:
        raise Invalid(
            "The skill has half of a character in it (a lone surrogate). Nothing was written. Leave it out."
        ) from None
    place = Workspace(folder_of(context.workspace))
    file = f"{asked.name.removesuffix('.md')}.md"
    size = await asyncio.to_thread(place.write, file, data, append=False, limits=_LIMITS)
    return ToolResult(text=f"Wrote the skill {asked.name!r}; it has {size:,} bytes.", metadata={"skill": asked.name})
