"""Messages to systemd, if it started the server as a service of type `notify`: ready, alive, stopping."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager


@asynccontextmanager
async def supervised(find_problems: Callable[[], tuple[str, ...]]) -> AsyncGenerator[None]:
    """Notify systemd that the server is ready, and that its event loop turns, until the end of the block.

    Only a blocked process is restarted: a new one would not help against a store that is unavailable.
    """
    if not os.environ.get("NOTIFY_SOCKET"):
        yield
        return
    notify("READY=1")
    pinging = asyncio.create_task(_ping(find_problems))
    try:
        yield
    finally:
        pinging.cancel()
        notify("STOPPING=1")


def notify(*lines: str) -> None:
    """Send a message to systemd."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto("\n".join(lines).encode(), f"\0{address[1:]}" if address.startswith("@") else address)


async def _ping(find_problems: Callable[[], tuple[str, ...]]) -> None:
    seconds = int(os.environ.get("WATCHDOG_USEC", "60000000")) / 1_000_000
    while True:
        problems = find_problems()
        notify("WATCHDOG=1", f"STATUS={'; '.join(problems)[:500] if problems else 'Wakes are fired.'}")
        await asyncio.sleep(seconds / 3)
