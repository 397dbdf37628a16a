"""The HTTP application of a node: all routes and sockets behind the gate."""

import gc
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache
from importlib.metadata import version

from fastapi import FastAPI
from starlette.datastructures import State
from starlette.types import ASGIApp

from wakeful.agents import rest as agents_rest
from wakeful.app.building import Wakeful
from wakeful.app.first_start import settle_owner
from wakeful.app.gate import Gate
from wakeful.backup import rest as backup_rest
from wakeful.completions import rest as completions_rest
from wakeful.core.labels import Confined
from wakeful.database import rest as database_rest
from wakeful.database import rest_rows
from wakeful.hooks import rest as hooks_rest
from wakeful.http import auth
from wakeful.http import errors as http_errors
from wakeful.http.docs import install_docs
from wakeful.http.page import page_router
from wakeful.http.services import Services
from wakeful.http.tries import Tries
from wakeful.mcp import rest as mcp_rest
from wakeful.mcp_server import door
from wakeful.mcp_server.door import McpDoor
from wakeful.models import rest as models_rest
from wakeful.nodes import rest as nodes_rest
from wakeful.notices import rest as notices_rest
from wakeful.operations import rest as operations_rest
from wakeful.outgoing import rest as outgoing_rest
from wakeful.people import login
from wakeful.people import rest as people_rest
from wakeful.runs import rest as runs_rest
from wakeful.sandbox.rules import find_confinement
from wakeful.sessions import rest as sessions_rest
from wakeful.stream import sockets
from wakeful.stream.open_sockets import Heartbeats, OpenSockets
from wakeful.stream.sockets import Sockets
from wakeful.telemetry.log_writer import count_dropped
from wakeful.wakes import rest as wakes_rest
from wakeful.wakes import rest_agenda
from wakeful.webhooks import rest as webhooks_rest


def create_app(
    version: str,
    services: Services,
    tries: Tries,
    find_problems: Callable[[], Sequence[str]],
    *,
    heartbeat_seconds: float,
    is_shared: bool = False,
    shell: Confined = "refused",
    base_path: str = "",
    public_address: str | None = None,
) -> FastAPI:
    """Create the application of one node.

    `find_problems` returns the reasons why wakes do not fire.
    """
    app = copy(application(version))
    app.middleware_stack = None  # built at the first request, for this copy
    app.state = State()
    app.state.services = services
    app.state.find_problems = find_problems
    app.state.base_path = base_path
    app.state.public_address = public_address
    app.state.about = operations_rest.Fixed(version=version, store="postgresql" if is_shared else "sqlite", shell=shell)
    app.state.mcp = McpDoor(services, version)
    open_sockets = OpenSockets(services.accounts)
    services.metrics.watch("wakeful_sockets_open", "Open WebSockets of pages and programs.", lambda: open_sockets.count)
    app.state.sockets = Sockets(
        services=services,
        open_sockets=open_sockets,
        heartbeats=Heartbeats(heartbeat_seconds),
    )
    app.state.hook_tries = tries.of("wrong signature")
    auth.install(app, services.accounts, tries)
    return app


@cache
def application(version: str) -> FastAPI:
    """Create the routes, once. What they need of a node is in the state of its copy."""
    app = FastAPI(title="Wakeful", version=version, responses=http_errors.RESPONSES, docs_url=None, redoc_url=None)
    http_errors.install(app)
    install_docs(app)
    for router in (
        operations_rest.router,
        people_rest.router,
        rest_agenda.router,  # before wakes: /wakes/preview would match /wakes/{wake_id}
        agents_rest.router,
        outgoing_rest.router,
        completions_rest.router,
        database_rest.router,
        rest_rows.router,
        sockets.frames_router,
        hooks_rest.router,
        login.router,
        mcp_rest.router,
        models_rest.router,
        wakes_rest.next_runs_router,
        nodes_rest.router,
        notices_rest.router,
        page_router(),
        rest_agenda.pauses_router,
        outgoing_rest.push_router,
        wakes_rest.recalls_router,
        runs_rest.router,
        wakes_rest.schedules_router,
        sessions_rest.router,
        sockets.router,
        backup_rest.router,
        wakes_rest.router,
        webhooks_rest.router,
    ):
        app.include_router(router)
    app.router.routes.extend([door.route, *door.routes])
    return app


def build_http(node: Wakeful) -> ASGIApp:
    """Build the HTTP application of a node, behind the gate that checks Host, Origin and token."""
    tries = Tries(node.clock)
    text = "Log lines that were dropped, because the target of the log was blocked."
    node.services.metrics.watch("wakeful_log_lines_dropped", text, count_dropped)
    app = create_app(
        version("wakeful"),
        node.services,
        tries,
        lambda: node.engine.readiness().problems,
        heartbeat_seconds=node.settings.socket_heartbeat_seconds,
        is_shared=node.store.is_shared,
        shell=find_confinement().of(is_unconfined=node.settings.shell_unconfined),
        base_path=node.settings.base_path,
        public_address=node.settings.public_address,
    )
    return Gate(app, node.services.accounts, tries, node.settings)


async def welcome(node: Wakeful) -> str:
    """Make sure that there is an owner with an agent, and return the path of a login link for the owner's browser."""
    await node.services.directories.arrive()  # before other nodes decide which owner tokens are in use
    await node.services.nodes.arrive()
    owner = await settle_owner(node.store, node.clock, node.settings, node.services.nodes)
    await node.agents.make_first(owner.user)
    return f"/login?code={await node.services.accounts.make_login_code(owner)}"


def settle_memory() -> None:
    """Exclude the objects loaded so far from garbage collection, which would delay wakes by 20 ms each time."""
    gc.collect()
    gc.freeze()
