"""Builds a node: store, services, tools, tracing and engine."""

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import httpx2

from wakeful.agents import tools as agents_tools
from wakeful.agents.service import AgentService
from wakeful.agents.tools import profile_tools, skill_tools
from wakeful.app.engine import Alarm, Engine
from wakeful.app.services import NodeBase, build_base, build_mcp_servers, build_services
from wakeful.backup.service import back_up_before_migration
from wakeful.config.settings import Settings, read_headers, secrets_of
from wakeful.core.addresses import host_of
from wakeful.core.clock import Clock
from wakeful.core.errors import Invalid
from wakeful.core.events import LookAgain, NodeChanged, RunQueued, StopAsked, WakeDueSooner
from wakeful.core.labels import TOOLSETS
from wakeful.core.records import Outcome
from wakeful.core.types import ClaimedRun, Rules
from wakeful.database import tools as database_tools
from wakeful.database.service import DatabasePrompt
from wakeful.datadir.device_key import note_started
from wakeful.datadir.files import make_private
from wakeful.datadir.lost_data import check_empty_store
from wakeful.datadir.move import check_moves
from wakeful.hooks.service import HookPayloads
from wakeful.http.services import Services
from wakeful.loop import tools as loop_tools
from wakeful.loop.briefing import Briefings
from wakeful.loop.loop import AgentLoop
from wakeful.loop.state import SubagentLimits
from wakeful.loop.titles import SideRequests, Titles
from wakeful.loop.tools import planning_tools
from wakeful.mcp.service import McpHolds, note_tools, settle_tool_names, settle_unconfined
from wakeful.models.by_name import Models
from wakeful.models.catalog import ModelCatalog
from wakeful.models.service import ModelService
from wakeful.models.trials import ModelTests
from wakeful.nodes.service import check_shared_key
from wakeful.operations.metrics import Metrics
from wakeful.operations.storage import OldData
from wakeful.operations.upkeep import Upkeep, report_loss
from wakeful.outgoing import tools as outgoing_tools
from wakeful.outgoing.notify import Notify
from wakeful.outgoing.pings import HeartbeatPings
from wakeful.outgoing.sender import Sender
from wakeful.runs.claims import Claims
from wakeful.runs.executor import Executor
from wakeful.runs.lease_heartbeat import LeaseHeartbeat
from wakeful.runs.runner import Runner
from wakeful.runs.service import RunService
from wakeful.sandbox import shell
from wakeful.sandbox.shell import ShellSettings
from wakeful.sessions.presence import PresenceService
from wakeful.sessions.service import SessionService
from wakeful.store.migrate import CopyFirst
from wakeful.store.store import Store
from wakeful.stream.service import Stream
from wakeful.telemetry.logs import find_redactor
from wakeful.telemetry.tracing import Tracing
from wakeful.toolbox import web
from wakeful.toolbox.registry import Tool, ToolCatalog, ToolDeps, Tools
from wakeful.toolbox.web import Fetcher
from wakeful.wakes import tools as wakes_tools
from wakeful.wakes.firing import Firing, FiringObserver
from wakeful.wakes.pauses import PauseService
from wakeful.wakes.scheduler import Scheduler
from wakeful.wakes.service import WakeService
from wakeful.wakes.wrong_clock import WrongClock
from wakeful.wakes.zone_rules import ZoneRules

if TYPE_CHECKING:
    from wakeful.telemetry.otel import OtlpExporter


# Builds the tracing of a node, if the owner has set a collector.


OnSent = Callable[[str, int], None]

INSTALL = (
    "Install Wakeful with its extra `otel`: pip install 'wakeful[otel]'. Or remove otel_endpoint from wakeful.toml."
)
_NEEDED = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.common.trace_encoder")


class OtelMissing(Invalid):
    code = "otel_missing"

    def __init__(self, endpoint: str) -> None:
        super().__init__(f"otel_endpoint is {endpoint!r}, but the OpenTelemetry SDK is not installed. {INSTALL}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """The tracing of a node, and how it ends."""

    tracing: Tracing
    stop: Callable[[], None] = lambda: None

    async def aclose(self) -> None:
        """Send what is left."""
        await asyncio.to_thread(self.stop)


def is_otel_installed() -> bool:
    """Return whether the extra `otel` is installed."""
    try:
        return all(find_spec(name) is not None for name in _NEEDED)
    except ModuleNotFoundError:  # a package around it is missing
        return False


def make_exporter(settings: Settings, on_sent: OnSent = lambda _outcome, _spans: None) -> "OtlpExporter":
    """Make the connection to the collector of the settings."""
    from wakeful.telemetry.otel import OtlpExporter

    headers = {} if settings.otel_headers is None else read_headers(settings.otel_headers.get_secret_value())
    return OtlpExporter(settings.otel_endpoint or "", headers, on_sent)


def build_tracing(base: NodeBase, metrics: Metrics) -> Traces:
    settings = base.settings
    if settings.otel_endpoint is None:
        return Traces(tracing=Tracing())
    if not is_otel_installed():
        raise OtelMissing(settings.otel_endpoint)
    from wakeful.telemetry.otel import OtelSpans

    exporter = make_exporter(settings, metrics.note_spans)
    redact = find_redactor(frozenset(secrets_of(settings)))
    spans = OtelSpans(exporter, base.node, has_content=settings.otel_content, redact=redact)

    def stop() -> None:
        exporter.hurry()
        spans.stop()

    return Traces(tracing=Tracing(spans.begin), stop=stop)


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wakeful:
    """One node: its store, its services, its tools and its engine."""

    settings: Settings
    clock: Clock
    rules: Rules
    store: Store
    services: Services
    catalog: ToolCatalog
    engine: Engine
    recovery_key: str | None  # of a device key that no successful start has shown yet
    note_started: Callable[[], None]  # call when it accepts requests and has shown its recovery key
    copy_first: CopyFirst | None  # before a migration; None: as the store does by itself
    settle: Callable[[], Awaitable[None]]  # call when the store is open
    put_away: Callable[[], Awaitable[None]]

    @property
    def agents(self) -> AgentService:
        return self.services.agents

    @property
    def wakes(self) -> WakeService:
        return self.services.wakes

    @property
    def runs(self) -> RunService:
        return self.services.runs

    @property
    def pauses(self) -> PauseService:
        return self.services.pauses

    @property
    def sessions(self) -> SessionService:
        return self.services.sessions

    @property
    def stream(self) -> Stream:
        return self.services.stream

    @property
    def presence(self) -> PresenceService:
        return self.services.presence

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Open the store and prepare the data directory, without starting the engine."""
        lease = timedelta(seconds=self.settings.lease_seconds)
        await self.store.open(self.clock.now(), lambda: check_empty_store(self.settings), self.copy_first, lease)
        try:
            await check_moves(self.store)
            await report_loss(self.store, self.clock)
            await asyncio.to_thread(make_private, self.settings.data_dir)
            await self.clock.measure()
            # Before anything in the data directory is recorded with this device key.
            await check_shared_key(self.store, self.services.push, self.settings.data_dir, self.settings.config_dir)
            await self.services.directories.enter()
            await self.settle()
            await self.services.moving_in.move_all()
            await self.services.data.files.finish_erasing()
            await self.services.instructions.accept_present()
            await self.services.uploads.remove_orphans()
            yield
        finally:
            try:
                await self.services.nodes.leave()
                await self.put_away()
            finally:
                await self.store.close()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Open the store and run the engine."""
        async with self.opened():
            await self.engine.start()
            try:
                yield
            finally:
                await self.engine.stop()


def build(
    settings: Settings,
    *,
    executor: Executor | None = None,
    clock: Clock | None = None,
    traces: Traces | None = None,  # None: as the settings say
    is_backed_up: bool = True,
) -> Wakeful:
    """Build a node. Nothing is opened or started before `opened` or `running` is entered.

    Unless `is_backed_up` is False, a store with data is copied before its schema is migrated.
    """
    base = build_base(settings, clock)
    store, clock = base.store, base.clock
    parts, fetcher = build_models(base), build_fetcher(settings)
    mcp_servers = build_mcp_servers(settings, partial(note_tools, store, clock))
    models = parts.models
    catalog = ToolCatalog(outside=mcp_servers)
    services = build_services(base, catalog, mcp_servers, parts.service, SideRequests(models, clock).ask)
    tools = build_tools(base, services, catalog, fetcher)
    briefings = build_briefings(base, services)
    titles = Titles(briefings, services.sessions, services.runs, models, clock, services.metrics)

    def note_finished(run: ClaimedRun, outcome: Outcome) -> None:
        services.metrics.note_finished(run, outcome)
        titles.note_finished(run, outcome)

    traces = traces or build_tracing(base, services.metrics)
    executor = executor or build_loop(base, services, briefings, models, tools, traces.tracing)
    engine = build_engine(base, services, executor, note_finished, traces.tracing)
    store.on(WakeDueSooner, lambda _: engine.scheduler.nudge())
    store.on(RunQueued, lambda _: engine.runner.nudge())
    store.on(StopAsked, lambda _: engine.runner.look_for_stops())
    store.on(NodeChanged, lambda _: engine.look_at_node())
    store.on(LookAgain, lambda _: engine.look_again())

    async def settle() -> None:
        if base.caches is not None:
            await base.caches.enter()
        await settle_tool_names(store, clock, services.toolset_of())
        mcp_servers.keep_unconfined(await settle_unconfined(store, settings.mcp))
        await parts.service.catalog.settle(clock.now())

    async def put_away() -> None:
        await services.completions.aclose()
        await services.metrics.aclose()
        await services.outbox.aclose()
        await titles.stop()
        await parts.aclose()
        await fetcher.aclose()
        await mcp_servers.aclose()
        await services.data.files.aclose()
        await traces.aclose()
        if base.caches is not None:
            await base.caches.leave()

    return Wakeful(
        settings=settings,
        clock=clock,
        rules=base.rules,
        store=store,
        services=services,
        catalog=catalog,
        engine=engine,
        recovery_key=base.recovery_key,
        note_started=lambda: note_started(settings, base.device_key, clock.now()),
        copy_first=_choose_copy(base, is_backed_up=is_backed_up),
        settle=settle,
        put_away=put_away,
    )


def _choose_copy(base: NodeBase, *, is_backed_up: bool) -> CopyFirst | None:
    """Return how the store is copied before a migration; None: as a file, which the store does by itself."""

    async def back_up(schema: int) -> None:
        await back_up_before_migration(base.settings, base.store.database, base.device_key, base.clock, schema)

    async def do_nothing(schema: int) -> None:
        log.warning("schema is migrated without a backup", extra={"from": schema})

    if not is_backed_up:
        return do_nothing
    return back_up if base.store.is_shared else None


def build_engine(
    base: NodeBase,
    services: Services,
    executor: Executor,
    note_finished: Callable[[ClaimedRun, Outcome], None],
    tracing: Tracing,
) -> Engine:
    """Build scheduler, runner and upkeep, and the engine that starts and stops them."""
    settings, store, clock, rules = base.settings, base.store, base.clock, base.rules
    directories = services.directories
    claims = Claims(store, clock, rules, base.owner, base.lease, directories, services.nodes.identity)
    firing = Firing(store, clock, rules, base.owner, settings.claim_batch, base.lease, _observe_firing(services))
    runner = Runner(
        claims,
        clock,
        executor,
        settings.max_headless_runs,
        note_finished,
        services.metrics.note_lease_lost,
        tracing,
    )
    scheduler = Scheduler(firing, services.stopping, runner, claims, clock, settings.claim_batch)
    wrong_clock, zone_rules = WrongClock(store, clock), ZoneRules(store, clock)
    upkeep = _upkeep(base, services)
    alarm = Alarm(
        firing=firing,
        scheduler=scheduler,
        claims=claims,
        runner=runner,
        heartbeat=LeaseHeartbeat(claims, runner.compare),
        zone_rules=zone_rules,
        mcp_holds=McpHolds(store, clock, rules, directories),
    )
    workers = (
        wrong_clock,
        zone_rules,
        upkeep,
        services.data.files,
        services.uploads,
        services.models.catalog,
        services.storage,
        services.nodes,
        services.scheduled_backups,
    )
    jobs = [job for worker in workers for job in worker.jobs()]
    return Engine(base, services, alarm, upkeep, _heartbeat_pings(base, services), jobs)


def _observe_firing(services: Services) -> FiringObserver:
    metrics = services.metrics
    return FiringObserver(
        on_decided=metrics.note_verdicts, on_recovered=metrics.note_recovered, on_shed=metrics.note_shed
    )


def _heartbeat_pings(base: NodeBase, services: Services) -> HeartbeatPings | None:
    settings = base.settings
    if settings.heartbeat_url is None:
        return None
    url = settings.heartbeat_url.get_secret_value()
    # The author of the settings file may name a host of the own network.
    sender = Sender((*settings.fetch_private_hosts, host_of(url)))
    return HeartbeatPings(base, sender, url, services.metrics)


def _upkeep(base: NodeBase, services: Services) -> Upkeep:
    retention = services.storage.retention
    old_data = OldData(base.store, base.clock, retention, services.sessions)
    return Upkeep(base, services.recalls, retention, old_data)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParts:
    """The models of a node: for runs, for owners, and their tests."""

    models: Models
    service: ModelService
    tests: ModelTests

    async def aclose(self) -> None:
        await self.service.catalog.aclose()
        await self.tests.aclose()
        await self.models.aclose()


def build_models(base: NodeBase) -> ModelParts:
    settings = base.settings
    setting = settings.model if "model" in settings.model_fields_set else None
    catalog = ModelCatalog(base.store, base.device_key, settings.models, setting)
    models = Models(
        settings.model,
        base_url=settings.model_base_url,
        api_key=None if settings.model_api_key is None else settings.model_api_key.get_secret_value(),
        clock=base.clock,
        window=settings.context_window,
        catalog=catalog,
    )
    tests = ModelTests(models)
    service = ModelService(base.store, base.clock, base.device_key, catalog, models, tests, settings.local_model_ports)
    return ModelParts(models=models, service=service, tests=tests)


def build_briefings(base: NodeBase, services: Services) -> Briefings:
    data = DatabasePrompt(services.data.files, base.clock)
    return Briefings(base.store, base.clock, data.show_views, data.describe)


def build_loop(
    base: NodeBase, services: Services, briefings: Briefings, models: Models, tools: Tools, tracing: Tracing
) -> AgentLoop:
    return AgentLoop(
        briefings,
        models,
        tools,
        base.clock,
        base.workspace_of,
        services.approvals,
        services.instructions,
        services.data.files,
        services.notices,
        services.metrics,
        HookPayloads(base, services.data.files),
        subagents=SubagentLimits(depth=base.settings.subagent_depth, per_run=base.settings.subagents_per_run),
        small_window=base.settings.small_window,
        asks_for_promises=base.settings.promise_reminders,
        tracing=tracing,
    )


MAKERS: Mapping[str, Callable[[ToolDeps], Sequence[Tool]]] = {
    "recall": wakes_tools.recall_tools,
    "scheduler": wakes_tools.scheduler_tools,
    "next_run": wakes_tools.next_run_tools,
    "notify": outgoing_tools.notify_tools,
    "database": database_tools.make_tools,
    "files": agents_tools.make_tools,
    "web": web.make_tools,
    "shell": shell.make_tools,
    "subagents": loop_tools.subagent_tools,
}


def build_tools(base: NodeBase, services: Services, catalog: ToolCatalog, fetcher: Fetcher) -> Tools:
    """Put every built-in tool into the catalog. Each toolset has one maker."""
    notify = Notify(base.store, base.clock, services.outbox, services.hub, services.data.views_of)
    deps = ToolDeps(*services.by_type.values(), notify, fetcher, _shell(base.settings))
    for name in TOOLSETS:
        catalog.add(MAKERS[name](deps))
    catalog.add(skill_tools(base.workspace_of, services.instructions))
    catalog.add(planning_tools())
    catalog.add(profile_tools(services.profiles, catalog.names_for))
    return Tools(catalog, services.agents.check_self_scheduling)


def build_fetcher(settings: Settings) -> Fetcher:
    return Fetcher(private_hosts=frozenset(settings.fetch_private_hosts), tls=_tls_context())


def _shell(settings: Settings) -> ShellSettings:
    return ShellSettings(
        hidden=(settings.data_dir, settings.config_dir),
        read=settings.shell_read,
        has_network=settings.shell_network,
        is_unconfined=settings.shell_unconfined,
    )


@cache
def _tls_context() -> ssl.SSLContext:
    """Return the TLS context for the web, created once: reading the certificates takes 35 ms."""
    return httpx2.create_ssl_context()
