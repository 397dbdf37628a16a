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
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wakeful.agentdb.errors import DatabaseUnreadable
from wakeful.agentdb.keys import DATABASE_FILE, KEY_FILE
from wakeful.core.clock import Clock
from wakeful.core.errors import NotFound, WakefulError
from wakeful.core.records import MemoryElsewhere
from wakeful.core.types import Agent
from wakeful.database.files import AgentFiles, By
from wakeful.homes.directories import Directories
from wakeful.homes.files import write_tables
from wakeful.homes.service import FILE_FOLDERS
from wakeful.homes.workspace import RootIsLink
from wakeful.notices.texts import make_notice
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
            on_disk = "the one that was on the disk of the node just started"
            notice = make_notice(
                "memory_forked",
                agent,
                now,
                other="the one that was in PostgreSQL" if forked.is_replaced else on_disk,
                changes=forked.changes,
                kept=kept,
                where=f" Its tables are in {exported!r} in the workspace." if exported else "",
            )
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


# Make a database that an earlier version has left on this node's disk the one of the agent's home.


_ASIDE = "moving"  # folder of a database that is compared with the one of the home
_NONE = (0, "")  # a changelog entry that no database has


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    """A database that is not used, because the home has a longer one."""

    is_replaced: bool  # it was the one of the home
    changes: int
    kept: str  # folder of its files
    tables: dict[str, bytes]  # as CSV, by name


class Adoption:
    """Adopts databases, with their keys and snapshots."""

    def __init__(self, files: AgentFiles) -> None:
        self._files = files

    async def adopt(self, agent: Agent, old: Path) -> Forked | None:
        """Make the database in a folder the one of the home; the result is about another one that the home had."""
        return await self._files.change_home(agent, lambda: self._adopt(agent, old))

    async def _adopt(self, agent: Agent, old: Path) -> Forked | None:
        new = self._files.vault.folder_of(agent.id)
        if self._files.vault.has_database(agent.id):
            return await self._compare(agent, old, new)
        await asyncio.to_thread(_copy_database, old, new)
        await asyncio.to_thread(_copy_folders, old, new)
        with suppress(DatabaseUnreadable):  # then it is in quarantine, and its user has a notice
            await self._files.check_adopted(agent)
        return None

    async def _compare(self, agent: Agent, old: Path, new: Path) -> Forked | None:
        aside = new / _ASIDE
        await asyncio.to_thread(shutil.rmtree, aside, ignore_errors=True)
        await asyncio.to_thread(_copy_database, old, aside)
        try:
            return await self._choose(agent, aside, new)
        finally:
            await self._files.engine.close_file(str(aside / DATABASE_FILE))
            await asyncio.to_thread(shutil.rmtree, aside, ignore_errors=True)

    async def _choose(self, agent: Agent, aside: Path, new: Path) -> Forked | None:
        ours, other = await self._head(agent, new), await self._head(agent, aside)
        if await self._has(agent, new, other):
            return None  # an earlier state, or the same: a start was cut off after PostgreSQL had it
        is_replaced = other[0] > ours[0]
        if is_replaced and await self._has(agent, aside, ours):
            await self._replace(aside, new)
            return None
        loser, changes = (new, ours[0]) if is_replaced else (aside, other[0])
        tables = await self._export(agent, loser)
        kept = Path("quarantine") / f"{self._files.clock.now():%Y-%m-%dT%H%M%SZ}-forked"
        await self._files.engine.close_file(str(loser / DATABASE_FILE))
        await asyncio.to_thread(_copy_database, loser, new / kept)
        if is_replaced:
            await self._replace(aside, new)
        return Forked(is_replaced=is_replaced, changes=changes, kept=str(kept), tables=tables)

    async def _replace(self, aside: Path, new: Path) -> None:
        await self._files.engine.close_file(str(aside / DATABASE_FILE))
        await self._files.engine.close_file(str(new / DATABASE_FILE))
        await asyncio.to_thread(_replace_database, aside, new)

    async def _ask(self, agent: Agent, folder: Path, op: str, **args: Any) -> Any:
        key = self._files.vault.open_at(agent.id, folder / KEY_FILE).current
        return await self._files.ask_file(By(agent=agent, actor="system"), op, str(folder / DATABASE_FILE), key, args)

    async def _head(self, agent: Agent, folder: Path) -> tuple[int, str]:
        found = (await self._ask(agent, folder, "reaches", known=_NONE)).result
        return found["last"], found["hash"]

    async def _has(self, agent: Agent, folder: Path, head: tuple[int, str]) -> bool:
        return (await self._ask(agent, folder, "reaches", known=head)).result["has"]

    async def _export(self, agent: Agent, folder: Path) -> dict[str, bytes]:
        found = (await self._ask(agent, folder, "names")).result["tables"]
        return {
            name: (await self._ask(agent, folder, "export", format="csv", table=name, show="all")).text
            for name in found
        }


def _copy_database(old: Path, new: Path) -> None:
    new.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in (DATABASE_FILE, f"{DATABASE_FILE}-wal", KEY_FILE):
        if (old / name).exists():
            shutil.copy2(old / name, new / name)


def _copy_folders(old: Path, new: Path) -> None:
    for name in ("snapshots", "quarantine"):
        if (old / name).is_dir():
            shutil.copytree(old / name, new / name, dirs_exist_ok=True)


def _replace_database(aside: Path, new: Path) -> None:
    for path in new.glob(f"{DATABASE_FILE}*"):
        path.unlink()
    for path in (*aside.glob(f"{DATABASE_FILE}*"), aside / KEY_FILE):
        path.replace(new / path.name)
