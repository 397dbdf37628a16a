"""Routes for users, tokens, login links and tickets."""

from datetime import timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import AwareDatetime, Field

from wakeful.core.identity import LOGIN_LASTS, TICKET_LASTS
from wakeful.core.types import Role, Scope, User
from wakeful.http.auth import AccountsDep, Admin, Reader, target_in, with_ticket
from wakeful.http.routes import DoorRoute
from wakeful.http.shapes import Deleted, Done, Id, Label, PathId, RequestBody, Shape, TimeField, Zone, shape_of

router = APIRouter(route_class=DoorRoute, tags=["accounts"])


MAX_LIFE_SECONDS = 100 * 366 * 86_400


class UserShape(shape_of(User, without=("deleted_at",))):
    """A user."""

    timezone: str | None = Field(description="Their IANA time zone. Null: not known yet.")


class Users(Shape):
    users: list[UserShape]


class NewUser(RequestBody):
    name: Label
    role: Role = "user"


class UserChange(RequestBody):
    """Fields that are left out stay unchanged."""

    name: Label | None = None
    role: Role | None = None
    timezone: Zone | None = None


class Me(Shape):
    """The caller, and the scope of their token."""

    user: UserShape
    scope: Scope
    token_id: str


class TokenShape(Shape):
    """A token, without its secret."""

    id: str
    user_id: str
    name: str
    kind: Literal["api", "browser"]
    scope: Scope
    created_at: AwareDatetime
    expires_at: AwareDatetime | None


class Tokens(Shape):
    tokens: list[TokenShape]


class NewTokenShape(RequestBody):
    name: Label
    scope: Scope
    expires_at: TimeField | None = None
    expires_in: Annotated[int, Field(ge=1, le=MAX_LIFE_SECONDS)] | None = None  # seconds; instead of expires_at
    user_id: Id | None = None  # another user; owners only


class MadeToken(Shape):
    """A new token. Its secret is shown only here."""

    token: TokenShape
    secret: str


class NewLoginLink(RequestBody):
    user_id: Id | None = None  # another user; owners only


class LoginLink(Shape):
    """A link that logs a browser in, once; `path` follows the server's address. `url` is null without `public_url`."""

    path: str
    url: str | None
    expires_in: int  # seconds


class Ticket(Shape):
    """A ticket that opens one socket, as `?ticket=`."""

    ticket: str
    expires_in: int  # seconds


class NewDownloadTicket(RequestBody):
    # Of this server, with its query: browsers take what follows // or /\ for another host.
    path: Annotated[str, Field(max_length=8000, pattern=r'^/([!"$-.0-\[\]-~][!"$-~]*)?$')]


class DownloadTicket(Shape):
    """The requested path with a ticket in it, for one GET."""

    path: str
    expires_in: int  # seconds


@router.get("/me")
async def me(caller: Reader) -> Me:
    """Show the caller."""
    return Me.model_validate(caller)


@router.get("/users")
async def list_users(caller: Admin, accounts: AccountsDep) -> Users:
    """List all users. Owners only."""
    return Users(users=[UserShape.model_validate(user) for user in await accounts.users(caller)])


@router.post("/users", status_code=201)
async def add_user(caller: Admin, accounts: AccountsDep, asked: NewUser) -> UserShape:
    """Add a user. Owners only."""
    return UserShape.model_validate(await accounts.add_user(caller, name=asked.name, role=asked.role))


@router.get("/users/{user_id}")
async def get_user(caller: Reader, accounts: AccountsDep, user_id: PathId) -> UserShape:
    """Show a user: the caller, or for owners anyone."""
    return UserShape.model_validate(await accounts.user(caller, user_id))


@router.patch("/users/{user_id}")
async def change_user(caller: Admin, accounts: AccountsDep, user_id: PathId, asked: UserChange) -> UserShape:
    """Change a user's name, time zone or role. Roles and other users: owners only."""
    changed = await accounts.change_user(caller, user_id, name=asked.name, role=asked.role, timezone=asked.timezone)
    return UserShape.model_validate(changed)


@router.delete("/users/{user_id}")
async def delete_user(caller: Admin, accounts: AccountsDep, user_id: PathId) -> Deleted:
    """Delete a user, but not the last owner. Owners only."""
    return Deleted(wakes_left=await accounts.delete_user(caller, user_id))


@router.get("/tokens")
async def list_tokens(caller: Admin, accounts: AccountsDep) -> Tokens:
    """List the caller's tokens."""
    return Tokens(tokens=[TokenShape.model_validate(token) for token in await accounts.tokens(caller)])


@router.post("/tokens", status_code=201)
async def make_token(caller: Admin, accounts: AccountsDep, asked: NewTokenShape) -> MadeToken:
    """Create a token; only this response shows its secret.

    A browser can do this within ten minutes after its login.
    """
    made = await accounts.make_token(
        caller,
        name=asked.name,
        scope=asked.scope,
        expires_at=asked.expires_at,
        lasts=None if asked.expires_in is None else timedelta(seconds=asked.expires_in),
        user_id=asked.user_id,
    )
    return MadeToken.model_validate(made)


@router.delete("/tokens/{token_id}")
async def revoke_token(caller: Reader, accounts: AccountsDep, token_id: PathId) -> Done:
    """Revoke one of the caller's tokens. A token can always revoke itself; for others it needs the scope admin."""
    await accounts.revoke_token(caller, token_id)
    return Done()


@router.post("/login-links", status_code=201)
async def make_login_link(request: Request, caller: Admin, accounts: AccountsDep, asked: NewLoginLink) -> LoginLink:
    """Create a link that logs a browser in, once, within ten minutes.

    A browser can do this within ten minutes after its own login.
    """
    code = await accounts.make_login_code(caller, asked.user_id)
    path, public = f"/login?code={code}", request.app.state.public_address
    return LoginLink(path=path, url=public and public + path, expires_in=int(LOGIN_LASTS.total_seconds()))


@router.post("/ws-ticket")
async def make_ticket(caller: Reader, accounts: AccountsDep) -> Ticket:
    """Create a ticket that opens one socket, for clients that cannot send headers with it, such as browsers."""
    return Ticket(ticket=await accounts.make_ticket(caller), expires_in=int(TICKET_LASTS.total_seconds()))


@router.post("/download-tickets")
async def make_download_ticket(caller: Reader, accounts: AccountsDep, asked: NewDownloadTicket) -> DownloadTicket:
    """Create a ticket for one GET of one path, for clients that cannot send headers with it: a link, a new tab."""
    ticket = await accounts.make_ticket(caller, target_in(asked.path))
    return DownloadTicket(path=with_ticket(asked.path, ticket), expires_in=int(TICKET_LASTS.total_seconds()))
