"""Builds the engine of a node: scheduler, runner, heartbeat and upkeep."""

from collections.abc import Callable
from functools import partial

from wakeful.app.build.base import Base
from wakeful.domain.pings import host_of
from wakeful.domain.runs.runs import Outcome
from wakeful.domain.types import ClaimedRun, Run
from wakeful.runtime.engine import Engine, Problem
from wakeful.runtime.executor import Executor
from wakeful.runtime.heartbeat import LeaseHeartbeat
from wakeful.runtime.runner import Runner
from wakeful.runtime.scheduler import Scheduler
from wakeful.server.services import Services
from wakeful.service.inbox.channel_process import ChannelProcess
from wakeful.service.inbox.outbox import Outbox
from wakeful.service.nodes.mcp_holds import McpHolds
from wakeful.service.pings.heartbeat import HeartbeatPings
from wakeful.service.pings.pings import PING_SECONDS
from wakeful.service.resources import find_disk_shortage, find_shortages
from wakeful.service.runs.claims import Claims
from wakeful.service.runs.memory_holds import MemoryHolds
from wakeful.service.storage.old_data import OldData
from wakeful.service.storage.vacuum import Vacuum
from wakeful.service.tracing.tracing import Tracing
from wakeful.service.upkeep import Upkeep
from wakeful.service.wakes.firing import Firing, FiringObserver
from wakeful.service.wakes.wrong_clock import WrongClock
from wakeful.service.wakes.zone_rules import ZoneRules


def build_engine(
    base: Base,
    services: Services,
    outbox: Outbox,
    executor: Executor,
    note_finished: Callable[[ClaimedRun, Outcome], None],
    tracing: Tracing,
) -> Engine:
    """Build scheduler, runner and upkeep, and the engine that starts and stops them."""
    settings, store, clock, rules = base.settings, base.store, base.clock, base.rules
    directories = services.directories
    claims = Claims(store, clock, rules, base.owner, base.lease, directories, services.nodes.identity)
    firing = Firing(
        store, clock, rules, base.owner, settings.claim_batch, directories, base.lease, _observe_firing(services)
    )
    runner = Runner(
        claims,
        clock,
        executor,
        settings.max_headless_runs,
        note_finished,
        services.pings.note_started,
        services.metrics.note_lease_lost,
        tracing,
    )
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
        departures=services.departures,
        directories=directories,
        holds=MemoryHolds(store, clock, rules, directories),
        nodes=services.nodes,
        mcp_holds=McpHolds(store, clock, rules, directories),
        presence=services.presence,
        search_index=services.search_index,
        clock=clock,
        is_shared=store.is_shared,
        are_leases_behind=lambda: claims.is_behind,
        find_problems=lambda: _find_problems(base, services),
        heartbeat_pings=_heartbeat_pings(base, services),
        webhooks=services.webhooks.outbox,
        scheduled_backups=services.scheduled_backups,
    )


def _observe_firing(services: Services) -> FiringObserver:
    metrics, pings = services.metrics, services.pings

    def note_recovered(run: Run) -> None:
        metrics.note_recovered(run)
        pings.note_recovered(run)

    return FiringObserver(on_decided=metrics.note_verdicts, on_recovered=note_recovered, on_shed=metrics.note_shed)


def _find_problems(base: Base, services: Services) -> list[Problem]:
    return [
        *(Problem("store_unavailable", text) for text in filter(None, [base.store.health.problem])),
        *(Problem("out_of_resources", text) for text in find_shortages()),
        *(Problem("database_workers", text) for text in services.data.files.problems()),
    ]


def _heartbeat_pings(base: Base, services: Services) -> HeartbeatPings | None:
    settings = base.settings
    if settings.heartbeat_url is None:
        return None
    url = settings.heartbeat_url.get_secret_value()
    # The author of the settings file may name a host of the own network.
    process = ChannelProcess(private_hosts=(*settings.fetch_private_hosts, host_of(url)), seconds=PING_SECONDS)
    return HeartbeatPings(base.store, base.clock, process, url, services.metrics.note_ping)


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
        ZoneRules(base.store, base.clock),
        services.models.catalog.refresh,
        OldData(base.store, base.clock, services.storage.retention, services.sessions.delete),
        Vacuum(base.store, base.clock),
        services.storage.measure_sizes,
        base.node.name,
        partial(find_disk_shortage, base.settings.data_dir),
    )
