"""Logs of requests: one line each, if `log_requests` asks for it, and a limit on records that clients cause."""

import logging
import time
from collections.abc import Generator
from contextlib import contextmanager

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wakeful.core.clock import Clock

log = logging.getLogger(__name__)

MAX_A_MINUTE = 20
_MAX_KINDS = 100
_MAX_PATH = 200
# uvicorn logs every request that it cannot parse and every refused socket, asyncio connections that it cannot accept.
_LOGGERS = ("uvicorn.error", "asyncio")


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


@contextmanager
def bounded_logs(clock: Clock) -> Generator[None]:
    """Limit the loggers of uvicorn and asyncio inside the block."""
    repeats = Repeats(clock)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for each in loggers:
        each.addFilter(repeats)
    try:
        yield
    finally:
        for each in loggers:
            each.removeFilter(repeats)


class Repeats(logging.Filter):
    """Passes the first few records of a kind per minute, and adds to the next how many were left out."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._since = 0.0
        self._logged: dict[object, int] = {}  # in this minute, by kind
        self._left_out: dict[object, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now, kind = self._clock.monotonic(), record.msg  # the message before its arguments are inserted
        if now - self._since >= 60:
            self._since = now
            self._logged.clear()
        if self._logged.get(kind, 0) >= MAX_A_MINUTE or len(self._logged) >= _MAX_KINDS:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return False
        self._logged[kind] = self._logged.get(kind, 0) + 1
        if left_out := self._left_out.pop(kind, 0):
            record.msg = f"{record.msg} ({left_out} more like it were left out)"
        return True
