"""Logs each request, if the setting `log_requests` asks for it."""

import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

_MAX_PATH = 200


class RequestLog:
    """Logs the end of each HTTP request and each socket: no query, header or body, which may hold secrets."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def noted_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "websocket.close":
                status = message.get("code", 1000)
            await send(message)

        try:
            await self._app(scope, receive, noted_send)
        finally:
            client = scope.get("client") or ("",)
            fields = {
                "method": scope.get("method", "socket"),
                "path": _path(scope),
                "status": status,
                "seconds": round(time.monotonic() - began, 3),
                "client": client[0],
            }
            log.info("request", extra=fields)


def _path(scope: Scope) -> str:
    """Return the path as it was sent, percent-encoded: decoded, it could contain a line break."""
    return (scope.get("raw_path") or b"").partition(b"?")[0].decode("latin-1")[:_MAX_PATH]
