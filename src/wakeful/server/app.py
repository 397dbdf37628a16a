"""The HTTP application: every door, none of them with a rule of its own."""

from collections.abc import Callable, Sequence

from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse

from wakeful.server import auth, errors, frames, login
from wakeful.server.heartbeats import Heartbeats
from wakeful.server.open_sockets import OpenSockets
from wakeful.server.page import page_router
from wakeful.server.rest import (
    about,
    accounts,
    agenda,
    agents,
    approvals,
    channels,
    data,
    data_rows,
    data_views,
    mcp_servers,
    next_runs,
    notifications,
    pauses,
    recalls,
    runs,
    schedules,
    sessions,
    storage,
    wakes,
)
from wakeful.server.services import Services
from wakeful.server.socket import socket_router
from wakeful.server.tries import Tries

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def create_app(
    version: str,
    services: Services,
    tries: Tries,
    find_problems: Callable[[], Sequence[str]],
    *,
    heartbeat_seconds: float,
    model: str = "demo",
    is_shared: bool = False,
) -> FastAPI:
    """Make the application. `find_problems` says what keeps wakes from firing; nothing is good news."""
    app = FastAPI(title="Wakeful", version=version, responses=errors.RESPONSES)
    app.state.services = services
    app.state.about = about.About(
        version=version, model=model, is_demo=model == "demo", store="postgresql" if is_shared else "sqlite"
    )
    errors.install(app)
    auth.install(app, services.accounts, tries)
    for module in (
        about,
        accounts,
        agenda,  # before wakes: its preview is no wake's id
        agents,
        approvals,
        channels,
        data,
        data_rows,
        data_views,
        frames,
        login,
        mcp_servers,
        next_runs,
        notifications,
        pauses,
        recalls,
        runs,
        schedules,
        sessions,
        storage,
        wakes,
    ):
        app.include_router(module.router)
    app.include_router(page_router())
    app.include_router(
        socket_router(
            hub=services.hub,
            stream=services.stream,
            feed=services.feed,
            sessions=services.sessions,
            runs=services.runs,
            open_sockets=OpenSockets(services.accounts),
            heartbeats=Heartbeats(heartbeat_seconds),
        )
    )

    @app.get("/healthz", tags=["health"])
    async def healthz() -> dict[str, str | bool]:  # pyright: ignore[reportUnusedFunction]
        """Say that the process answers."""
        return {"ok": True, "version": version}

    @app.get("/readyz", tags=["health"], responses={503: {"description": "Wakes are not being fired."}})
    async def readyz(_caller: auth.Reader) -> JSONResponse:  # pyright: ignore[reportUnusedFunction]
        """Say whether wakes are being fired, and if not, why."""
        problems = list(find_problems())
        return JSONResponse({"ok": not problems, "problems": problems}, status_code=503 if problems else 200)

    @app.get("/metrics", tags=["health"], response_class=Response, responses={200: {"content": {METRICS_TYPE: {}}}})
    async def metrics(caller: auth.Reader) -> Response:  # pyright: ignore[reportUnusedFunction]
        """Return figures for Prometheus: runs ended, how late wakes were, what waits. Owners only, with any scope."""
        text = await services.metrics.text(caller, is_ready=not find_problems())
        return Response(text, media_type=METRICS_TYPE)

    return app
