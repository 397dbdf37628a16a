"""The port for probes: whether the process responds, and whether it fires wakes. Nothing else is answered there."""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from wakeful.server.starting import respond


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
