"""Puts one node together: its store, its services, its engine."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from secrets import token_hex

import httpx2

from wakeful.agentdb.keys.agent_keys import Vault
from wakeful.agentdb.keys.keys import is_recovery_key_unshown, to_recovery_key
from wakeful.agentdb.process.engine import DatabaseEngine as DatabaseEngine
from wakeful.app.directories import make_private
from wakeful.app.earlier_data import check_device_key, check_empty_store
from wakeful.app.files import database_of, device_key_of, note_started
from wakeful.clock import Clock, ServerClock, SystemClock
from wakeful.config import Settings
from wakeful.domain.agents.agents import Known
from wakeful.domain.agents.skills import Skill
from wakeful.domain.bounds.limits import Rules
from wakeful.domain.news import LookAgain, RunQueued, StopAsked, WakeDueSooner
from wakeful.domain.runs.runs import Outcome
from wakeful.domain.types import Agent, Run
from wakeful.hub import Hub
from wakeful.runtime.engine import Engine
from wakeful.runtime.executor import Executor
from wakeful.runtime.heartbeat import LeaseHeartbeat
from wakeful.runtime.loop.loop import AgentLoop
from wakeful.runtime.loop.run_state import SubagentLimits
from wakeful.runtime.loop.titles import Titles
from wakeful.runtime.models.check import try_model
from wakeful.runtime.models.providers import Models
from wakeful.runtime.runner import Runner
from wakeful.runtime.scheduler import Scheduler
from wakeful.server.services import Services
from wakeful.service.agents.agents import AgentService
from wakeful.service.agents.database import AgentData
from wakeful.service.agents.database_files import AgentFiles
from wakeful.service.agents.database_prompt import DatabasePrompt
from wakeful.service.agents.directories import Directories
from wakeful.service.agents.instruction_files import InstructionFiles
from wakeful.service.agents.mcp_servers import settle_unconfined
from wakeful.service.inbox.channel_process import ChannelProcess
from wakeful.service.inbox.channels import Channels
from wakeful.service.inbox.feed import Feed
from wakeful.service.inbox.notices import NoticeService
from wakeful.service.inbox.notify import Notify
from wakeful.service.inbox.outbox import Outbox
from wakeful.service.people.accounts import Accounts
from wakeful.service.resources import find_shortages
from wakeful.service.runs.approvals import Approvals
from wakeful.service.runs.claims import Claims
from wakeful.service.runs.memory_holds import MemoryHolds
from wakeful.service.runs.metrics import Metrics
from wakeful.service.runs.runs import RunService
from wakeful.service.runs.stopping import Stopping
from wakeful.service.sessions.briefing import Briefings
from wakeful.service.sessions.presence import PresenceService
from wakeful.service.sessions.profiles import Profiles
from wakeful.service.sessions.sessions import SessionService
from wakeful.service.sessions.stream import Stream
from wakeful.service.sessions.uploads import Uploads
from wakeful.service.storage import Retention, Storage
from wakeful.service.store_loss import report_loss
from wakeful.service.upkeep import Upkeep
from wakeful.service.wakes.agenda import AgendaService
from wakeful.service.wakes.firing import Firing
from wakeful.service.wakes.next_runs import NextRuns
from wakeful.service.wakes.pauses import PauseService
from wakeful.service.wakes.recalls import Recalls
from wakeful.service.wakes.schedules import Schedules
from wakeful.service.wakes.wake_edits import Bookings
from wakeful.service.wakes.wakes import WakeService
from wakeful.service.wakes.wrong_clock import WrongClock
from wakeful.store.store import Store
from wakeful.tools.database import database_tools
from wakeful.tools.files import file_tools
from wakeful.tools.mcp.servers import Confining, McpLimits, McpServers
from wakeful.tools.next_run import next_run_tools
from wakeful.tools.notify import notify_tools
from wakeful.tools.profiles import profile_tools
from wakeful.tools.recall import recall_tools
from wakeful.tools.registry import Outside, Tool, Tools
from wakeful.tools.scheduler import scheduler_tools
from wakeful.tools.shell import ShellSettings, TellRefused, shell_tools
from wakeful.tools.skills import skill_tools
from wakeful.tools.subagents import subagent_tools
from wakeful.tools.web.web import Fetcher, web_tools

_WORKSPACE_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Wakeful:
    """One node: its store, its services, its engine."""

    settings: Settings
    clock: Clock
    rules: Rules
    store: Store
    services: Services
    pauses: PauseService
    engine: Engine
    recovery_key: str | None  # of a device key that no successful start has shown yet
    note_started: Callable[[], None]  # once it is reached and has shown its recovery key
    settle: Callable[[], Awaitable[None]]  # once the store is open
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
        """Open the store, without anything moving by itself."""
        await self.store.open(self.clock.now(), lambda: check_empty_store(self.settings))
        try:
            await report_loss(self.store, self.clock)
            await asyncio.to_thread(make_private, self.settings.data_dir)
            await self.clock.measure()
            await self.services.directories.enter()
            await self.settle()
            await self.services.data.files.finish_erasing()
            await self.services.instructions.accept_present()
            await self.services.uploads.remove_orphans()
            yield
        finally:
            try:
                await self.put_away()
            finally:
                await self.store.close()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Open the store and let the engine run."""
        async with self.opened():
            await self.engine.start()
            try:
                yield
            finally:
                await self.engine.stop()


def build(settings: Settings, *, executor: Executor | None = None, clock: Clock | None = None) -> Wakeful:
    """Put one node together. Nothing is opened and nothing moves until it is entered."""
    check_device_key(settings)
    device_key = device_key_of(settings)
    is_unshown = settings.device_key is None and is_recovery_key_unshown(settings.config_dir)
    store = Store(database_of(settings, clock))
    if clock is None:
        clock = ServerClock(store.read_clock) if store.is_shared else SystemClock()
    rules = _rules(settings)
    owner = token_hex(8)  # new at every start, so a process never takes a predecessor's claims for its own
    hub = Hub()
    presence = PresenceService(store, clock, owner)
    stream = Stream(store, hub)
    feed = Feed(store, hub, clock)

    def workspace_of(agent_id: str) -> Path:
        return settings.data_dir / "agents" / agent_id / "workspace"

    lease = timedelta(seconds=settings.lease_seconds)
    directories = Directories(store, clock, settings.data_dir, device_key, owner, lease)
    uploads = Uploads(store, clock, directories, settings.data_dir / "agents", workspace_of)
    sessions = SessionService(store, clock, uploads)
    wakes = WakeService(store, clock, rules, directories)
    files = _agent_files(settings, store, clock, device_key, directories)
    data = AgentData(store, files)
    recalls = Recalls(store, wakes, clock, rules, lambda agent: tools.names_for(agent), data.names)

    async def prepare(agent: Agent) -> list[str]:
        return await tools.prepare(agent)

    async def skills_of(agent: Agent) -> list[Skill]:
        await directories.check(agent.id)
        return list((await instructions.for_prompt(agent)).skills)

    schedules = Schedules(
        store, wakes, clock, rules, lambda agent: tools.names_for(agent), prepare, skills_of, settings.model
    )
    next_runs = NextRuns(store, wakes, clock, rules, lambda agent: tools.names_for(agent), data.views_of)
    agents = AgentService(
        store,
        clock,
        timedelta(seconds=settings.run_limit_seconds),
        files.erase_deleted,
        known=lambda: Known(mcp_servers=settings.mcp, tools=tools.own_names, database_mb=settings.agent_database_mb),
    )
    sending = ChannelProcess(private_hosts=settings.fetch_private_hosts, seconds=settings.channel_timeout_seconds)
    channels = Channels(store, clock, sending, settings.fetch_private_hosts)
    outbox = Outbox(store, clock, channels)
    stopping = Stopping(store, clock, rules)
    runs = RunService(store, stopping, clock, rules, directories)
    pauses = PauseService(store, runs, clock)
    models = _models(settings, clock)
    fetcher = Fetcher(private_hosts=frozenset(settings.fetch_private_hosts), tls=_trusted())
    in_words = DatabasePrompt(files, clock)
    briefings = Briefings(store, clock, in_words.show_views, in_words.describe)
    titles = Titles(briefings, sessions, runs, models, clock)
    instructions = InstructionFiles(store, clock, directories, workspace_of)
    mcp_limits = McpLimits(
        first_start=settings.mcp_first_start_seconds,
        start=settings.mcp_start_seconds,
        call=settings.mcp_call_seconds,
        tools=settings.mcp_most_tools,
    )
    own_directories = (settings.data_dir, settings.config_dir)
    mcp_servers = McpServers(settings.mcp, settings.data_dir / "mcp", mcp_limits, Confining(hidden=own_directories))
    notices = NoticeService(store, clock)
    shell = ShellSettings(
        hidden=own_directories,
        read=settings.shell_read,
        has_network=settings.shell_network,
        is_unconfined=settings.shell_unconfined,
    )
    profiles = Profiles(store, clock, directories)
    approvals = Approvals(store, clock)
    tools = build_tools(
        recalls,
        schedules,
        next_runs,
        Notify(store, clock, channels, hub, data.views_of),
        fetcher,
        data,
        agents.check_self_scheduling,
        mcp_servers,
        instructions=instructions,
        more=[*skill_tools(workspace_of, instructions), *profile_tools(profiles, lambda agent: tools.names_for(agent))],
        shell=shell,
        tell_shell_refused=notices.add_shell_refused,
    )
    if executor is None:
        subagents = SubagentLimits(depth=settings.subagent_depth, per_run=settings.subagents_per_run)
        executor = AgentLoop(
            briefings, models, tools, clock, workspace_of, approvals, instructions, directories, subagents=subagents
        )
    metrics = Metrics(store, clock)

    def note_finished(run: Run, outcome: Outcome) -> None:
        metrics.note_finished(run, outcome)
        titles.note_finished(run, outcome)

    retention = _retention(settings)
    upkeep = Upkeep(
        store,
        clock,
        recalls,
        outbox,
        retention,
        files.finish_erasing,
        uploads.remove_orphans,
        owner,
        WrongClock(store, clock),
    )
    claims = Claims(store, clock, rules, owner, lease, directories)
    firing = Firing(store, clock, rules, owner, settings.claim_batch, directories, lease)
    holds = MemoryHolds(store, clock, rules, directories)
    runner = Runner(claims, clock, executor, settings.max_headless_runs, note_finished)
    engine = _engine(
        settings, store, clock, firing, stopping, claims, runner, upkeep, directories, holds, presence, files
    )
    store.on(WakeDueSooner, lambda _: engine.scheduler.nudge())
    store.on(RunQueued, lambda _: engine.runner.nudge())
    store.on(StopAsked, lambda _: engine.runner.look_for_stops())
    store.on(LookAgain, lambda _: engine.look_again())
    services = Services(
        accounts=Accounts(store, clock),
        agenda=AgendaService(store, clock, rules),
        agents=agents,
        approvals=approvals,
        bookings=Bookings(store, wakes, clock, rules),
        channels=channels,
        data=data,
        directories=directories,
        feed=feed,
        hub=hub,
        instructions=instructions,
        mcp_states=mcp_servers.states,
        metrics=metrics,
        next_runs=next_runs,
        notices=notices,
        pauses=pauses,
        presence=presence,
        profiles=profiles,
        recalls=recalls,
        runs=runs,
        schedules=schedules,
        sessions=sessions,
        storage=Storage(store, settings.data_dir, retention),
        stream=stream,
        toolset_of=tools.toolset_of,
        uploads=uploads,
        try_model=lambda name: try_model(models, name),
        wakes=wakes,
        workspace_of=workspace_of,
    )

    async def settle() -> None:
        mcp_servers.keep_unconfined(await settle_unconfined(store, settings.mcp))

    async def put_away() -> None:
        await outbox.aclose()
        await titles.stop()
        await models.aclose()
        await fetcher.aclose()
        await mcp_servers.aclose()
        await files.aclose()

    return Wakeful(
        settings=settings,
        clock=clock,
        rules=rules,
        store=store,
        services=services,
        pauses=pauses,
        engine=engine,
        recovery_key=to_recovery_key(device_key) if is_unshown else None,
        note_started=lambda: note_started(settings, device_key, clock.now()),
        settle=settle,
        put_away=put_away,
    )


def build_tools(
    recalls: Recalls,
    schedules: Schedules,
    next_runs: NextRuns,
    notify: Notify,
    fetcher: Fetcher,
    data: AgentData,
    check_scheduling: Callable[[Agent], Awaitable[None]] | None = None,
    outside: Outside | None = None,
    instructions: InstructionFiles | None = None,
    more: Iterable[Tool] = (),
    shell: ShellSettings | None = None,
    tell_shell_refused: TellRefused | None = None,
) -> Tools:
    """Put every tool together that an agent can be given."""
    return Tools(
        [
            *recall_tools(recalls),
            *scheduler_tools(schedules),
            *next_run_tools(next_runs),
            *database_tools(data, _WORKSPACE_BYTES),
            *notify_tools(notify),
            *file_tools(_WORKSPACE_BYTES, instructions),
            *web_tools(fetcher),
            *shell_tools(shell, tell_shell_refused),
            *subagent_tools(),
            *more,
        ],
        check_scheduling,
        outside,
    )


def _agent_files(
    settings: Settings, store: Store, clock: Clock, device_key: bytes, directories: Directories
) -> AgentFiles:
    return AgentFiles(
        store,
        clock,
        DatabaseEngine(max(2, settings.agent_database_workers)),
        Vault(lambda agent_id: settings.data_dir / "agents" / agent_id, lambda: device_key),
        settings.agent_database_mb * 1024 * 1024,
        directories,
        settings.data_dir / "agents",
    )


def _models(settings: Settings, clock: Clock) -> Models:
    return Models(
        settings.model,
        base_url=settings.model_base_url,
        api_key=None if settings.model_api_key is None else settings.model_api_key.get_secret_value(),
        clock=clock,
        window=settings.context_window,
    )


def _engine(
    settings: Settings,
    store: Store,
    clock: Clock,
    firing: Firing,
    stopping: Stopping,
    claims: Claims,
    runner: Runner,
    upkeep: Upkeep,
    directories: Directories,
    holds: MemoryHolds,
    presence: PresenceService,
    files: AgentFiles,
) -> Engine:
    scheduler = Scheduler(
        firing,
        stopping,
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
        upkeep=upkeep,
        directories=directories,
        holds=holds,
        presence=presence,
        clock=clock,
        is_shared=store.is_shared,
        are_leases_behind=lambda: claims.is_behind,
        find_problems=lambda: [*filter(None, [store.health.problem]), *find_shortages(), *files.problems()],
    )


def _retention(settings: Settings) -> Retention:
    return Retention(
        events=timedelta(hours=settings.retention_events_hours),
        skipped=timedelta(days=settings.retention_skipped_days),
        forget_recalls_after_days=settings.forget_recalls_after_days,
    )


@cache
def _trusted() -> ssl.SSLContext:
    """Return whom we trust on the web: read once, because that takes as long as the rest of a start."""
    return httpx2.create_ssl_context()


def _rules(settings: Settings) -> Rules:
    return Rules(
        grace=timedelta(seconds=settings.grace_seconds),
        defer_by=timedelta(seconds=settings.defer_seconds),
        max_deferrals=settings.max_deferrals,
        runs_per_hour=settings.runs_per_hour,
        min_every=timedelta(seconds=settings.min_interval_seconds),
        max_attempts=settings.max_attempts,
    )
