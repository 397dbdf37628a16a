"""Users, their tokens and one-time passes in the store."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from wakeful.core.identity import LOGIN_LASTS, Identity, NoSuchToken, NoSuchUser, Purpose
from wakeful.core.types import Token, User
from wakeful.store.agents import announce_agents_of
from wakeful.store.drivers.database import Row, Statements
from wakeful.store.rows import TOKENS, USERS, from_micros, to_micros

_MAX_PASS_LIFETIME = LOGIN_LASTS + timedelta(minutes=1)  # nodes' clocks differ a little

OWNER_TOKEN = "owner-"  # how the id begins of a token that a start put there


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A one-time pass."""

    user_id: str
    token_id: str  # the token it was made with


class AccountRows:
    """Statements about users, tokens and passes, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def users(self) -> list[User]:
        return USERS.read_all(await self._statements.fetch("users", {}))

    async def user(self, user_id: str) -> User:
        """Return a user who is still there."""
        rows = await self._statements.fetch("user_by_id", {"id": user_id})
        if not rows or rows[0]["deleted_at"] is not None:
            raise NoSuchUser(user_id)
        return USERS.read(rows[0])

    async def add_user(self, user: User) -> None:
        await self._statements.fetch("add_user", USERS.write(user))

    async def save_user(self, user: User) -> None:
        if not await self._statements.fetch("save_user", USERS.write(user)):
            raise NoSuchUser(user.id)
        await announce_agents_of(self._statements, user.id)  # those without a zone of their own have their user's

    async def delete_user(self, user_id: str, now: datetime) -> None:
        """Close an account. What the user did stays, and tokens without their user open nothing."""
        if not await self._statements.fetch("delete_user", {"id": user_id, "now": to_micros(now)}):
            raise NoSuchUser(user_id)

    async def hold_owners(self) -> list[User]:
        """Return all owners, the first one first; until this transaction ends nobody else changes them."""
        return USERS.read_all(await self._statements.fetch("hold_owners", {}))

    async def add_first_owner(self, user: User) -> bool:
        return bool(await self._statements.fetch("add_first_owner", USERS.write(user)))

    async def add_token(self, token: Token) -> None:
        await self._statements.fetch("add_token", TOKENS.write(token))

    async def put_owner_token(self, token: Token) -> None:
        await self._statements.fetch("put_owner_token", TOKENS.write(token))

    async def drop_other_owner_tokens(self, token_id: str, owner: str, since: datetime) -> None:
        """Delete the owner's tokens of earlier starts, except those of other nodes that have run since a moment.

        If one is set again, it is a new token.
        """
        params = {"id": token_id, "owner": owner, "since": to_micros(since)}
        for row in await self._statements.fetch("other_owner_tokens", params):
            await self._statements.fetch("drop_passes_of_token", {"token_id": row["id"]})
            await self._statements.fetch("drop_token", {"id": row["id"]})

    async def token_by_digest(self, digest: str) -> Token | None:
        """Find a token, even one that is revoked or expired."""
        return TOKENS.read_first(await self._statements.fetch("token_by_digest", {"digest": digest}))

    async def tokens_of(self, user_id: str, now: datetime) -> list[Token]:
        return TOKENS.read_all(
            await self._statements.fetch("tokens_of_user", {"user_id": user_id, "now": to_micros(now)})
        )

    async def revoke_token(self, token_id: str, user_id: str, now: datetime) -> None:
        params = {"id": token_id, "user_id": user_id, "now": to_micros(now)}
        if not await self._statements.fetch("revoke_token", params):
            raise NoSuchToken(token_id)

    async def renew_login(self, token_id: str, now: datetime) -> None:
        """Let a browser's login begin now; it ends when it would have ended."""
        if not await self._statements.fetch("renew_login", {"id": token_id, "now": to_micros(now)}):
            raise NoSuchToken(token_id)

    async def identity_by_digest(self, digest: str, now: datetime) -> Identity | None:
        rows = await self._statements.fetch("identity_by_digest", {"digest": digest, "now": to_micros(now)})
        return _identity(rows[0]) if rows else None

    async def identity_of_browser(self, digest: str, page_digest: str, now: datetime) -> Identity | None:
        params = {"digest": digest, "page_digest": page_digest, "now": to_micros(now)}
        rows = await self._statements.fetch("identity_of_browser", params)
        return _identity(rows[0]) if rows else None

    async def identity_by_token(self, token_id: str, now: datetime) -> Identity | None:
        rows = await self._statements.fetch("identity_by_token", {"id": token_id, "now": to_micros(now)})
        return _identity(rows[0]) if rows else None

    async def valid_tokens(self, token_ids: Collection[str], now: datetime) -> set[str]:
        asked = [{"id": token_id, "created_at": to_micros(now)} for token_id in token_ids]
        return {row["id"] for row in await self._statements.fetch_many("valid_tokens", asked)}

    async def delete_ended(self, now: datetime, before: datetime) -> None:
        """Delete the passes that have ended, and the tokens that ended before some time."""
        await self._statements.fetch("delete_old_passes", _times(now))
        await self._statements.fetch("delete_old_tokens", {"before": to_micros(before)})

    async def end_logins(self, now: datetime) -> int:
        """Log every browser out, and delete all login links and tickets; return the number of browsers."""
        await self._statements.fetch("drop_passes", {})
        return len(await self._statements.fetch("revoke_browsers", {"now": to_micros(now)}))

    async def add_pass(self, digest: str, purpose: Purpose, made: Pass, expires_at: datetime, now: datetime) -> None:
        await self._statements.fetch("delete_old_passes", _times(now))
        params = {"digest": digest, "purpose": purpose, "expires_at": to_micros(expires_at)}
        await self._statements.fetch("add_pass", params | {"user_id": made.user_id, "token_id": made.token_id})

    async def count_tickets(self, token_id: str, now: datetime) -> int:
        """Return how many tickets of a token are valid and not used yet."""
        [row] = await self._statements.fetch("count_tickets", {"token_id": token_id, **_times(now)})
        return row["unused"]

    async def use_pass(self, digest: str, purpose: Purpose, now: datetime) -> Pass | None:
        rows = await self._statements.fetch("use_pass", {"digest": digest, "purpose": purpose, **_times(now)})
        return Pass(user_id=rows[0]["user_id"], token_id=rows[0]["token_id"]) if rows else None


def _times(now: datetime) -> dict[str, int]:
    return {"now": to_micros(now), "latest": to_micros(now + _MAX_PASS_LIFETIME)}


def _identity(row: Row) -> Identity:
    return Identity(
        user=USERS.read(row),
        scope=row["scope"],
        token_id=row["token_id"],
        kind=row["kind"],
        token_name=row["token_name"],
        logged_in_at=from_micros(row["token_created_at"]) if row["kind"] == "browser" else None,
    )
