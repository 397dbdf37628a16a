"""The toolset `files`, for the agent's own workspace, and the tools for skills and profiles."""

import asyncio
import codecs
import difflib
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from pydantic import Field

from wakeful.agents.instruction_files import InstructionFiles
from wakeful.agents.rules import SWITCH_PROFILE
from wakeful.agents.service import Profiles
from wakeful.core.errors import Invalid, NotFound
from wakeful.core.events import ProfileSwitched
from wakeful.core.records import chosen
from wakeful.core.types import Agent
from wakeful.homes import instructions as skills
from wakeful.homes.instructions import AGENTS_FILE, MAX_INSTRUCTION_FILE, SKILLS_FOLDER
from wakeful.homes.workspace import (
    MAX_WORKSPACE,
    AccessDenied,
    Entry,
    NoSuchPath,
    NotAFile,
    PathIsLink,
    Workspace,
    WorkspaceLimits,
    shown,
)
from wakeful.toolbox.registry import Arguments, Tool, ToolContext, ToolDeps, ToolResult, tool

MAX_READ = 64_000  # bytes in one answer
MAX_ENTRIES = 500  # lines in one listing
MAX_WALKED = 20_000  # entries looked at for one listing
MAX_MATCHES = 100
MAX_SHOWN_OF_A_LINE = 300  # characters
MAX_FILE = 10_000_000  # bytes
MAX_FILES = 10_000
MAX_DIFFED = 10_000  # bytes of a file whose changes people are shown
SEARCH_LIMIT = 5.0  # seconds


class FileIsBinary(Invalid):
    code = "file_is_binary"

    def __init__(self, path: str, size: int) -> None:
        super().__init__(
            f"{shown(path)} is not text ({size:,} bytes of binary data), so it cannot be shown. "
            "Read a text file, or convert it with another tool."
        )


class OffsetBeyondEnd(Invalid):
    code = "offset_beyond_end"

    def __init__(self, path: str, offset: int, size: int) -> None:
        super().__init__(
            f"{shown(path)} has {size:,} bytes, so there is nothing at offset={offset}. Use a smaller one."
        )


class ContentUnusable(Invalid):
    code = "content_unusable"

    def __init__(self) -> None:
        super().__init__("The content has a lone surrogate, half of a character. Nothing was written. Leave it out.")


class ReadFile(Arguments):
    path: str = Field(description="Relative to your workspace, like 'notes/today.md'.")
    offset: int = Field(default=0, ge=0, description="The byte to start at; a cut-off answer names the next one.")
    limit: int = Field(default=MAX_READ, ge=16, le=MAX_READ, description="Maximum number of bytes.")


class WriteFile(Arguments):
    path: str = Field(description="Relative to your workspace; missing directories are created.")
    content: str = Field(description="The text to write.")
    append: bool = Field(default=False, description="Append to the file instead of replacing it.")


class ListFiles(Arguments):
    path: str = Field(default=".", description="A directory of your workspace.")
    recursive: bool = Field(default=False, description="Include subdirectories.")
    name: str = Field(default="*", max_length=200, description="Only names that match this pattern, such as '*.md'.")


class SearchFiles(Arguments):
    pattern: str = Field(min_length=1, max_length=500, description="The text to find in a line, taken literally.")
    path: str = Field(default=".", description="A file, or a directory to search with its subdirectories.")
    name: str = Field(default="*", max_length=200, description="Only files whose names match this, such as '*.md'.")
    ignore_case: bool = Field(default=True, description="Treat upper and lower case as the same.")


def make_tools(deps: ToolDeps) -> list[Tool]:
    return file_tools(MAX_WORKSPACE, deps[InstructionFiles])


def file_tools(
    quota_bytes: int,
    instructions: InstructionFiles | None = None,
    *,
    most_files: int = MAX_FILES,
    largest_file: int = MAX_FILE,
) -> list[Tool]:
    """Return the tools of the toolset `files`, with these limits for each workspace."""
    limits = WorkspaceLimits(bytes=quota_bytes, file_bytes=largest_file, files=most_files)

    async def read_file(context: ToolContext, asked: ReadFile) -> ToolResult:
        return await asyncio.to_thread(_read, Workspace(context.workspace), asked)

    async def write_file(context: ToolContext, asked: WriteFile) -> ToolResult:
        return await _write(limits, instructions, context, asked)

    async def list_files(context: ToolContext, asked: ListFiles) -> ToolResult:
        return await asyncio.to_thread(_list, Workspace(context.workspace), asked)

    async def search_files(context: ToolContext, asked: SearchFiles) -> ToolResult:
        return await asyncio.to_thread(search_workspace, Workspace(context.workspace), asked)

    writes = "Write a text file of your workspace: replace it, or append to it with append=true."
    lists = "List a directory of your workspace, with sizes."
    searches = "Find lines with a text in the files of your workspace. Plain text, no regular expressions."
    return [
        tool("files", read_file, ReadFile, "Read a text file of your workspace.", is_repeatable=True),
        tool("files", write_file, WriteFile, writes, makes_files_at_once=True),
        tool("files", list_files, ListFiles, lists, is_repeatable=True),
        tool("files", search_files, SearchFiles, searches, is_repeatable=True),
    ]


async def _write(
    limits: WorkspaceLimits, instructions: InstructionFiles | None, context: ToolContext, asked: WriteFile
) -> ToolResult:
    try:
        data = asked.content.encode()
    except UnicodeEncodeError:
        raise ContentUnusable from None
    workspace = Workspace(context.workspace)
    may_instruct = context.agent.may_write_skills and workspace.is_agents_file(asked.path)
    if may_instruct and instructions is not None:
        await _accept(instructions, context.agent, workspace, asked, data)
    diff = None if asked.append else await asyncio.to_thread(_diff, workspace, asked.path, asked.content)
    size = await asyncio.to_thread(
        workspace.write, asked.path, data, append=asked.append, limits=limits, may_instruct=may_instruct
    )
    done = f"Added {len(data):,} bytes to" if asked.append else "Wrote"
    metadata = {"path": asked.path, "size": size} | ({} if diff is None else {"diff": diff})
    return ToolResult(text=f"{done} {shown(asked.path)}; it has {size:,} bytes.", metadata=metadata)


def _diff(workspace: Workspace, path: str, text: str) -> str | None:
    """Return what a new text changes in a file, as a unified diff without its head, if there is any."""
    try:
        old = workspace.read(path, offset=0, limit=MAX_DIFFED)
    except (NoSuchPath, PathIsLink, NotAFile, AccessDenied):
        return None
    if max(old.size, len(text)) > MAX_DIFFED or is_binary(old.data):
        return None
    before = old.data.decode(errors="replace").splitlines()
    return "\n".join(islice(difflib.unified_diff(before, text.splitlines(), lineterm="", n=2), 2, None)) or None


async def _accept(
    instructions: InstructionFiles, agent: Agent, workspace: Workspace, asked: WriteFile, data: bytes
) -> None:
    """Mark the new AGENTS.md as accepted, unless it is appended to content that no person accepted."""
    before = b""
    if asked.append:
        with suppress(NoSuchPath):  # then it is a new file
            before = (await asyncio.to_thread(workspace.read, asked.path, offset=0, limit=MAX_FILE)).data
    if not before or await instructions.is_accepted(agent, AGENTS_FILE, before):
        await instructions.accept_written(agent, AGENTS_FILE, before + data)


def _read(workspace: Workspace, asked: ReadFile) -> ToolResult:
    stretch = workspace.read(asked.path, offset=asked.offset, limit=asked.limit)
    if asked.offset and asked.offset >= stretch.size:
        raise OffsetBeyondEnd(asked.path, asked.offset, stretch.size)
    end = asked.offset + len(stretch.data)
    data = stretch.data
    if end < stretch.size:
        data = data[: len(data) - _cut_at_end(data)]
        end = asked.offset + len(data)
    if asked.offset:
        data = data[_cut_at_start(data) :]
    if is_binary(data):
        raise FileIsBinary(asked.path, stretch.size)
    text = data.decode(errors="replace") or "(The file is empty.)"
    if end < stretch.size:
        text += f"\n[truncated at byte {end:,} of {stretch.size:,}; read on with offset={end}]"
    return ToolResult(
        text=text, metadata={"path": asked.path, "size": stretch.size, "offset": asked.offset, "end": end}
    )


def _cut_at_end(data: bytes) -> int:
    """Return the number of last bytes that begin an incomplete character; the next call reads them."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    decoder.decode(data)
    return len(decoder.getstate()[0])


def _cut_at_start(data: bytes) -> int:
    """Return the number of first bytes that belong to a character that begins before them."""
    head = data[:3]
    return len(head) - len(head.lstrip(bytes(range(0x80, 0xC0))))


def is_binary(data: bytes) -> bool:
    """Return whether bytes are not text: they have a NUL, or much that is not UTF-8."""
    return b"\0" in data or data.decode(errors="replace").count("\N{REPLACEMENT CHARACTER}") * 3 > len(data)


def _list(workspace: Workspace, asked: ListFiles) -> ToolResult:
    lines: list[str] = []
    is_cut = False
    for walked, entry in enumerate(workspace.entries(asked.path, recursive=asked.recursive)):
        if walked == MAX_WALKED or len(lines) == MAX_ENTRIES:
            is_cut = True
            break
        if _is_named(entry, asked.name):
            lines.append(_describe(entry))
    metadata = {"path": asked.path, "count": len(lines), "is_cut": is_cut}
    if is_cut:
        lines.append(f"[truncated after {len(lines)} entries; list a directory below, or give a name like '*.md']")
    nothing = f"{shown(asked.path)} is empty." if asked.name == "*" else f"No name there matches {asked.name!r}."
    return ToolResult(text="\n".join(lines) or nothing, metadata=metadata)


def _is_named(entry: Entry, name: str) -> bool:
    return fnmatchcase(entry.path.rpartition("/")[2], name)


def _describe(entry: Entry) -> str:
    path = _printable(entry.path)
    if entry.kind == "directory":
        return f"{path}/"
    return f"{path} ({entry.size:,} bytes)" if entry.kind == "file" else f"{path} ({entry.kind}; cannot be opened)"


def _printable(path: str) -> str:
    """Quote a name with a line break, which would look like two names."""
    return path if path.isprintable() else repr(path)


@dataclass(slots=True, kw_only=True)
class _Search:
    """A search and its results."""

    asked: SearchFiles
    monotonic: Callable[[], float]
    deadline: float
    matches: list[str] = field(default_factory=list[str])
    skipped: list[str] = field(default_factory=list[str])
    stopped: str | None = None  # why there may be more

    def should_stop(self) -> bool:
        if len(self.matches) >= MAX_MATCHES:
            self.stopped = f"stopped after {MAX_MATCHES} matches; search for something rarer, or in one directory"
        elif self.monotonic() > self.deadline:
            self.stopped = f"stopped after {SEARCH_LIMIT:g} seconds; search in one directory, or by name"
        return self.stopped is not None


def search_workspace(
    workspace: Workspace, asked: SearchFiles, monotonic: Callable[[], float] = time.monotonic
) -> ToolResult:
    search = _Search(asked=asked, monotonic=monotonic, deadline=monotonic() + SEARCH_LIMIT)
    if workspace.kind_of(asked.path) == "file":
        _search_file(search, workspace, asked.path)
    else:
        _search_directory(search, workspace)
    lines = [*search.matches] or [f"No line has {asked.pattern!r} in it."]
    if search.skipped:
        lines.append(f"[only the first {MAX_FILE:,} bytes searched of: {', '.join(search.skipped[:10])}]")
    if search.stopped:
        lines.append(f"[{search.stopped}]")
    return ToolResult(
        text="\n".join(lines), metadata={"matches": len(search.matches), "is_cut": search.stopped is not None}
    )


def _search_directory(search: _Search, workspace: Workspace) -> None:
    for entry in workspace.entries(search.asked.path, recursive=True):
        if search.should_stop():
            return
        if entry.kind == "file" and _is_named(entry, search.asked.name):
            with suppress(NoSuchPath, PathIsLink, NotAFile, AccessDenied):  # replaced since, or not readable
                _search_file(search, workspace, entry.path)


def _search_file(search: _Search, workspace: Workspace, path: str) -> None:
    stretch = workspace.read(path, offset=0, limit=MAX_FILE)
    if is_binary(stretch.data[:8000]):
        return
    if stretch.size > MAX_FILE:
        search.skipped.append(_printable(path))
    ignore_case = search.asked.ignore_case
    needle = search.asked.pattern.casefold() if ignore_case else search.asked.pattern
    offset = 0
    for number, raw in enumerate(stretch.data.split(b"\n"), start=1):
        line = raw.decode(errors="replace")
        if needle in (line.casefold() if ignore_case else line):
            search.matches.append(f"{_printable(path)}:{number} (offset={offset}): {_excerpt(line, needle)}")
            if search.should_stop():
                return
        offset += len(raw) + 1
        if number % 1000 == 0 and search.should_stop():
            return


def _excerpt(line: str, needle: str) -> str:
    line = line.strip()
    if len(line) <= MAX_SHOWN_OF_A_LINE:
        return line
    start = max(0, line.casefold().find(needle.casefold()) - MAX_SHOWN_OF_A_LINE // 3)
    cut = line[start : start + MAX_SHOWN_OF_A_LINE]
    return ("…" if start else "") + cut + ("…" if start + len(cut) < len(line) else "")


# Skills, in `skills/` next to the workspace; an agent may write them only if its owner allows it.


_LIMITS = WorkspaceLimits(bytes=1_000_000, file_bytes=MAX_INSTRUCTION_FILE, files=skills.MAX_SKILLS)


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
        here = chosen(there.skills, context.skills)
        found = chosen(here, [asked.name])
        if not found:
            raise NoSuchSkill(asked.name, [skill.name for skill in here])
        return ToolResult(text=found[0].body or "(The skill is empty.)", metadata={"skill": found[0].name})

    async def write_skill(context: ToolContext, asked: WriteSkill) -> ToolResult:
        if not skills.is_name(asked.name):
            raise BadSkillName(asked.name)
        try:
            data = skills.write_skill(asked.name, asked.description, asked.body).encode()
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


# Profiles: handing the session over to another agent.


class SwitchProfile(Arguments):
    profile: str = Field(min_length=1, max_length=200, description="The name or id of an agent that your owner listed.")


def profile_tools(service: Profiles, tools_of: Callable[[Agent], Collection[str]]) -> list[Tool]:
    """Return the tool. It belongs to no toolset: agents with a list of profiles have it."""

    async def act(context: ToolContext, asked: SwitchProfile) -> ToolResult:
        own = [name for name in tools_of(context.agent) if context.only is None or name in context.only]
        chosen = await service.switch(context.run, context.agent, asked.profile, own)
        return ToolResult(
            text=f"{chosen.name!r} now continues this session, with its own instructions.",
            metadata={"profile_id": chosen.id, "profile_name": chosen.name},
            frames=(ProfileSwitched(profile_id=chosen.id, profile_name=chosen.name),),
        )

    return [
        Tool(
            name=SWITCH_PROFILE,
            toolset=None,
            description=(
                "Hand this session over to another agent of your user: it continues at once and answers from then on, "
                "with at most the tools you have. Wakes that you have booked stay yours."
            ),
            arguments=SwitchProfile,
            act=act,
            is_repeatable=True,
            is_shown_to=lambda agent: bool(agent.profiles),
        )
    ]
