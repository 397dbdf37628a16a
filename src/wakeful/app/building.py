"""Builds a node: store, services, tools and engine."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from wakeful.app.backup.before_migration import back_up_before_migration
from wakeful.app.build.base import Base, build_base
from wakeful.app.build.engine import build_engine
from wakeful.app.build.loop import build_briefings, build_loop, build_models
from wakeful.app.build.services import build_services
from wakeful.app.build.tools import build_fetcher, build_mcp_servers, build_tools
from wakeful.app.build.tracing import Traces, build_tracing
from wakeful.app.data.directories import make_private
from wakeful.app.data.earlier_data import check_empty_store
from wakeful.app.data.files import note_started
from wakeful.clock import Clock
from wakeful.config import Settings
from wakeful.domain.bounds.limits import Rules
from wakeful.domain.news import LookAgain, NodeChanged, RunQueued, StopAsked, WakeDueSooner
from wakeful.domain.runs.runs import Outcome
from wakeful.domain.types import ClaimedRun
from wakeful.runtime.engine import Engine
from wakeful.runtime.executor import Executor
from wakeful.runtime.loop.side_requests import SideRequests
from wakeful.runtime.loop.titles import Titles
from wakeful.server.services import Services
from wakeful.service.agents.agents import AgentService
from wakeful.service.agents.mcp_servers import note_tools, settle_tool_names, settle_unconfined
from wakeful.service.inbox.outbox import Outbox
from wakeful.service.runs.runs import RunService
from wakeful.service.sessions.presence import PresenceService
from wakeful.service.sessions.sessions import SessionService
from wakeful.service.sessions.stream import Stream
from wakeful.service.shared_key import check_shared_key
from wakeful.service.store_loss import report_loss
from wakeful.service.store_moves import check_moves
from wakeful.service.wakes.pauses import PauseService
from wakeful.service.wakes.wakes import WakeService
from wakeful.store.migrate import CopyFirst
from wakeful.store.store import Store
from wakeful.tools.registry import ToolCatalog

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
        await self.store.open(self.clock.now(), lambda: check_empty_store(self.settings), self.copy_first)
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
    outbox = Outbox(store, clock, services.deliverer)

    def note_finished(run: ClaimedRun, outcome: Outcome) -> None:
        services.metrics.note_finished(run, outcome)
        services.pings.note_finished(run, outcome)
        titles.note_finished(run, outcome)

    traces = traces or build_tracing(base, services.metrics)
    executor = executor or build_loop(base, services, briefings, models, tools, traces.tracing)
    engine = build_engine(base, services, outbox, executor, note_finished, traces.tracing)
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
        await services.pings.aclose()
        await services.metrics.aclose()
        await outbox.aclose()
        await services.push.aclose()
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


def _choose_copy(base: Base, *, is_backed_up: bool) -> CopyFirst | None:
    """Return how the store is copied before a migration; None: as a file, which the store does by itself."""

    async def back_up(schema: int) -> None:
        await back_up_before_migration(base.settings, base.store.database, base.device_key, base.clock, schema)

    async def do_nothing(schema: int) -> None:
        log.warning("schema is migrated without a backup", extra={"from": schema})

    if not is_backed_up:
        return do_nothing
    return back_up if base.store.is_shared else None
