"""Builds the services of a node, which routes, tools and the engine call, and what they are built on."""

import asyncio
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from shutil import which

from wakeful.agentdb.engine import DatabaseEngine
from wakeful.agentdb.keys import Vault
from wakeful.agents.instruction_files import InstructionFiles
from wakeful.agents.service import AgentService, Profiles
from wakeful.backup.contents import BackupSource
from wakeful.backup.service import Backups, ScheduledBackups, backup_plan, backup_source
from wakeful.completions.service import AskAside, Completions
from wakeful.config.settings import Settings
from wakeful.core.clock import Clock, ServerClock, SystemClock
from wakeful.core.device_key import is_recovery_key_unshown, to_recovery_key
from wakeful.core.hub import Hub
from wakeful.core.records import NodeIdentity
from wakeful.core.types import Rules
from wakeful.database.files import AgentFiles
from wakeful.database.moving_in import MovingIn
from wakeful.database.service import AgentData
from wakeful.datadir.device_key import database_of, device_key_of
from wakeful.datadir.files import MOVED_AGENTS, MOVED_FILE, finish_restore
from wakeful.datadir.lost_data import check_device_key, check_not_moved
from wakeful.homes.directories import Directories
from wakeful.homes.service import CacheFolder, Homes
from wakeful.hooks.receiving import Receiving
from wakeful.hooks.service import Hooks
from wakeful.http.services import Services
from wakeful.mcp.servers import Confining, McpLimits, McpServers, NoteTools
from wakeful.models.service import ModelService
from wakeful.nodes.service import Nodes
from wakeful.notices.service import NoticeService
from wakeful.operations.metrics import Metrics
from wakeful.operations.storage import Retention, Storage
from wakeful.outgoing.channels import ChannelKind, Channels
from wakeful.outgoing.outbox import Outbox
from wakeful.outgoing.pings import PingKind, Pings
from wakeful.outgoing.push import Push, PushKind
from wakeful.outgoing.sender import Sender
from wakeful.people.service import Accounts
from wakeful.runs.approvals import Approvals
from wakeful.runs.service import RunService, RunWaits
from wakeful.runs.stopping import Departures, Stopping
from wakeful.sandbox.rules import SEARCH_PATH
from wakeful.sessions.presence import PresenceService
from wakeful.sessions.search import Search, SearchIndex
from wakeful.sessions.service import SessionService
from wakeful.sessions.uploads import Uploads
from wakeful.store.base import Base
from wakeful.store.store import Store
from wakeful.stream.feed import Feed
from wakeful.stream.service import Following, Stream
from wakeful.telemetry.logs import keep_quiet
from wakeful.telemetry.recent_logs import RecentLogs
from wakeful.toolbox.registry import ToolCatalog
from wakeful.wakes.agenda import AgendaService
from wakeful.wakes.bookings import Bookings
from wakeful.wakes.next_runs import NextRuns
from wakeful.wakes.pauses import PauseService
from wakeful.wakes.recalls import Recalls
from wakeful.wakes.schedules import Schedules
from wakeful.wakes.service import WakeService
from wakeful.webhooks.service import WebhookKind, Webhooks

# Builds what the services of a node are built on: settings, clock, rules, store and device key.


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBase(Base):
    """What its services are built on, and the settings of the node."""

    settings: Settings
    recovery_key: str | None  # of a device key that no successful start has shown yet
    caches: CacheFolder | None


def build_base(settings: Settings, clock: Clock | None) -> NodeBase:
    """Create the store without opening it, and on the first start the device key."""
    finish_restore(settings)
    check_not_moved(settings)
    check_device_key(settings)
    device_key = device_key_of(settings)
    is_unshown = settings.device_key is None and is_recovery_key_unshown(settings.config_dir)
    store = Store(database_of(settings, clock))
    if clock is None:
        clock = ServerClock(store.read_clock) if store.is_shared else SystemClock()
    owner = token_hex(8)  # new at every start, so that claims of an earlier process are not taken for this one's
    return NodeBase(
        settings=settings,
        clock=clock,
        rules=_rules(settings),
        store=store,
        owner=owner,
        node=_identity(settings, owner),
        lease=timedelta(seconds=settings.lease_seconds),
        device_key=device_key,
        recovery_key=to_recovery_key(device_key) if is_unshown else None,
        data_dir=settings.data_dir,
        caches=CacheFolder(settings.data_dir) if store.is_shared else None,
        private_hosts=tuple(settings.fetch_private_hosts),
    )


def _identity(settings: Settings, owner: str) -> NodeIdentity:
    host = socket.gethostname()
    return NodeIdentity(
        owner=owner,
        name=settings.node_name or host,
        version=version("wakeful"),
        place=f"{host}:{settings.data_dir.resolve()}",
        mcp_servers=tuple(sorted(settings.mcp)),
    )


def _rules(settings: Settings) -> Rules:
    return Rules(
        grace=timedelta(seconds=settings.grace_seconds),
        defer_by=timedelta(seconds=settings.defer_seconds),
        max_deferrals=settings.max_deferrals,
        runs_per_hour=settings.runs_per_hour,
        runs_per_token=settings.runs_per_token_per_hour,
        min_every=timedelta(seconds=settings.min_interval_seconds),
        max_attempts=settings.max_attempts,
        outage_hold=timedelta(seconds=settings.outage_hold_seconds),
    )


def build_services(
    base: NodeBase, catalog: ToolCatalog, mcp_servers: McpServers, models: ModelService, ask_aside: AskAside
) -> Services:
    """Build every service. Some of them check tool names against the catalog, which is filled later."""
    settings, store, clock, rules = base.settings, base.store, base.clock, base.rules
    hub = Hub()
    stream, feed = Stream(store, hub), Feed(store, hub, clock)
    directories = Directories(store, clock, settings.data_dir, base.device_key, base.owner, base.lease)
    metrics = Metrics(store, clock, base.node)
    files = _agent_files(base, metrics)
    instructions = InstructionFiles(base, files)
    uploads = Uploads(base, files)
    data = AgentData(store, files)
    wakes = WakeService(store, clock, rules)
    recalls = Recalls(base, wakes, catalog, data)
    schedules = Schedules(base, wakes, catalog, instructions, models.catalog)
    next_runs = NextRuns(base, wakes, catalog, data)
    stopping = Stopping(store, clock, rules)
    search_index = SearchIndex(store, clock)
    runs = RunService(store, stopping, clock, rules)
    receiving = Receiving(base, catalog)
    outbox = _outbox(base, metrics)
    source = backup_source(settings, store.database, base.device_key, clock, is_live=True)
    scheduled_backups = _scheduled_backups(base, source, metrics)
    departures = Departures(store, clock)
    agents = AgentService(base, settings, files, departures, catalog, models.catalog)
    return Services(
        accounts=Accounts(store, clock, departures),
        agenda=AgendaService(store, clock, rules),
        agents=agents,
        approvals=Approvals(store, clock),
        backups=Backups(source, scheduled_backups),
        bookings=Bookings(store, recalls, schedules, next_runs),
        channels=Channels(base, outbox),
        completions=Completions(
            store,
            clock,
            rules,
            agents,
            runs,
            Following(stream, hub, runs, clock),
            metrics,
            ask_aside,
            answers_side_requests=settings.v1_side_requests == "answer",
        ),
        data=data,
        departures=departures,
        directories=directories,
        feed=feed,
        hooks=Hooks(base, receiving, catalog),
        hub=hub,
        instructions=instructions,
        mcp_states=mcp_servers.states,
        metrics=metrics,
        models=models,
        moving_in=_moving_in(base, files),
        next_runs=next_runs,
        nodes=Nodes(store, clock, base.node, directories),
        notices=NoticeService(store, clock),
        outbox=outbox,
        pauses=PauseService(store, runs, clock),
        pings=Pings(base),
        presence=PresenceService(store, clock, base.owner),
        profiles=Profiles(store, clock),
        push=Push(base, outbox),
        recalls=recalls,
        receiving=receiving,
        recent_logs=RecentLogs(clock),
        run_waits=RunWaits(store, clock),
        runs=runs,
        scheduled_backups=scheduled_backups,
        schedules=schedules,
        search=Search(store, search_index),
        search_index=search_index,
        sessions=SessionService(store, clock, uploads),
        stopping=stopping,
        storage=Storage(
            store,
            clock,
            settings.data_dir,
            lambda: base.agents_dir,
            _retention(settings),
            search_index,
            metrics.note_sizes,
        ),
        stream=stream,
        toolset_of=catalog.toolset_of,
        uploads=uploads,
        wakes=wakes,
        webhooks=Webhooks(base, outbox),
        workspace_of=base.workspace_of,
    )


def _scheduled_backups(base: NodeBase, source: BackupSource, metrics: Metrics) -> ScheduledBackups:
    plan = backup_plan(base.settings)
    made = ScheduledBackups(base.store, base.clock, source, base.node.name, plan, metrics.note_backup)
    every = 0.0 if plan is None else plan.every.total_seconds()
    metrics.watch("wakeful_backup_interval_seconds", "Interval of scheduled backups; 0: none.", lambda: every)
    text = "When the last scheduled backup was made, in seconds since 1970; 0: never."
    metrics.watch("wakeful_backup_last_success_timestamp_seconds", text, lambda: _to_seconds(made.last.finished_at))
    metrics.watch("wakeful_backup_last_size_bytes", "Size of that backup.", lambda: made.last.size or 0)
    metrics.watch(
        "wakeful_backup_failing", "1 while the last attempt of a scheduled backup failed.", lambda: made.last.is_failing
    )
    return made


def _to_seconds(at: datetime | None) -> float:
    return 0.0 if at is None else at.timestamp()


def _moving_in(base: NodeBase, files: AgentFiles) -> MovingIn:
    data_dir = base.settings.data_dir

    def find_kept() -> Path | None:
        return data_dir / MOVED_AGENTS if (data_dir / MOVED_FILE).exists() else None

    return MovingIn(base.store, files, data_dir / "agents", find_kept)


def _agent_files(base: NodeBase, metrics: Metrics) -> AgentFiles:
    settings, store = base.settings, base.store
    engine = DatabaseEngine(max(2, settings.agent_database_workers), on_wait=metrics.note_database_wait)
    name, text = "wakeful_database_workers", "Worker processes of agents' databases."
    metrics.watch(name, text, lambda: engine.busy, state="busy")
    metrics.watch(name, text, lambda: len(engine.workers) - engine.busy, state="idle")
    vault = Vault(base.folder_of, lambda: base.device_key)
    homes = None
    if store.is_shared:
        homes = Homes(store, base.clock, engine, vault, base.folder_of, base.device_key, base.owner)
    quota = settings.agent_database_mb * 1024 * 1024
    return AgentFiles(store, base.clock, engine, vault, quota, settings.data_dir / "agents", homes)


def _outbox(base: NodeBase, metrics: Metrics) -> Outbox:
    seconds, device_key = base.settings.channel_timeout_seconds, base.device_key
    kinds = (
        ChannelKind(seconds, base.settings.public_address),
        PushKind(seconds, device_key),
        WebhookKind(device_key),
        PingKind(),
    )
    return Outbox(base, Sender(base.private_hosts, inspect_seconds=seconds), kinds, metrics)


def _retention(settings: Settings) -> Retention:
    return Retention(
        events=timedelta(hours=settings.retention_events_hours),
        skipped=timedelta(days=settings.retention_skipped_days),
        forget_recalls_after_days=settings.forget_recalls_after_days,
        runs=timedelta(days=settings.retention_runs_days) or None,
        sessions=timedelta(days=settings.retention_sessions_days) or None,
    )


# The MCP servers of the settings: built for a node, and started once to see whether they work.


def build_mcp_servers(settings: Settings, note_tools: NoteTools | None = None) -> McpServers:
    limits = McpLimits(
        first_start=settings.mcp_first_start_seconds,
        start=settings.mcp_start_seconds,
        call=settings.mcp_call_seconds,
        tools=settings.mcp_most_tools,
    )
    hidden = (settings.data_dir, settings.config_dir)
    return McpServers(settings.mcp, settings.data_dir / "mcp", limits, Confining(hidden=hidden), note_tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTrial:
    """The result of a start: the names of the tools, or why it failed."""

    name: str
    tools: tuple[str, ...] = ()
    problem: str | None = None
    note: str | None = None


def try_mcp_server(settings: Settings, name: str, *, is_unconfined: bool = False) -> McpTrial:
    """Start a server, read its tools and stop it. `is_unconfined`: the running node keeps it so since an upgrade."""
    return asyncio.run(_try(settings, name, is_unconfined))


async def _try(settings: Settings, name: str, is_unconfined: bool) -> McpTrial:
    entry = settings.mcp[name]
    if entry.command and find_program(settings, name) is None:
        return McpTrial(name=name, problem=f"there is no program {entry.command[0]!r}")
    keep_quiet()
    servers = build_mcp_servers(settings.model_copy(update={"mcp": {name: entry}}))
    if is_unconfined:
        servers.keep_unconfined([name])
    try:
        await servers.prepare([name])
        [state] = servers.states()
        tools = tuple(tool.name for tool in servers.tools_of([name]))
        return McpTrial(name=name, tools=tools, problem=state.last_error, note=state.note)
    finally:
        await servers.aclose()


def find_program(settings: Settings, name: str) -> str | None:
    """Return the path of an MCP server's program, as a start would find it; None if there is none."""
    entry = settings.mcp[name]
    return which(entry.command[0], path=entry.env.get("PATH", SEARCH_PATH))
