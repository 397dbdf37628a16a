"""Add, change, rotate, test and delete outgoing webhooks, and read and replay their deliveries."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import orjson

from wakeful.core import device_key as secrets
from wakeful.core import ids
from wakeful.core.addresses import host_of
from wakeful.core.clock import Clock
from wakeful.core.outgoing import check_public
from wakeful.core.records import Webhook, WebhookMessage
from wakeful.hooks import schemes
from wakeful.store.store import Store, Tx
from wakeful.webhooks import rules
from wakeful.webhooks.outbox import WebhookOutbox


@dataclass(frozen=True, slots=True, kw_only=True)
class RevealedWebhook:
    """A webhook with the secret of its signatures, which is shown this once."""

    webhook: Webhook
    secret: str


class Webhooks:
    """Manages outgoing webhooks. Addresses go to the store and the sending process, nowhere else."""

    def __init__(
        self, store: Store, clock: Clock, device_key: bytes, outbox: WebhookOutbox, private_hosts: Collection[str]
    ) -> None:
        self._store = store
        self._clock = clock
        self._device_key = device_key
        self.outbox = outbox
        self._private_hosts = frozenset(private_hosts)

    async def of_user(self, user_id: str) -> list[Webhook]:
        return await self._store.read(lambda tx: tx.webhooks.of_user(user_id))

    async def get(self, webhook_id: str, user_id: str) -> Webhook:
        return await self._store.read(lambda tx: tx.webhooks.read(webhook_id, user_id))

    async def add(self, user_id: str, url: str, fields: Mapping[str, Any]) -> RevealedWebhook:
        """Add a webhook, if its address is that of a public host."""
        now = self._clock.now()
        webhook_id, secret = ids.new_id(now), schemes.make_secret("standard")
        values: dict[str, Any] = {**fields, **await self._checked(url)}
        webhook = Webhook(
            **values,
            id=webhook_id,
            user_id=user_id,
            secret=secrets.encrypt_secret(self._device_key, secret, webhook_id),
            created_at=now,
            updated_at=now,
        )
        rules.check(webhook)

        async def work(tx: Tx) -> None:
            if webhook.agent_id is not None:
                await tx.agents.get(webhook.agent_id, user_id)
            if len(await tx.webhooks.of_user(user_id)) >= rules.MAX_WEBHOOKS:
                raise rules.TooManyWebhooks
            if not await tx.webhooks.add(webhook):
                raise rules.WebhookNameTaken(webhook.name)

        await self._store.write(work)
        return RevealedWebhook(webhook=webhook, secret=secret)

    async def change(self, webhook_id: str, user_id: str, changes: Mapping[str, Any]) -> Webhook:
        """Change a webhook, or switch it off or on. Off, it gives up what waits to be sent."""
        now = self._clock.now()
        changed = dict(changes)
        if "url" in changed:
            await self.get(webhook_id, user_id)  # before the address is looked at
            changed |= await self._checked(changed["url"])

        async def work(tx: Tx) -> Webhook:
            before = await tx.webhooks.get(webhook_id, user_id)
            after = replace(before, **changed, updated_at=now)
            rules.check(after)
            if after.agent_id not in (None, before.agent_id):
                await tx.agents.get(after.agent_id, user_id)
            if any(each.name == after.name and each.id != webhook_id for each in await tx.webhooks.of_user(user_id)):
                raise rules.WebhookNameTaken(after.name)
            if after.enabled and (not before.enabled or "url" in changed):
                after = replace(after, failing_since=None, last_error=None, last_error_at=None)
            if not after.enabled:
                await tx.webhooks.cancel_messages(webhook_id, now)
            await tx.webhooks.save(after)
            return after

        return await self._store.write(work)

    async def rotate(self, webhook_id: str, user_id: str) -> RevealedWebhook:
        """Replace the secret. For a day, messages are signed with the one before too, so that the receiver has time."""
        now, secret = self._clock.now(), schemes.make_secret("standard")

        async def work(tx: Tx) -> Webhook:
            before = await tx.webhooks.get(webhook_id, user_id)
            after = replace(
                before,
                secret=secrets.encrypt_secret(self._device_key, secret, webhook_id),
                old_secret=before.secret,
                old_until=now + rules.OLD_SECRET,
                updated_at=now,
            )
            await tx.webhooks.save(after)
            return after

        return RevealedWebhook(webhook=await self._store.write(work), secret=secret)

    async def delete(self, webhook_id: str, user_id: str) -> None:
        await self._store.write(lambda tx: tx.webhooks.delete(webhook_id, user_id))

    async def test(self, webhook_id: str, user_id: str) -> WebhookMessage:
        """Send a test message, even if the webhook is off, and return it with the result."""
        now = self._clock.now()
        message = WebhookMessage(
            id=ids.new_id(now),
            webhook_id=webhook_id,
            event=rules.TEST,
            about=f"test:{ids.new_id(now)}",
            data=orjson.dumps({"text": "A test from Wakeful: this webhook works."}).decode(),
            next_at=now,
            taken_at=now,
            created_at=now,
        )

        async def work(tx: Tx) -> Webhook:
            found = await tx.webhooks.read(webhook_id, user_id)
            await tx.webhooks.add_message(message)
            return found

        await self._store.write(work)
        await self.outbox.send([message])
        return await self._store.read(lambda tx: tx.webhooks.message(webhook_id, message.id))

    async def deliveries(
        self, webhook_id: str, user_id: str, *, before: tuple[datetime, str] | None = None, most: int = 50
    ) -> list[WebhookMessage]:
        """Return a page of a webhook's deliveries, the latest first."""

        async def work(tx: Tx) -> list[WebhookMessage]:
            await tx.webhooks.read(webhook_id, user_id)
            return await tx.webhooks.messages(webhook_id, before, most)

        return await self._store.read(work)

    async def replay(self, webhook_id: str, user_id: str, message_id: str) -> WebhookMessage:
        """Send a message again, under its own id."""
        now = self._clock.now()

        async def work(tx: Tx) -> WebhookMessage:
            webhook = await tx.webhooks.get(webhook_id, user_id)
            message = rules.replay(await tx.webhooks.message(webhook_id, message_id), now)
            if not webhook.enabled:
                raise rules.WebhookOff(webhook.name)
            await tx.webhooks.save_message(message)
            return message

        return await self._store.write(work)

    async def _checked(self, url: str) -> dict[str, str]:
        """Return an address and the part of it that may be shown, or refuse it."""
        url = rules.check_url(url)
        await check_public(host_of(url), self._private_hosts)
        parts = urlsplit(url)
        return {"url": url, "shown": rules.show_url(parts.netloc, parts.scheme)}
