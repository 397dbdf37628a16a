"""The caller of a route, and the scope that the route requires.

The gate has authenticated the caller; a route declares the scope that it needs.

    @router.get("/sessions")
    async def sessions(caller: Reader) -> …
"""

from collections.abc import Awaitable, Callable
from typing import Annotated
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from fastapi import Depends, FastAPI, Request
from fastapi.security import APIKeyCookie, APIKeyHeader, HTTPBearer
from starlette.datastructures import QueryParams
from starlette.requests import HTTPConnection
from starlette.types import Scope as types_Scope

from wakeful.core.identity import Identity, NotSignedIn, check_scope
from wakeful.core.types import Scope
from wakeful.http.tries import Tries
from wakeful.people.service import Accounts


# One-time tickets in URLs, for requests of browsers that cannot have headers: sockets, downloads and images.
def take_ticket(scope: types_Scope) -> str | None:
    """Remove the ticket from a URL, so that neither routes nor logs see it, and return it."""
    if scope["type"] != "websocket" and scope["method"] != "GET":
        return None
    query = QueryParams(scope["query_string"])
    if "ticket" not in query:
        return None
    left = [(key, value) for key, value in query.multi_items() if key != "ticket"]
    scope["query_string"] = str(QueryParams(left)).encode("ascii")
    return query["ticket"]


def target_of(scope: types_Scope) -> str:
    """Return the path and query of a request, in the form that a download ticket is bound to."""
    return _canonical(scope["path"], scope["query_string"].decode("latin-1"))


def target_in(address: str) -> str:
    """Return the same for a path with a query as a client writes it."""
    parts = urlsplit(address)
    return _canonical(unquote(parts.path), parts.query)


def with_ticket(address: str, ticket: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}ticket={ticket}"


def _canonical(path: str, query: str) -> str:
    # Clients differ in which characters they escape.
    return f"{path}?{urlencode(parse_qsl(query, keep_blank_values=True))}"


COOKIE = "wakeful"
SECURE_COOKIE = "__Host-wakeful"  # with HTTPS: only this host can set it
PAGE_HEADER = "X-Wakeful-Page"


# Only for the OpenAPI description: the gate has checked them before a route is found.
_bearer = HTTPBearer(auto_error=False, description="A token, created with `POST /tokens` or set with `WAKEFUL_TOKEN`.")
_cookie = APIKeyCookie(
    name=COOKIE,
    auto_error=False,
    description=f"The cookie of a logged-in browser; with {PAGE_HEADER}.",
)
_page = APIKeyHeader(name=PAGE_HEADER, auto_error=False, description="The secret from `POST /login`; with the cookie.")


def install(app: FastAPI, accounts: Accounts, tries: Tries) -> None:
    """Store what the dependencies below return."""
    app.state.accounts = accounts
    app.state.tries = tries


def identity_of(connection: HTTPConnection) -> Identity:
    """Return the caller of a request or a socket, as the gate authenticated it."""
    if not is_authenticated(connection):
        raise NotSignedIn
    return connection.state.identity


def is_authenticated(connection: HTTPConnection) -> bool:
    """Return whether a request to a route that is open to all has a valid token."""
    return isinstance(getattr(connection.state, "identity", None), Identity)


async def identity(
    request: Request,
    _shown: Annotated[object, Depends(_bearer)],
    _kept: Annotated[object, Depends(_cookie)],
    _held: Annotated[object, Depends(_page)],
) -> Identity:
    """Return the caller, whatever their scope."""
    return identity_of(request)


def require(scope: Scope) -> Callable[[Identity], Awaitable[Identity]]:
    """Return a dependency that refuses callers whose scope is too small."""

    async def caller_with_scope(caller: Annotated[Identity, Depends(identity)]) -> Identity:
        check_scope(caller, scope)
        return caller

    caller_with_scope.scope = scope  # pyright: ignore[reportFunctionMemberAccess]  (for the reference and DoorRoute)
    return caller_with_scope


async def _accounts(request: Request) -> Accounts:
    return request.app.state.accounts


async def _tries(request: Request) -> Tries:
    return request.app.state.tries


Reader = Annotated[Identity, Depends(require("read"))]
Chatter = Annotated[Identity, Depends(require("chat"))]
Planner = Annotated[Identity, Depends(require("schedule"))]
Admin = Annotated[Identity, Depends(require("admin"))]

AccountsDep = Annotated[Accounts, Depends(_accounts)]
TriesDep = Annotated[Tries, Depends(_tries)]
