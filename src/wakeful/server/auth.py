"""The caller of a route, and the scope that the route requires.

The gate has found out who it is; a route says how large a scope it takes.

    @router.get("/sessions")
    async def sessions(caller: Reader) -> …
"""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from fastapi.security import APIKeyCookie, APIKeyHeader, HTTPBearer
from starlette.requests import HTTPConnection

from wakeful.domain.people.accounts import Identity, NotSignedIn, check_scope
from wakeful.domain.types import Scope
from wakeful.server.gate import COOKIE, PAGE_HEADER
from wakeful.server.login_attempts import Tries
from wakeful.service.people.accounts import Accounts

# For the API's description alone: the gate has looked at them before any route is found.
_bearer = HTTPBearer(auto_error=False, description="A token, made at `POST /tokens` or by `WAKEFUL_TOKEN`.")
_cookie = APIKeyCookie(
    name=COOKIE,
    auto_error=False,
    description=f"What a browser keeps after its login; with {PAGE_HEADER}.",
)
_page = APIKeyHeader(name=PAGE_HEADER, auto_error=False, description="The secret from `POST /login`; with the cookie.")


def install(app: FastAPI, accounts: Accounts, tries: Tries) -> None:
    """Hand the routes what they ask for here."""
    app.state.accounts = accounts
    app.state.tries = tries


def identity_of(connection: HTTPConnection) -> Identity:
    """Return who stands behind a request or a socket that came through the gate."""
    identity = getattr(connection.state, "identity", None)
    if not isinstance(identity, Identity):
        raise NotSignedIn
    return identity


async def identity(
    request: Request,
    _shown: Annotated[object, Depends(_bearer)],
    _kept: Annotated[object, Depends(_cookie)],
    _held: Annotated[object, Depends(_page)],
) -> Identity:
    """Ask for the caller, whatever their scope."""
    return identity_of(request)


def require(scope: Scope) -> Callable[[Identity], Awaitable[Identity]]:
    """Make a dependency that refuses callers whose scope is too small."""

    async def caller_with_scope(caller: Annotated[Identity, Depends(identity)]) -> Identity:
        check_scope(caller, scope)
        return caller

    caller_with_scope.scope = scope  # pyright: ignore[reportFunctionMemberAccess]  (the reference is written from it)
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
