"""Browsers that get push messages, and the key that signs these, in the store."""

from dataclasses import dataclass
from datetime import datetime

from wakeful.domain.inbox.push import NoSuchBrowser
from wakeful.domain.types import PushSubscription
from wakeful.store.drivers.database import Statements
from wakeful.store.rows import PUSH_SUBSCRIPTIONS, to_micros


@dataclass(frozen=True, slots=True, kw_only=True)
class PushKey:
    """The key pair that signs push messages; the private one is encrypted."""

    public_key: str  # base64url, as browsers take it
    encrypted_key: str


class PushRows:
    """Statements about push subscriptions, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def of_user(self, user_id: str, now: datetime) -> list[PushSubscription]:
        """Return the browsers of a user whose login is valid, the oldest first."""
        params = {"user_id": user_id, "now": to_micros(now)}
        return PUSH_SUBSCRIPTIONS.read_all(await self._statements.fetch("push_subscriptions_of_user", params))

    async def hold_user(self, user_id: str) -> None:
        """Let one transaction at a time add browsers of a user or count their messages."""
        await self._statements.fetch("hold_push_user", {"user_id": user_id})

    async def add(self, subscription: PushSubscription) -> None:
        """Add a browser. It is taken over if another user had subscribed there."""
        await self.forget(subscription.endpoint, keep=subscription.id)
        await self._statements.fetch("add_push_subscription", PUSH_SUBSCRIPTIONS.write(subscription))

    async def save(self, subscription: PushSubscription) -> None:
        await self._statements.fetch("save_push_subscription", PUSH_SUBSCRIPTIONS.write(subscription))

    async def forget(self, endpoint: str, keep: str) -> None:
        await self._statements.fetch("forget_push_endpoint", {"endpoint": endpoint, "keep": keep})

    async def drop_ended(self, now: datetime) -> None:
        """Delete the browsers whose login has ended."""
        await self._statements.fetch("drop_ended_push_subscriptions", {"now": to_micros(now)})

    async def delete(self, subscription_id: str, user_id: str) -> None:
        """Remove a browser of a user."""
        params = {"id": subscription_id, "user_id": user_id}
        if not await self._statements.fetch("delete_push_subscription", params):
            raise NoSuchBrowser(subscription_id)

    async def add_key(self, key: PushKey, now: datetime) -> None:
        """Save the key, unless there is one."""
        params = {"public_key": key.public_key, "encrypted_key": key.encrypted_key, "created_at": to_micros(now)}
        await self._statements.fetch("add_push_key", params)

    async def drop_key(self) -> None:
        """Delete the key, and the subscriptions that were made with it."""
        await self._statements.fetch("drop_push_subscriptions", {})
        await self._statements.fetch("drop_push_key", {})

    async def key(self) -> PushKey | None:
        rows = await self._statements.fetch("push_key", {})
        return PushKey(public_key=rows[0]["public_key"], encrypted_key=rows[0]["encrypted_key"]) if rows else None
