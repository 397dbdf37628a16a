"""The folder in which this process caches agents' homes. Nodes that share a data directory have one each."""

import asyncio
import fcntl
import itertools
import os
import shutil
import socket
from pathlib import Path

FOLDER = "caches"


class CacheFolder:
    """The first folder of this host that no other process has locked."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / FOLDER
        self._host = socket.gethostname()
        self._handle: int | None = None
        self._path: Path | None = None

    @property
    def path(self) -> Path:
        assert self._path is not None, "enter it first"
        return self._path

    async def enter(self) -> None:
        """Lock a folder, and empty it: what an earlier process has left may be older than the homes."""
        await asyncio.to_thread(self._enter)

    async def leave(self) -> None:
        """Delete everything in it, and let another process have it."""
        if self._handle is not None:
            await asyncio.to_thread(shutil.rmtree, self.path, ignore_errors=True)
            os.close(self._handle)
            self._handle = None

    def _enter(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in itertools.count(1):
            path = self._folder / f"{self._host}-{number}"
            handle = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                continue
            self._handle, self._path = handle, path
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(mode=0o700)
            return
