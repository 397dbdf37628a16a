"""Users, tokens and one-time passes: authentication, and managing accounts.

Secrets are 256 random bits with a readable prefix. Only digests are stored and compared, so the time of a lookup
reveals nothing about a secret.
"""

import logging
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any

from wakeful.core import ids
from wakeful.core.clock import Clock
from wakeful.core.identity import (
    BROWSER_LASTS,
    LOGIN_LASTS,
    MAX_TICKETS,
    TICKET_LASTS,
    Identity,
    NotABrowser,
    Purpose,
    TokenKind,
    TooManyTickets,
    WrongProof,
    change_user,
    check_fresh,
    check_grant,
    check_leaves_an_owner,
    check_manages,
    check_owner,
    check_scope,
    login_problem,
    read_expiry,
)
from wakeful.core.types import Role, Scope, Token, User
from wakeful.runs.stopping import Departures
from wakeful.store.people import Pass
from wakeful.store.store import Store, Tx
from wakeful.store.wakes import Gone

log = logging.getLogger(__name__)

PREFIX = "wkf_"
REMEMBER_SECONDS = 1.0  # a token revoked on another node may work for this long
MAX_REMEMBERED = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token and its secret, which is not stored."""

    token: Token
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLogin:
    """The two secrets that a browser needs: one in a cookie, the other in the page's storage."""

    token: Token
    cookie: str
    page_secret: str


def make_secret() -> str:
    return PREFIX + token_urlsafe(32)


def digest_of(secret: str) -> str:
    # No salt and no key stretching: our own secrets cannot be guessed, and a short token in the settings is refused or
    # logged at the start.
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


class Accounts:
    """Authenticates users, and manages users, tokens and logins."""

    def __init__(self, store: Store, clock: Clock, departures: Departures) -> None:
        self._store = store
        self._clock = clock
        self._departures = departures
        self._remembered: dict[str, tuple[float, Identity]] = {}

    # ── Authentication ──────────────────────────────────────────────────────────────────────────────────────────────

    async def identify(self, secret: str) -> Identity | None:
        """Return the identity of a token. A revocation on another node counts within a second, on this one at once."""
        digest = digest_of(secret)
        return await self._remember(digest, lambda tx: tx.accounts.identity_by_digest(digest, self._clock.now()))

    async def identify_browser(self, cookie: str, page_secret: str) -> Identity:
        """Return the identity of a browser; raise the reason if its secrets are not valid."""
        digest, page_digest = digest_of(cookie), digest_of(page_secret)
        identity = await self._remember(
            digest + page_digest, lambda tx: tx.accounts.identity_of_browser(digest, page_digest, self._clock.now())
        )
        if identity is None:
            token = await self._store.read(lambda tx: tx.accounts.token_by_digest(digest))
            raise login_problem(token, self._clock.now())
        return identity

    async def _remember(self, key: str, find: Callable[[Tx], Coroutine[Any, Any, Identity | None]]) -> Identity | None:
        asked = self._clock.monotonic()
        until, identity = self._remembered.get(key, (asked, None))
        if identity is not None and asked < until:
            return identity
        identity = await self._store.read(find)
        if identity is not None:
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            # Counted from before the read: the token may have been revoked while we read.
            self._remembered[key] = (asked + REMEMBER_SECONDS, identity)
        return identity

    async def still_valid(self, token_ids: Collection[str]) -> set[str]:
        """Return which of these tokens are still valid; for connections that outlast their request."""
        now = self._clock.now()
        return await self._store.read(lambda tx: tx.accounts.valid_tokens(token_ids, now))

    # ── Users ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def users(self, caller: Identity) -> list[User]:
        check_owner(caller)
        return await self._store.read(lambda tx: tx.accounts.users())

    async def user(self, caller: Identity, user_id: str) -> User:
        if caller.user.id != user_id:
            check_owner(caller)
        return await self._store.read(lambda tx: tx.accounts.user(user_id))

    async def add_user(self, caller: Identity, *, name: str, role: Role = "user") -> User:
        check_owner(caller)
        now = self._clock.now()
        user = User(id=ids.new_id(now), name=name, role=role, created_at=now)
        await self._store.write(lambda tx: tx.accounts.add_user(user))
        return user

    async def change_user(
        self,
        caller: Identity,
        user_id: str,
        *,
        name: str | None = None,
        role: Role | None = None,
        timezone: str | None = None,
    ) -> User:
        """Change a user's name, zone or role. Users may change themselves; only owners change roles."""
        now = self._clock.now()
        check_manages(caller, user_id)
        if role is not None:
            check_owner(caller)

        async def work(tx: Tx) -> User:
            owners = await tx.accounts.hold_owners()
            user = change_user(
                await tx.accounts.user(user_id),
                name=name,
                role=role,
                timezone=timezone,
                owners=[owner.id for owner in owners],
            )
            await tx.accounts.save_user(user)
            if timezone is not None:  # quiet hours and days of agents without their own zone have changed
                await tx.wakes.release_held(user_id, None, now)
            return user

        changed = await self._store.write(work)
        self._remembered.clear()
        return changed

    async def delete_user(self, caller: Identity, user_id: str) -> int:
        """Delete a user, revoke their tokens, cancel their wakes and stop their runs. Refused for the last owner.

        Return how many wakes are left, which do not fire: the engine cancels them.
        """
        check_owner(caller)
        now = self._clock.now()

        async def work(tx: Tx) -> int:
            owners = await tx.accounts.hold_owners()
            check_leaves_an_owner(await tx.accounts.user(user_id), [owner.id for owner in owners])
            await tx.accounts.delete_user(user_id, now)
            return await self._departures.begin(tx, Gone(user_id=user_id), now)

        left = await self._store.write(work)
        self._remembered.clear()
        if left:
            self._departures.left.set()
        return left

    # ── Tokens ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def tokens(self, caller: Identity) -> list[Token]:
        check_scope(caller, "admin")
        now = self._clock.now()
        return await self._store.read(lambda tx: tx.accounts.tokens_of(caller.user.id, now))

    async def make_token(
        self,
        caller: Identity,
        *,
        name: str,
        scope: Scope,
        expires_at: datetime | None = None,
        lasts: timedelta | None = None,
        user_id: str | None = None,
    ) -> NewToken:
        """Create a token for the caller or, if an owner asks, for another user; never with a larger scope."""
        user_id = user_id or caller.user.id
        check_manages(caller, user_id)
        check_grant(caller, scope)
        now = self._clock.now()
        check_fresh(caller, now)
        made = _new_token(user_id, name, "api", scope, now, read_expiry(expires_at, now, lasts))

        async def work(tx: Tx) -> None:
            await tx.accounts.user(user_id)
            await tx.accounts.add_token(made.token)

        await self._store.write(work)
        return made

    async def revoke_token(self, caller: Identity, token_id: str) -> None:
        """Revoke one of the caller's tokens. A token may always revoke itself."""
        if token_id != caller.token_id:
            check_scope(caller, "admin")
        now = self._clock.now()
        await self._store.write(lambda tx: tx.accounts.revoke_token(token_id, caller.user.id, now))
        self._remembered.clear()

    # ── Passes ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def make_login_code(self, caller: Identity, user_id: str | None = None) -> str:
        """Create the code of a login link for the caller or, if an owner asks, for another user."""
        user_id = user_id or caller.user.id
        check_manages(caller, user_id)
        check_fresh(caller, self._clock.now())
        return await self._make_pass(caller, "login", user_id, LOGIN_LASTS)

    async def log_in(self, code: str, browser: str, *, instead_of: str | None = None) -> NewLogin | None:
        """Exchange a login code for the two secrets of a browser, with the scope of the token that created the code.

        `instead_of` is the cookie of an earlier login, which is revoked if it was the same user's.
        """
        now = self._clock.now()

        async def work(tx: Tx) -> NewLogin | None:
            taken = await tx.accounts.use_pass(digest_of(code), "login", now)
            maker = taken and await tx.accounts.identity_by_token(taken.token_id, now)
            if taken is None or maker is None:
                return None
            made = _new_token(taken.user_id, browser, "browser", maker.scope, now, now + BROWSER_LASTS)
            page_secret = make_secret()
            token = replace(made.token, page_digest=digest_of(page_secret))
            await tx.accounts.add_token(token)
            earlier = instead_of and await tx.accounts.token_by_digest(digest_of(instead_of))
            if earlier and earlier.kind == "browser" and earlier.user_id == token.user_id and not earlier.revoked_at:
                await tx.accounts.revoke_token(earlier.id, earlier.user_id, now)
            return NewLogin(token=token, cookie=made.secret, page_secret=page_secret)

        made = await self._store.write(work)
        self._remembered.clear()
        return made

    async def log_in_with_token(self, token: str, browser: str, *, instead_of: str | None = None) -> NewLogin | None:
        """Exchange a token that may create login links for the two secrets of a browser; None if it is not known."""
        caller = await self.identify(token)
        if caller is None:
            return None
        return await self.log_in(await self.make_login_code(caller), browser, instead_of=instead_of)

    async def renew_login(self, caller: Identity, proof: str) -> None:
        """Let a browser's login count as new, given a login code or a token with the scope admin of the same user."""
        if caller.kind != "browser":
            raise NotABrowser
        now = self._clock.now()
        token = await self.identify(proof)
        code = proof if token is None else await self.make_login_code(token)

        async def work(tx: Tx) -> None:
            taken = await tx.accounts.use_pass(digest_of(code), "login", now)
            if taken is None or taken.user_id != caller.user.id:
                raise WrongProof  # this rolls back, so a link of another person still works for them
            if await tx.accounts.identity_by_token(taken.token_id, now) is None:
                raise WrongProof
            await tx.accounts.renew_login(caller.token_id, now)

        await self._store.write(work)
        self._remembered.clear()
        log.info("login renewed", extra={"user_id": caller.user.id, "token_id": caller.token_id})

    async def log_out(self, caller: Identity) -> None:
        """Revoke the token of a browser; an API token stays valid."""
        if caller.kind == "browser":
            await self.revoke_token(caller, caller.token_id)

    async def make_ticket(self, caller: Identity, target: str | None = None) -> str:
        """Create a short-lived ticket that opens one socket as the caller or, with a target, downloads that URL."""
        return await self._make_pass(caller, _purpose(target), caller.user.id, TICKET_LASTS, target)

    async def use_ticket(self, ticket: str, target: str | None = None) -> Identity | None:
        """Use a ticket up, and return the identity that created it."""
        now = self._clock.now()

        async def work(tx: Tx) -> Identity | None:
            taken = await tx.accounts.use_pass(_digest(ticket, target), _purpose(target), now)
            return None if taken is None else await tx.accounts.identity_by_token(taken.token_id, now)

        return await self._store.write(work)

    async def _make_pass(
        self, caller: Identity, purpose: Purpose, user_id: str, lasts: timedelta, target: str | None = None
    ) -> str:
        now, secret = self._clock.now(), make_secret()
        made = Pass(user_id=user_id, token_id=caller.token_id)

        async def work(tx: Tx) -> None:
            await tx.accounts.user(user_id)
            if purpose != "login" and await tx.accounts.count_tickets(caller.token_id, now) >= MAX_TICKETS:
                raise TooManyTickets
            await tx.accounts.add_pass(_digest(secret, target), purpose, made, now + lasts, now)

        await self._store.write(work)
        return secret


def _purpose(target: str | None) -> Purpose:
    return "ticket" if target is None else "download"


def _digest(secret: str, target: str | None) -> str:
    return digest_of(secret if target is None else f"{secret} {target}")


def _new_token(
    user_id: str, name: str, kind: TokenKind, scope: Scope, now: datetime, expires_at: datetime | None
) -> NewToken:
    secret = make_secret()
    token = Token(
        id=ids.new_id(now),
        user_id=user_id,
        name=name,
        kind=kind,
        scope=scope,
        digest=digest_of(secret),
        created_at=now,
        expires_at=expires_at,
    )
    return NewToken(token=token, secret=secret)
