"""The only reader of the wall clock. Everything else is handed an instant."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

LONGEST_WAIT = timedelta(seconds=30)  # then the clock is read again, so a suspended machine is noticed

_QUESTIONS = 3

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """What time it is, and a way to wait for another."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float:
        """Return seconds that never jump, for measuring."""
        ...

    async def wait(self, until: datetime, nudged: asyncio.Event) -> None:
        """Return at the given instant, when nudged, or after half a minute, whichever is first."""
        ...


class SystemClock:
    """This machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def wait(self, until: datetime, nudged: asyncio.Event) -> None:
        seconds = min(until - self.now(), LONGEST_WAIT).total_seconds()
        if seconds <= 0 or nudged.is_set():
            await asyncio.sleep(0)  # let others have a turn even when there is always something to do
            return
        waiter = asyncio.get_running_loop().call_later(seconds, nudged.set)
        try:
            await nudged.wait()
        finally:
            waiter.cancel()


class ServerClock(SystemClock):
    """The database server's clock, so that all nodes agree: our monotonic time plus an offset measured now and then."""

    def __init__(self, read: Callable[[], Awaitable[int | None]]) -> None:
        self._read = read
        self._offset: float | None = None

    async def measure(self) -> None:
        """Ask the server for its time, and keep the difference of the quickest of a few answers.

        It looked at its clock at some time before the answer came. Counted from there, ours is never ahead of it, so
        nothing fires early.
        """
        quickest = math.inf
        for _ in range(_QUESTIONS):
            asked = time.monotonic()
            micros = await self._read()
            answered = time.monotonic()
            if micros is not None and answered - asked < quickest:
                quickest = answered - asked
                self._offset = micros / 1_000_000 - answered

    def now(self) -> datetime:
        if self._offset is None:
            return super().now()
        return _EPOCH + timedelta(seconds=time.monotonic() + self._offset)


class ManualClock:
    """A clock that only moves when it is told to, for tests and simulations."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._waiting: list[tuple[datetime, asyncio.Event]] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - _EPOCH).total_seconds()

    def set(self, now: datetime) -> None:
        """Step to an instant, forward or back, and let those go whose time has come."""
        self._now = now
        for until, nudged in self._waiting:
            if until <= now:
                nudged.set()

    def advance(self, by: timedelta) -> None:
        self.set(self._now + by)

    async def wait(self, until: datetime, nudged: asyncio.Event) -> None:
        if until <= self._now or nudged.is_set():
            await asyncio.sleep(0)
            return
        entry = (until, nudged)
        self._waiting.append(entry)
        try:
            await nudged.wait()
        finally:
            self._waiting.remove(entry)
