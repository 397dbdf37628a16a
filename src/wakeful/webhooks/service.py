"""Add, change, rotate, test and delete outgoing webhooks, and read and replay their deliveries."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import orjson

from wakeful.core import device_key as secrets
from wakeful.core import ids
from wakeful.core.addresses import host_of
from wakeful.core.outgoing import check_public
from wakeful.core.records import Outgoing, Webhook
from wakeful.hooks import schemes
from wakeful.hooks.rules import SecretUnreadable
from wakeful.outgoing import rules as outgoing_rules
from wakeful.outgoing.outbox import Kind, Outbox
from wakeful.outgoing.rules import CANCELLED, TEST, Answer, Request, Result
from wakeful.store.base import Base
from wakeful.store.store import Tx
from wakeful.store.webhooks import NoSuchMessage
from wakeful.webhooks import rules

_SECONDS = 30.0  # for a batch
_TRY_SECONDS = 15.0  # as Standard Webhooks recommends: 15 to 30


class WebhookKind(Kind[Webhook]):
    """Signed messages about events. One may arrive twice after a crash, under the same id."""

    name = "webhook"
    problem = "webhook message not sent"
    seconds = _SECONDS
    ladder = rules.LADDER
    is_kept = True

    def __init__(self, device_key: bytes) -> None:
        self._device_key = device_key

    async def find_target(self, tx: Tx, message: Outgoing, now: datetime) -> Webhook | Result:  # noqa: ARG002
        return await tx.webhooks.find(message.target) or CANCELLED

    def to_request(self, message: Outgoing, target: Webhook, now: datetime) -> Request:
        """Sign a message, also with the secret before a rotation for a day."""
        body, kept = rules.to_body(message), [target.secret]
        if target.old_secret is not None and target.old_until is not None and now < target.old_until:
            kept.append(target.old_secret)
        known = [secrets.decrypt_secret(self._device_key, each, target.id) for each in kept]
        signed = [schemes.sign_standard(each, message.id, now, body) for each in known if each is not None]
        if not signed:
            raise SecretUnreadable
        signatures = " ".join(each["webhook-signature"] for each in signed)
        headers = {"Content-Type": "application/json", **signed[0], "webhook-signature": signatures}
        return Request(url=target.url, headers=headers, body=body, seconds=_TRY_SECONDS)

    def read_answer(self, answer: Answer) -> Result:
        reason = outgoing_rules.explain(answer, "it")
        if answer.problem == "certificate":
            reason = "its certificate is not trusted"
        outcome = "sent" if reason is None else "failed"
        return Result(outcome=outcome, reason=reason, status=answer.status, retry_after=answer.retry_after)

    async def record(self, tx: Tx, message: Outgoing, result: Result, now: datetime) -> bool:
        webhook = await tx.webhooks.lock(message.target)
        if webhook is None:
            return False
        after = rules.record_result(webhook, message.event, result, now)
        await tx.webhooks.save(after)
        if webhook.enabled and not after.enabled:
            await tx.outgoing.cancel(webhook.id, now)
            await tx.notices.add(rules.switched_off(after, now))
        return after.enabled and message.event != TEST

    def log_fields(self, message: Outgoing) -> Mapping[str, str]:
        return {"webhook_id": message.target}


@dataclass(frozen=True, slots=True, kw_only=True)
class RevealedWebhook:
    """A webhook with the secret of its signatures, which is shown this once."""

    webhook: Webhook
    secret: str


class Webhooks:
    """Manages outgoing webhooks. Addresses go to the store and the sending process, nowhere else."""

    def __init__(self, base: Base, outbox: Outbox) -> None:
        self._store = base.store
        self._clock = base.clock
        self._device_key = base.device_key
        self._outbox = outbox
        self._private_hosts = frozenset(base.private_hosts)

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
                await tx.outgoing.cancel(webhook_id, now)
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

    async def test(self, webhook_id: str, user_id: str) -> Outgoing:
        """Send a test message, even if the webhook is off, and return it with the result."""
        data = orjson.dumps({"text": "A test from Wakeful: this webhook works."}).decode()
        message = outgoing_rules.make_test("webhook", webhook_id, data, self._clock.now())

        async def work(tx: Tx) -> None:
            await tx.webhooks.read(webhook_id, user_id)
            await tx.outgoing.add([message])

        await self._store.write(work)
        await self._outbox.send_now([message])
        return await self._store.read(lambda tx: _find_message(tx, webhook_id, message.id))

    async def deliveries(
        self, webhook_id: str, user_id: str, *, before: tuple[datetime, str] | None = None, most: int = 50
    ) -> list[Outgoing]:
        """Return a page of a webhook's messages, the latest first."""

        async def work(tx: Tx) -> list[Outgoing]:
            await tx.webhooks.read(webhook_id, user_id)
            return await tx.outgoing.of_target(webhook_id, before, most)

        return await self._store.read(work)

    async def replay(self, webhook_id: str, user_id: str, message_id: str) -> Outgoing:
        """Send a message again, under its own id."""
        now = self._clock.now()

        async def work(tx: Tx) -> Outgoing:
            webhook = await tx.webhooks.get(webhook_id, user_id)
            message = outgoing_rules.replay(await _find_message(tx, webhook_id, message_id), now)
            if not webhook.enabled:
                raise rules.WebhookOff(webhook.name)
            await tx.outgoing.save(message)
            return message

        return await self._store.write(work)

    async def _checked(self, url: str) -> dict[str, str]:
        """Return an address and the part of it that may be shown, or refuse it."""
        url = rules.check_url(url)
        await check_public(host_of(url), self._private_hosts)
        parts = urlsplit(url)
        return {"url": url, "shown": rules.show_url(parts.netloc, parts.scheme)}


async def _find_message(tx: Tx, webhook_id: str, message_id: str) -> Outgoing:
    found = await tx.outgoing.find(webhook_id, message_id)
    if found is None:
        raise NoSuchMessage(message_id)
    return found
