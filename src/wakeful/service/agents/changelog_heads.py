"""The last changelog entry of each agent's database, saved in the server's store.

Editing an agent's file does not change it there, so a truncated changelog is noticed. It is saved up to a second after
the file, many writes at once: entries that are cut off within that second are not noticed.
"""

import asyncio
import logging
from contextvars import Context

from wakeful.domain.agents.homes import Home, follows
from wakeful.domain.errors import WakefulError
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
