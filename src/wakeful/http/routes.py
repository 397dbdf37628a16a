"""The class of all routes: the scope is checked before the body is read, and long JSON is parsed in a thread.

FastAPI reads and parses a body before it calls any dependency, so both must be done here.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from wakeful.core.identity import check_scope
from wakeful.core.types import Scope
from wakeful.http.auth import identity_of
from wakeful.http.limits import MAX_BODY, MAX_JSON, UnfitJson, check_length, limited, parse, trim_soon

_PARSE_IN_THREAD = 64 * 1024

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class DoorRoute(APIRoute):
    """A route that refuses a small scope or a long body before it reads any of the body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        scopes = needed_scopes(self)
        most: int = getattr(self.endpoint, "largest_body", MAX_JSON)

        async def handle_within_limits(request: Request) -> Response:
            for scope in scopes:
                check_scope(identity_of(request), scope)
            check_length(request.scope, most)
            try:
                return await handle(_BoundedRequest(request.scope, limited(request.receive, most)))
            finally:
                if most > MAX_JSON and _may_be_large(request):
                    trim_soon()

        return handle_within_limits


class _BoundedRequest(Request):
    """A request whose JSON is bounded in shape, and parsed in a thread if it is long."""

    async def json(self) -> Any:
        body = await self.body()
        try:
            return parse(body) if len(body) <= _PARSE_IN_THREAD else await asyncio.to_thread(parse, body)
        except UnfitJson as error:
            raise HTTPException(400, str(error)) from None


def needed_scopes(route: APIRoute) -> list[Scope]:
    """Return the scopes that a route requires."""
    return [each.call.scope for each in route.dependant.dependencies if hasattr(each.call, "scope")]  # pyright: ignore[reportFunctionMemberAccess, reportOptionalMemberAccess]


def _may_be_large(request: Request) -> bool:
    length = request.headers.get("content-length")
    return length is None or int(length) > MAX_JSON


def takes_bodies_of(most: int) -> Callable[[Endpoint], Endpoint]:
    """Allow bodies of up to `most` bytes in a route."""

    def allow(endpoint: Endpoint) -> Endpoint:
        endpoint.largest_body = most  # pyright: ignore[reportFunctionMemberAccess]
        return endpoint

    return allow


takes_large_bodies = takes_bodies_of(MAX_BODY)
