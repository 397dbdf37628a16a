"""Move the files of agents into their homes, at the first start after `wakeful move`.

They are then kept beside the embedded store, so that the move can be undone.
"""

import asyncio
import fcntl
import logging
import os
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from wakeful.agentdb.errors import DatabaseUnreadable
from wakeful.agentdb.keys import DATABASE_FILE, KEY_FILE
from wakeful.core.errors import Conflict, NotFound, Unavailable, WakefulError
from wakeful.core.types import Agent
from wakeful.database.files import AgentFiles
from wakeful.homes.service import FILE_FOLDERS
from wakeful.homes.workspace import RootIsLink
from wakeful.store.store import Store

log = logging.getLogger(__name__)

_LOCK_AGAIN = 0.05  # seconds


class FilesNotMoved(Unavailable):
    """The server does not start: the agent would begin a new database and an empty workspace."""

    code = "files_not_moved"

    def __init__(self, agent_id: str, folder: Path, error: WakefulError | OSError) -> None:
        super().__init__(
            f"The database and files of agent {agent_id!r} could not be moved from {str(folder)!r} into PostgreSQL: "
            f"{error} Nothing is lost. Correct the cause and start again, or go back with `wakeful move --undo`."
        )


class HasOtherDatabase(Conflict):
    code = "other_database"

    def __init__(self, agent_id: str) -> None:
        super().__init__(
            "The agent already has another database in PostgreSQL, which another node has created since. To use the "
            f"one of this directory, delete that one on that node with `wakeful db erase --agent {agent_id}`; to keep "
            "that one, move this directory away."
        )


class MovingIn:
    def __init__(self, store: Store, files: AgentFiles, folder: Path, find_kept: Callable[[], Path | None]) -> None:
        self._store = store
        self._files = files
        self._folder = folder  # of the agents' folders of the embedded store
        self._find_kept = find_kept  # returns where to keep them; None: no store was moved from here

    async def move_all(self) -> None:
        """Move every agent that has files here; raise if one cannot be moved."""
        if not self._store.is_shared:
            return
        agent_ids, kept = await asyncio.to_thread(_agents_with_files, self._folder), self._find_kept()
        if kept is None:
            if agent_ids:
                log.warning("files of agents in the data directory are not used", extra={"agent_ids": agent_ids})
            return
        for agent_id in agent_ids:
            try:
                agent = await self._store.read(lambda tx, agent_id=agent_id: tx.agents.of_anyone(agent_id))
            except NotFound:  # deleted, or of another store
                continue
            try:
                await self._move(agent, kept)
            except (WakefulError, OSError) as error:
                raise FilesNotMoved(agent_id, self._folder / agent_id, error) from error

    async def _move(self, agent: Agent, kept: Path) -> None:
        old = self._folder / agent.id
        for each in (old, *(old / name for name in FILE_FOLDERS)):
            if each.is_symlink():  # its content may be anything of this machine
                raise RootIsLink(str(each))
        async with _locked(old):
            if not old.is_dir():  # another node on this directory has moved it meanwhile
                return
            if (old / DATABASE_FILE).exists():
                await self._files.change_home(agent, lambda: self._move_database(agent, old))
            await self._move_files(agent, old)
            await asyncio.to_thread(_put_away, old, kept)
        log.info("files of an agent moved into PostgreSQL", extra={"agent_id": agent.id})

    async def _move_database(self, agent: Agent, old: Path) -> None:
        vault = self._files.vault
        if vault.has_database(agent.id):
            ours = vault.open_at(agent.id, old / KEY_FILE)
            if vault.open(agent.id).current not in (ours.current, ours.previous):
                raise HasOtherDatabase(agent.id)
            return  # a start was cut off after PostgreSQL had it
        new = vault.folder_of(agent.id)
        await asyncio.to_thread(_copy_database, old, new)
        await asyncio.to_thread(_copy_folders, old, new)
        with suppress(DatabaseUnreadable):  # then it is in quarantine, and its user has a notice
            await self._files.check_moved(agent)

    async def _move_files(self, agent: Agent, old: Path) -> None:
        await self._files.bring_files(agent.id)
        new = self._files.vault.folder_of(agent.id)
        for name in FILE_FOLDERS:
            if (old / name).is_dir():
                await asyncio.to_thread(_copy_missing, old / name, new / name)
        await self._files.save_files(agent.id)


def _copy_database(old: Path, new: Path) -> None:
    new.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in (DATABASE_FILE, f"{DATABASE_FILE}-wal", KEY_FILE):
        if (old / name).exists():
            shutil.copy2(old / name, new / name)


def _copy_folders(old: Path, new: Path) -> None:
    for name in ("snapshots", "quarantine"):
        if (old / name).is_dir():
            shutil.copytree(old / name, new / name, dirs_exist_ok=True)


def _copy_missing(old: Path, new: Path) -> None:
    """Copy a folder. A different file that is there already, of a node that was first, stays beside the copy."""
    new.mkdir(parents=True, exist_ok=True, mode=0o700)
    for each in sorted(old.iterdir()):
        target = new / each.name
        if each.is_symlink():
            if not target.is_symlink() and not target.exists():
                target.symlink_to(each.readlink())
        elif each.is_dir():
            _copy_missing(each, target)
        elif each.is_file() and not (target.is_file() and target.read_bytes() == each.read_bytes()):
            shutil.copy2(each, target.with_name(f"{each.stem}-other{each.suffix}") if target.exists() else target)


def _put_away(folder: Path, kept: Path) -> None:
    kept.mkdir(mode=0o700, exist_ok=True)
    folder.rename(kept / folder.name)


def _agents_with_files(agents: Path) -> list[str]:
    if not agents.is_dir():
        return []
    return sorted(folder.name for folder in agents.iterdir() if any(files for _, _, files in os.walk(folder)))


@asynccontextmanager
async def _locked(folder: Path) -> AsyncGenerator[None]:
    """Keep another node on the same data directory from moving the same files."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while not _is_locked(handle):  # noqa: ASYNC110  (another process sends no event)
            await asyncio.sleep(_LOCK_AGAIN)
        yield
    finally:
        os.close(handle)


def _is_locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems cannot lock a directory
        return True
    return True
