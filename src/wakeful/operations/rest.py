"""Routes for version, health, metrics, logs and disk usage."""

from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import AwareDatetime, Field

from wakeful.core.labels import Confined
from wakeful.http.auth import Admin, Reader, is_authenticated
from wakeful.http.connections import waiting
from wakeful.http.routes import DoorRoute
from wakeful.http.services import Need
from wakeful.http.shapes import Shape
from wakeful.models.names import DEMO
from wakeful.models.service import ModelService
from wakeful.nodes.service import Nodes
from wakeful.operations.metrics import Metrics
from wakeful.operations.storage import AgentUse, Storage
from wakeful.sessions.rest import SearchIndexShape
from wakeful.telemetry.recent_logs import MAX_LINES, MAX_WAIT_SECONDS, LogLevel, RecentLogs

# Version, model, store and confinement of this server.


router = APIRouter(route_class=DoorRoute, tags=["health"])


class Fixed(Shape):
    """The facts about a server that do not change while it runs."""

    version: str
    store: Literal["sqlite", "postgresql"]
    shell: Confined  # how commands of the toolset `shell` are run on this node


class About(Fixed):
    """A server, as far as all its users may know."""

    model: str  # of agents without one of their own
    is_demo: bool  # the model is the built-in demo, which is not an LLM
    is_model_removed: bool  # runs of agents without a model of their own fail
    models: list[str]  # names of the models that agents can have, besides PROVIDER:MODEL and `demo`


@router.get("/about")
async def about(_caller: Reader, request: Request, models: Need[ModelService]) -> About:
    """Show the version, the model, the store, and how shell commands are confined."""
    fixed: Fixed = request.app.state.about
    catalog = models.catalog
    return About(
        **fixed.model_dump(),
        model=catalog.default,
        is_demo=catalog.default == DEMO,
        is_model_removed=catalog.is_default_removed,
        models=catalog.names,
    )


# ── Liveness, readiness and metrics ──────────────────────────────────────────────────────────────────────────────────

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/healthz")
async def healthz(request: Request) -> dict[str, str | bool]:
    """Check that the process responds."""
    return {"ok": True, "version": request.app.version}


@router.get("/readyz", responses={503: {"description": "Wakes are not being fired."}})
async def readyz(request: Request, nodes: Need[Nodes]) -> JSONResponse:
    """Check that wakes are fired. A caller with a token is also told why they are not.

    A node that drains is ready: it fires wakes, and others execute their runs; then `draining` is true.
    """
    problems = list(request.app.state.find_problems())
    if not is_authenticated(request):
        return JSONResponse({"ok": not problems}, status_code=503 if problems else 200)
    body = {"ok": not problems, "problems": problems} | ({"draining": True} if nodes.is_draining else {})
    return JSONResponse(body, status_code=503 if problems else 200)


@router.get("/metrics", response_class=Response, responses={200: {"content": {METRICS_TYPE: {}}}})
async def metrics(caller: Reader, request: Request, metrics_service: Need[Metrics], nodes: Need[Nodes]) -> Response:
    """Return metrics for Prometheus: ended runs, lateness of wakes, queue lengths. Owners only, with any scope."""
    is_ready, is_draining = not request.app.state.find_problems(), nodes.is_draining
    text = await metrics_service.text(caller, is_ready=is_ready, is_draining=is_draining)
    return Response(text, media_type=METRICS_TYPE)


# ── The last log lines, for owners ───────────────────────────────────────────────────────────────────────────────────


class LogLineShape(Shape):
    """One line of the log; secrets are replaced by `[secret]`."""

    at: AwareDatetime
    level: LogLevel
    logger: str
    message: str
    fields: dict[str, Any]
    exception: str | None


class LogLines(Shape):
    """Lines of the node that responds, the oldest first."""

    lines: list[LogLineShape]
    next: str  # pass it as `after` for the lines after these
    missed: int  # lines after `after` that were dropped: only the last 10,000 are kept


@router.get("/logs", response_model=LogLines)
async def read_logs(
    request: Request,
    caller: Admin,
    recent_logs: Need[RecentLogs],
    after: Annotated[str | None, Query(max_length=40)] = None,
    since: Annotated[str | None, Query(max_length=100)] = None,
    level: LogLevel | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LINES)] = 100,
    wait: Annotated[float, Query(ge=0, le=MAX_WAIT_SECONDS)] = 0,
) -> Response:
    """Show the last lines of the log, of the node that responds. Owners only.

    `since` is a duration (`10m`) or a time; `level` is the lowest severity. To follow the log, pass `next` of the last
    response as `after`, and `wait`: the response comes with the next line, or after these seconds without one.
    """
    with waiting(request.scope["state"], wait):
        page = await recent_logs.read(caller, after=after, since=since, level=level, limit=limit, wait_seconds=wait)
    # Not through pydantic, which takes five times as long: other requests wait meanwhile.
    return Response(orjson.dumps(page), media_type="application/json")


# ── Disk usage, for owners ───────────────────────────────────────────────────────────────────────────────────────────


class RetentionShape(Shape):
    """Retention of data about ended runs and wakes; set in the server's settings."""

    events_hours: int  # a run's frames after its end; its messages stay
    skipped_days: int  # skipped occurrences, before they are aggregated
    forget_recalls_after_days: int  # recurring recalls without activity of their user; 0: never
    runs_days: int  # ended runs and wakes that are over; 0: for ever
    sessions_days: int  # sessions that wakes opened, in which no person wrote; 0: for ever


class TableSize(Shape):
    """A table of the store, with its indexes."""

    name: str
    bytes: int


class AgentSize(Shape):
    """The data of an agent."""

    agent_id: str
    name: str
    user_name: str
    database_bytes: int
    file_bytes: int
    message_bytes: int
    messages: int
    runs: int


class StorageShape(Shape):
    """Bytes on disk; workspaces and databases only of the node that responds."""

    store_bytes: int
    reusable_bytes: int = Field(description="Of the store: was deleted, and is used for new data.")
    workspace_bytes: int
    database_bytes: int
    free_bytes: int  # on the disk of the data directory
    search_index: SearchIndexShape
    retention: RetentionShape
    measured_at: AwareDatetime = Field(description="When tables and agents were measured.")
    tables: list[TableSize] = Field(description="The largest first.")
    agents: list[AgentSize] = Field(description="The largest first, of all users.")


@router.get("/storage")
async def get_storage(caller: Reader, storage: Need[Storage]) -> StorageShape:
    """Show the disk usage of the store, workspaces and agents' databases. Owners only, with any scope."""
    used, kept = await storage.measure(caller), storage.retention
    return StorageShape(
        store_bytes=used.store,
        reusable_bytes=used.reusable,
        workspace_bytes=used.workspaces,
        database_bytes=used.databases,
        free_bytes=used.free,
        search_index=SearchIndexShape.model_validate(used.search_index),
        retention=RetentionShape(
            events_hours=int(kept.events.total_seconds() // 3600),
            skipped_days=kept.skipped.days,
            forget_recalls_after_days=kept.forget_recalls_after_days,
            runs_days=0 if kept.runs is None else kept.runs.days,
            sessions_days=0 if kept.sessions is None else kept.sessions.days,
        ),
        measured_at=used.sizes.at,
        tables=[TableSize(name=name, bytes=size) for name, size in used.sizes.tables.items()],
        agents=[_to_body(each) for each in used.sizes.agents],
    )


def _to_body(use: AgentUse) -> AgentSize:
    return AgentSize(
        agent_id=use.agent_id,
        name=use.name,
        user_name=use.user_name,
        database_bytes=use.databases,
        file_bytes=use.files,
        message_bytes=use.message_bytes,
        messages=use.messages,
        runs=use.runs,
    )
