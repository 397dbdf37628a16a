"""The outermost ASGI application: checks Host and Origin, then authenticates, for HTTP and WebSockets alike.

No route can be reached around it. The authenticated caller is in `scope["state"]["identity"]`.
"""

import asyncio
from dataclasses import replace

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wakeful.config.settings import Settings
from wakeful.core.errors import Forbidden, WakefulError
from wakeful.core.identity import Identity, NotSignedIn, WrongPass, WrongToken
from wakeful.core.types import Door
from wakeful.http.auth import COOKIE, PAGE_HEADER, SECURE_COOKIE, take_ticket, target_of
from wakeful.http.connections import mark_authenticated
from wakeful.http.errors import answer, shape
from wakeful.http.hosts import AllowedHosts, Host, UnreadableHost
from wakeful.http.limits import MAX_BODY, MAX_HOOK_BODY, MAX_OPEN_BODY, BodyTooLarge, check_length, limited
from wakeful.http.page import is_navigation
from wakeful.http.starting import SECURITY_HEADERS
from wakeful.http.tries import Tries
from wakeful.mcp_server.door import is_oauth_probe
from wakeful.people.service import Accounts

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
