"""Time, and waiting for it."""

import asyncio
import math
import time
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat

import pytest

from wakeful.core.clock import ManualClock, ServerClock, SystemClock

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


async def test_a_manual_clock_lets_go_of_those_whose_time_has_come():
    clock, early, late = ManualClock(NOON), asyncio.Event(), asyncio.Event()
    waits = [
        asyncio.create_task(clock.wait(NOON + SECOND, early)),
        asyncio.create_task(clock.wait(NOON + 3 * SECOND, late)),
    ]
    await asyncio.sleep(0)
    clock.advance(2 * SECOND)
    await waits[0]
    assert not waits[1].done()
    clock.advance(SECOND)
    await waits[1]


@pytest.mark.parametrize("clock", [SystemClock(), ManualClock(NOON)], ids=["system", "manual"])
async def test_a_nudge_ends_the_wait(clock):
    nudged = asyncio.Event()
    wait = asyncio.create_task(clock.wait(clock.now() + timedelta(hours=1), nudged))
    await asyncio.sleep(0)
    nudged.set()
    await asyncio.wait_for(wait, timeout=5)


async def test_the_system_clock_does_not_return_before_the_instant():
    clock = SystemClock()
    until = clock.now() + timedelta(milliseconds=30)
    await clock.wait(until, asyncio.Event())
    assert clock.now() >= until - timedelta(milliseconds=2)  # a timer may be early; the scheduler compares again


async def test_the_servers_clock_follows_the_server_and_not_this_machine():
    far_off = datetime(2031, 1, 1, tzinfo=UTC)

    async def read() -> int:
        return int(far_off.timestamp() * 1_000_000)

    clock = ServerClock(read)
    await clock.measure()
    assert abs(clock.now() - far_off) < timedelta(seconds=5)


async def test_without_an_answer_the_servers_clock_keeps_the_offset_it_has():
    answers = chain([int(NOON.timestamp() * 1_000_000)], repeat(None))

    async def read() -> int | None:
        return next(answers)

    clock = ServerClock(read)
    await clock.measure()
    await clock.measure()
    assert abs(clock.now() - NOON) < timedelta(seconds=5)


@pytest.mark.parametrize("slow", ["question", "answer"])
async def test_the_servers_clock_is_never_ahead_of_the_server(slow):
    ahead = 1_000_000.0  # seconds

    async def read() -> int:
        await asyncio.sleep(0.02 if slow == "question" else 0)
        micros = int((time.monotonic() + ahead) * 1_000_000)
        await asyncio.sleep(0.02 if slow == "answer" else 0)
        return micros

    clock = ServerClock(read)
    await clock.measure()
    shown = clock.now().timestamp()
    assert 0 <= time.monotonic() + ahead - shown < 0.03


async def test_the_quickest_answer_counts():
    pauses = iter([0.03, 0.0, 0.03])

    async def read() -> int:
        micros = int(time.monotonic() * 1_000_000)
        await asyncio.sleep(next(pauses))
        return micros

    clock = ServerClock(read)
    await clock.measure()
    shown = clock.now().timestamp()
    assert 0 <= time.monotonic() - shown < 0.01


# ── Steps ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class SetClock(SystemClock):
    """A clock that someone else sets."""

    ahead = timedelta(0)

    def read_wall_clock(self):
        return super().read_wall_clock() + self.ahead


@pytest.mark.parametrize("by", [timedelta(hours=1), timedelta(hours=-1), timedelta(days=30)], ids=str)
async def test_a_step_of_the_system_clock_is_noticed_with_the_next_look(by, caplog):
    clock = SetClock()
    clock.now()
    assert clock.seconds_since_step() == math.inf
    clock.ahead = by
    await clock.measure()
    assert clock.seconds_since_step() < 5
    assert [record.message for record in caplog.records] == ["the clock was set"]
    clock.now()
    assert len(caplog.records) == 1, "once for each step"


async def test_a_clock_that_is_put_right_little_by_little_has_no_step():
    clock = SetClock()
    for seconds in range(60):
        clock.ahead = timedelta(seconds=seconds)
        clock.now()
    assert clock.seconds_since_step() == math.inf


@pytest.mark.parametrize("by", [timedelta(hours=1), timedelta(hours=-1)], ids=str)
async def test_a_step_of_the_servers_clock_is_noticed_when_it_is_measured(by):
    ahead = timedelta(0)

    async def read() -> int:
        return int((SystemClock().now() + ahead).timestamp() * 1_000_000)

    clock = ServerClock(read)
    await clock.measure()
    await clock.measure()
    assert clock.seconds_since_step() == math.inf
    ahead = by
    await clock.measure()
    assert clock.seconds_since_step() < 5
    assert abs(clock.now() - SystemClock().now() - by) < 5 * SECOND


def test_a_manual_clock_tells_a_step_from_time_that_passes():
    clock = ManualClock(NOON)
    began = clock.monotonic()
    clock.advance(timedelta(hours=1))
    assert (clock.monotonic() - began, clock.seconds_since_step()) == (3600, math.inf)
    clock.step(timedelta(days=-1))
    assert (clock.monotonic() - began, clock.seconds_since_step()) == (3600, 0)
    clock.advance(10 * SECOND)
    assert (clock.now(), clock.seconds_since_step()) == (NOON + timedelta(hours=-23, seconds=10), 10)
