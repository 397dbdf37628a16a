"""The last log lines of this server, for its owners."""

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request, Response
from pydantic import AwareDatetime

from wakeful.server.auth import Admin
from wakeful.server.limits.connections import waiting
from wakeful.server.rest.shapes import Shape
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep
from wakeful.service.recent_logs import MAX_LINES, MAX_WAIT_SECONDS, LogLevel

router = APIRouter(route_class=DoorRoute, tags=["health"])


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
    services: ServicesDep,
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
        page = await services.recent_logs.read(
            caller, after=after, since=since, level=level, limit=limit, wait_seconds=wait
        )
    # Not through pydantic, which takes five times as long: other requests wait meanwhile.
    return Response(orjson.dumps(page), media_type="application/json")
