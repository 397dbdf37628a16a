"""The ASGI applications that answer before the node is loaded: during the start, and on the port for probes.

They import neither FastAPI nor the store, so they can respond seconds before these are loaded.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from wakeful.core.errors import WakefulError
from wakeful.http.hosts import AllowedHosts

MAX_WAIT_SECONDS = 30.0
_PROBLEM = "The server is still starting."
_TRY_AGAIN_LATER = 1013  # close code of a WebSocket
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; object-src 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Starting:
    """Passes requests on to the real application as soon as it is there."""

    def __init__(self, version: str, hosts: AllowedHosts, *, wait_seconds: float = MAX_WAIT_SECONDS) -> None:
        self._version = version
        self._hosts = hosts
        self._wait_seconds = wait_seconds
        self._app: ASGIApp | None = None
        self._is_ready: Callable[[], bool] = lambda: False
        self._is_over = asyncio.Event()

    def is_ready(self) -> bool:
        """Return whether wakes are fired."""
        return self._is_ready()

    def finish(self, app: ASGIApp, is_ready: Callable[[], bool]) -> None:
        """Let waiting requests go on to the real application."""
        self._app, self._is_ready = app, is_ready
        self._is_over.set()

    def give_up(self) -> None:
        """Answer waiting requests with 503: the start has failed."""
        self._is_over.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None and self._is_known_host(scope):
            if scope.get("path") == "/healthz":
                await respond(send, 200, {"ok": True, "version": self._version})
                return
            if scope.get("path") == "/readyz":
                await respond(send, 503, {"ok": False, "problems": [_PROBLEM]})
                return
        if self._app is None:
            await self._wait()
        if self._app is not None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _TRY_AGAIN_LATER, "reason": _PROBLEM})
        else:
            error = {"code": "starting", "message": _PROBLEM, "hint": "Try again in a few seconds."}
            await respond(send, 503, {"error": error})

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._is_over.wait()
        except TimeoutError:
            pass

    def _is_known_host(self, scope: Scope) -> bool:
        """Leave a request with a wrong Host header to the gate of the real application."""
        named = [value for name, value in scope["headers"] if name == b"host"]
        _, port = scope.get("server") or ("", None)
        try:
            self._hosts.check(b",".join(named).decode("latin-1"), scope["scheme"], port)
        except WakefulError:
            return False
        return scope["type"] == "http"


@dataclass(frozen=True, slots=True)
class Probes:
    """ASGI application of `/healthz` and `/readyz`. It tells no reasons, so it needs neither token nor Host check."""

    is_ready: Callable[[], bool]

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["path"] == "/healthz":
            await respond(send, 200, {"ok": True})
        elif scope["path"] == "/readyz":
            await respond(send, 200 if self.is_ready() else 503, {"ok": self.is_ready()})
        else:
            message = f"This port answers /healthz and /readyz, not {scope['path']!r}."
            await respond(send, 404, {"error": {"code": "not_found", "message": message}})


async def respond(send: Send, status: int, body: Mapping[str, Any]) -> None:
    """Send an answer in JSON."""
    data = json.dumps(body).encode()
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(data)),
        "Cache-Control": "no-store",
        **({"Retry-After": "1"} if status == 503 else {}),
        **SECURITY_HEADERS,
    }
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": data})
