"""The engine: starts and stops the background tasks of a node: scheduler, runner, lease heartbeat and periodic jobs."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from wakeful.core.errors import StoreUnavailable, Unavailable
from wakeful.core.resources import find_shortages
from wakeful.http.services import Services
from wakeful.mcp.service import McpHolds
from wakeful.operations.upkeep import Upkeep
from wakeful.outgoing.pings import LOOK_EVERY, HeartbeatPings
from wakeful.runs.claims import Claims
from wakeful.runs.lease_heartbeat import LeaseHeartbeat
from wakeful.runs.runner import Runner
from wakeful.store.base import Base, Job
from wakeful.wakes.firing import Firing
from wakeful.wakes.scheduler import Scheduler
from wakeful.wakes.zone_rules import ZoneRules

log = logging.getLogger(__name__)

_RETRY_AFTER = timedelta(seconds=10)
_LOOK_FOR_GONE = timedelta(hours=1)  # reads every live wake
_STALLED_AFTER = 90.0  # seconds without a turn; scheduler and runner turn at least every 30


class Problem(NamedTuple):
    """A reason why wakes are not fired in time."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Whether the engine fires wakes in time, and if not, why."""

    is_ready: bool
    problems: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()  # of the problems, for readers who may not see ids and texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """The parts of a node that fire wakes and execute runs."""

    firing: Firing
    scheduler: Scheduler
    claims: Claims
    runner: Runner
    heartbeat: LeaseHeartbeat
    zone_rules: ZoneRules
    mcp_holds: McpHolds


class Engine:
    """Starts and stops the background tasks."""

    def __init__(
        self,
        base: Base,
        services: Services,
        alarm: Alarm,
        upkeep: Upkeep,
        heartbeat_pings: HeartbeatPings | None,
        jobs: list[Job],  # of the features
    ) -> None:
        self._base = base
        self._services = services
        self._alarm = alarm
        self.firing = alarm.firing
        self.scheduler = alarm.scheduler
        self.runner = alarm.runner
        self.zone_rules = alarm.zone_rules
        self.mcp_holds = alarm.mcp_holds
        self.upkeep = upkeep
        self._heartbeat_pings = heartbeat_pings
        self.jobs = [*jobs, *self._own_jobs()]
        self._is_draining = False
        self._tasks: list[asyncio.Task[None]] = []
        self._node_nudged = asyncio.Event()

    async def start(self) -> None:
        """Recover runs that a crash left behind, then start the tasks."""
        if not self._base.store.is_shared:
            # No other process can work on an embedded store, so every run that one held is free.
            await self.firing.cancel_ephemeral()
            await self._services.presence.end_all_of_nodes()
            while await self.firing.recover(every_other_owner=True):
                pass
        await self.zone_rules.follow_changes()  # before a wake fires that is due by the old rules alone
        await self._services.directories.arrive()
        await self._services.nodes.arrive()
        self._alarm.heartbeat.start()
        self._tasks = [asyncio.create_task(run, name=f"wakeful-{name}") for name, run in self._loops()]
        self._tasks += [asyncio.create_task(_repeat(job), name=f"wakeful-{job.name}") for job in self.jobs]

    def _loops(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        yield "scheduler", self.scheduler.run()
        yield "runner", self.runner.run()
        yield "presence", self._services.presence.run()
        yield "outbox", self._services.outbox.run()
        yield "search-index", _until_done(self._services.search_index.build)
        yield "departures", self._follow_departures()
        if self._base.store.is_shared:
            yield "draining", self._follow_draining(self._beat)

    @property
    def _beat(self) -> timedelta:
        return self._services.directories.lease / 3

    def _own_jobs(self) -> Iterator[Job]:
        # Our leases follow the database server's clock before another node judges them by it.
        yield Job(name="clock", every=min(self._beat, timedelta(minutes=1)), run=self._base.clock.measure)
        yield Job(name="audit", every=timedelta(minutes=1), run=self.look_after)
        if self._base.store.is_shared:
            yield Job(name="holds", every=self._beat, run=self._hold_runs)
        if self._heartbeat_pings is not None:
            yield Job(name="heartbeat-pings", every=timedelta(seconds=LOOK_EVERY), run=self.ping_heartbeat)

    async def stop(self) -> None:
        """Stop gracefully: unfinished runs are released at once."""
        if not self._tasks:
            return
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._tasks = []
        await self.runner.drain()  # after the tasks that claim
        await self._alarm.heartbeat.stop()
        await self._services.nodes.leave()

    def look_again(self) -> None:
        """Have every loop look now instead of at its next turn."""
        self.scheduler.nudge()
        self.runner.nudge()
        self.runner.look_for_stops()

    def readiness(self) -> Readiness:
        """Return whether wakes are being fired, and the problems if not."""
        problems = list(self._find_problems())
        return Readiness(
            is_ready=not problems,
            problems=tuple(problem.text for problem in problems),
            codes=tuple(dict.fromkeys(problem.code for problem in problems)),
        )

    def _find_problems(self) -> Iterator[Problem]:
        if self._base.store.health.problem:
            yield Problem("store_unavailable", self._base.store.health.problem)
        for text in find_shortages():
            yield Problem("out_of_resources", text)
        for text in self._services.data.files.problems():
            yield Problem("database_workers", text)
        if self.runner.shortage is not None:
            yield Problem("out_of_resources", f"runs are put off: {self.runner.shortage}")
        if self.upkeep.disk_shortage is not None:
            yield Problem("disk_nearly_full", f"the disk is nearly full: {self.upkeep.disk_shortage}")
        for loop, seconds in (
            ("scheduler", self.scheduler.seconds_since_turn),
            ("runner", self.runner.seconds_since_turn),
        ):
            if seconds > _STALLED_AFTER:
                yield Problem(f"{loop}_stalled", f"the {loop} has not turned for {seconds:.0f} s")
        health = self.upkeep.health
        for code, what, found in (
            ("wakes_overdue", "wakes overdue", health.overdue_wakes),
            ("runs_stuck", "runs stuck", health.stuck_runs),
            ("wakes_orphaned", "wakes without their run", health.orphaned_wakes),
        ):
            if found:
                yield Problem(code, f"{what}: {', '.join(found)}")

    async def _hold_runs(self) -> None:
        if not self._alarm.claims.is_behind:  # else nodes that had no time to renew their lease look dead
            await self.mcp_holds.sweep()

    def look_at_node(self) -> None:
        """Look now whether this node is to drain."""
        self._node_nudged.set()

    async def _follow_departures(self) -> None:
        """Cancel the wakes of deleted agents and users: at the start, when some are left, and those of other nodes."""
        departures = self._services.departures
        while True:
            departures.left.clear()
            await _until_done(departures.finish)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(departures.left.wait(), _LOOK_FOR_GONE.total_seconds())

    async def _follow_draining(self, every: timedelta) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._node_nudged.wait(), every.total_seconds())
            self._node_nudged.clear()
            await _has_succeeded(self.apply_draining)

    async def apply_draining(self) -> None:
        """Release all runs and claim none if this node is to drain, else claim runs."""
        is_draining = await self._services.nodes.look()
        if is_draining == self._is_draining:
            return
        self._is_draining = is_draining
        if is_draining:
            await self.runner.drain()
        else:
            self.runner.undrain()

    async def ping_heartbeat(self) -> None:
        """Ping the owner's address if it is time."""
        if self._heartbeat_pings is not None:
            await self._heartbeat_pings.beat(self.readiness().codes)

    async def look_after(self) -> None:
        """Audit the wakes and runs; `readiness` reports the findings."""
        health = await self.upkeep.audit()
        if not health.is_good:
            log.error("liveness audit failed", extra={"problems": self.readiness().problems})


async def _repeat(job: Job) -> None:
    if job.is_at_once:
        await _has_succeeded(job.run)
    while True:
        await asyncio.sleep(job.every.total_seconds())
        await _has_succeeded(job.run)


async def _until_done(act: Callable[[], Awaitable[object]]) -> None:
    while True:
        if await _has_succeeded(act):
            return
        await asyncio.sleep(_RETRY_AFTER.total_seconds())


async def _has_succeeded(act: Callable[[], Awaitable[object]]) -> bool:
    try:
        await act()
    except StoreUnavailable:  # which the store logs, and the next time is soon enough
        return False
    except Unavailable as error:
        log.warning("upkeep failed", extra={"problem": error.message})
        return False
    except Exception:
        log.exception("upkeep failed")
        return False
    return True
