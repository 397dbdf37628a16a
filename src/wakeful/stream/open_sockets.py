"""Open sockets: heartbeats on silent ones, and the end of those whose token was revoked or has expired."""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager

from fastapi import WebSocket

from wakeful.core.errors import StoreUnavailable
from wakeful.http.connections import abort
from wakeful.people.service import Accounts

log = logging.getLogger(__name__)

_CHECKS = 8  # per heartbeat
TOKEN_ENDED = 4001
CHECK_EVERY = 20.0  # seconds; a revoked token's sockets are closed within 30
REVOKED_CLOSE_SECONDS = 5.0


class Pulse:
    """The silence of one socket, counted in checks: reading the clock for each message would cost more."""

    __slots__ = ("_is_due", "_silent_checks", "_wake")

    def __init__(self, wake: asyncio.Event) -> None:
        self._wake = wake
        self._silent_checks = 0
        self._is_due = False

    def beat(self) -> None:
        """Start counting again: a frame was sent."""
        self._silent_checks = 0

    def pop_due(self) -> bool:
        """Return whether a heartbeat is due, and reset that."""
        is_due, self._is_due = self._is_due, False
        return is_due

    def check(self) -> None:
        """Wake the sender if the next check could be too late for a heartbeat."""
        self._silent_checks += 1
        if self._silent_checks >= _CHECKS - 1:
            self.beat()
            self._is_due = True
            self._wake.set()


class Heartbeats:
    """Checks all sockets several times per heartbeat."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._pulses: set[Pulse] = set()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def of(self, wake: asyncio.Event) -> Generator[Pulse]:
        """Make heartbeats due on a socket inside the block; `wake` wakes its sender."""
        pulse = Pulse(wake)
        self._pulses.add(pulse)
        if self._task is None:
            self._task = asyncio.create_task(self._keep_checking())
        try:
            yield pulse
        finally:
            self._pulses.discard(pulse)

    async def _keep_checking(self) -> None:
        while self._pulses:
            await asyncio.sleep(self._seconds / _CHECKS)
            for pulse in self._pulses:
                pulse.check()
        self._task = None


class OpenSockets:
    """Checks regularly that the tokens of open sockets are still valid."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._open: dict[WebSocket, str] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """Return how many sockets are open."""
        return len(self._open)

    @contextmanager
    def keep(self, token_id: str, websocket: WebSocket) -> Generator[None]:
        """Check the token of a socket inside the block."""
        self._open[websocket] = token_id
        if self._task is None:
            self._task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            del self._open[websocket]

    async def _watch(self) -> None:
        while self._open:
            await asyncio.sleep(CHECK_EVERY)
            if not self._open:
                break  # the server may have stopped meanwhile, and its store with it
            try:
                valid = await self._accounts.still_valid(set(self._open.values()))
            except StoreUnavailable:  # the store logs it
                continue
            except Exception:
                log.exception("check of open sockets failed")
                continue
            ended = [websocket for websocket, token_id in self._open.items() if token_id not in valid]
            await asyncio.gather(*[_close(websocket) for websocket in ended])
        self._task = None


async def _close(websocket: WebSocket) -> None:
    try:
        async with asyncio.timeout(REVOKED_CLOSE_SECONDS):  # a client that reads nothing must not hold up the others
            await websocket.close(TOKEN_ENDED, "The token of this socket is no longer valid.")
    except TimeoutError:
        abort(websocket.scope["state"])
    except RuntimeError:
        pass  # it is closing already
