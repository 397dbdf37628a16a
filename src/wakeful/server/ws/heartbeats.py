"""A sign of life on every silent socket: one timer for all of them, none for each."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

_LOOKS = 8  # in the time of one heartbeat


class Pulse:
    """How long one socket has said nothing, in looks: reading the clock for each message would cost more."""

    __slots__ = ("_is_due", "_silent_looks", "_wake")

    def __init__(self, wake: asyncio.Event) -> None:
        self._wake = wake
        self._silent_looks = 0
        self._is_due = False

    def beat(self) -> None:
        """Note that something was said."""
        self._silent_looks = 0

    def take(self) -> bool:
        """Tell whether a sign of life is due, and count it as given."""
        is_due, self._is_due = self._is_due, False
        return is_due

    def look(self) -> None:
        """Wake the sender if no frame was sent for so long that the next look could be too late."""
        self._silent_looks += 1
        if self._silent_looks >= _LOOKS - 1:
            self.beat()
            self._is_due = True
            self._wake.set()


class Heartbeats:
    """Looks at all sockets a few times in the span of a heartbeat."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._pulses: set[Pulse] = set()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def of(self, wake: asyncio.Event) -> Generator[Pulse]:
        """Give a socket its heartbeat as long as the block lasts; `wake` wakes the sender."""
        pulse = Pulse(wake)
        self._pulses.add(pulse)
        if self._task is None:
            self._task = asyncio.create_task(self._keep_looking())
        try:
            yield pulse
        finally:
            self._pulses.discard(pulse)

    async def _keep_looking(self) -> None:
        while self._pulses:
            await asyncio.sleep(self._seconds / _LOOKS)
            for pulse in self._pulses:
                pulse.look()
        self._task = None
