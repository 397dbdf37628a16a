"""Closes the open sockets of tokens that were revoked or have expired."""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager

from fastapi import WebSocket

from wakeful.domain.errors import StoreUnavailable
from wakeful.server.limits.connections import abort
from wakeful.service.people.accounts import Accounts

log = logging.getLogger(__name__)

TOKEN_ENDED = 4001
CHECK_EVERY = 20.0  # seconds; a revoked token's sockets are closed within 30
CLOSE_SECONDS = 5.0


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
        async with asyncio.timeout(CLOSE_SECONDS):  # a client that reads nothing must not hold up the others
            await websocket.close(TOKEN_ENDED, "The token of this socket is no longer valid.")
    except TimeoutError:
        abort(websocket.scope["state"])
    except RuntimeError:
        pass  # it is closing already
