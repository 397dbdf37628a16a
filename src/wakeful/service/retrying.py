"""Retries while the store is unavailable, for operations that may run twice."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from wakeful.domain.errors import StoreUnavailable, Unavailable

T = TypeVar("T")

PAUSE = 0.3  # seconds


async def insist(act: Callable[[], Awaitable[T]], on: type[Unavailable] = StoreUnavailable) -> T:
    """Retry until it succeeds or the caller is cancelled. The store logs that it is unavailable."""
    while True:
        try:
            return await act()
        except on:
            await asyncio.sleep(PAUSE)
