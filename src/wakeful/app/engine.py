"""The engine: starts and stops the background tasks (scheduler, runner, heartbeat, upkeep)."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from wakeful.backup.service import LOOK_EVERY as LOOK_FOR_BACKUPS
from wakeful.backup.service import ScheduledBackups
from wakeful.core.clock import Clock
from wakeful.core.errors import StoreUnavailable, Unavailable
from wakeful.delivery.pings import LOOK_EVERY, HeartbeatPings
from wakeful.homes.directories import Directories
from wakeful.mcp.service import McpHolds
from wakeful.nodes.service import Nodes
from wakeful.operations.upkeep import Health, Upkeep
from wakeful.runs.departures import Departures
from wakeful.runs.lease_heartbeat import LeaseHeartbeat
from wakeful.runs.runner import Runner
from wakeful.sessions.presence import PresenceService
from wakeful.sessions.search import SearchIndex
from wakeful.wakes.firing import Firing
from wakeful.wakes.scheduler import Scheduler
from wakeful.webhooks.outbox import WebhookOutbox

log = logging.getLogger(__name__)

CHECKPOINT_EVERY = timedelta(minutes=1)
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


class Engine:
    """Starts and stops the background tasks."""

    def __init__(
        self,
        *,
        firing: Firing,
        scheduler: Scheduler,
        runner: Runner,
        heartbeat: LeaseHeartbeat,
        upkeep: Upkeep,
        departures: Departures,
        directories: Directories,
        nodes: Nodes,
        mcp_holds: McpHolds,
        presence: PresenceService,
        search_index: SearchIndex,
        clock: Clock,
        is_shared: bool,
        are_leases_behind: Callable[[], bool] = lambda: False,
        find_problems: Callable[[], Sequence[Problem]] = tuple,
        heartbeat_pings: HeartbeatPings | None = None,
        webhooks: WebhookOutbox,
        scheduled_backups: ScheduledBackups | None = None,
    ) -> None:
        self._webhooks = webhooks
        self._heartbeat_pings = heartbeat_pings
        self._scheduled_backups = scheduled_backups
        self.scheduler = scheduler
        self.runner = runner
        self.upkeep = upkeep
        self._departures = departures
        self._directories = directories
        self._nodes = nodes
        self.mcp_holds = mcp_holds
        self._is_draining = False
        self.firing = firing
        self._heartbeat = heartbeat
        self._presence = presence
        self._search_index = search_index
        self._clock = clock
        self._is_shared = is_shared
        self._are_leases_behind = are_leases_behind
        self._find_problems = find_problems  # of other things that runs need
        self._tasks: list[asyncio.Task[None]] = []
        self._health = Health()
        self._node_nudged = asyncio.Event()

    async def start(self) -> None:
        """Recover runs that a crash left behind, then start the tasks."""
        if not self._is_shared:
            # No other process can work on an embedded store, so every run that one held is free.
            await self.firing.cancel_ephemeral()
            await self._presence.end_all_of_nodes()
            while await self.firing.recover(every_other_owner=True):
                pass
        await self.upkeep.zone_rules.follow_changes()  # before a wake fires that is due by the old rules alone
        await self._directories.arrive()
        await self._nodes.arrive()
        self._heartbeat.start()
        self._tasks = [
            asyncio.create_task(self.scheduler.run(), name="wakeful-scheduler"),
            asyncio.create_task(self.runner.run(), name="wakeful-runner"),
            asyncio.create_task(self._presence.run(), name="wakeful-presence"),
            asyncio.create_task(self._webhooks.run(), name="wakeful-webhooks"),
            asyncio.create_task(_until_done(self._search_index.build), name="wakeful-search-index"),
            asyncio.create_task(self._follow_departures(), name="wakeful-departures"),
            asyncio.create_task(_every(timedelta(minutes=1), self.look_after), name="wakeful-upkeep"),
            asyncio.create_task(
                _every(timedelta(minutes=1), self.upkeep.look_at_disk, at_once=True), name="wakeful-disk"
            ),
            asyncio.create_task(_every(timedelta(minutes=1), self.upkeep.tidy), name="wakeful-tidy"),
            asyncio.create_task(_every(timedelta(hours=1), self.upkeep.forget), name="wakeful-retention"),
            asyncio.create_task(_every(timedelta(hours=1), self.upkeep.measure, at_once=True), name="wakeful-sizes"),
        ]
        beat = self._directories.lease / 3
        if self._is_shared:
            self._tasks.append(asyncio.create_task(_every(beat, self._hold_runs), name="wakeful-holds"))
            self._tasks.append(asyncio.create_task(self._follow_draining(beat), name="wakeful-draining"))
            self._tasks.append(
                asyncio.create_task(_every(timedelta(minutes=1), self._nodes.tidy), name="wakeful-node-tokens")
            )
        else:
            checkpoints = _every(CHECKPOINT_EVERY, self.upkeep.checkpoint)
            self._tasks.append(asyncio.create_task(checkpoints, name="wakeful-checkpoint"))
        if self._heartbeat_pings is not None:
            pings = _every(timedelta(seconds=LOOK_EVERY), self.ping_heartbeat)
            self._tasks.append(asyncio.create_task(pings, name="wakeful-heartbeat-pings"))
        if self._scheduled_backups is not None:
            backups = _every(LOOK_FOR_BACKUPS, self._scheduled_backups.look)
            self._tasks.append(asyncio.create_task(backups, name="wakeful-backups"))
        # Our leases follow the database server's clock before another node judges them by it.
        often = min(beat, timedelta(minutes=1))
        self._tasks.append(asyncio.create_task(_every(often, self._clock.measure), name="wakeful-clock"))

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
        await self._heartbeat.stop()
        await self._nodes.leave()

    def look_again(self) -> None:
        """Have every loop look now instead of at its next turn."""
        self.scheduler.nudge()
        self.runner.nudge()
        self.runner.look_for_stops()

    def readiness(self) -> Readiness:
        """Return whether wakes are being fired, and the problems if not."""
        problems = [*self._find_problems()]
        if self.runner.shortage is not None:
            problems.append(Problem("out_of_resources", f"runs are put off: {self.runner.shortage}"))
        if self.upkeep.disk_shortage is not None:
            problems.append(Problem("disk_nearly_full", f"the disk is nearly full: {self.upkeep.disk_shortage}"))
        for loop, seconds in (
            ("scheduler", self.scheduler.seconds_since_turn),
            ("runner", self.runner.seconds_since_turn),
        ):
            if seconds > _STALLED_AFTER:
                problems.append(Problem(f"{loop}_stalled", f"the {loop} has not turned for {seconds:.0f} s"))
        for code, what, found in (
            ("wakes_overdue", "wakes overdue", self._health.overdue_wakes),
            ("runs_stuck", "runs stuck", self._health.stuck_runs),
            ("wakes_orphaned", "wakes without their run", self._health.orphaned_wakes),
        ):
            if found:
                problems.append(Problem(code, f"{what}: {', '.join(found)}"))
        return Readiness(
            is_ready=not problems,
            problems=tuple(problem.text for problem in problems),
            codes=tuple(dict.fromkeys(problem.code for problem in problems)),
        )

    async def _hold_runs(self) -> None:
        if not self._are_leases_behind():  # else nodes that had no time to renew their lease look dead
            await self.mcp_holds.sweep()

    def look_at_node(self) -> None:
        """Look now whether this node is to drain."""
        self._node_nudged.set()

    async def _follow_departures(self) -> None:
        """Cancel the wakes of deleted agents and users: at the start, when some are left, and those of other nodes."""
        while True:
            self._departures.left.clear()
            await _until_done(self._departures.finish)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._departures.left.wait(), _LOOK_FOR_GONE.total_seconds())

    async def _follow_draining(self, every: timedelta) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._node_nudged.wait(), every.total_seconds())
            self._node_nudged.clear()
            await _has_succeeded(self.apply_draining)

    async def apply_draining(self) -> None:
        """Release all runs and claim none if this node is to drain, else claim runs."""
        is_draining = await self._nodes.look()
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
        """Audit the wakes and runs, as every minute; `readiness` reports the findings."""
        self._health = await self.upkeep.audit()
        if not self._health.is_good:
            log.error("liveness audit failed", extra={"problems": self.readiness().problems})


async def _every(interval: timedelta, act: Callable[[], Awaitable[None]], *, at_once: bool = False) -> None:
    if at_once:
        await _has_succeeded(act)
    while True:
        await asyncio.sleep(interval.total_seconds())
        await _has_succeeded(act)


async def _until_done(act: Callable[[], Awaitable[None]]) -> None:
    while True:
        if await _has_succeeded(act):
            return
        await asyncio.sleep(_RETRY_AFTER.total_seconds())


async def _has_succeeded(act: Callable[[], Awaitable[None]]) -> bool:
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
