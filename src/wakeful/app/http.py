"""The HTTP application of a node: all routes and sockets behind the gate.

The gate is the outermost ASGI application: it checks Host and Origin, then authenticates, for HTTP and WebSockets.
No route can be reached around it. The authenticated caller is in `scope["state"]["identity"]`.
"""

import asyncio
import gc
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from importlib.metadata import version

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders, State
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wakeful.agents import rest as agents_rest
from wakeful.app.building import Wakeful
from wakeful.app.first_start import settle_owner
from wakeful.backup import rest as backup_rest
from wakeful.completions import rest as completions_rest
from wakeful.config.settings import Settings
from wakeful.core.errors import Forbidden, WakefulError
from wakeful.core.identity import Identity, NotSignedIn, WrongPass, WrongToken
from wakeful.core.labels import Confined
from wakeful.core.types import Door
from wakeful.database import rest as database_rest
from wakeful.database import rest_rows
from wakeful.hooks import rest as hooks_rest
from wakeful.http import auth
from wakeful.http import errors as http_errors
from wakeful.http.auth import COOKIE, PAGE_HEADER, SECURE_COOKIE, take_ticket, target_of
from wakeful.http.connections import mark_authenticated
from wakeful.http.errors import answer, shape
from wakeful.http.hosts import AllowedHosts, Host, UnreadableHost
from wakeful.http.limits import MAX_BODY, MAX_HOOK_BODY, MAX_OPEN_BODY, BodyTooLarge, check_length, limited
from wakeful.http.page import install_docs, is_navigation, page_router
from wakeful.http.services import Services
from wakeful.http.starting import SECURITY_HEADERS
from wakeful.http.tries import Tries
from wakeful.mcp import rest as mcp_rest
from wakeful.mcp_server import door
from wakeful.mcp_server.door import McpDoor, is_oauth_probe
from wakeful.models import rest as models_rest
from wakeful.nodes import rest as nodes_rest
from wakeful.notices import rest as notices_rest
from wakeful.operations import rest as operations_rest
from wakeful.outgoing import rest as outgoing_rest
from wakeful.people import login
from wakeful.people import rest as people_rest
from wakeful.people.service import Accounts
from wakeful.runs import rest as runs_rest
from wakeful.sandbox.rules import find_confinement
from wakeful.sessions import rest as sessions_rest
from wakeful.stream import sockets
from wakeful.stream.sockets import Heartbeats, OpenSockets, Sockets
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


# The outermost ASGI application: checks Host and Origin, then authenticates, for HTTP and WebSockets alike.
#
# No route can be reached around it. The authenticated caller is in `scope["state"]["identity"]`.


CLI_AGENT = "wakeful-cli"  # the User-Agent of our commands
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_NO_PAGE = "/ui/assets/"  # no file: the page is answered as missing


class OriginNeeded(Forbidden):
    code = "origin_needed"

    def __init__(self) -> None:
        super().__init__(
            "A request with a cookie that changes something, or opens a socket, must have an Origin header.",
            hint="A program sends its token as 'Authorization: Bearer TOKEN' instead of a cookie.",
        )


class CrossSite(Forbidden):
    code = "cross_site"

    def __init__(self) -> None:
        super().__init__(
            "The browser reports that another site sent this request.", hint="Open this server's own page instead."
        )


class Gate:
    """Authenticates requests, and answers the others with an error."""

    def __init__(self, app: ASGIApp, accounts: Accounts, tries: Tries, settings: Settings) -> None:
        self.app = app
        self._accounts = accounts
        self._tries = tries
        self._hosts = AllowedHosts(settings.host, settings.allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        try:
            is_known = await self._admit(scope)
        except WakefulError as error:
            if not isinstance(error, NotSignedIn) or isinstance(error, WrongPass) or not is_navigation(scope):
                await _refuse(answer(error, scope["path"]), scope, receive, send)
                return
            is_known = False
            scope = {**scope, "path": _NO_PAGE}  # a person at an address that is not the page's
        if scope["type"] == "websocket":
            # Without the layers of the frameworks in between, which cost as much as sending the frame.
            scope["state"]["send"] = send
            await self.app(scope, receive, send)
            return
        await self._pass_on(scope, receive, send, MAX_BODY if is_known else _largest_open(scope))

    async def _admit(self, scope: Scope) -> bool:
        """Return whether the caller is authenticated; raise if the request is refused."""
        ticket = take_ticket(scope)  # first: uvicorn logs the URL of a socket that is refused
        headers = Headers(scope=scope)
        host = self._check_host(scope, headers)
        self._check_origin(scope, headers, host)
        if scope["type"] == "http" and (_is_open(scope) or _is_probe(scope, headers) or is_oauth_probe(scope["path"])):
            return False
        state = scope.setdefault("state", {})
        identity = await self._identify(scope, headers, ticket)
        state["identity"] = replace(identity, door=_door(scope, headers, identity))
        mark_authenticated(state, identity.token_id, is_socket=scope["type"] == "websocket")
        return True

    def _check_host(self, scope: Scope, headers: Headers) -> Host:
        named = headers.getlist("host")
        if len(named) != 1:
            raise UnreadableHost
        _, port = scope.get("server") or ("", None)
        return self._hosts.check(named[0], _scheme(scope), port)

    def _check_origin(self, scope: Scope, headers: Headers, host: Host) -> None:
        for origin in headers.getlist("origin"):
            self._hosts.check_origin(origin, host, _scheme(scope))
        if _acts(scope) and headers.get("sec-fetch-site") == "cross-site":
            raise CrossSite

    async def _identify(self, scope: Scope, headers: Headers, ticket: str | None) -> Identity:
        client = _client(scope)
        if "authorization" in headers:
            return await self._identify_bearer(headers["authorization"], client)
        if ticket is not None:
            return await self._identify_ticket(scope, ticket, client)
        cookies = cookie_parser("; ".join(headers.getlist("cookie")))
        cookie = cookies.get(SECURE_COOKIE) or cookies.get(COOKIE)
        if cookie is None:
            raise NotSignedIn
        if _acts(scope) and "origin" not in headers:
            raise OriginNeeded
        # Not counted as an attempt: they cannot be guessed, so a wrong one has expired.
        return await self._accounts.identify_browser(cookie, headers.get(PAGE_HEADER, ""))

    async def _identify_bearer(self, header: str, client: str) -> Identity:
        kind, _, secret = header.partition(" ")
        secret = secret.strip()
        identity = await self._accounts.identify(secret) if kind.lower() == "bearer" else None
        return self._count_wrong(identity, client, WrongToken())

    async def _identify_ticket(self, scope: Scope, ticket: str, client: str) -> Identity:
        if scope["type"] == "websocket":
            return self._count_wrong(await self._accounts.use_ticket(ticket), client, WrongPass("ticket"))
        identity = await self._accounts.use_ticket(ticket, target_of(scope))
        return self._count_wrong(identity, client, WrongPass("download"))

    def _count_wrong(self, identity: Identity | None, client: str, error: WakefulError) -> Identity:
        if identity is None:
            self._tries.check(client)  # only now: wrong tokens of others must not lock out a valid one
            self._tries.count(client)
            raise error
        return identity

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, most: int) -> None:
        """Pass a request on, with a limit on its body and security headers on the response."""
        has_begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                _add_headers(message, scope)
            await send(message)

        try:
            check_length(scope, most)
            await self.app(scope, limited(receive, most), send_with_headers)
        except BodyTooLarge as error:  # if the application did not answer it
            if has_begun:
                raise
            await shape(413, "body_too_large", error.detail, scope["path"])(scope, receive, send_with_headers)


def _scheme(scope: Scope) -> str:
    return "https" if scope["scheme"] in ("https", "wss") else "http"


def _client(scope: Scope) -> str:
    client = scope.get("client")  # behind a proxy: `http/hosts.py` has put the client's own there
    return client[0] if client else ""


def _door(scope: Scope, headers: Headers, identity: Identity) -> Door:
    """Return the door of a request, which is recorded with what it books or starts.

    Programs' doors have a brake, so the path alone decides about them. The User-Agent decides only what is shown.
    """
    if scope["path"] == "/mcp":
        return "mcp"
    if scope["path"].startswith("/v1/"):
        return "v1"
    if identity.kind == "browser":
        return "page"
    return "cli" if headers.get("user-agent", "").startswith(CLI_AGENT) else "rest"


def _acts(scope: Scope) -> bool:
    """Return whether a request may change something."""
    return scope["type"] == "websocket" or scope["method"] not in SAFE


def _is_open(scope: Scope) -> bool:
    """Return whether a request needs no token: liveness, login, deliveries of hooks, and the files of the page."""
    if scope["path"] in ("/healthz", "/login") or _is_delivery(scope):
        return True
    return scope["method"] in ("GET", "HEAD") and _is_page(scope["path"])


def _is_delivery(scope: Scope) -> bool:
    """Return whether a request is a delivery to a hook, which the sender proves with the hook's own secret."""
    path: str = scope["path"]
    return scope["method"] == "POST" and path.startswith("/hooks/") and "/" not in path.removeprefix("/hooks/")


def _largest_open(scope: Scope) -> int:
    return MAX_HOOK_BODY if _is_delivery(scope) else MAX_OPEN_BODY


def _is_probe(scope: Scope, headers: Headers) -> bool:
    """Return whether a request asks for the readiness alone, as a load balancer does: the reasons need a token."""
    return scope["path"] == "/readyz" and "authorization" not in headers and "cookie" not in headers


def _is_page(path: str) -> bool:
    return path in ("/", "/ui") or path.startswith("/ui/")


def _add_headers(message: Message, scope: Scope) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in SECURITY_HEADERS.items():
        headers.setdefault(name, value)
    if not _is_page(scope["path"]):
        headers.setdefault("Cache-Control", "no-store")


async def _refuse(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Send an error response; a socket gets it before it is accepted."""
    for name, value in (SECURITY_HEADERS | {"Cache-Control": "no-store"}).items():
        response.headers.setdefault(name, value)
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})  # uvicorn makes a 403 of it
        return
    await response(scope, receive, send)
    # Let uvicorn close the connection first: otherwise it logs a missing handshake as an error.
    await asyncio.sleep(0)
