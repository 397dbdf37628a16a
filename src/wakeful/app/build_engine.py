"""Builds the engine of a node: scheduler, runner, heartbeat and upkeep."""

from collections.abc import Callable

from wakeful.app.build_base import Base
from wakeful.domain.runs.runs import Outcome
from wakeful.domain.types import ClaimedRun
from wakeful.runtime.engine import Engine
from wakeful.runtime.executor import Executor
from wakeful.runtime.heartbeat import LeaseHeartbeat
from wakeful.runtime.runner import Runner
from wakeful.runtime.scheduler import Scheduler
from wakeful.server.services import Services
from wakeful.service.inbox.outbox import Outbox
from wakeful.service.nodes.mcp_holds import McpHolds
from wakeful.service.resources import find_shortages
from wakeful.service.runs.claims import Claims
from wakeful.service.runs.memory_holds import MemoryHolds
from wakeful.service.upkeep import Upkeep
from wakeful.service.wakes.firing import Firing
from wakeful.service.wakes.wrong_clock import WrongClock


def build_engine(
    base: Base,
    services: Services,
    outbox: Outbox,
    executor: Executor,
    note_finished: Callable[[ClaimedRun, Outcome], None],
) -> Engine:
    """Build scheduler, runner and upkeep, and the engine that starts and stops them."""
    settings, store, clock, rules = base.settings, base.store, base.clock, base.rules
    directories = services.directories
    claims = Claims(store, clock, rules, base.owner, base.lease, directories, services.nodes.identity)
    firing = Firing(store, clock, rules, base.owner, settings.claim_batch, directories, base.lease)
    runner = Runner(claims, clock, executor, settings.max_headless_runs, note_finished)
    scheduler = Scheduler(
        firing,
        services.stopping,
        clock,
        settings.claim_batch,
        lease=claims.lease,
        on_queued=runner.nudge,
        is_full=lambda: runner.is_full,
        are_leases_behind=lambda: claims.is_behind,
    )
    return Engine(
        firing=firing,
        scheduler=scheduler,
        runner=runner,
        heartbeat=LeaseHeartbeat(claims, runner.compare),
        upkeep=_upkeep(base, services, outbox),
        directories=directories,
        holds=MemoryHolds(store, clock, rules, directories),
        nodes=services.nodes,
        mcp_holds=McpHolds(store, clock, rules, directories),
        presence=services.presence,
        search_index=services.search_index,
        clock=clock,
        is_shared=store.is_shared,
        are_leases_behind=lambda: claims.is_behind,
        find_problems=lambda: [
            *filter(None, [store.health.problem]),
            *find_shortages(),
            *services.data.files.problems(),
        ],
    )


def _upkeep(base: Base, services: Services, outbox: Outbox) -> Upkeep:
    return Upkeep(
        base.store,
        base.clock,
        services.recalls,
        outbox,
        services.storage.retention,
        services.data.files.finish_erasing,
        services.uploads.remove_orphans,
        base.owner,
        WrongClock(base.store, base.clock),
        services.models.catalog.refresh,
    )
