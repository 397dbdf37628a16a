"""Doing again, as long as the store is away, what does no harm when it is done twice."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from wakeful.domain.errors import StoreUnavailable, Unavailable

T = TypeVar("T")

PAUSE = 0.3  # seconds


async def insist(act: Callable[[], Awaitable[T]], on: type[Unavailable] = StoreUnavailable) -> T:
    """Try again until the store answers, or until whoever waits for it is cancelled. The store logs that it is away."""
    while True:
        try:
            return await act()
        except on:
            await asyncio.sleep(PAUSE)
