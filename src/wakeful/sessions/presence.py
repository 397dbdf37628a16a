"""Presence of users in sessions: an open socket on any node, or a recent message.

When a run ends in a session where a user is present, queued wakes are held for a second, so that a message sent on
receipt of the end goes first. Presence and holds are rows: every node sees them, and they expire.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import datetime, timedelta

from wakeful.core.clock import MAX_WAIT, Clock
from wakeful.core.errors import StoreUnavailable
from wakeful.core.types import Rules, Run
from wakeful.store.sessions import MESSAGE, page_of
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

_SOCKET_LASTS = 3 * MAX_WAIT  # without renewal, as when its node was killed
_MAX_LASTS = timedelta(hours=1)  # a row that lasts longer was written by a wrong clock


class PresenceService:
    """The presence of this node's sockets. `node` is the id of this process."""

    def __init__(self, store: Store, clock: Clock, node: str) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._sockets: Counter[str] = Counter()  # by session, and by user for open pages

    def has_page(self, user_id: str) -> AbstractAsyncContextManager[None]:
        """Count a user as one who has the page open during the block, whatever it shows."""
        return self.watching(page_of(user_id))

    @asynccontextmanager
    async def watching(self, session_id: str) -> AsyncGenerator[None]:
        """Count a user as present in a session during the block."""
        self._sockets[session_id] += 1
        try:
            if self._sockets[session_id] == 1:
                with suppress(StoreUnavailable):  # a page can still read; its presence is saved by the next renewal
                    await self._save([session_id])
            yield
        finally:
            self._sockets[session_id] -= 1
            if not self._sockets[session_id]:
                del self._sockets[session_id]
                await self._end(session_id)

    async def run(self) -> None:
        """Renew the presence of open sockets until cancelled."""
        never = asyncio.Event()
        while True:
            await self._clock.wait(self._clock.now() + MAX_WAIT, never)
            never.clear()
            try:
                await self.renew()
            except StoreUnavailable:  # the store logs it
                pass
            except Exception:
                log.exception("presence could not be renewed")

    async def renew(self) -> None:
        """Renew the presence of every open socket, and delete expired rows."""
        await self._save(list(self._sockets))
        now = self._clock.now()
        latest = now + _MAX_LASTS
        await self._store.write(lambda tx: tx.presence.delete_expired(now, latest), is_synced=False)

    async def end_all_of_nodes(self) -> None:
        """Delete the presence of sockets of earlier processes; only for a store that no other process uses."""
        await self._store.write(lambda tx: tx.presence.end_all_of_nodes())

    async def _save(self, session_ids: list[str]) -> None:
        if not session_ids:
            return
        until = self._clock.now() + _SOCKET_LASTS
        await self._store.write(lambda tx: tx.presence.save(session_ids, self._node, until), is_synced=False)

    async def _end(self, session_id: str) -> None:
        with suppress(StoreUnavailable):  # then it expires
            await self._store.write(lambda tx: tx.presence.end(session_id, self._node), is_synced=False)
            if self._sockets[session_id]:  # a socket was opened meanwhile, and the deleted row was its own
                await self._save([session_id])


async def mark_present(tx: Tx, session_id: str, now: datetime, rules: Rules) -> None:
    """Count a user who sent a message, or tried to, as present for a while."""
    await tx.presence.save([session_id], MESSAGE, now + rules.talking_within)


async def hold_wakes(tx: Tx, ended: Sequence[Run], now: datetime, rules: Rules) -> None:
    """Hold queued wakes in the sessions of ended runs where a user is present, so that a message goes first."""
    await tx.presence.hold(ended, now, now + rules.hold_for)
