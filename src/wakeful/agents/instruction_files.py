"""The files that instruct an agent: AGENTS.md in its workspace, and its skills.

They go into prompts, so a program that writes them controls every later run. Our tools refuse to write them, but a
shell or an MCP server can. So a file is only used if a user saved or accepted exactly its content; otherwise it is
left out, and the agent's user gets a notice.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wakeful.core.errors import WakefulError
from wakeful.core.records import Skill
from wakeful.core.resources import OutOfResources
from wakeful.core.texts import to_storable
from wakeful.core.types import Agent
from wakeful.database.files import AgentFiles
from wakeful.homes import instructions
from wakeful.homes.instructions import (
    AGENTS_FILE,
    MAX_AGENTS_FILE,
    MAX_INSTRUCTION_FILE,
    SKILLS_FOLDER,
    FileChangedSince,
    InstructionFile,
    InstructionsTooLong,
    check_path,
    digest_of,
)
from wakeful.homes.workspace import NoSuchPath, PathIsLink, Workspace, WorkspaceLimits
from wakeful.notices.texts import make_notice
from wakeful.store.base import Base
from wakeful.store.store import Tx

_LIMITS = WorkspaceLimits(bytes=1_000_000_000, file_bytes=MAX_INSTRUCTION_FILE, files=10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """The accepted instructions of an agent, and the files that were left out."""

    agents_file: str = ""
    skills: Sequence[Skill] = ()
    left_out: Sequence[str] = ()  # a sentence each, for the model


class InstructionFiles:
    """Reads instruction files for prompts, and lets users list, save and accept them."""

    def __init__(self, base: Base, agent_files: AgentFiles) -> None:
        self._base = base
        self._store = base.store
        self._clock = base.clock
        self._agent_files = agent_files

    async def for_prompt(self, agent: Agent) -> Instructions:
        """Return the instructions for a prompt. An unaccepted file is left out, with one notice per content."""
        files, problems = await asyncio.to_thread(_read_all, self._base.workspace_of(agent.id))
        if not files and not problems:
            return Instructions()
        files = await self._compare(agent.id, files)
        refused = [file for file in files if not file.is_accepted]
        if refused:
            await self._add_notices(agent, refused)
        left_out = [f"{file.path} was left out: it changed, and your user has not accepted it yet." for file in refused]
        accepted = [file for file in files if file.is_accepted]
        return Instructions(
            agents_file=next((_cut(file) for file in accepted if file.path == AGENTS_FILE), ""),
            skills=_skills(accepted),
            left_out=[*left_out, *problems],
        )

    async def skills_of(self, agent: Agent) -> Sequence[Skill]:
        """Return the accepted skills of an agent."""
        await self._agent_files.bring_files(agent.id)
        return (await self.for_prompt(agent)).skills

    async def list(self, agent_id: str, user_id: str) -> list[InstructionFile]:
        """Return an agent's instruction files as they are on disk now, each with whether it is accepted."""
        await self._store.read(lambda tx: tx.agents.get(agent_id, user_id))
        await self._agent_files.bring_files(agent_id)
        files, _ = await asyncio.to_thread(_read_all, self._base.workspace_of(agent_id))
        return await self._compare(agent_id, files)

    async def accept(self, agent_id: str, user_id: str, path: str, digest: str) -> InstructionFile:
        """Accept the content with this digest, if the file still has it."""
        files = {file.path: file for file in await self.list(agent_id, user_id)}
        file = files.get(check_path(path))
        if file is None or file.digest != digest:
            raise FileChangedSince(path)
        await self._accept(agent_id, path, digest)
        return replace(file, is_accepted=True)

    async def save(self, agent_id: str, user_id: str, path: str, text: str) -> InstructionFile:
        """Write and accept a file for a user."""
        check_path(path)
        data = text.encode()
        if len(data) > MAX_INSTRUCTION_FILE:
            raise InstructionsTooLong(path, len(data))
        await self._store.read(lambda tx: tx.agents.get(agent_id, user_id))
        await self._accept(agent_id, path, digest_of(data))  # before the file, so that no run finds it unaccepted
        place, name = _place(self._base.workspace_of(agent_id), path)

        async def write() -> None:
            await asyncio.to_thread(Workspace(place).write, name, data, append=False, limits=_LIMITS, may_instruct=True)

        await self._agent_files.change_files(agent_id, None, write)
        return InstructionFile(path=path, data=data, size=len(data), is_accepted=True)

    async def accept_written(self, agent: Agent, path: str, data: bytes) -> None:
        """Accept a file that an agent wrote with a tool which its user allows to write such files."""
        await self._accept(agent.id, path, digest_of(data[:MAX_INSTRUCTION_FILE]))

    async def is_accepted(self, agent: Agent, path: str, data: bytes) -> bool:
        accepted = await self._store.read(lambda tx: tx.instruction_files.accepted(agent.id))
        return (path, digest_of(data[:MAX_INSTRUCTION_FILE])) in accepted

    async def accept_present(self) -> None:
        """Accept all existing files, once after an upgrade from 0.1, which had no accepting."""
        for agent_id in await self._store.read(lambda tx: tx.instruction_files.agents_to_compare()):
            await self._agent_files.bring_files(agent_id)
            files, _ = await asyncio.to_thread(_read_all, self._base.workspace_of(agent_id))
            await self._store.write(lambda tx, agent_id=agent_id, files=files: self._accept_all(tx, agent_id, files))

    async def _accept_all(self, tx: Tx, agent_id: str, files: Sequence[InstructionFile]) -> None:
        for file in files:
            await tx.instruction_files.accept(agent_id, file.path, file.digest, self._clock.now())
        await tx.instruction_files.mark_compared(agent_id)

    async def _compare(self, agent_id: str, files: Sequence[InstructionFile]) -> "list[InstructionFile]":
        accepted = await self._store.read(lambda tx: tx.instruction_files.accepted(agent_id))
        return [replace(file, is_accepted=(file.path, file.digest) in accepted) for file in files]

    async def _accept(self, agent_id: str, path: str, digest: str) -> None:
        now = self._clock.now()
        await self._store.write(lambda tx: tx.instruction_files.accept(agent_id, path, digest, now))

    async def _add_notices(self, agent: Agent, files: Sequence[InstructionFile]) -> None:
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            for file in files:
                notice = make_notice("instructions_changed", agent, now, path=file.path, digest=file.digest)
                await tx.notices.add(notice)

        await self._store.write(work)


def _place(workspace: Path, path: str) -> tuple[Path, str]:
    """Return the folder and the name of an instruction file. The skills folder is next to the workspace."""
    folder, _, name = path.rpartition("/")
    return (workspace.parent / folder if folder else workspace), name


def _read_all(workspace: Path) -> tuple[list[InstructionFile], list[str]]:
    """Return an agent's instruction files, and a problem for each that cannot be read. Refuses links. Blocks."""
    found: list[InstructionFile] = []
    problems: list[str] = []
    try:
        paths = _skill_paths(workspace)
    except PathIsLink as error:
        paths, problems = [], [f"{SKILLS_FOLDER} was not read: {error.message}"]
    for path in (AGENTS_FILE, *paths):
        place, name = _place(workspace, path)
        try:
            part = Workspace(place).read(name, offset=0, limit=MAX_INSTRUCTION_FILE)
        except NoSuchPath:
            continue
        except OutOfResources:
            raise  # a run must not go without its instructions because the server lacks something
        except WakefulError as error:
            problems.append(f"{path} was not read: {error.message}")
            continue
        if path == AGENTS_FILE or _is_text(part.data):
            found.append(InstructionFile(path=path, data=part.data, size=part.size))
    return found, problems


def _skill_paths(workspace: Path) -> list[str]:
    folder = workspace.parent / SKILLS_FOLDER
    if not folder.is_dir():
        return []
    names = [entry.path for entry in Workspace(folder).entries() if entry.kind == "file"]
    fit = [name for name in names if name.endswith(".md") and instructions.is_name(name)]
    return [f"{SKILLS_FOLDER}/{name}" for name in fit[: instructions.MAX_SKILLS]]


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return (
            len(data) == MAX_INSTRUCTION_FILE and error.start > MAX_INSTRUCTION_FILE - 4
        )  # the last character is cut in two
    return True


def _skills(files: Sequence[InstructionFile]) -> list[Skill]:
    found: dict[str, Skill] = {}
    for file in files:
        if file.path != AGENTS_FILE:
            skill = instructions.read_skill(file.path.rpartition("/")[2], file.text)
            found.setdefault(skill.name, skill)
    return list(found.values())


def _cut(file: InstructionFile) -> str:
    text = to_storable(file.data[:MAX_AGENTS_FILE].decode(errors="replace")).strip()
    if file.size > MAX_AGENTS_FILE:
        text += f"\n[The first {MAX_AGENTS_FILE:,} of {file.size:,} bytes.]"
    return text
