"""Move the files of agents that an earlier version or `wakeful move` has left in this data directory into their homes.

They are deleted here when PostgreSQL has them; after `wakeful move` they are kept beside the embedded store, so that it
can be undone. If the home has another database, as when two nodes with separate disks
each created one, the one with the longer changelog is used. The other is kept in quarantine with its key, its tables
are exported into the workspace, and the agent's user gets a notice.
"""

import asyncio
import fcntl
import logging
import os
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from wakeful.agentdb.keys.agent_keys import DATABASE_FILE
from wakeful.clock import Clock
from wakeful.domain.agents.directories import MemoryElsewhere
from wakeful.domain.errors import NotFound, WakefulError
from wakeful.domain.inbox import notices
from wakeful.domain.types import Agent
from wakeful.service.agents.database_files import AgentFiles
from wakeful.service.agents.directories import Directories
from wakeful.service.agents.workspace import RootIsLink
from wakeful.service.homes.adoption import Adoption
from wakeful.service.homes.exported import write_tables
from wakeful.service.homes.homes import FILE_FOLDERS
from wakeful.store.store import Store

log = logging.getLogger(__name__)

_LOCK_AGAIN = 0.05  # seconds


class MovingIn:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        directories: Directories,
        files: AgentFiles,
        folder: Path,
        find_kept: Callable[[], Path | None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._directories = directories
        self._files = files
        self._adoption = Adoption(files)
        self._folder = folder  # of the agents' folders of earlier versions
        self._find_kept = find_kept  # returns where to keep them; None: nowhere

    async def move_all(self) -> None:
        """Move every agent that has files here; one that cannot be moved is logged, and left as it is."""
        if not self._store.is_shared:
            return
        for agent_id in await asyncio.to_thread(_agents_with_files, self._folder):
            try:
                agent = await self._store.read(lambda tx, agent_id=agent_id: tx.agents.of_anyone(agent_id))
                await self._directories.check(agent_id)
                await self._move(agent)
            except NotFound:  # deleted, or of another store
                continue
            except MemoryElsewhere:
                log.warning("files of an agent left, until its own node has moved", extra={"agent_id": agent_id})
            except (WakefulError, OSError) as error:
                log.exception("files of an agent not moved", extra={"agent_id": agent_id})
                await self._directories.note_unmoved(agent_id, str(error))

    async def _move(self, agent: Agent) -> None:
        old = self._folder / agent.id
        for each in (old, *(old / name for name in FILE_FOLDERS)):
            if each.is_symlink():  # its content may be anything of this machine
                raise RootIsLink(str(each))
        async with _locked(old):
            if not old.is_dir():  # another node on this directory has moved it meanwhile
                return
            if (old / DATABASE_FILE).exists():
                await self._move_database(agent, old)
            await self._move_files(agent, old)
            await self._directories.note_moved(agent.id)
            await asyncio.to_thread(_put_away, old, self._find_kept())
        log.info("files of an agent moved into PostgreSQL", extra={"agent_id": agent.id})

    async def _move_database(self, agent: Agent, old: Path) -> None:
        forked = await self._adoption.adopt(agent, old)
        if forked is not None:
            exported = await self._export(agent, forked.tables)
            kept, now = forked.kept, self._clock.now()
            notice = notices.memory_forked(agent, forked.is_replaced, forked.changes, kept, exported, now)
            await self._store.write(lambda tx: tx.notices.add(notice))

    async def _export(self, agent: Agent, tables: dict[str, bytes]) -> str | None:
        """Write the tables of the database that is not used into the workspace."""
        if not tables:
            return None
        name = f"other-database-{self._clock.now():%Y%m%dT%H%M%SZ}"
        folder = self._files.vault.folder_of(agent.id) / "workspace" / name

        async def write() -> None:
            await asyncio.to_thread(write_tables, folder, tables)

        await self._files.change_files(agent.id, None, write)
        return name

    async def _move_files(self, agent: Agent, old: Path) -> None:
        await self._files.bring_files(agent.id)
        new = self._files.vault.folder_of(agent.id)
        for name in FILE_FOLDERS:
            if (old / name).is_dir():
                await asyncio.to_thread(_copy_missing, old / name, new / name)
        await self._files.save_files(agent.id)


def _put_away(folder: Path, kept: Path | None) -> None:
    if kept is None:
        shutil.rmtree(folder)
        return
    kept.mkdir(mode=0o700, exist_ok=True)
    folder.rename(kept / folder.name)


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
