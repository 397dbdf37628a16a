"""The only reader of the wall clock. Everything else is handed an instant."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

LONGEST_WAIT = timedelta(seconds=30)  # then the clock is read again, so a suspended machine is noticed

STEP = timedelta(seconds=5)  # a clock that is this far off what it should show by now has been set

_QUESTIONS = 3
# Goes on while the machine is suspended, and no change of the wall clock moves it. macOS calls that clock monotonic.
_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

log = logging.getLogger(__name__)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """What time it is, and a way to wait for another."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float:
        """Return seconds that never jump, for measuring."""
        ...

    def seconds_since_step(self) -> float:
        """Return how long ago someone set the clock by more than a few seconds; infinite if nobody did."""
        ...

    async def measure(self) -> None:
        """Look at the clock now, so that a step is noticed."""
        ...

    async def wait(self, until: datetime, nudged: asyncio.Event) -> None:
        """Return at the given instant, when nudged, or after half a minute, whichever is first."""
        ...


class SystemClock:
    """This machine's clock."""

    def __init__(self) -> None:
        self._ahead: float | None = None  # of the uptime, when it was last compared
        self._stepped_at = -math.inf

    def now(self) -> datetime:
        now = self._read_wall_clock()
        self._compare(now.timestamp() - _uptime())
        return now

    def monotonic(self) -> float:
        return time.monotonic()

    def seconds_since_step(self) -> float:
        return time.monotonic() - self._stepped_at

    async def measure(self) -> None:
        self.now()

    def _read_wall_clock(self) -> datetime:
        return datetime.now(UTC)

    def _compare(self, ahead: float) -> None:
        """Notice a step by how far the clock is ahead of the uptime."""
        before, self._ahead = self._ahead, ahead
        if before is not None and abs(ahead - before) > STEP.total_seconds():
            self._stepped_at = time.monotonic()
            log.warning("the clock was set", extra={"seconds": round(ahead - before, 1)})

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
    """The database server's clock, so that all nodes agree: our uptime plus an offset measured now and then."""

    def __init__(self, read: Callable[[], Awaitable[int | None]]) -> None:
        super().__init__()
        self._read = read
        self._offset: float | None = None

    async def measure(self) -> None:
        """Ask the server for its time, and keep the difference of the quickest of a few answers.

        It looked at its clock at some time before the answer came. Counted from there, ours is never ahead of it, so
        nothing fires early.
        """
        quickest = math.inf
        for _ in range(_QUESTIONS):
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
            return self._read_wall_clock()
        return _EPOCH + timedelta(seconds=_uptime() + self._offset)


class ManualClock:
    """A clock that only moves when it is told to, for tests and simulations."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._stepped_by = timedelta(0)
        self._stepped_at = -math.inf
        self._waiting: list[tuple[datetime, asyncio.Event]] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._stepped_by - _EPOCH).total_seconds()

    def seconds_since_step(self) -> float:
        return self.monotonic() - self._stepped_at

    async def measure(self) -> None:
        pass

    def step(self, by: timedelta) -> None:
        """Show another time, though none has passed: someone has set the clock."""
        self._stepped_by += by
        self._stepped_at = (self._now + by - self._stepped_by - _EPOCH).total_seconds()
        self.advance(by)

    def set(self, now: datetime) -> None:
        """Let time pass until an instant, or run backwards, and let those go whose time has come."""
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


def _uptime() -> float:
    return time.clock_gettime(_UPTIME)
