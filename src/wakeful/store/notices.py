"""Notices, channels and browsers in the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from wakeful.core.errors import NotFound
from wakeful.core.events import NoticeAdded
from wakeful.core.types import Channel, Decision, Notice, PushSubscription
from wakeful.store.drivers.database import Statements
from wakeful.store.outgoing import Addressed, OutgoingRows
from wakeful.store.rows import CHANNELS, DECISIONS, NOTICES, PUSH_SUBSCRIPTIONS, to_micros
from wakeful.store.webhooks import WebhookRows, notice_added

# Notices to people, and the decisions behind them, in the store.


class Notices:
    """Statements about notices and decisions, in one transaction."""

    def __init__(self, statements: Statements, webhooks: WebhookRows, outgoing: OutgoingRows) -> None:
        self._statements = statements
        self._webhooks = webhooks
        self._outgoing = outgoing

    async def add(self, notice: Notice) -> bool:
        """Put a notice into the inbox and tell the channels and browsers, unless the same one is there already."""
        is_new = await self.add_quietly(notice)
        if is_new:
            await self.tell(notice)
        return is_new

    async def add_quietly(self, notice: Notice) -> bool:
        """Put a notice into the inbox, unless the same one is there already."""
        is_new = bool(await self._statements.fetch("add_notice", NOTICES.write(notice)))
        if is_new:
            self._statements.news.append(NoticeAdded(notice.id))
            await self._webhooks.queue([notice_added(notice)])
        return is_new

    async def tell(self, notice: Notice, taken_at: datetime | None = None) -> list[Addressed]:
        """Add a message about a notice for every channel and browser, which the caller sends if it is claimed."""
        about, body, at = f"notice:{notice.id}", {"notice_id": notice.id}, notice.created_at
        return await self._outgoing.tell(notice.user_id, "notice", about, body, at, taken_at=taken_at)

    async def find(self, notice_id: str) -> Notice | None:
        return NOTICES.read_first(await self._statements.fetch("notice_by_id", {"id": notice_id}))

    async def mark_read(self, user_id: str, notice_id: str | None, now: datetime) -> int:
        """Mark one notice as read, or all of a user's."""
        params = {"user_id": user_id, "id": notice_id, "now": to_micros(now)}
        return len(await self._statements.fetch("read_notices", params))

    async def resolve(self, user_id: str, agent_id: str, code: str, now: datetime) -> None:
        """Record that what the notices of an agent under one code ask for was done; they count as read."""
        params = {"user_id": user_id, "agent_id": agent_id, "code": code, "now": to_micros(now)}
        await self._statements.fetch("resolve_notices", params)

    async def of_user(self, user_id: str, most: int = 100) -> list[Notice]:
        return NOTICES.read_all(await self._statements.fetch("notices_of_user", {"user_id": user_id, "most": most}))

    async def of_agent(self, user_id: str, agent_id: str, code: str, since: datetime) -> list[Notice]:
        """Return the notices about an agent under one code since an hour ago, the oldest first."""
        times = {"since": to_micros(since), "until": to_micros(since + timedelta(hours=2))}
        params = {"user_id": user_id, "agent_id": agent_id, "code": code, **times}
        return NOTICES.read_all(await self._statements.fetch("notices_of_agent", params))

    async def record(self, decisions: Sequence[Decision]) -> None:
        await self._statements.fetch_many(
            "add_decisions",
            [{**DECISIONS.write(decision), "position": number} for number, decision in enumerate(decisions)],
        )

    async def decisions_of(self, wake_id: str, most: int = 1_000) -> list[Decision]:
        return DECISIONS.read_all(await self._statements.fetch("decisions_of_wake", {"wake_id": wake_id, "most": most}))


# Channels in the store.


class ChannelRows:
    """Statements about the ways to reach people, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add(self, channel: Channel) -> bool:
        """Add a channel. False if the user has one of that name."""
        return bool(await self._statements.fetch("add_channel", CHANNELS.write(channel)))

    async def of_user(self, user_id: str) -> list[Channel]:
        return CHANNELS.read_all(await self._statements.fetch("channels_of_user", {"user_id": user_id}))

    async def get(self, channel_id: str, user_id: str) -> Channel:
        """Read a channel in order to change it."""
        rows = await self._statements.fetch("channel_of_user", {"id": channel_id, "user_id": user_id})
        if not rows:
            raise NoSuchChannel(channel_id)
        return CHANNELS.read(rows[0])

    async def read(self, channel_id: str, user_id: str) -> Channel:
        found = next((each for each in await self.of_user(user_id) if each.id == channel_id), None)
        if found is None:
            raise NoSuchChannel(channel_id)
        return found

    async def lock(self, channel_id: str) -> Channel | None:
        """Read a channel in order to send over it or to save a result; None if it or its person is gone."""
        return CHANNELS.read_first(await self._statements.fetch("lock_channel", {"id": channel_id}))

    async def save(self, channel: Channel) -> None:
        await self._statements.fetch("save_channel", CHANNELS.write(channel))

    async def delete(self, channel_id: str, user_id: str) -> None:
        if not await self._statements.fetch("delete_channel", {"id": channel_id, "user_id": user_id}):
            raise NoSuchChannel(channel_id)


# Browsers that get push messages, and the key that signs these, in the store.


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

    async def lock(self, subscription_id: str, now: datetime) -> PushSubscription | None:
        """Read a browser in order to send to it or to save a result; None if it or its login is gone."""
        params = {"id": subscription_id, "now": to_micros(now)}
        return PUSH_SUBSCRIPTIONS.read_first(await self._statements.fetch("lock_push_subscription", params))

    async def hold_user(self, user_id: str) -> None:
        """Let one transaction at a time add browsers of a user."""
        await self._statements.fetch("hold_push_user", {"user_id": user_id})

    async def add(self, subscription: PushSubscription) -> None:
        """Add a browser. It is taken over if another user had subscribed there."""
        await self.delete_endpoint(subscription.endpoint, keep=subscription.id)
        await self._statements.fetch("add_push_subscription", PUSH_SUBSCRIPTIONS.write(subscription))

    async def save(self, subscription: PushSubscription) -> None:
        await self._statements.fetch("save_push_subscription", PUSH_SUBSCRIPTIONS.write(subscription))

    async def delete_endpoint(self, endpoint: str, keep: str) -> None:
        await self._statements.fetch("delete_push_endpoint", {"endpoint": endpoint, "keep": keep})

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


class NoSuchChannel(NotFound):
    code = "no_such_channel"

    def __init__(self, channel_id: str) -> None:
        super().__init__(f"There is no channel {channel_id!r}. `wakeful channel ls` and GET /channels list yours.")


class NoSuchBrowser(NotFound):
    code = "no_such_push_subscription"

    def __init__(self, subscription_id: str) -> None:
        super().__init__(
            f"There is no browser {subscription_id!r} that gets push messages. GET /push-subscriptions lists yours."
        )
