"""Runs a node and its doors until the process is told to stop."""

import asyncio
import contextlib
import gc
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from wakeful.agentdb.memory import hide_memory
from wakeful.app.building import Wakeful
from wakeful.domain.errors import Unavailable
from wakeful.domain.zones import load_zone
from wakeful.server.app import create_app
from wakeful.server.gate import Gate
from wakeful.server.tries import Tries
from wakeful.server.wire import Wire
from wakeful.service.first_start import settle_owner
from wakeful.tools.confinement.probe import find_confinement, log_confinement

__all__ = ["build_http", "hide_memory", "serve", "settle_memory", "welcome"]

MOST_FRAME = 72 * 1024 * 1024  # bytes of one message with its images


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
        shell=find_confinement().of(is_unconfined=node.settings.shell_unconfined),
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
    log_confinement(find_confinement(), is_shell_unconfined=node.settings.shell_unconfined)
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
