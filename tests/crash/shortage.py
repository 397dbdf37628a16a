"""A server that runs out of file descriptors when a test wants it, until the test ends the shortage."""

import asyncio
import os
import resource
import threading
import time
from pathlib import Path

MOST = 256  # descriptors of the whole process


class Descriptors:
    """Takes every free descriptor of a server process while a file exists."""

    def __init__(self, folder: Path) -> None:
        self._wanted = folder / "take descriptors"
        self._taken = folder / "descriptors are taken"  # a directory: making one needs no descriptor

    def __call__(self) -> None:
        """Begin, in the process that is to run out of them."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (MOST, MOST))
        threading.Thread(target=self._watch, daemon=True).start()

    async def take(self) -> None:
        self._wanted.touch()
        while not self._taken.exists():  # noqa: ASYNC110  (a file made by another process)
            await asyncio.sleep(0.01)

    async def give_back(self) -> None:
        self._wanted.unlink()
        while self._taken.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    def _watch(self) -> None:
        held: list[int] = []
        while True:
            if self._wanted.exists():
                try:
                    while True:  # also what others have closed since
                        held.append(os.open(os.devnull, os.O_RDONLY))
                except OSError:
                    self._taken.mkdir(exist_ok=True)
            elif held:
                while held:
                    os.close(held.pop())
                self._taken.rmdir()
            time.sleep(0.002)
