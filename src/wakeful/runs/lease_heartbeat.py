"""Renews leases from a thread of its own, so that a blocked event loop does not lose its runs."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta

from wakeful.core.errors import StoreUnavailable, Unavailable
from wakeful.runs.claims import Claims
from wakeful.store.drivers.database import SideConnection

log = logging.getLogger(__name__)

GIVE_UP_AFTER = timedelta(minutes=2)  # a loop blocked for longer counts as dead, and loses its runs

_TRY_AGAIN = 1.0  # seconds

Renewed = Callable[[float, set[tuple[str, int]]], None]


class LeaseHeartbeat:
    """Renews leases three times per lease while the event loop is alive."""

    def __init__(self, claims: Claims, on_renewed: Renewed, *, give_up_after: timedelta = GIVE_UP_AFTER) -> None:
        self._claims = claims
        self._on_renewed = on_renewed
        self._give_up_after = give_up_after.total_seconds()
        self._every = claims.lease.total_seconds() / 3
        self._loop_seen_at = time.monotonic()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, for the running event loop."""
        loop = asyncio.get_running_loop()
        self._loop_seen_at = time.monotonic()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._beat(loop)), name="wakeful-heartbeat", daemon=True
        )
        self._thread.start()

    async def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    async def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        connection: SideConnection | None = None
        while not self._stopping.is_set():
            pause = self._every
            loop.call_soon_threadsafe(self._see_loop)
            if time.monotonic() - self._loop_seen_at > self._give_up_after:
                log.error("event loop blocked too long; its leases are left to run out")
            else:
                try:
                    connection = connection or await self._claims.open_heartbeat()
                    began = time.monotonic()
                    still_ours = await self._claims.renew(connection)
                    loop.call_soon_threadsafe(self._on_renewed, began, still_ours)
                except Exception as error:  # of any kind: without this thread every run here would be lost
                    if isinstance(error, Unavailable):
                        if not isinstance(error, StoreUnavailable):  # which the store logs
                            log.warning("leases not renewed", extra={"problem": error.message})
                    else:
                        log.warning("leases not renewed", exc_info=True)
                    connection = await _drop(connection)
                    pause = min(pause, _TRY_AGAIN)
            # Blocking is fine: nothing else runs in this thread.
            self._stopping.wait(pause)
        await _drop(connection)

    def _see_loop(self) -> None:
        self._loop_seen_at = time.monotonic()


async def _drop(connection: SideConnection | None) -> None:
    if connection is not None:
        with contextlib.suppress(Exception):  # it is broken
            await connection.close()
