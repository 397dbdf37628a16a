"""Routes for liveness, readiness and metrics."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from wakeful.server.auth import Reader, is_authenticated
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

router = APIRouter(route_class=DoorRoute, tags=["health"])


@router.get("/healthz")
async def healthz(request: Request) -> dict[str, str | bool]:
    """Check that the process responds."""
    return {"ok": True, "version": request.app.version}


@router.get("/readyz", responses={503: {"description": "Wakes are not being fired."}})
async def readyz(request: Request, services: ServicesDep) -> JSONResponse:
    """Check that wakes are fired. A caller with a token is also told why they are not.

    `held` lists runs that wait for another node. A node that drains is ready: it fires wakes, and others execute their
    runs; then `draining` is true.
    """
    problems, held = list(request.app.state.find_problems()), list(request.app.state.find_held())
    if not is_authenticated(request):
        return JSONResponse({"ok": not problems}, status_code=503 if problems else 200)
    # Held runs do not make a node unready: this node works, and restarting it would not help.
    body = {"ok": not problems, "problems": problems} | ({"held": held} if held else {})
    body |= {"draining": True} if services.nodes.is_draining else {}
    return JSONResponse(body, status_code=503 if problems else 200)


@router.get("/metrics", response_class=Response, responses={200: {"content": {METRICS_TYPE: {}}}})
async def metrics(caller: Reader, request: Request, services: ServicesDep) -> Response:
    """Return metrics for Prometheus: ended runs, lateness of wakes, queue lengths. Owners only, with any scope."""
    is_ready, is_draining = not request.app.state.find_problems(), services.nodes.is_draining
    text = await services.metrics.text(caller, is_ready=is_ready, is_draining=is_draining)
    return Response(text, media_type=METRICS_TYPE)
