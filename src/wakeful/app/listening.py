"""Runs a server until SIGINT or SIGTERM: its port, its certificate, its address in the data directory.

It listens first, then imports the rest, which takes seconds.
"""

import asyncio
import contextlib
import errno
import fcntl
import json
import logging
import os
import resource
import signal
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection, HTTPException
from importlib.metadata import version
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import uvicorn
from starlette.types import ASGIApp

from wakeful.config.settings import MIN_TOKEN, ConfigError, Settings, secrets_of
from wakeful.core.clock import SystemClock
from wakeful.core.errors import Unavailable
from wakeful.core.files import LOCK_FILE, find_running
from wakeful.http.connections import Connections, CountedHttp, TimedRequests
from wakeful.http.hosts import AllowedHosts, BehindProxies, TrustedProxies
from wakeful.http.request_log import RequestLog, bounded_logs
from wakeful.http.starting import Probes, Starting
from wakeful.stream.wire import MAX_OTHER_FRAME, Wire

if TYPE_CHECKING:
    from wakeful.app.building import Wakeful


# The server's port: listening on it, explaining who else does, and announcing its address in the data directory.


BACKLOG = 2048  # connections that wait in the kernel
# A command that looks at the file holds the lock for a moment. A second node on the same data directory gets the lock
# when the first one ends.
_RETRY_SECONDS = (0.02,) * 10, 1.0
_LISTEN = "0A"  # the state of a socket in /proc/net/tcp
_PROBE_SECONDS = 2.0


class PortTaken(Unavailable):
    code = "port_taken"


def listen(host: str, port: int, data_dir: Path) -> socket.socket:
    """Listen on an address, or raise with the program that has the port."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server((str(address[0]), port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise PortTaken(f"Cannot listen on {host}:{port}: {_explain(error, host, port, data_dir)}") from error
    # uvicorn writes headers and body separately, and the body would wait 40 ms for the client's delayed ACK. Accepted
    # connections inherit the option. asyncio sets it only if the socket's protocol number is TCP's; here it is 0.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _explain(error: OSError, host: str, port: int, data_dir: Path) -> str:
    if isinstance(error, socket.gaierror):
        return f"the host {host!r} is not known. Set --host or WAKEFUL_HOST to an address of this machine."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine. Set --host or WAKEFUL_HOST to one of its addresses."
    if error.errno == errno.EACCES:
        return "ports below 1024 are not for ordinary users. Choose another one with --port or WAKEFUL_PORT."
    if error.errno != errno.EADDRINUSE:
        return f"{error.strerror}. Choose another address with --host or another port with --port."
    return explain_taken(port, data_dir)


def explain_taken(port: int, data_dir: Path) -> str:
    """Return who has a port, and what to do about it."""
    running = find_running(data_dir)
    if running is not None and running.address.endswith(f":{port}"):
        return (
            f"this server runs there already (pid {running.pid}, version {running.version}). "
            "`wakeful open` opens its page, and `wakeful status` shows how it is. To start it again, stop it first "
            f"with `kill {running.pid}`."
        )
    found = find_listener(port)
    stop = "stop that one" if found.pid is None else f"stop that one (`kill {found.pid}`)"
    return (
        f"{found.describe()} listens there. Either {stop}, or choose another port: `wakeful serve --port {port + 1}`, "
        "or WAKEFUL_PORT. With --port 0 the server takes any free one, and commands find it."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """The program that listens on a port, as far as it can be found out."""

    pid: int | None = None
    program: str | None = None
    wakeful_version: str | None = None  # it is a Wakeful server

    def describe(self) -> str:
        name = self.program or "another program"
        if self.wakeful_version is not None:
            name = f"another Wakeful server ({self.wakeful_version})"
        return name if self.pid is None else f"{name}, pid {self.pid}"


def find_listener(port: int) -> Listener:
    """Find the program that listens on a port of this machine. Other users' programs are found only by root."""
    pid = _find_pid(port)
    return Listener(pid=pid, program=_name_of(pid), wakeful_version=_ask_version(port))


def _find_pid(port: int) -> int | None:
    inodes = {f"socket:[{inode}]" for inode in _find_inodes(port)}
    if not inodes:
        return None
    for handle in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if str(handle.readlink()) in inodes:
                return int(handle.parts[2])
    return None


def _find_inodes(port: int) -> set[str]:
    found: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):  # there is none, as on macOS
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(fields[9])
    return found


def _name_of(pid: int | None) -> str | None:
    """Return the name of a program. Its arguments are not shown: there may be secrets in them."""
    try:
        return None if pid is None else Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None


def _ask_version(port: int) -> str | None:
    connection = HTTPConnection("127.0.0.1", port, timeout=_PROBE_SECONDS)
    try:
        connection.request("GET", "/healthz")
        found = json.loads(connection.getresponse().read(10_000))
        return str(found["version"]) if found["ok"] is True else None
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return None
    finally:
        connection.close()


@asynccontextmanager
async def announced(data_dir: Path, address: str, version: str) -> AsyncGenerator[None]:
    """Announce the address of this server in the data directory during the block."""
    running = json.dumps({"address": address, "pid": os.getpid(), "version": version})
    task = asyncio.create_task(_hold(data_dir / LOCK_FILE, running))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _hold(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return  # opening the store fails too, and says why
    try:
        for seconds in chain(_RETRY_SECONDS[0], repeat(_RETRY_SECONDS[1])):
            if _take(handle):
                break
            await asyncio.sleep(seconds)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{text}\n".encode(), 0)
        await asyncio.Event().wait()  # until it is cancelled
    except OSError:
        pass  # a full disk: commands need --token-file, since they do not send the token of this machine
    finally:
        os.close(handle)


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# The certificate of a server that ends TLS itself.


_LOOK_EVERY = 60.0  # seconds


class Certificate:
    """A certificate and its key, read again when the files change, as they do when the certificate is renewed."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.set_alpn_protocols(["http/1.1"])
        self._load()

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """Return the certificate of the settings; None: the server has no TLS of its own."""
        if settings.tls_certificate is None or settings.tls_key is None:
            return None
        try:
            return cls(settings.tls_certificate, settings.tls_key)
        except (OSError, ssl.SSLError) as error:
            problem = (
                f"The certificate {str(settings.tls_certificate)!r} with the key {str(settings.tls_key)!r} cannot be"
                f" used: {_explain_tls(error)}. Both must be PEM files that this user can read, the key without a"
                " passphrase."
            )
            raise ConfigError([problem]) from error

    async def watch(self) -> None:
        """Read the files again when they change, until cancelled. Connections that are open keep the old ones."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            self.look()

    def look(self) -> None:
        """Read the files again if they have changed. With files that do not fit, the present certificate stays."""
        try:
            if self._written_at() == self._loaded_at:
                return
            self._load()
        except (OSError, ssl.SSLError) as error:
            log.warning("the new certificate cannot be used; the old one stays", extra={"problem": _explain_tls(error)})
        else:
            log.info("the certificate was read again")

    def _load(self) -> None:
        self._loaded_at = self._written_at()
        self.context.load_cert_chain(self._certificate, self._key, password="")

    def _written_at(self) -> tuple[int, int]:
        return self._certificate.stat().st_mtime_ns, self._key.stat().st_mtime_ns


def _explain_tls(error: OSError) -> str:
    reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
    return str(reason or error).replace("_", " ").lower()


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
