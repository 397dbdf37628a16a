"""Shares the heartbeat ping between nodes: a row of the store says when the last one was sent, and by a ready node."""

from datetime import timedelta

from wakeful.clock import Clock
from wakeful.store.store import Store


class PingShare:
    """Decides which node pings next. An embedded store has one node, so that it needs no row."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pinged_at = float("-inf")
        self._was_ready: bool = True

    async def take(self, *, is_ready: bool, every: float) -> bool:
        """Return whether this node pings now, and note that it does.

        The first ping after a change is due at once; one that is not ready waits until no ready node has pinged.
        """
        if self._store.is_shared:
            now, wait = self._clock.now(), timedelta(seconds=every if is_ready else 2 * every)
            return await self._store.write(
                lambda tx: tx.pings.take(now, now - wait, is_ready=is_ready), is_synced=False, is_single=True
            )
        seconds = self._clock.monotonic()
        if seconds - self._pinged_at < every and is_ready == self._was_ready:
            return False
        self._pinged_at, self._was_ready = seconds, is_ready
        return True
