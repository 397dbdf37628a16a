"""Add, change, rotate, test and delete outgoing webhooks, and read and replay their deliveries."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import orjson

from wakeful.core import ids
from wakeful.core.addresses import host_of
from wakeful.core.clock import Clock
from wakeful.core.counters import SendCounters
from wakeful.core.errors import StoreUnavailable
from wakeful.core.events import WebhookQueued
from wakeful.core.outgoing import check_public
from wakeful.core.records import Webhook, WebhookMessage
from wakeful.delivery.process import ChannelProcess, WebhookRequest
from wakeful.delivery.rules import Reply
from wakeful.hooks import receiving, schemes
from wakeful.hooks.rules import SecretUnreadable
from wakeful.store.base import Base
from wakeful.store.errors import insist
from wakeful.store.store import Store, Tx
from wakeful.webhooks import rules

# Sends the messages of outgoing webhooks: after the commit, by the node that claims them first, and again later.


log = logging.getLogger(__name__)

WEBHOOK_SECONDS = 30.0  # for a batch; each request has less
_BATCH = 32
_ABANDONED = timedelta(minutes=1)  # plus the time of a batch: the age of an abandoned claim
_LOOK_EVERY = timedelta(seconds=30)


class WebhookOutbox:
    """Claims, signs and sends messages that are due. A message may arrive twice after a crash, under the same id."""

    def __init__(
        self,
        base: Base,
        process: ChannelProcess,
        counters: SendCounters,
    ) -> None:
        self._store = base.store
        self._clock = base.clock
        self._device_key = base.device_key
        self.process = process
        self._counters = counters
        self._nudged = asyncio.Event()
        base.store.on(WebhookQueued, lambda _: self._nudged.set())

    async def run(self) -> None:
        """Send what is due, for ever."""
        while True:
            self._nudged.clear()
            until = self._clock.now() + _LOOK_EVERY
            try:
                while await self.send_due():
                    pass
                until = min(until, await self._store.read(lambda tx: tx.webhooks.next_at()) or until)
            except StoreUnavailable:  # the store logs it
                pass
            except Exception:
                log.exception("webhook messages not sent")
            await self._clock.wait(until, self._nudged)

    async def send_due(self) -> int:
        """Send a batch of what is due, and return how many messages there were."""
        now = self._clock.now()
        left_behind = now - timedelta(seconds=self.process.seconds) - _ABANDONED
        taken = await self._store.write(lambda tx: tx.webhooks.take(now, left_behind, _BATCH), is_synced=False)
        if taken:
            await self.send(taken)
        return len(taken)

    async def send(self, messages: Sequence[WebhookMessage]) -> None:
        """Send messages that were claimed, and save the results."""
        ids = sorted({message.webhook_id for message in messages})
        found = await self._store.read(lambda tx: _read(tx, ids))
        requests: dict[str, WebhookRequest] = {}
        replies: dict[str, Reply] = {}
        for message in messages:
            webhook = found.get(message.webhook_id)
            if webhook is None:  # deleted since, and its messages with it
                continue
            try:
                requests[message.id] = self._sign(webhook, message)
            except SecretUnreadable as error:
                replies[message.id] = Reply(error=error.message)
        # Outside of the transaction, because a slow receiver must not block other writes.
        replies |= await self.process.post(requests) if requests else {}
        late = Reply(error=f"no answer within {self.process.seconds:g} s; it may or may not have arrived")
        for message in messages:
            if message.webhook_id in found:
                await self._settle(message, replies.get(message.id, late))

    def _sign(self, webhook: Webhook, message: WebhookMessage) -> WebhookRequest:
        now, body = self._clock.now(), message.body
        kept = [webhook.secret]
        if webhook.old_secret is not None and webhook.old_until is not None and now < webhook.old_until:
            kept.append(webhook.old_secret)
        known = [receiving.decrypt_secret(self._device_key, each, webhook.id) for each in kept]
        signed = [schemes.sign_standard(each, message.id, now, body) for each in known if each is not None]
        if not signed:
            raise SecretUnreadable
        signatures = " ".join(each["webhook-signature"] for each in signed)
        return WebhookRequest(url=webhook.url, headers={**signed[0], "webhook-signature": signatures}, body=body)

    async def _settle(self, message: WebhookMessage, reply: Reply) -> None:
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            webhook = await tx.webhooks.lock(message.webhook_id)
            if webhook is None:
                return
            settled, noted = rules.settle(message, webhook, reply, now)
            await tx.webhooks.save_message(settled)
            await tx.webhooks.save(noted)
            if webhook.enabled and not noted.enabled:
                await tx.webhooks.cancel_messages(webhook.id, now)
                await tx.notices.add(rules.switched_off(noted, now))

        # Until the store answers, so that no node sends it again.
        await insist(lambda: self._store.write(work, is_synced=False))
        self._counters.note_ping("webhook", "sent" if reply.error is None else "failed")
        if reply.error is not None:
            fields = {"webhook_id": message.webhook_id, "message_id": message.id, "status": reply.status}
            log.warning("webhook message not sent", extra=fields | {"reason": reply.error})


async def _read(tx: Tx, webhook_ids: Sequence[str]) -> dict[str, Webhook]:
    found = [await tx.webhooks.find(each) for each in webhook_ids]
    return {each.id: each for each in found if each is not None}


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
            secret=receiving.encrypt_secret(self._device_key, secret, webhook_id),
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
                secret=receiving.encrypt_secret(self._device_key, secret, webhook_id),
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
