"""Databases that are damaged in PostgreSQL itself: quarantine, a notice, and an export of the readable tables."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from wakeful.agentdb.errors import DatabaseMalformed, DatabaseUnreadable
from wakeful.agentdb.keys.agent_keys import Vault
from wakeful.agentdb.process.engine import WorkerAnswer
from wakeful.clock import Clock
from wakeful.domain.errors import WakefulError
from wakeful.domain.inbox import notices
from wakeful.domain.types import Agent
from wakeful.service.agents.changelog_heads import ChangelogHeads
from wakeful.service.homes.exported import write_tables
from wakeful.service.homes.homes import Homes
from wakeful.store.store import Store

log = logging.getLogger(__name__)

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
            notice = notices.home_damaged(agent, kept, exported if tables else None, sorted(tables), now)
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
