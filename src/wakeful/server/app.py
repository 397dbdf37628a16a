"""The HTTP application: every door, none of them with a rule of its own."""

from collections.abc import Callable, Sequence

from fastapi import FastAPI
from fastapi.responses import JSONResponse

from wakeful.server import auth, errors, frames, login
from wakeful.server.heartbeats import Heartbeats
from wakeful.server.open_sockets import OpenSockets
from wakeful.server.rest import (
    accounts,
    agenda,
    agents,
    data,
    data_rows,
    data_views,
    next_runs,
    notifications,
    pauses,
    recalls,
    runs,
    schedules,
    sessions,
    wakes,
)
from wakeful.server.services import Services
from wakeful.server.socket import socket_router
from wakeful.server.tries import Tries


def create_app(
    version: str,
    services: Services,
    tries: Tries,
    find_problems: Callable[[], Sequence[str]],
    *,
    heartbeat_seconds: float,
) -> FastAPI:
    """Make the application. `find_problems` says what keeps wakes from firing; nothing is good news."""
    app = FastAPI(title="Wakeful", version=version, responses=errors.RESPONSES)
    app.state.services = services
    errors.install(app)
    auth.install(app, services.accounts, tries)
    for module in (
        accounts,
        agenda,  # before wakes: its preview is no wake's id
        agents,
        data,
        data_rows,
        data_views,
        frames,
        login,
        next_runs,
        notifications,
        pauses,
        recalls,
        runs,
        schedules,
        sessions,
        wakes,
    ):
        app.include_router(module.router)
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

    return app
