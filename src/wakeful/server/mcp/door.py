"""The route /mcp: it checks method, token and size of a request before the SDK reads it."""

import asyncio
import logging
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from wakeful.domain.people.accounts import NotSignedIn
from wakeful.server import errors
from wakeful.server.auth import identity_of
from wakeful.server.limits.body_limits import MAX_JSON, check_length, limited
from wakeful.server.limits.json_shape import UnfitJson, check_shape
from wakeful.server.services import Services

if TYPE_CHECKING:
    from wakeful.server.mcp.protocol import Protocol

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
    from wakeful.server.mcp.protocol import Protocol

    return Protocol(services, version)


class _Endpoint:
    """ASGI application of /mcp: POST alone, for callers with a token."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method != "POST":
            # The SDK would open a stream that never ends.
            message = f"{PATH!r} does not take {request.method}. It takes POST."
            refused = errors.shape(405, "method_not_allowed", message, PATH, headers={"Allow": "POST"})
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
