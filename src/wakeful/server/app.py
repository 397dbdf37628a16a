"""The HTTP application: all routes and sockets."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache

from fastapi import FastAPI
from starlette.datastructures import State

from wakeful.domain.agents.confinement import Confined
from wakeful.server import api_docs, auth, errors
from wakeful.server.login import login
from wakeful.server.login.attempts import Tries
from wakeful.server.mcp import door, oauth_probes
from wakeful.server.mcp.door import McpDoor
from wakeful.server.page import page_router
from wakeful.server.rest.agents import agents, instruction_files, mcp_servers
from wakeful.server.rest.completions import completions
from wakeful.server.rest.database import database, rows, tables, views
from wakeful.server.rest.hooks import hooks, webhooks
from wakeful.server.rest.inbox import channels, notifications, push
from wakeful.server.rest.models import models
from wakeful.server.rest.ops import about, backups, health, logs, nodes, storage
from wakeful.server.rest.people import accounts
from wakeful.server.rest.runs import approvals, runs
from wakeful.server.rest.sessions import search, sessions
from wakeful.server.rest.wakes import agenda, next_runs, pauses, recalls, schedules, wakes
from wakeful.server.services import Services
from wakeful.server.ws import frame_schema, socket
from wakeful.server.ws.heartbeats import Heartbeats
from wakeful.server.ws.open_sockets import OpenSockets
from wakeful.server.ws.socket import Sockets


def create_app(
    version: str,
    services: Services,
    tries: Tries,
    find_problems: Callable[[], Sequence[str]],
    *,
    heartbeat_seconds: float,
    is_shared: bool = False,
    find_held: Callable[[], Sequence[Mapping[str, object]]] = lambda: (),
    shell: Confined = "refused",
    base_path: str = "",
    public_address: str | None = None,
) -> FastAPI:
    """Create the application of one node.

    `find_problems` returns the reasons why wakes do not fire, `find_held` the runs that wait for other nodes.
    """
    app = copy(application(version))
    app.middleware_stack = None  # built at the first request, for this copy
    app.state = State()
    app.state.services = services
    app.state.find_problems = find_problems
    app.state.find_held = find_held
    app.state.base_path = base_path
    app.state.public_address = public_address
    app.state.about = about.Fixed(version=version, store="postgresql" if is_shared else "sqlite", shell=shell)
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
    app = FastAPI(title="Wakeful", version=version, responses=errors.RESPONSES, docs_url=None, redoc_url=None)
    errors.install(app)
    api_docs.install(app)
    for router in (
        about.router,
        accounts.router,
        agenda.router,  # before wakes: /wakes/preview would match /wakes/{wake_id}
        agents.router,
        instruction_files.router,
        approvals.router,
        channels.router,
        completions.router,
        database.router,
        rows.router,
        tables.router,
        views.router,
        frame_schema.router,
        health.router,
        hooks.router,
        login.router,
        logs.router,
        mcp_servers.router,
        models.router,
        next_runs.router,
        nodes.router,
        notifications.router,
        page_router(),
        pauses.router,
        push.router,
        recalls.router,
        runs.router,
        schedules.router,
        search.router,
        sessions.router,
        socket.router,
        storage.router,
        backups.router,
        wakes.router,
        webhooks.router,
    ):
        app.include_router(router)
    app.router.routes.extend([door.route, *oauth_probes.routes])
    return app
