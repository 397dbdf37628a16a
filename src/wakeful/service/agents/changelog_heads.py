"""How far the changelog of each agent's database has come, kept in the server's own store.

Whoever edits an agent's file cannot reach it there, so an end that was cut off shows. It is written a moment after the
file, many writes at once: what is cut off in that moment would not show, and a crash loses no more than that.
"""

import asyncio
import logging

from wakeful.domain.errors import WakefulError
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

SOON = 1.0  # seconds

Head = tuple[int, str]  # the number of the last entry, and its hash


class ChangelogHeads:
    """Notes the last entry of each changelog."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unsaved: dict[str, Head] = {}
        self._saving: asyncio.Task[None] | None = None

    def note(self, agent_id: str, head: Head) -> None:
        """Remember it, and save it soon."""
        self._unsaved[agent_id] = head
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._save_soon())

    async def of(self, agent_id: str) -> Head | None:
        """Return how far a changelog must reach at least."""
        return self._unsaved.get(agent_id) or await self._store.read(lambda tx: tx.agents.changelog_head(agent_id))

    async def forget(self, agent_id: str) -> None:
        """Expect nothing of a changelog that is gone with its database."""
        self._unsaved.pop(agent_id, None)

        async def work(tx: Tx) -> None:
            await tx.agents.forget_changelog_head(agent_id)

        await self._store.write(work)

    async def aclose(self) -> None:
        """Save what is not saved yet."""
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
            log.warning("heads of changelogs not saved", extra={"problem": error.message})
