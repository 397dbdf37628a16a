"""The web page: files that are built from web/ into static/. They are public; its data needs a login."""

import asyncio
import gzip
import json
import mimetypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from wakeful.core.errors import NotFound, WakefulError
from wakeful.http.hosts import AllowedHosts
from wakeful.http.routes import DoorRoute

FOLDER = Path(__file__).parent / "static"

# No inline scripts, nothing from other hosts, and no HTML from text, which an agent or a web page may have written.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "manifest-src 'self'",
        "worker-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types service-worker",  # the one policy of web/src/api/worker.ts, which allows one address
    )
)
_HEADERS = {"Content-Security-Policy": POLICY, "Vary": "Accept-Encoding"}
VIEWS = frozenset({"", "agenda", "agents", "inbox", "runs", "sessions", "settings"})  # as in web/src/App.tsx
_WORKER = "sw.js"
_WITH_ADDRESSES = (
    "text/html",
    "application/manifest+json",
)  # which begin with /; scripts and styles have relative ones
_FOREVER = "public, max-age=31536000, immutable"  # for files whose name contains a hash of their content
_ASK_AGAIN = "no-cache"
_NOT_BUILT = (
    "<!doctype html><title>Wakeful</title><h1>Wakeful</h1><p>The server runs, but its page is not built. "
    "In a checkout, <code>make serve</code> builds it; then reload this page.</p>"
)


class NoSuchFile(NotFound):
    code = "no_such_file"

    def __init__(self, path: str) -> None:
        super().__init__(f"The page has no file {path!r}.", hint="Reload the page: it may be older than the server.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    content: bytes
    packed: bytes | None  # with gzip; None: it would not be smaller
    media_type: str
    etag: str
    caching: str


def page_router(folder: Path = FOLDER) -> APIRouter:
    """Return the routes of the page. Its files are read once, here."""
    files = _load(folder)
    router = APIRouter(route_class=DoorRoute, include_in_schema=False)

    @router.api_route("/ui", methods=["GET", "HEAD"])
    async def enter(request: Request) -> RedirectResponse:  # pyright: ignore[reportUnusedFunction]
        """Add the slash that the page's addresses have."""
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"{request.app.state.base_path}/ui/{query}")

    @router.api_route("/", methods=["GET", "HEAD"])
    @router.api_route("/ui/{path:path}", methods=["GET", "HEAD"])
    async def show_page(request: Request, path: str = "") -> Response:  # pyright: ignore[reportUnusedFunction]
        """Return a file; for a path inside the page, index.html, which also tells a person that there is no page."""
        file = files.get(path)
        is_missing = file is None and path.partition("/")[0] not in VIEWS
        if is_missing and not is_navigation(request.scope):
            raise NoSuchFile(path)
        file = file or files.get("index.html")
        if file is None:
            return HTMLResponse(_NOT_BUILT, status_code=503)
        base_path: str = request.app.state.base_path
        if base_path and file.media_type in _WITH_ADDRESSES:
            file = _move(file, base_path)
        more = {"Service-Worker-Allowed": f"{base_path}/"} if path == _WORKER else {}  # it is in /ui/, but / is ours
        return _answer(file, request, more, 404 if is_missing else 200)

    return router


def _load(folder: Path) -> Mapping[str, _File]:
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return {path.relative_to(folder).as_posix(): _read(path, folder) for path in paths}


def _read(path: Path, folder: Path) -> _File:
    content = path.read_bytes()
    packed = gzip.compress(content, mtime=0)
    return _File(
        content=content,
        packed=packed if len(packed) < len(content) else None,
        media_type=_media_type(path),
        etag=f'"{sha256(content).hexdigest()[:32]}"',
        caching=_FOREVER if path.is_relative_to(folder / "assets") else _ASK_AGAIN,
    )


@cache
def _move(file: _File, base_path: str) -> _File:
    """Return a file whose own addresses are under a path."""
    content = file.content.replace(b'"/', f'"{base_path}/'.encode())
    return replace(
        file, content=content, packed=gzip.compress(content, mtime=0), etag=f'"{sha256(content).hexdigest()[:32]}"'
    )


def _media_type(path: Path) -> str:
    # The system's table can have other types for these, with which browsers refuse to run a script.
    known = {
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".webmanifest": "application/manifest+json",
    }
    return known.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"


def _answer(file: _File, request: Request, more: Mapping[str, str], status: int) -> Response:
    headers = {**_HEADERS, **more, "ETag": file.etag, "Cache-Control": file.caching}
    if status == 200 and file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    content = file.content
    if file.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        content = file.packed
        headers["Content-Encoding"] = "gzip"
    return Response(content, status, media_type=file.media_type, headers=headers)


# The ASGI application during the start: it answers liveness checks, and lets other requests wait.
#
# It imports neither FastAPI nor the store, so it can respond seconds before they are loaded.


MAX_WAIT_SECONDS = 30.0
_PROBLEM = "The server is still starting."
_TRY_AGAIN_LATER = 1013  # close code of a WebSocket


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


# The port for probes: whether the process responds, and whether it fires wakes. Nothing else is answered there.


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


# HTTP headers of every response, whichever application makes it.


SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; object-src 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def is_navigation(scope: Scope) -> bool:
    """Return whether a person opens an address in a browser, rather than a program or a script of the page."""
    headers = Headers(scope=scope)
    is_get = scope["type"] == "http" and scope["method"] == "GET"
    return is_get and "text/html" in headers.get("accept", "") and "authorization" not in headers
