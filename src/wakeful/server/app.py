"""The HTTP application."""

from collections.abc import Callable, Sequence

from fastapi import FastAPI
from fastapi.responses import JSONResponse


def create_app(version: str, find_problems: Callable[[], Sequence[str]]) -> FastAPI:
    """Make the application. `find_problems` says what keeps wakes from firing; nothing is good news."""
    app = FastAPI(title="Wakeful", version=version)

    @app.get("/healthz", tags=["health"])
    async def healthz() -> dict[str, str | bool]:  # pyright: ignore[reportUnusedFunction]
        """Say that the process answers."""
        return {"ok": True, "version": version}

    @app.get("/readyz", tags=["health"], responses={503: {"description": "Wakes are not being fired."}})
    async def readyz() -> JSONResponse:  # pyright: ignore[reportUnusedFunction]
        """Say whether wakes are being fired, and if not, why."""
        problems = list(find_problems())
        return JSONResponse({"ok": not problems, "problems": problems}, status_code=503 if problems else 200)

    return app
