"""The HTTP application: all routes and sockets."""

import gc
import logging
from base64 import b64encode
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from html import escape
from importlib.metadata import version
from typing import Any, cast, get_args

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from starlette.datastructures import State
from starlette.types import ASGIApp

from wakeful.agents import rest as agents_rest
from wakeful.app.building import Wakeful
from wakeful.app.first_start import settle_owner
from wakeful.app.gate import Gate
from wakeful.backup import rest as backup_rest
from wakeful.completions import rest as completions_rest
from wakeful.config.settings import Settings, secrets_of
from wakeful.core.labels import Confined
from wakeful.database import rest as database_rest
from wakeful.database import rest_rows
from wakeful.delivery import rest as delivery_rest
from wakeful.hooks import rest as hooks_rest
from wakeful.http import auth
from wakeful.http import errors as http_errors
from wakeful.http.auth import Tries
from wakeful.http.page import page_router
from wakeful.http.services import Services
from wakeful.mcp_server import door
from wakeful.mcp_server.door import McpDoor
from wakeful.models import rest as models_rest
from wakeful.nodes import rest as nodes_rest
from wakeful.notices import rest as notices_rest
from wakeful.operations import rest as operations_rest
from wakeful.people import login
from wakeful.people import rest as people_rest
from wakeful.runs import rest as runs_rest
from wakeful.sandbox.rules import find_confinement
from wakeful.sessions import rest as sessions_rest
from wakeful.stream import sockets
from wakeful.stream.sockets import Sockets
from wakeful.stream.wire import Heartbeats, OpenSockets
from wakeful.telemetry.logs import (
    PLAIN,
    Lines,
    Preparing,
    Redactor,
    clean_fields,
    count_dropped,
    find_redactor,
    redact_all,
    traceback_of,
)
from wakeful.telemetry.recent_logs import LogLevel, LogRecordLines, RecentLogs
from wakeful.wakes import rest as wakes_rest
from wakeful.wakes import rest_agenda
from wakeful.webhooks import rest as webhooks_rest


def create_app(
    version: str,
    services: Services,
    tries: Tries,
    find_problems: Callable[[], Sequence[str]],
    *,
    heartbeat_seconds: float,
    is_shared: bool = False,
    shell: Confined = "refused",
    base_path: str = "",
    public_address: str | None = None,
) -> FastAPI:
    """Create the application of one node.

    `find_problems` returns the reasons why wakes do not fire.
    """
    app = copy(application(version))
    app.middleware_stack = None  # built at the first request, for this copy
    app.state = State()
    app.state.services = services
    app.state.find_problems = find_problems
    app.state.base_path = base_path
    app.state.public_address = public_address
    app.state.about = operations_rest.Fixed(version=version, store="postgresql" if is_shared else "sqlite", shell=shell)
    app.state.mcp = McpDoor(services, version)
    open_sockets = OpenSockets(services.accounts)
    services.metrics.watch("wakeful_sockets_open", "Open WebSockets of pages and programs.", lambda: open_sockets.count)
    app.state.sockets = Sockets(
        services=services,
        open_sockets=open_sockets,
        heartbeats=Heartbeats(heartbeat_seconds),
    )
    app.state.hook_tries = tries.of("wrong signature")
    auth.install(app, services.accounts, tries)
    return app


@cache
def application(version: str) -> FastAPI:
    """Create the routes, once. What they need of a node is in the state of its copy."""
    app = FastAPI(title="Wakeful", version=version, responses=http_errors.RESPONSES, docs_url=None, redoc_url=None)
    http_errors.install(app)
    install_docs(app)
    for router in (
        operations_rest.router,
        people_rest.router,
        rest_agenda.router,  # before wakes: /wakes/preview would match /wakes/{wake_id}
        agents_rest.router,
        delivery_rest.router,
        completions_rest.router,
        database_rest.router,
        rest_rows.router,
        sockets.frames_router,
        hooks_rest.router,
        login.router,
        agents_rest.mcp_router,
        models_rest.router,
        wakes_rest.next_runs_router,
        nodes_rest.router,
        notices_rest.router,
        page_router(),
        rest_agenda.pauses_router,
        delivery_rest.push_router,
        wakes_rest.recalls_router,
        runs_rest.router,
        wakes_rest.schedules_router,
        sessions_rest.router,
        sockets.router,
        backup_rest.router,
        wakes_rest.router,
        webhooks_rest.router,
    ):
        app.include_router(router)
    app.router.routes.extend([door.route, *door.routes])
    return app


# The API reference at /docs: all routes on one page, without scripts or files from other hosts.


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "code{font-size:14px}td{padding:.15rem 1rem .15rem 0;vertical-align:top}td:first-child{white-space:nowrap}"
    "h2{margin:2rem 0 .5rem;font-size:1.1rem;text-transform:capitalize}"
)
_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
}


def install_docs(app: FastAPI) -> None:
    """Add /docs. FastAPI's own page would load scripts from another host."""

    @app.get("/docs", include_in_schema=False)
    async def show_routes() -> HTMLResponse:  # pyright: ignore[reportUnusedFunction]
        return HTMLResponse(_write(app.openapi()), headers=_HEADERS)


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


# Builds the HTTP application of a node, and prepares its first login.


def build_http(node: Wakeful) -> ASGIApp:
    """Build the HTTP application of a node, behind the gate that checks Host, Origin and token."""
    tries = Tries(node.clock)
    text = "Log lines that were dropped, because the target of the log was blocked."
    node.services.metrics.watch("wakeful_log_lines_dropped", text, count_dropped)
    app = create_app(
        version("wakeful"),
        node.services,
        tries,
        lambda: node.engine.readiness().problems,
        heartbeat_seconds=node.settings.socket_heartbeat_seconds,
        is_shared=node.store.is_shared,
        shell=find_confinement().of(is_unconfined=node.settings.shell_unconfined),
        base_path=node.settings.base_path,
        public_address=node.settings.public_address,
    )
    return Gate(app, node.services.accounts, tries, node.settings)


async def welcome(node: Wakeful) -> str:
    """Make sure that there is an owner with an agent, and return the path of a login link for the owner's browser."""
    await node.services.directories.arrive()  # before other nodes decide which owner tokens are in use
    await node.services.nodes.arrive()
    owner = await settle_owner(node.store, node.clock, node.settings, node.services.nodes)
    await node.agents.make_first(owner.user)
    return f"/login?code={await node.services.accounts.make_login_code(owner)}"


def settle_memory() -> None:
    """Exclude the objects loaded so far from garbage collection, which would delay wakes by 20 ms each time."""
    gc.collect()
    gc.freeze()


# Keeps the last log lines in memory, redacted before they are kept.


_MAX_TEXT = 4_000  # characters of a message, a field or a traceback: 10,000 lines must fit into memory
_HEAD = 1_000
_LEVELS = get_args(LogLevel)


@contextmanager
def kept_logs(kept: RecentLogs, settings: Settings) -> Generator[None]:
    """Keep the log lines of this process during the block."""
    handler = _Keeping(kept, find_redactor(frozenset(secrets_of(settings))))
    handler.addFilter(Preparing())
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


class _Keeping(logging.Handler):
    def __init__(self, kept: RecentLogs, redact: Redactor) -> None:
        super().__init__()
        self._kept = kept
        self._redact = redact

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._kept.add(self._to_lines(record))  # read rarely, so a line of its own is only made then
        except Exception:  # noqa: BLE001  a faulty record must not end what it was about; logging does the same
            self.handleError(record)

    def _to_lines(self, record: logging.LogRecord) -> LogRecordLines:
        level = record.levelname.lower()
        traceback = traceback_of(record)
        at = datetime.fromtimestamp(record.created, UTC)
        known = cast("LogLevel", level) if level in _LEVELS else "info"
        message = self._clean(record.getMessage())
        exception = None if traceback is None else self._clean(traceback)
        clean = clean_fields(self._redact, record)
        # Many lines at once are those of the engine: ids, codes and numbers.
        lines = clean.lines if clean.is_bare and len(clean.lines.rows) > 1 else _shorten(clean.lines)
        return LogRecordLines(at=at, level=known, logger=record.name, message=message, lines=lines, exception=exception)

    def _clean(self, text: str) -> str:
        return _cut(self._redact(text))


def _shorten(lines: Lines) -> Lines:
    return Lines(lines.names, [tuple(map(_shorten_value, row)) for row in lines.rows])


def _shorten_value(value: Any) -> Any:
    is_short = len(value) <= _MAX_TEXT if type(value) is str else type(value) in PLAIN
    return value if is_short else redact_all(_cut, value)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_HEAD]} … {text[_HEAD - _MAX_TEXT :]}"
