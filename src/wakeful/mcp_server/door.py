"""The route /mcp: it checks method, token and size of a request before the SDK reads it."""

import asyncio
import logging
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from wakeful.core.identity import NotSignedIn
from wakeful.http import errors as http_errors
from wakeful.http.auth import identity_of
from wakeful.http.errors import shape
from wakeful.http.limits import MAX_JSON, UnfitJson, check_length, check_shape, limited
from wakeful.http.services import Services

if TYPE_CHECKING:
    from wakeful.mcp_server.protocol import Protocol


log = logging.getLogger(__name__)

PATH = "/mcp"
_PARSE_ERROR = -32700  # of JSON-RPC


class McpDoor:
    """The MCP server of one node."""

    def __init__(self, services: Services, version: str) -> None:
        self._services = services
        self._version = version
        self._protocol: Protocol | None = None
        self._loading = asyncio.Lock()

    async def load(self) -> "Protocol":
        """Return the protocol. The first caller waits for the import of the SDK, in a thread: it takes seconds."""
        async with self._loading:
            if self._protocol is None:
                self._protocol = await asyncio.to_thread(_load, self._services, self._version)
        return self._protocol


def _load(services: Services, version: str) -> "Protocol":
    from wakeful.mcp_server.protocol import Protocol

    return Protocol(services, version)


class _Endpoint:
    """ASGI application of /mcp: POST alone, for callers with a token."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method != "POST":
            # The SDK would open a stream that never ends.
            message = f"{PATH!r} does not take {request.method}. It takes POST."
            refused = http_errors.shape(405, "method_not_allowed", message, PATH, headers={"Allow": "POST"})
            await refused(scope, receive, send)
            return
        if identity_of(request).kind != "api":
            raise NotSignedIn
        check_length(scope, MAX_JSON)
        body = await Request(scope, limited(receive, MAX_JSON)).body()
        try:
            check_shape(body)
        except UnfitJson as error:
            await _refuse_json(str(error))(scope, receive, send)
            return
        door: McpDoor = request.app.state.mcp
        protocol = await door.load()
        await protocol.answer(scope, _replay(body, receive), send)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a body that was read already, and then what the client does, such as disconnecting."""
    is_sent = False

    async def replay() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _refuse_json(problem: str) -> JSONResponse:
    error = {"code": _PARSE_ERROR, "message": problem}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status_code=400)


route = Route(PATH, _Endpoint())


# Paths at which MCP clients look for OAuth before they send their token; this server has none, and says so.


_PATHS = frozenset({"/register", "/authorize", "/token"})
_MARKS = ("/.well-known/oauth-", "/.well-known/openid-configuration")
_MESSAGE = "This server has no OAuth. Send a token as 'Authorization: Bearer TOKEN'; `wakeful mcp config` makes one."


def is_oauth_probe(path: str) -> bool:
    """Return whether a path is one of OAuth. It gets 404 without a token: a 401 would send clients in circles."""
    return path in _PATHS or any(mark in path for mark in _MARKS)


async def _say_none(request: Request) -> Response:
    return shape(404, "no_oauth", _MESSAGE, request.url.path)


_METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]
routes = [
    Route(path, _say_none, methods=_METHODS)
    for path in (*sorted(_PATHS), "/.well-known/{rest:path}", "/mcp/.well-known/{rest:path}")
]
