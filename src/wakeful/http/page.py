"""The web page and the API reference at /docs. Both are public; the page's data needs a login."""

import gzip
import mimetypes
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.datastructures import Headers
from starlette.types import Scope

from wakeful.core.errors import NotFound
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


def is_navigation(scope: Scope) -> bool:
    """Return whether a person opens an address in a browser, rather than a program or a script of the page."""
    headers = Headers(scope=scope)
    is_get = scope["type"] == "http" and scope["method"] == "GET"
    return is_get and "text/html" in headers.get("accept", "") and "authorization" not in headers


# The API reference at /docs: all routes on one page, without scripts or files from other hosts.


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "code{font-size:14px}td{padding:.15rem 1rem .15rem 0;vertical-align:top}td:first-child{white-space:nowrap}"
    "h2{margin:2rem 0 .5rem;font-size:1.1rem;text-transform:capitalize}"
)
_DOCS_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
}


def install_docs(app: FastAPI) -> None:
    """Add /docs. FastAPI's own page would load scripts from another host."""

    @app.get("/docs", include_in_schema=False)
    async def show_routes() -> HTMLResponse:  # pyright: ignore[reportUnusedFunction]
        return HTMLResponse(_write(app.openapi()), headers=_DOCS_HEADERS)


def _write(described: dict[str, Any]) -> str:
    groups: dict[str, list[str]] = {}
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            row = (
                f"<tr><td><code>{method.upper()} {escape(path)}</code></td><td>{escape(_describe(operation))}</td></tr>"
            )
            groups.setdefault(operation.get("tags", ["other"])[0], []).append(row)
    tables = "".join(f"<h2>{escape(name)}</h2><table>{''.join(rows)}</table>" for name, rows in sorted(groups.items()))
    title = f"{escape(described['info']['title'])} {escape(described['info']['version'])}: API"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1>"
        "<p>All fields: <code>GET /openapi.json</code>. The frames of the sockets: "
        f"<code>GET /ws/schema</code>.</p>{tables}</html>"
    )


def _describe(operation: dict[str, Any]) -> str:
    return operation.get("description") or operation.get("summary", "")
