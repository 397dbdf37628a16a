"""The last changelog entry of each agent's database, saved in the server's store.

Editing an agent's file does not change it there, so a truncated changelog is noticed. It is saved up to a second after
the file, many writes at once: entries that are cut off within that second are not noticed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import Context
from typing import Any

from wakeful.agentdb.engine import WorkerAnswer
from wakeful.agentdb.errors import DatabaseMalformed, DatabaseUnreadable
from wakeful.agentdb.keys import Vault
from wakeful.core.clock import Clock
from wakeful.core.errors import WakefulError
from wakeful.core.records import Home, follows
from wakeful.core.types import Agent
from wakeful.homes.files import write_tables
from wakeful.homes.service import Homes
from wakeful.notices.texts import make_notice
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

SOON = 1.0  # seconds between a write and saving its head

Head = tuple[int, str]  # the number of the last entry, and its hash


class ChangelogHeads:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._unsaved: dict[str, tuple[Head, Home | None]] = {}
        self._saving: asyncio.Task[None] | None = None

    def note(self, agent_id: str, head: Head, home: Home | None) -> None:
        """Remember the last entry of a changelog, and save it soon; `home`: that has it, on a shared store."""
        self._unsaved[agent_id] = head, home
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._save_soon(), context=Context())

    async def of(self, agent_id: str) -> Head | None:
        """Return the last known entry, which a changelog must contain."""

        async def work(tx: Tx) -> Head | None:
            head, home = self._unsaved.get(agent_id, (None, None))
            if head is not None and await _is_kept(tx, agent_id, home):
                return head
            return await tx.agents.changelog_head(agent_id)

        return await self._store.read(work)

    def drop(self, agent_id: str) -> None:
        """Do not save the last entry of a changelog that another node has deleted."""
        self._unsaved.pop(agent_id, None)

    async def forget(self, agent_id: str) -> None:
        """Forget a changelog that was deleted with its database."""
        self._unsaved.pop(agent_id, None)
        await self._store.write(lambda tx: tx.agents.forget_changelog_head(agent_id))

    async def aclose(self) -> None:
        """Save the rest."""
        if self._saving is not None:
            self._saving.cancel()
            await asyncio.gather(self._saving, return_exceptions=True)
        await self._save()

    async def _save_soon(self) -> None:
        await asyncio.sleep(SOON)
        await self._save()

    async def _save(self) -> None:
        heads = self._unsaved
        if not heads:
            return
        self._unsaved = {}

        async def work(tx: Tx) -> None:
            for agent_id, (head, home) in heads.items():
                if await _is_kept(tx, agent_id, home):
                    await tx.agents.save_changelog_head(agent_id, *head)

        try:
            await self._store.write(work)
        except WakefulError as error:
            self._unsaved = heads | self._unsaved  # the next write tries again
            log.warning("last entries of changelogs not saved", extra={"problem": error.message})


async def _is_kept(tx: Tx, agent_id: str, home: Home | None) -> bool:
    """Return whether PostgreSQL still has an entry: it may have been taken back to an earlier state since."""
    return home is None or follows(await tx.homes.of_agent(agent_id), home) != "no"


# Databases that are damaged in PostgreSQL itself: quarantine, a notice, and an export of the readable tables.


Ask = Callable[[Agent, str, Mapping[str, Any]], Awaitable[WorkerAnswer]]


class HomeDamage:
    """Puts damaged databases of homes aside. The caller holds the lock of the agent."""

    def __init__(self, store: Store, clock: Clock, homes: Homes, vault: Vault, heads: ChangelogHeads, ask: Ask) -> None:
        self._store = store
        self._clock = clock
        self._homes = homes
        self._vault = vault
        self._heads = heads
        self._ask = ask  # runs an operation on the cache of an agent's database

    async def put_aside(self, agent: Agent, error: WakefulError) -> WakefulError:
        """Put a database that could not be read into quarantine, unless it is this node's disk; return what to raise.

        The cache was brought once more before.
        """
        is_malformed = isinstance(error, DatabaseMalformed)
        if is_malformed:
            await self._homes.drop(agent.id)
        with suppress(DatabaseUnreadable):  # PostgreSQL has not all pages
            await self._homes.bring_database(agent.id)
        if is_malformed and not await self._homes.is_as_saved(agent.id):
            return error
        exported = f"damaged-database-{self._clock.now():%Y%m%dT%H%M%SZ}"
        tables = await self._quarantine(agent, exported)
        if tables is None:
            return DatabaseUnreadable(f"The database of agent {agent.name!r} was just put aside. Try again.")
        await self._heads.forget(agent.id)
        if tables:
            await self._export(agent, exported, tables)
        return DatabaseUnreadable(
            f"The database of agent {agent.name!r} is damaged in PostgreSQL, and was put into quarantine. Nothing was "
            "deleted; a notice in the inbox says where it is. The next write creates a new one."
        )

    async def _quarantine(self, agent: Agent, exported: str) -> dict[str, bytes] | None:
        """Return the tables that could be read; None: another node was first."""
        damaged = self._homes.pages_seq(agent.id)

        async def act() -> dict[str, bytes] | None:
            is_damaged = self._homes.lacks_pages(agent.id) or self._homes.pages_seq(agent.id) == damaged
            if not is_damaged or not self._vault.has_database(agent.id):
                return None
            tables, now = await self._read_tables(agent), self._clock.now()
            await self._homes.close(agent.id)
            aside = self._vault.set_aside(agent.id, now.isoformat())
            assert aside is not None
            kept = f"quarantine/{aside.name}"
            log.error("database damaged in PostgreSQL, put aside", extra={"agent_id": agent.id, "kept": kept})
            kind = "home_damaged" if tables else "home_unreadable"
            notice = make_notice(kind, agent, now, kept=kept, exported=exported, tables=sorted(tables))
            await self._store.write(lambda tx: tx.notices.add(notice))
            return tables

        return await self._homes.change(agent.id, None, act, is_all_or_nothing=True, is_long=True, may_lack_pages=True)

    async def _read_tables(self, agent: Agent) -> dict[str, bytes]:
        """Return the tables that can be read, as CSV."""
        tables: dict[str, bytes] = {}
        with suppress(WakefulError):
            for name in (await self._ask(agent, "names", {})).result["tables"]:
                with suppress(WakefulError):
                    tables[name] = (
                        await self._ask(agent, "export", {"format": "csv", "table": name, "show": "all"})
                    ).text
        return tables

    async def _export(self, agent: Agent, name: str, tables: Mapping[str, bytes]) -> None:
        folder = self._vault.folder_of(agent.id) / "workspace" / name

        async def write() -> None:
            await asyncio.to_thread(write_tables, folder, tables)

        await self._homes.change_files(agent.id, None, write)
