"""Paths at which MCP clients look for OAuth before they send their token. This server has none, and says so."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from wakeful.server.errors import shape

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
