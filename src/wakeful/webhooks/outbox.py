"""Send the messages of outgoing webhooks: after the commit, by the node that claims them first, and again later."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta

from wakeful.core.counters import SendCounters
from wakeful.core.errors import StoreUnavailable
from wakeful.core.events import WebhookQueued
from wakeful.core.records import Webhook, WebhookMessage
from wakeful.outgoing.process import ChannelProcess, WebhookRequest
from wakeful.outgoing.rules import Reply
from wakeful.hooks import schemes, secrets
from wakeful.hooks.rules import SecretUnreadable
from wakeful.store.base import Base
from wakeful.store.errors import insist
from wakeful.store.store import Tx
from wakeful.webhooks import rules

log = logging.getLogger(__name__)

WEBHOOK_SECONDS = 30.0  # for a batch; a request has 15, see delivery/senders.py
_BATCH = 32
_ABANDONED = timedelta(minutes=1)  # plus the time of a batch: the age of an abandoned claim
_LOOK_EVERY = timedelta(seconds=30)


class WebhookOutbox:
    """Claims, signs and sends messages that are due. A message may arrive twice after a crash, under the same id."""

    def __init__(self, base: Base, process: ChannelProcess, counters: SendCounters) -> None:
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
        claimed = await self._store.write(lambda tx: tx.webhooks.claim_due(now, left_behind, _BATCH), is_synced=False)
        if claimed:
            await self.send(claimed)
        return len(claimed)

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
                await self._save_result(message, replies.get(message.id, late))

    def _sign(self, webhook: Webhook, message: WebhookMessage) -> WebhookRequest:
        now, body = self._clock.now(), message.body
        kept = [webhook.secret]
        if webhook.old_secret is not None and webhook.old_until is not None and now < webhook.old_until:
            kept.append(webhook.old_secret)
        known = [secrets.decrypt_secret(self._device_key, each, webhook.id) for each in kept]
        signed = [schemes.sign_standard(each, message.id, now, body) for each in known if each is not None]
        if not signed:
            raise SecretUnreadable
        signatures = " ".join(each["webhook-signature"] for each in signed)
        return WebhookRequest(url=webhook.url, headers={**signed[0], "webhook-signature": signatures}, body=body)

    async def _save_result(self, message: WebhookMessage, reply: Reply) -> None:
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            webhook = await tx.webhooks.lock(message.webhook_id)
            if webhook is None:
                return
            tried, after = rules.record_attempt(message, webhook, reply, now)
            await tx.webhooks.save_message(tried)
            await tx.webhooks.save(after)
            if webhook.enabled and not after.enabled:
                await tx.webhooks.cancel_messages(webhook.id, now)
                await tx.notices.add(rules.switched_off(after, now))

        # Until the store answers, so that no node sends it again.
        await insist(lambda: self._store.write(work, is_synced=False))
        self._counters.count_outgoing("webhook", "sent" if reply.error is None else "failed")
        if reply.error is not None:
            fields = {"webhook_id": message.webhook_id, "message_id": message.id, "status": reply.status}
            log.warning("webhook message not sent", extra=fields | {"reason": reply.error})


async def _read(tx: Tx, webhook_ids: Sequence[str]) -> dict[str, Webhook]:
    found = [await tx.webhooks.find(each) for each in webhook_ids]
    return {each.id: each for each in found if each is not None}
