"""Heartbeats on silent sockets, with one timer for all of them."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

_CHECKS = 8  # per heartbeat


class Pulse:
    """The silence of one socket, counted in checks: reading the clock for each message would cost more."""

    __slots__ = ("_is_due", "_silent_checks", "_wake")

    def __init__(self, wake: asyncio.Event) -> None:
        self._wake = wake
        self._silent_checks = 0
        self._is_due = False

    def beat(self) -> None:
        """Note that a frame was sent."""
        self._silent_checks = 0

    def take(self) -> bool:
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
