"""Runs a server until SIGINT or SIGTERM. It listens first, then imports the rest, which takes seconds."""

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, cast

import uvicorn
from starlette.types import ASGIApp

from wakeful.app.certificate import Certificate
from wakeful.app.port import BACKLOG, announced, listen
from wakeful.config.settings import MIN_TOKEN, Settings, secrets_of
from wakeful.core.clock import SystemClock
from wakeful.http.connections import Connections, CountedHttp, TimedRequests
from wakeful.http.hosts import AllowedHosts
from wakeful.http.proxies import BehindProxies, TrustedProxies
from wakeful.http.request_log import RequestLog, bounded_logs
from wakeful.http.starting import Probes, Starting
from wakeful.stream.wire import MAX_OTHER_FRAME, Wire

if TYPE_CHECKING:
    from wakeful.app.building import Wakeful

log = logging.getLogger(__name__)

# The address, the path of a login link, a recovery key to show, and the default model.
Announce = Callable[[str, str, str | None, str], None]

# Connections that asyncio accepts before the first is counted. With 2,048, clients could take all file descriptors in
# one turn of the event loop, and each of the 2,048 failures that follow would be logged.
_ACCEPTED_AT_ONCE = 16
PING_SECONDS = 20.0  # between pings of a WebSocket, and for the answer to one
_MANY_DESCRIPTORS = 1_048_576  # where the system sets no limit


def load_node(settings: Settings, *, is_backed_up: bool = True) -> "Wakeful":
    """Import everything and build a node, which takes seconds."""
    from wakeful.app.building import build

    return build(settings, is_backed_up=is_backed_up)


async def serve(settings: Settings, load: "Callable[[], Wakeful]", announce: Announce) -> None:
    """Listen, load a node in a thread and run it until SIGINT or SIGTERM.

    Until the node runs, only /healthz and /readyz are answered; other requests wait. Then `announce` is called.
    """
    began = time.monotonic()
    log.info("server starting", extra={"version": version("wakeful"), "pid": os.getpid()})
    certificate = Certificate.of(settings)
    loop = asyncio.get_running_loop()
    # A terminal that is closed sends it. Not SIG_IGN, which the programs that we start would inherit.
    loop.add_signal_handler(signal.SIGHUP, lambda: log.info("SIGHUP ignored; SIGTERM stops the server"))
    with ExitStack() as stack:
        stack.enter_context(bounded_logs(SystemClock()))
        front = _listen(settings, certificate, stack)
        try:
            async with announced(settings.data_dir, front.address, version("wakeful")):
                node, http = await asyncio.to_thread(_load, load)
                stopping = asyncio.Event()
                for number in (signal.SIGINT, signal.SIGTERM):
                    loop.add_signal_handler(number, stopping.set)
                async with _running(node, front.close) as login:
                    front.app.finish(http, lambda: node.engine.readiness().is_ready)
                    _log_moment("server ready", began, address=front.address)
                    announce(front.address, login, node.recovery_key, node.services.models.catalog.default)
                    await asyncio.to_thread(node.note_started)
                    async with supervised(lambda: node.engine.readiness().problems):
                        stopped = asyncio.create_task(stopping.wait())
                        await asyncio.wait((front.serving[0], stopped), return_when=asyncio.FIRST_COMPLETED)
                        stopped.cancel()
                    _log_moment("server stopping", began)
        finally:
            await front.close()
            _log_moment("server stopped", began)


def _log_moment(message: str, began: float, **fields: str) -> None:
    log.info(message, extra=fields | {"after_seconds": round(time.monotonic() - began, 1)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Front:
    """The listening sockets: the server's own port, and one for probes."""

    app: Starting
    address: str
    connections: Connections
    servers: "Sequence[_Server]"
    serving: Sequence[asyncio.Task[None]]
    watching: asyncio.Task[None] | None  # the files of the certificate

    async def close(self) -> None:
        self.app.give_up()
        for server in self.servers:
            server.should_exit = True
        self.connections.hurry()
        if self.watching is not None:
            self.watching.cancel()
        await asyncio.gather(*self.serving)


def _listen(settings: Settings, certificate: Certificate | None, stack: ExitStack) -> _Front:
    """Listen, and let the requests wait until the node is loaded."""
    trusted = TrustedProxies(settings.trusted_proxies)
    connections = _count_connections(settings, trusted)
    app = Starting(version("wakeful"), AllowedHosts(settings.host, settings.allowed_hosts))
    listener = stack.enter_context(listen(settings.host, settings.port, settings.data_dir))
    listeners = [listener]
    logged = RequestLog(app) if settings.log_requests else app  # inside of the proxies: it logs the client's address
    servers = [_Server(_configure(BehindProxies(logged, trusted, settings.base_path), connections, certificate))]
    if settings.health_port is not None:
        listeners.append(stack.enter_context(listen(settings.host, settings.health_port, settings.data_dir)))
        servers.append(_Server(_configure(Probes(app.is_ready), connections)))
    return _Front(
        app=app,
        address=_address_of(listener, "http" if certificate is None else "https"),
        connections=connections,
        servers=servers,
        serving=[asyncio.create_task(each.serve(sockets=[at])) for each, at in zip(servers, listeners, strict=True)],
        watching=None if certificate is None else asyncio.create_task(certificate.watch()),
    )


@asynccontextmanager
async def _running(node: "Wakeful", close: Callable[[], Awaitable[None]]) -> AsyncGenerator[str]:
    """Open the store and start the engine; yields the path of a login link."""
    from wakeful.app.http import welcome
    from wakeful.telemetry.logs import find_redactor
    from wakeful.telemetry.recent_logs import kept_logs

    logs = node.services.recent_logs
    with kept_logs(logs, find_redactor(frozenset(secrets_of(node.settings)))):
        _log_risks(node.settings)
        async with node.opened():
            login = await welcome(node)
            await node.engine.start()
            try:
                yield login
            finally:
                logs.close()
                # The engine first: other nodes can take over its runs while pages are still being disconnected.
                await node.engine.stop()
                await close()


def _load(load: "Callable[[], Wakeful]") -> "tuple[Wakeful, ASGIApp]":
    node = load()
    from wakeful.app.http import build_http, settle_memory

    app = build_http(node)
    settle_memory()
    return node, app


def _log_risks(settings: Settings) -> None:
    from wakeful.sandbox.rules import find_confinement, log_confinement

    if settings.has_short_token:
        log.warning(
            "the owner's token is short and could be guessed; set WAKEFUL_TOKEN to a longer one",
            extra={"characters_at_least": MIN_TOKEN},
        )
    log_confinement(find_confinement(), is_shell_unconfined=settings.shell_unconfined)


def _configure(app: ASGIApp, connections: Connections, certificate: Certificate | None = None) -> uvicorn.Config:
    return uvicorn.Config(
        TimedRequests(app),
        ssl_context_factory=None if certificate is None else lambda _config, _default: certificate.context,
        log_config=None,
        access_log=False,
        http=cast("type[asyncio.Protocol]", partial(CountedHttp, connections=connections)),
        backlog=_ACCEPTED_AT_ONCE,
        ws=Wire,
        ws_max_size=MAX_OTHER_FRAME,
        ws_per_message_deflate=False,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        proxy_headers=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=5,
    )


def _address_of(listener: socket.socket, scheme: str) -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _count_connections(settings: Settings, trusted: TrustedProxies) -> Connections:
    """Cap connections so that file descriptors are left for the store and the workers."""
    descriptors = _raise_descriptor_limit()
    return Connections(
        most=descriptors // 2,
        most_unauthenticated=min(settings.unauthenticated_connections, descriptors // 4),
        most_per_address=settings.unauthenticated_connections_per_address,
        most_per_token=settings.connections_per_token,
        most_sockets_per_token=settings.sockets_per_token,
        most_waits_per_token=settings.waits_per_token,
        seconds=settings.request_timeout_seconds,
        trusted=trusted,
    )


def _raise_descriptor_limit() -> int:
    """Raise the limit of file descriptors to the hard limit, often from 1,024 to 524,288, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return _MANY_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


class _Server(uvicorn.Server):
    """Does not handle signals: uvicorn would raise them again, and end the process before the engine has stopped."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or []:
            each.listen(BACKLOG)  # asyncio has set the backlog to _ACCEPTED_AT_ONCE

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


# Messages to systemd, if it started the server as a service of type `notify`.


@asynccontextmanager
async def supervised(find_problems: Callable[[], tuple[str, ...]]) -> AsyncGenerator[None]:
    """Notify systemd that the server is ready, and that its event loop turns, until the end of the block.

    Only a blocked process is restarted: a new one would not help against a store that is unavailable.
    """
    if not os.environ.get("NOTIFY_SOCKET"):
        yield
        return
    notify("READY=1")
    pinging = asyncio.create_task(_ping(find_problems))
    try:
        yield
    finally:
        pinging.cancel()
        notify("STOPPING=1")


def notify(*lines: str) -> None:
    """Send a message to systemd."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto("\n".join(lines).encode(), f"\0{address[1:]}" if address.startswith("@") else address)


async def _ping(find_problems: Callable[[], tuple[str, ...]]) -> None:
    seconds = int(os.environ.get("WATCHDOG_USEC", "60000000")) / 1_000_000
    while True:
        problems = find_problems()
        notify("WATCHDOG=1", f"STATUS={'; '.join(problems)[:500] if problems else 'Wakes are fired.'}")
        await asyncio.sleep(seconds / 3)
