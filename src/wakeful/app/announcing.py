"""Announces the address of a running server in its data directory, see `server_lock`."""

import asyncio
import fcntl
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import chain, repeat
from pathlib import Path

from wakeful.app.data.server_lock import FILE_NAME

# A command that looks at the file holds the lock for a moment. A second node on the same data directory gets the lock
# when the first one ends.
_RETRY_SECONDS = (0.02,) * 10, 1.0


@asynccontextmanager
async def announced(data_dir: Path, address: str, version: str) -> AsyncGenerator[None]:
    """Announce the address of this server in the data directory during the block."""
    running = json.dumps({"address": address, "pid": os.getpid(), "version": version})
    task = asyncio.create_task(_hold(data_dir / FILE_NAME, running))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _hold(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return  # opening the store fails too, and says why
    try:
        for seconds in chain(_RETRY_SECONDS[0], repeat(_RETRY_SECONDS[1])):
            if _take(handle):
                break
            await asyncio.sleep(seconds)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{text}\n".encode(), 0)
        await asyncio.Event().wait()  # until it is cancelled
    except OSError:
        pass  # a full disk: commands need --token-file, since they do not send the token of this machine
    finally:
        os.close(handle)


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
