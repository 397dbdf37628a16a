"""Clocks. Only this module reads the wall clock; other code gets `now` as an argument."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

MAX_WAIT = timedelta(seconds=30)  # then the clock is read again, so that a suspended machine is noticed

STEP = timedelta(seconds=5)  # a larger jump of the wall clock against the uptime means that someone set it
_STEP_SECONDS = STEP.total_seconds()

_MEASUREMENTS = 3
# Keeps running while the machine is suspended, and setting the wall clock does not change it. On macOS
# CLOCK_MONOTONIC does that.
_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

log = logging.getLogger(__name__)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """The current time, and waiting for a later one."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float:
        """Return seconds that never jump, to measure durations."""
        ...

    def seconds_since_step(self) -> float:
        """Return how long ago the clock was set by more than a few seconds; infinite if it never was."""
        ...

    async def measure(self) -> None:
        """Read the clock now, so that a step is noticed."""
        ...

    async def wait(self, until: datetime, nudged: asyncio.Event) -> None:
        """Return at the given instant, when nudged, or after half a minute, whichever is first."""
        ...


class SystemClock:
    """This machine's clock."""

    def __init__(self) -> None:
        self._ahead: float | None = None  # wall clock minus uptime in seconds, at the last reading
        self._stepped_at = -math.inf

    def now(self) -> datetime:
        now = self.read_wall_clock()
        self._compare(now.timestamp() - _uptime())
        return now

    def monotonic(self) -> float:
        return time.monotonic()

    def seconds_since_step(self) -> float:
        return time.monotonic() - self._stepped_at

    async def measure(self) -> None:
        self.now()

    def read_wall_clock(self) -> datetime:
        return datetime.now(UTC)

    def _compare(self, ahead: float) -> None:
        """Detect a step: the wall clock's lead over the uptime has changed."""
        before, self._ahead = self._ahead, ahead
        if before is not None and abs(ahead - before) > _STEP_SECONDS:
            self._stepped_at = time.monotonic()
            log.warning("the clock was set", extra={"seconds": round(ahead - before, 1)})

    async def wait(self, until: datetime, nudged: asyncio.Event) -> None:
        seconds = min(until - self.now(), MAX_WAIT).total_seconds()
        if seconds <= 0 or nudged.is_set():
            await asyncio.sleep(0)  # a caller that always has something to do must not block the event loop
            return
        waiter = asyncio.get_running_loop().call_later(seconds, nudged.set)
        try:
            await nudged.wait()
        finally:
            waiter.cancel()


class ServerClock(SystemClock):
    """The database server's clock, so that all nodes agree: our uptime plus an offset measured now and then."""

    def __init__(self, read: Callable[[], Awaitable[int | None]]) -> None:
        super().__init__()
        self._read = read
        self._offset: float | None = None

    async def measure(self) -> None:
        """Read the server's time a few times, and keep the offset from the shortest round trip.

        The server reads its clock before its answer arrives. Taking the arrival as that moment keeps our clock from
        being ahead of the server's, so nothing fires early.
        """
        quickest = math.inf
        for _ in range(_MEASUREMENTS):
            asked = _uptime()
            micros = await self._read()
            answered = _uptime()
            if micros is not None and answered - asked < quickest:
                quickest = answered - asked
                self._offset = micros / 1_000_000 - answered
        if self._offset is not None:
            self._compare(self._offset)

    def now(self) -> datetime:
        if self._offset is None:
            return self.read_wall_clock()
        return _EPOCH + timedelta(seconds=_uptime() + self._offset)


class ManualClock:
    """A clock that only moves by `set`, `advance` and `step`, for tests and simulations."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._stepped_by = timedelta(0)
        self._stepped_at = -math.inf
        self.waiting: list[tuple[datetime, asyncio.Event]] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._stepped_by - _EPOCH).total_seconds()

    def seconds_since_step(self) -> float:
        return self.monotonic() - self._stepped_at

    async def measure(self) -> None:
        pass

    def suspend(self, by: timedelta) -> None:
        """Jump by a time in which nothing ran, as when a machine is suspended."""
        self._stepped_by += by
        self.advance(by)

    def step(self, by: timedelta) -> None:
        """Jump by a time that has not passed, as when someone sets the clock."""
        self.suspend(by)
        self._stepped_at = self.monotonic()

    def set(self, now: datetime) -> None:
        """Move to an instant, also backwards, and end the waits that are due."""
        self._now = now
        for until, nudged in self.waiting:
            if until <= now:
                nudged.set()

    def advance(self, by: timedelta) -> None:
        self.set(self._now + by)

    async def wait(self, until: datetime, nudged: asyncio.Event) -> None:
        if until <= self._now or nudged.is_set():
            await asyncio.sleep(0)
            return
        entry = (until, nudged)
        self.waiting.append(entry)
        try:
            await nudged.wait()
        finally:
            self.waiting.remove(entry)


def _uptime() -> float:
    return time.clock_gettime(_UPTIME)
