"""Builds everything; the only file that may import every room."""

import asyncio
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from secrets import token_hex

import uvicorn
from fastapi import FastAPI

from wakeful.agentdb.keys import load_device_key
from wakeful.clock import Clock, ServerClock, SystemClock
from wakeful.config import Settings
from wakeful.domain.errors import Unavailable, WakefulError
from wakeful.domain.events import RunEvent
from wakeful.domain.rules import Rules
from wakeful.domain.types import Message, Run
from wakeful.hub import Hub
from wakeful.runtime.engine import Engine
from wakeful.runtime.executor import Executor, Stop
from wakeful.runtime.heartbeat import Heartbeat
from wakeful.runtime.runner import Runner
from wakeful.runtime.scheduler import Scheduler
from wakeful.server.app import create_app
from wakeful.service.agents import AgentService
from wakeful.service.claims import Claims
from wakeful.service.firing import Firing
from wakeful.service.pauses import PauseService
from wakeful.service.runs import RunService
from wakeful.service.sessions import SessionService
from wakeful.service.stream import Stream
from wakeful.service.upkeep import Upkeep
from wakeful.service.wakes import WakeService
from wakeful.store.database import Database
from wakeful.store.postgres import PostgresDatabase
from wakeful.store.sqlite import SqliteDatabase
from wakeful.store.store import Store

STORE_FILE = "wakeful.sqlite"

StartError = WakefulError  # what a start may end with and a person can answer; commands know no other room's names


@dataclass(frozen=True, slots=True, kw_only=True)
class Wakeful:
    """One node: its store, its services, its engine."""

    settings: Settings
    clock: Clock
    rules: Rules
    store: Store
    agents: AgentService
    wakes: WakeService
    runs: RunService
    sessions: SessionService
    stream: Stream
    pauses: PauseService
    engine: Engine

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Open the store, without anything moving by itself."""
        await self.store.open(self.clock.now())
        try:
            if isinstance(self.clock, ServerClock):
                await self.clock.measure()
            yield
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


class NoAgentLoop:
    """Stands where the agent loop will: this version books and fires wakes, but has no model to work with."""

    async def execute(self, _run: Run, _steps: Sequence[Message], _stop: Stop) -> AsyncGenerator[RunEvent]:
        raise RuntimeError("This version of Wakeful has no agent loop yet, so the run could not be carried out.")
        yield


def build(settings: Settings, *, executor: Executor | None = None, clock: Clock | None = None) -> Wakeful:
    """Put one node together. Nothing is opened and nothing moves until it is entered."""
    store = Store(_database(settings))
    if clock is None:
        clock = ServerClock(store.read_clock) if store.is_shared else SystemClock()
    rules = _rules(settings)
    owner = token_hex(8)  # new at every start, so a process never takes a predecessor's claims for its own
    hub = Hub()
    stream = Stream(store, hub, owner)
    firing = Firing(store, stream, clock, rules, owner, settings.claim_batch)
    claims = Claims(store, stream, clock, rules, owner, timedelta(seconds=settings.lease_seconds))
    runner = Runner(claims, clock, executor or NoAgentLoop(), settings.max_headless_runs)
    scheduler = Scheduler(
        firing,
        clock,
        settings.claim_batch,
        lease=claims.lease,
        on_queued=runner.nudge,
        is_full=lambda: runner.is_full,
    )
    upkeep = Upkeep(
        store,
        clock,
        keep_events=timedelta(hours=settings.retention_events_hours),
        keep_skipped=timedelta(days=settings.retention_skipped_days),
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
    return Wakeful(
        settings=settings,
        clock=clock,
        rules=rules,
        store=store,
        agents=AgentService(store, clock),
        wakes=WakeService(store, clock, rules),
        runs=RunService(store, stream, clock),
        sessions=SessionService(store, clock),
        stream=stream,
        pauses=PauseService(store, clock),
        engine=engine,
    )


def build_http(node: Wakeful) -> FastAPI:
    """Put the doors in front of a node."""
    return create_app(version("wakeful"), lambda: node.engine.readiness().problems)


async def serve(node: Wakeful, announce: Callable[[str], None]) -> None:
    """Run a node and its doors until the process is told to stop; `announce` is told the address they stand at."""
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
                ws="none",
                lifespan="off",
                timeout_graceful_shutdown=5,
            )
        )
        async with node.opened():
            await node.engine.start()
            announce(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
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


def _database(settings: Settings) -> Database:
    if settings.database_url is not None:
        return PostgresDatabase(settings.database_url.get_secret_value())
    return SqliteDatabase(settings.data_dir / STORE_FILE, _store_key(settings))


def _store_key(settings: Settings) -> bytes | None:
    if not settings.store_encryption:
        return None
    if settings.device_key is not None:
        return bytes.fromhex(settings.device_key.get_secret_value())
    return load_device_key(settings.config_dir)


def _rules(settings: Settings) -> Rules:
    return Rules(
        grace=timedelta(seconds=settings.grace_seconds),
        defer_by=timedelta(seconds=settings.defer_seconds),
        max_deferrals=settings.max_deferrals,
        runs_per_hour=settings.runs_per_hour,
        min_every=timedelta(seconds=settings.min_interval_seconds),
        max_attempts=settings.max_attempts,
    )
