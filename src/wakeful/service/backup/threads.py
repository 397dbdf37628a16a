"""Work in threads that is waited for even if its caller is cancelled."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def to_its_end(act: Callable[[], T]) -> T:
    """Run a function in a thread; when cancelled, wait until it has ended.

    Otherwise the caller would close the file that the thread still writes to.
    """
    running = asyncio.ensure_future(asyncio.to_thread(act))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
