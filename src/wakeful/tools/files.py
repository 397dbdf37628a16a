"""The toolset `files`: read, write, list and search in the agent's own workspace."""

import asyncio
import codecs
import difflib
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice

from pydantic import Field

from wakeful.domain.agents.instruction_files import AGENTS_FILE
from wakeful.domain.errors import Invalid
from wakeful.domain.types import Agent
from wakeful.service.agents.instruction_files import InstructionFiles
from wakeful.service.agents.workspace import (
    AccessDenied,
    Entry,
    NoSuchPath,
    NotAFile,
    PathIsLink,
    Workspace,
    WorkspaceLimits,
    shown,
)
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolDeps, ToolResult, tool

MAX_READ = 64_000  # bytes in one answer
MAX_ENTRIES = 500  # lines in one listing
MAX_WALKED = 20_000  # entries looked at for one listing
MAX_MATCHES = 100
MAX_SHOWN_OF_A_LINE = 300  # characters
MAX_FILE = 10_000_000  # bytes
MAX_FILES = 10_000
MAX_DIFFED = 10_000  # bytes of a file whose changes people are shown
MAX_WORKSPACE = 1024 * 1024 * 1024  # bytes
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
