"""Builds everything; the only file that may import every room."""

import asyncio
import contextlib
import gc
import signal
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex

import httpx2
import uvicorn
from starlette.types import ASGIApp

from wakeful.agentdb import keys
from wakeful.agentdb.engine import Engine as DatabaseEngine
from wakeful.agentdb.keys import has_device_key, load_device_key, to_recovery_key
from wakeful.agentdb.vault import Vault
from wakeful.clock import Clock, ServerClock, SystemClock
from wakeful.config import Settings
from wakeful.domain.agents import Known
from wakeful.domain.errors import Conflict, NotFound, Unavailable, WakefulError
from wakeful.domain.rules import Rules
from wakeful.domain.runs import Outcome
from wakeful.domain.types import Agent, Run
from wakeful.domain.zones import load_zone
from wakeful.hub import Hub
from wakeful.runtime.engine import Engine
from wakeful.runtime.executor import Executor
from wakeful.runtime.heartbeat import Heartbeat
from wakeful.runtime.loop import AgentLoop
from wakeful.runtime.models.providers import Models
from wakeful.runtime.models.trying import try_model
from wakeful.runtime.runner import Runner
from wakeful.runtime.scheduler import Scheduler
from wakeful.runtime.titles import Titles
from wakeful.runtime.work import SubagentLimits
from wakeful.server.app import create_app
from wakeful.server.gate import Gate
from wakeful.server.services import Services
from wakeful.server.tries import Tries
from wakeful.server.wire import Wire
from wakeful.service.accounts import Accounts
from wakeful.service.agenda import AgendaService
from wakeful.service.agent_data import AgentData
from wakeful.service.agents import AgentService
from wakeful.service.approvals import Approvals
from wakeful.service.bookings import Bookings
from wakeful.service.briefings import Briefings
from wakeful.service.channel_process import ChannelProcess
from wakeful.service.channels import Channels
from wakeful.service.claims import Claims
from wakeful.service.feed import Feed
from wakeful.service.firing import Firing
from wakeful.service.first_start import settle_owner
from wakeful.service.metrics import Metrics
from wakeful.service.next_runs import NextRuns
from wakeful.service.notices import NoticeService
from wakeful.service.notify import Notify
from wakeful.service.outbox import Outbox
from wakeful.service.pauses import PauseService
from wakeful.service.profiles import Profiles
from wakeful.service.recalls import Recalls
from wakeful.service.runs import RunService
from wakeful.service.schedules import Schedules
from wakeful.service.sessions import SessionService
from wakeful.service.storage import Retention, Storage
from wakeful.service.stream import Stream
from wakeful.service.upkeep import Upkeep
from wakeful.service.wakes import WakeService
from wakeful.store.database import Database
from wakeful.store.postgres import PostgresDatabase
from wakeful.store.sqlite import SqliteDatabase, change_key, hold
from wakeful.store.store import Store
from wakeful.tools.database import database_tools
from wakeful.tools.files import file_tools
from wakeful.tools.next_run import next_run_tools
from wakeful.tools.notify import notify_tools
from wakeful.tools.outside.servers import McpLimits, McpServers
from wakeful.tools.profiles import profile_tools
from wakeful.tools.recall import recall_tools
from wakeful.tools.registry import Outside, Tool, Tools
from wakeful.tools.scheduler import scheduler_tools
from wakeful.tools.shell import shell_tools
from wakeful.tools.skills import skill_tools
from wakeful.tools.subagents import subagent_tools
from wakeful.tools.web import Fetcher, web_tools

STORE_FILE = "wakeful.sqlite"
MOST_FRAME = 72 * 1024 * 1024  # bytes of one message with its images
_WORKSPACE_BYTES = 1024 * 1024 * 1024

StartError = WakefulError  # what a start may end with and a person can answer; commands know no other room's names


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
    recovery_key: str | None  # of a device key that this start has made; shown once
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

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Open the store, without anything moving by itself."""
        await self.store.open(self.clock.now())
        try:
            if isinstance(self.clock, ServerClock):
                await self.clock.measure()
            await self.services.data.finish_erasing()
            yield
        finally:
            await self.put_away()
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
    is_first_start = settings.device_key is None and not has_device_key(settings.config_dir)
    device_key = _device_key(settings)
    store = Store(_database(settings))
    if clock is None:
        clock = ServerClock(store.read_clock) if store.is_shared else SystemClock()
    rules = _rules(settings)
    owner = token_hex(8)  # new at every start, so a process never takes a predecessor's claims for its own
    hub = Hub()
    stream = Stream(store, hub, owner)
    feed = Feed(store, hub, clock)
    sessions = SessionService(store, clock)
    wakes = WakeService(store, clock, rules)
    data = AgentData(
        store,
        clock,
        DatabaseEngine(settings.agent_database_workers),
        Vault(lambda agent_id: settings.data_dir / "agents" / agent_id, lambda: device_key),
        feed,
        settings.agent_database_mb * 1024 * 1024,
    )
    recalls = Recalls(store, stream, wakes, clock, rules, lambda agent: tools.names_for(agent), data.names)

    async def prepare(agent: Agent) -> list[str]:
        return await tools.prepare(agent)

    schedules = Schedules(
        store,
        wakes,
        clock,
        rules,
        lambda agent: tools.names_for(agent),
        prepare,
        settings.model,
    )
    next_runs = NextRuns(store, wakes, clock, rules, lambda agent: tools.names_for(agent), data.views_of)
    agents = AgentService(
        store,
        stream,
        clock,
        timedelta(seconds=settings.run_limit_seconds),
        data.erase,
        known=lambda: Known(mcp_servers=settings.mcp, tools=tools.own_names, database_mb=settings.agent_database_mb),
    )
    channels = Channels(
        store,
        clock,
        ChannelProcess(private_hosts=settings.fetch_private_hosts, seconds=settings.channel_timeout_seconds),
        settings.fetch_private_hosts,
    )
    outbox = Outbox(store, clock, channels)
    runs = RunService(store, stream, clock)
    pauses = PauseService(store, runs, clock)
    models = Models(
        settings.model,
        base_url=settings.model_base_url,
        api_key=None if settings.model_api_key is None else settings.model_api_key.get_secret_value(),
        clock=clock,
        window=settings.context_window,
    )
    fetcher = Fetcher(private_hosts=frozenset(settings.fetch_private_hosts), tls=_trusted())
    briefings = Briefings(store, clock, data.show_views, data.describe)
    titles = Titles(briefings, sessions, runs, models, clock)

    def workspace_of(agent_id: str) -> Path:
        return settings.data_dir / "agents" / agent_id / "workspace"

    mcp_servers = McpServers(
        settings.mcp,
        settings.data_dir / "mcp",
        McpLimits(start=settings.mcp_start_seconds, call=settings.mcp_call_seconds, tools=settings.mcp_most_tools),
    )
    profiles = Profiles(store, stream, clock)
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
        more=[*skill_tools(workspace_of), *profile_tools(profiles, lambda agent: tools.names_for(agent))],
    )
    if executor is None:
        subagents = SubagentLimits(depth=settings.subagent_depth, per_run=settings.subagents_per_run)
        executor = AgentLoop(briefings, models, tools, clock, workspace_of, approvals, subagents=subagents)
    firing = Firing(store, stream, clock, rules, owner, settings.claim_batch)
    claims = Claims(store, stream, clock, rules, owner, timedelta(seconds=settings.lease_seconds))
    metrics = Metrics(store, clock)

    def note_finished(run: Run, outcome: Outcome) -> None:
        metrics.note_finished(run, outcome)
        titles.note_finished(run, outcome)

    runner = Runner(claims, clock, executor, settings.max_headless_runs, note_finished)
    scheduler = Scheduler(
        firing,
        clock,
        settings.claim_batch,
        lease=claims.lease,
        on_queued=runner.nudge,
        is_full=lambda: runner.is_full,
    )
    retention = Retention(
        events=timedelta(hours=settings.retention_events_hours),
        skipped=timedelta(days=settings.retention_skipped_days),
        forget_recalls_after_days=settings.forget_recalls_after_days,
    )
    upkeep = Upkeep(
        store,
        clock,
        recalls,
        outbox,
        keep_events=retention.events,
        keep_skipped=retention.skipped,
        forget_recalls_after_days=retention.forget_recalls_after_days,
    )
    engine = Engine(
        firing=firing,
        scheduler=scheduler,
        runner=runner,
        heartbeat=Heartbeat(claims, runner.drop_lost),
        upkeep=upkeep,
        clock=clock,
        is_shared=store.is_shared,
    )
    store.listen(engine.hear)
    store.listen(stream.hear)
    store.listen(feed.hear)
    store.listen(approvals.hear)
    store.listen(outbox.hear)
    services = Services(
        accounts=Accounts(store, clock),
        agenda=AgendaService(store, clock, rules),
        agents=agents,
        approvals=approvals,
        bookings=Bookings(store, wakes, recalls, clock),
        channels=channels,
        data=data,
        feed=feed,
        hub=hub,
        mcp_states=mcp_servers.states,
        metrics=metrics,
        next_runs=next_runs,
        notices=NoticeService(store, clock),
        pauses=pauses,
        profiles=profiles,
        recalls=recalls,
        runs=runs,
        schedules=schedules,
        sessions=sessions,
        storage=Storage(store, settings.data_dir, retention),
        stream=stream,
        toolset_of=tools.toolset_of,
        try_model=lambda name: try_model(models, name),
        wakes=wakes,
        workspace_of=workspace_of,
    )

    async def put_away() -> None:
        await outbox.aclose()
        await titles.stop()
        await models.aclose()
        await fetcher.aclose()
        await mcp_servers.aclose()
        await data.aclose()

    return Wakeful(
        settings=settings,
        clock=clock,
        rules=rules,
        store=store,
        services=services,
        pauses=pauses,
        engine=engine,
        recovery_key=to_recovery_key(device_key) if is_first_start else None,
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
    more: Iterable[Tool] = (),
) -> Tools:
    """Put every tool together that an agent can be given."""
    return Tools(
        [
            *recall_tools(recalls),
            *scheduler_tools(schedules),
            *next_run_tools(next_runs),
            *database_tools(data, _WORKSPACE_BYTES),
            *notify_tools(notify),
            *file_tools(_WORKSPACE_BYTES),
            *web_tools(fetcher),
            *shell_tools(),
            *subagent_tools(),
            *more,
        ],
        check_scheduling,
        outside,
    )


def build_http(node: Wakeful) -> ASGIApp:
    """Put the doors in front of a node, and the gate in front of the doors."""
    tries = Tries(node.clock)
    app = create_app(
        version("wakeful"),
        node.services,
        tries,
        lambda: node.engine.readiness().problems,
        heartbeat_seconds=node.settings.socket_heartbeat_seconds,
        model=node.settings.model,
        is_shared=node.store.is_shared,
    )
    return Gate(app, node.services.accounts, tries, node.settings)


async def welcome(node: Wakeful) -> str:
    """Make sure of an owner with an agent, and return the path of a link that logs the owner's browser in."""
    owner = await settle_owner(node.store, node.clock, node.settings)
    await node.agents.make_first(owner.identity.user, _local_zone())
    return f"/login?code={await node.services.accounts.make_login_code(owner.identity)}"


def settle_memory() -> None:
    """Spare the garbage collector what is loaded by now: to look through it all again takes 20 ms, and wakes wait."""
    gc.collect()
    gc.freeze()


async def serve(node: Wakeful, announce: Callable[[str, str], None]) -> None:
    """Run a node and its doors until the process is told to stop.

    `announce` is told the address they stand at and the path of a one-time login link.
    """
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    with _listen(node.settings.host, node.settings.port) as listener:
        host, port = listener.getsockname()[:2]
        server = _Server(
            uvicorn.Config(
                build_http(node),
                log_config=None,
                access_log=False,
                ws=Wire,
                ws_max_size=MOST_FRAME,
                ws_per_message_deflate=False,
                ws_ping_interval=20,
                ws_ping_timeout=20,
                proxy_headers=False,
                server_header=False,
                lifespan="off",
                timeout_graceful_shutdown=5,
            )
        )
        settle_memory()
        async with node.opened():
            login = await welcome(node)
            await node.engine.start()
            announce(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}", login)
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            told = asyncio.create_task(stopping.wait())
            try:
                await asyncio.wait((serving, told), return_when=asyncio.FIRST_COMPLETED)
            finally:
                # The engine first: what is unfinished is free for other nodes before the last page has been closed.
                await node.engine.stop()
                server.should_exit = True
                await serving
                told.cancel()


def _local_zone() -> str:
    """Return this machine's zone, for the first agent; people change it as they like."""
    with contextlib.suppress(OSError, ValueError):
        name = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")[2]
        if name:
            load_zone(name)
            return name
    return "UTC"


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((str(address[0]), port), family=family, backlog=2048)
    except OSError as error:
        raise PortTaken(
            f"Cannot listen on {host}:{port}: {error.strerror}. "
            "If another server has that port, stop it or choose another one with --port or WAKEFUL_PORT."
        ) from error


class PortTaken(Unavailable):
    code = "port_taken"


class _Server(uvicorn.Server):
    """Leaves signals to us: uvicorn would raise them again, and end the process before the engine is done."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@cache
def _trusted() -> ssl.SSLContext:
    """Return whom we trust on the web: read once, because that takes as long as the rest of a start."""
    return httpx2.create_ssl_context()


def _database(settings: Settings) -> Database:
    if settings.database_url is not None:
        return PostgresDatabase(settings.database_url.get_secret_value())
    return SqliteDatabase(settings.data_dir / STORE_FILE, _device_key(settings) if settings.store_encryption else None)


def _device_key(settings: Settings) -> bytes:
    if settings.device_key is not None:
        return bytes.fromhex(settings.device_key.get_secret_value())
    return load_device_key(settings.config_dir)


def show_recovery_key(settings: Settings) -> str:
    """Write the device key of these settings for paper. Makes none."""
    if settings.device_key is None and not has_device_key(settings.config_dir):
        raise NotFound(
            f"There is no device key in {str(settings.config_dir)!r}. The first `wakeful serve` makes one and prints "
            "its recovery key; if there was one, put it back with `wakeful key restore`."
        )
    return to_recovery_key(_device_key(settings))


def rotate_device_key(settings: Settings) -> tuple[str, list[str]]:
    """Put another device key in place of the present one, while no server runs, or finish what was cut off.

    Returns the new recovery key, and the ids of agents whose database was locked before and is so still.
    """
    if settings.device_key is not None:
        raise Conflict(
            "The device key comes from the settings (WAKEFUL_DEVICE_KEY or device_key_file), so it is not ours to "
            "change. Take it out of them and put it into the file with `wakeful key restore` first."
        )
    if not has_device_key(settings.config_dir):
        raise NotFound(f"There is no device key in {str(settings.config_dir)!r}, so there is nothing to change.")
    agents = settings.data_dir / "agents"
    with hold(settings.data_dir):
        old, new = keys.begin_rotation(settings.config_dir)
        vault = Vault(lambda agent_id: agents / agent_id, lambda: new)
        folders = sorted(agents.iterdir()) if agents.exists() else []
        locked = [folder.name for folder in folders if not vault.rewrap(folder.name, old)]
        if settings.database_url is None and settings.store_encryption:
            change_key(settings.data_dir / STORE_FILE, old, new)
        keys.end_rotation(settings.config_dir)
    return to_recovery_key(new), locked


def restore_device_key(settings: Settings, recovery_key: str) -> Path:
    """Put the device key back from paper; one that is there is moved aside."""
    if settings.device_key is not None:
        raise Conflict("The device key comes from WAKEFUL_DEVICE_KEY, so no file is read. Change it there.")
    return keys.restore_device_key(settings.config_dir, recovery_key)


def _rules(settings: Settings) -> Rules:
    return Rules(
        grace=timedelta(seconds=settings.grace_seconds),
        defer_by=timedelta(seconds=settings.defer_seconds),
        max_deferrals=settings.max_deferrals,
        runs_per_hour=settings.runs_per_hour,
        min_every=timedelta(seconds=settings.min_interval_seconds),
        max_attempts=settings.max_attempts,
    )
