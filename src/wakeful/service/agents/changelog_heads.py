"""The last changelog entry of each agent's database, saved in the server's store.

Editing an agent's file does not change it there, so a truncated changelog is noticed. It is saved up to a second after
the file, many writes at once: entries that are cut off within that second are not noticed.
"""

import asyncio
import logging
from contextvars import Context

from wakeful.domain.errors import WakefulError
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

SOON = 1.0  # seconds between a write and saving its head

Head = tuple[int, str]  # the number of the last entry, and its hash


class ChangelogHeads:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._unsaved: dict[str, Head] = {}
        self._saving: asyncio.Task[None] | None = None

    def note(self, agent_id: str, head: Head) -> None:
        """Remember the last entry of a changelog, and save it soon."""
        self._unsaved[agent_id] = head
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._save_soon(), context=Context())

    async def of(self, agent_id: str) -> Head | None:
        """Return the last known entry, which a changelog must contain."""
        return self._unsaved.get(agent_id) or await self._store.read(lambda tx: tx.agents.changelog_head(agent_id))

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
            for agent_id, head in heads.items():
                await tx.agents.save_changelog_head(agent_id, *head)

        try:
            await self._store.write(work)
        except WakefulError as error:
            self._unsaved = heads | self._unsaved  # the next write tries again
            log.warning("last entries of changelogs not saved", extra={"problem": error.message})
