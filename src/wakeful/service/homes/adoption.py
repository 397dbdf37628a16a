"""Make a database that an earlier version has left on this node's disk the one of the agent's home."""

import asyncio
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wakeful.agentdb.errors import DatabaseUnreadable
from wakeful.agentdb.keys.agent_keys import DATABASE_FILE, KEY_FILE
from wakeful.domain.types import Agent
from wakeful.service.agents.database_files import AgentFiles, By

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
