"""Runs a node and its doors until the process is told to stop."""

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from wakeful.agentdb.process.private_memory import hide_memory
from wakeful.app.building import Wakeful
from wakeful.config import SHORTEST_TOKEN, Settings
from wakeful.domain.errors import Unavailable
from wakeful.server.app import create_app
from wakeful.server.gate import Gate
from wakeful.server.limits.connections import Connections, CountedHttp, TimedRequests
from wakeful.server.limits.log_limits import bounded_logs
from wakeful.server.login_attempts import Tries
from wakeful.server.ws.protocol import LARGEST_OTHER_FRAME, Wire
from wakeful.service.people.first_start import settle_owner
from wakeful.tools.confinement.probe import find_confinement, log_confinement

__all__ = ["build_http", "hide_memory", "serve", "settle_memory", "welcome"]

log = logging.getLogger(__name__)

_BACKLOG = 2048  # connections that the kernel holds for us
# asyncio accepts so many before the first of them is counted. With 2,048, clients could take every file descriptor in
# one turn of the loop, and each of the 2,048 failures that follow would be logged.
_ACCEPTED_AT_ONCE = 16
_PING_SECONDS = 20.0  # between pings of a WebSocket, and for the answer to one
_MANY_DESCRIPTORS = 1_048_576  # where the system sets no limit


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
        find_held=node.engine.held,
        shell=find_confinement().of(is_unconfined=node.settings.shell_unconfined),
    )
    return Gate(app, node.services.accounts, tries, node.settings)


async def welcome(node: Wakeful) -> str:
    """Make sure of an owner with an agent, and return the path of a link that logs the owner's browser in."""
    owner = await settle_owner(node.store, node.clock, node.settings)
    await node.agents.make_first(owner.identity.user)
    return f"/login?code={await node.services.accounts.make_login_code(owner.identity)}"


def settle_memory() -> None:
    """Spare the garbage collector what is loaded by now: to look through it all again takes 20 ms, and wakes wait."""
    gc.collect()
    gc.freeze()


async def serve(node: Wakeful, announce: Callable[[str, str], None]) -> None:
    """Run a node and its doors until the process is told to stop.

    `announce` is told the address they stand at and the path of a one-time login link.
    """
    if node.settings.has_short_token:
        log.warning(
            "the owner's token is short and could be guessed; set WAKEFUL_TOKEN to a longer one",
            extra={"characters_at_least": SHORTEST_TOKEN},
        )
    log_confinement(find_confinement(), is_shell_unconfined=node.settings.shell_unconfined)
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    connections = _count_connections(node.settings)
    with bounded_logs(node.clock), _listen(node.settings.host, node.settings.port) as listener:
        host, port = listener.getsockname()[:2]
        server = _Server(
            uvicorn.Config(
                TimedRequests(build_http(node)),
                log_config=None,
                access_log=False,
                http=cast("type[asyncio.Protocol]", partial(CountedHttp, connections=connections)),
                backlog=_ACCEPTED_AT_ONCE,
                ws=Wire,
                ws_max_size=LARGEST_OTHER_FRAME,
                ws_per_message_deflate=False,
                ws_ping_interval=_PING_SECONDS,
                ws_ping_timeout=_PING_SECONDS,
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
            await asyncio.to_thread(node.note_started)
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            told = asyncio.create_task(stopping.wait())
            try:
                await asyncio.wait((serving, told), return_when=asyncio.FIRST_COMPLETED)
            finally:
                # The engine first: what is unfinished is free for other nodes before the last page has been closed.
                await node.engine.stop()
                server.should_exit = True
                connections.hurry()
                await serving
                told.cancel()


def _count_connections(settings: Settings) -> Connections:
    """Cap connections so that file descriptors are left for the store and the workers."""
    descriptors = _raise_descriptor_limit()
    return Connections(
        most=descriptors // 2,
        most_unauthenticated=min(settings.unauthenticated_connections, descriptors // 4),
        most_per_address=settings.unauthenticated_connections_per_address,
        seconds=settings.request_timeout_seconds,
    )


def _raise_descriptor_limit() -> int:
    """Take as many descriptors as the system allows, and return how many."""
    # Often 1,024 are given at first, and 524,288 to those who ask.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return _MANY_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server((str(address[0]), port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise PortTaken(
            f"Cannot listen on {host}:{port}: {error.strerror}. "
            "If another server has that port, stop it or choose another one with --port or WAKEFUL_PORT."
        ) from error
    # uvicorn writes headers and body apart, and the body would wait 40 ms for the client's delayed acknowledgement.
    # Accepted connections inherit it. asyncio sets it only where the protocol is named TCP, and here it is 0.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


class PortTaken(Unavailable):
    code = "port_taken"


class _Server(uvicorn.Server):
    """Leaves signals to us: uvicorn would raise them again, and end the process before the engine is done."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or []:
            each.listen(_BACKLOG)  # asyncio has set it to the number of connections that it accepts at once

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield
