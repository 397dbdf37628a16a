"""Authorization: identities, scopes, and the rules about users and their tokens."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from wakeful.core.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound, WakefulError
from wakeful.core.labels import Via
from wakeful.core.types import FOREVER, Door, Role, Scope, Token, User
from wakeful.core.zones import load_zone

TokenKind = Literal["api", "browser"]
Purpose = Literal["login", "ticket", "download"]

SCOPES: tuple[Scope, ...] = ("read", "chat", "schedule", "admin")  # each includes the ones before it
LOGIN_LASTS = timedelta(minutes=10)
TICKET_LASTS = timedelta(seconds=30)
MAX_TICKETS = 100  # of one token that are not used yet
BROWSER_LASTS = timedelta(days=90)
FRESH_LOGIN = timedelta(minutes=10)  # how long after its login a browser may make tokens and links, and change models

NEW_LINK = (
    "Open a new login link: `wakeful login` makes one on the machine that runs the server, which also prints one each "
    "time it starts. Or log in with a token."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The caller: the user, and the scope of the token they used."""

    user: User
    scope: Scope
    token_id: str
    kind: TokenKind = "api"
    logged_in_at: datetime | None = None  # None: not a browser
    token_name: str = ""
    door: Door = "rest"  # set by the gate, for each request

    @property
    def via(self) -> Via:
        """Return how this request came in, for what it books or starts."""
        return Via(door=self.door, token_id=self.token_id, token_name=self.token_name)


class NotSignedIn(WakefulError):
    """The caller is not authenticated."""

    code = "not_signed_in"
    text = "This needs a token, and the request has none."
    hint = "Send it as 'Authorization: Bearer TOKEN', or open a login link in the browser."


class WrongToken(NotSignedIn):
    code = "wrong_token"
    text = "The token is not known here, or it has expired or been revoked."


class WrongLoginToken(WrongToken):
    """The token in the field of the login page."""

    hint = (
        "The owner's token is the value of WAKEFUL_TOKEN, or in the file `token` in the config directory. "
        "`wakeful login` makes a login link instead."
    )


class LoginEnded(NotSignedIn):
    """A browser's cookie is unknown."""

    code = "login_ended"
    text = "This browser's login has expired or was revoked, or it belongs to another server."
    hint = NEW_LINK


class LoginOutdated(NotSignedIn):
    """A browser logged in before the page had a secret beside the cookie."""

    code = "login_outdated"
    text = "Wakeful was upgraded, and a cookie alone no longer logs a browser in. Log in once more."
    hint = NEW_LINK


class PageSecretMissing(NotSignedIn):
    """A browser sent its cookie without the secret that belongs to it."""

    code = "page_secret_missing"
    text = (
        "The login cookie was sent without the secret that the page keeps in the browser's storage, or with a "
        "wrong one. The browser may have cleared that storage."
    )
    hint = NEW_LINK


class LoginTooOld(Forbidden):
    code = "login_too_old"
    text = (
        f"This browser logged in more than {FRESH_LOGIN // timedelta(minutes=1)} minutes ago, and only a newer "
        "login may make tokens and login links, and change models."
    )
    hint = f"{NEW_LINK} Or call this route with a bearer token instead."


class WrongProof(Forbidden):
    """A renewal of a browser's login is refused; not as NotSignedIn, because the login itself is still valid."""

    code = "wrong_proof"
    text = "The login link or token is not known here, was used before, is too old, or is of another person."
    hint = "`wakeful login` prints a new link on the machine that runs the server."


class NotABrowser(Invalid):
    code = "not_a_browser"
    text = "Only the login of a browser is renewed. A bearer token needs no renewal."


class WrongPass(NotSignedIn):
    code = "wrong_pass"

    def __init__(self, purpose: Purpose) -> None:
        name, hint = {
            "login": ("login link", NEW_LINK),
            "ticket": ("ticket", "Make a new one with POST /ws-ticket. It opens one socket, within 30 seconds."),
            "download": ("ticket", "Make a new one with POST /download-tickets, for this very path, and use it once."),
        }[purpose]
        super().__init__(f"The {name} is not known, was used before, or is too old.", hint=hint)


class TooManyTries(LimitReached):
    code = "too_many_tries"

    def __init__(self, wait: timedelta, of: str = "wrong token") -> None:
        seconds = max(1, -(-wait // timedelta(seconds=1)))
        super().__init__(f"Too many {of}s came from this address. Try again in {seconds} s.", seconds=seconds)


class TooManySockets(LimitReached):
    code = "too_many_sockets"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"This token has {most} sockets open, and that is the limit. Close one, or use another token.",
            hint="The setting sockets_per_token changes the limit.",
        )


class TooManyTickets(LimitReached):
    code = "too_many_tickets"

    def __init__(self) -> None:
        seconds = int(TICKET_LASTS.total_seconds())
        super().__init__(
            f"This token has {MAX_TICKETS} tickets that are not used yet, and that is the limit. Use one, or try again "
            f"in {seconds} s, when they have expired.",
            seconds=seconds,
        )


class TooManyConnections(LimitReached):
    code = "too_many_connections"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"This token has {most} requests in progress, and that is the limit. Try again when one has ended.",
            hint="The setting connections_per_token changes the limit.",
            seconds=1,
        )


class TooManyWaits(LimitReached):
    code = "too_many_waits"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"This token waits for {most} answers already, and that is the limit. Try again when one has come, or ask "
            "without waiting.",
            hint="The setting waits_per_token changes the limit.",
            seconds=1,
        )


class ScopeTooSmall(Forbidden):
    code = "scope_too_small"

    def __init__(self, held: Scope, needed: Scope) -> None:
        super().__init__(
            f"This needs a token with the scope {needed!r}; yours has {held!r}. Use another one, or make one with POST "
            "/tokens."
        )


class ScopeTooLarge(Forbidden):
    code = "scope_too_large"

    def __init__(self, held: Scope, asked: Scope) -> None:
        super().__init__(
            f"A token with the scope {held!r} cannot make one with {asked!r}. Ask for {held!r} or less.", field="scope"
        )


class OwnersOnly(Forbidden):
    code = "owners_only"
    text = "Only an owner of this server may do this. Ask one of them."


class LastOwner(Conflict):
    code = "last_owner"

    def __init__(self, user_id: str) -> None:
        super().__init__(
            f"User {user_id!r} is the last owner, and without one nobody could manage this server. "
            "Make someone else an owner first."
        )


class NoSuchUser(NotFound):
    code = "no_such_user"

    def __init__(self, user_id: str) -> None:
        super().__init__(f"There is no user {user_id!r}. GET /users lists those you may see.")


class NoSuchToken(NotFound):
    code = "no_such_token"

    def __init__(self, token_id: str) -> None:
        super().__init__(f"There is no token {token_id!r} of yours. GET /tokens lists them, with their ids.")


class ExpiresInThePast(Invalid):
    code = "expires_in_the_past"

    def __init__(self, expires_at: datetime) -> None:
        super().__init__(
            f"expires_at {expires_at.isoformat()!r} has already passed. Give a later time, or none.", field="expires_at"
        )


class TwoExpiries(Invalid):
    code = "two_expiries"

    def __init__(self, expires_at: datetime, lasts: timedelta) -> None:
        super().__init__(
            f"Both 'expires_at' ({expires_at.isoformat()}) and 'expires_in' ({lasts.total_seconds():.0f}) are given. "
            "Give one of them.",
            field="expires_in",
        )


class ExpiresTooLate(Invalid):
    code = "expires_too_late"

    def __init__(self, expires_at: datetime) -> None:
        super().__init__(
            f"expires_at {expires_at.isoformat()!r} is too far away. Leave it out for a token that does not expire.",
            field="expires_at",
        )


class TokenTaken(Conflict):
    """The owner's token in the settings cannot be used."""

    code = "token_taken"

    def __init__(self, why: str) -> None:
        super().__init__(f"The token in the settings {why}. Set WAKEFUL_TOKEN to another one.")


def includes(held: Scope, needed: Scope) -> bool:
    """Return whether one scope includes another."""
    return SCOPES.index(held) >= SCOPES.index(needed)


def check_scope(caller: Identity, needed: Scope) -> None:
    if not includes(caller.scope, needed):
        raise ScopeTooSmall(caller.scope, needed)


def check_manages(caller: Identity, user_id: str) -> None:
    """Refuse a caller who may not manage this user: everyone may manage themselves, an owner everyone."""
    check_scope(caller, "admin")
    if caller.user.id != user_id:
        check_owner(caller)


def check_owner(caller: Identity) -> None:
    check_scope(caller, "admin")
    if caller.user.role != "owner":
        raise OwnersOnly


def login_problem(token: Token | None, now: datetime) -> NotSignedIn:
    """Return why a browser's cookie does not authenticate it."""
    if token is None or token.kind != "browser" or token.revoked_at is not None:
        return LoginEnded()
    if token.expires_at is not None and token.expires_at <= now:
        return LoginEnded()
    return LoginOutdated() if token.page_digest is None else PageSecretMissing()


def check_fresh(caller: Identity, now: datetime) -> None:
    """Refuse a browser whose login was long ago: a stranger who finds it open must not be able to create a token."""
    if caller.kind == "browser" and (caller.logged_in_at is None or abs(now - caller.logged_in_at) > FRESH_LOGIN):
        raise LoginTooOld


def check_grant(caller: Identity, asked: Scope) -> None:
    """Refuse to create a token with a larger scope than the caller's own."""
    if not includes(caller.scope, asked):
        raise ScopeTooLarge(caller.scope, asked)


def read_expiry(expires_at: datetime | None, now: datetime, lasts: timedelta | None = None) -> datetime | None:
    """Return when a token expires, in UTC; refuse a time that has passed or is out of range."""
    if expires_at is not None and lasts is not None:
        raise TwoExpiries(expires_at, lasts)
    if lasts is not None:
        return now + lasts
    if expires_at is None:
        return None
    if expires_at <= now:
        raise ExpiresInThePast(expires_at)
    if expires_at > FOREVER:
        raise ExpiresTooLate(expires_at)
    return expires_at.astimezone(UTC)


def change_user(
    user: User, *, name: str | None, role: Role | None, owners: Collection[str], timezone: str | None = None
) -> User:
    """Return a user with the given fields changed. `owners` are the ids of all owners."""
    if timezone is not None:
        load_zone(timezone)
    if role is not None and role != "owner":
        check_leaves_an_owner(user, owners)
    return replace(user, name=name or user.name, role=role or user.role, timezone=timezone or user.timezone)


def check_leaves_an_owner(user: User, owners: Collection[str]) -> None:
    if user.role == "owner" and not set(owners) - {user.id}:
        raise LastOwner(user.id)
