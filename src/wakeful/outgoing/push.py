"""Push messages to a user's browsers: subscribe, remove, test, and send."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import orjson
from cryptography.hazmat.primitives.asymmetric import ec

from wakeful.core import ids
from wakeful.core.counters import SendCounters
from wakeful.core.errors import StoreUnavailable
from wakeful.core.outgoing import check_public
from wakeful.core.types import PushSubscription
from wakeful.core.zones import write_time
from wakeful.outgoing import rules as outlet_rules
from wakeful.outgoing.process import ChannelProcess, PushAnswer, PushRequest
from wakeful.outgoing.rules import Delivery
from wakeful.outgoing.web_push import authorize, check_point, decrypt_key, encrypt, make_key
from wakeful.store.base import Base
from wakeful.store.notices import NoSuchBrowser, PushKey
from wakeful.store.store import Tx

log = logging.getLogger(__name__)

_KEPT = timedelta(days=1)  # how long a push service keeps a message for a browser that is not running
_GONE = (404, 410)
_TOO_MANY = 429
_MAX_WAIT = timedelta(days=1)  # as a push service may ask for
_TEST: Mapping[str, Any] = {
    "id": "test",
    "code": "test",
    "title": "A test from Wakeful",
    "body": "This browser shows notifications of your agents, also while the page is closed.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A browser that a message is for."""

    browser: PushSubscription
    delivery: Delivery | None  # why nothing is sent; None: it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The public key to subscribe with, or why there is none."""

    public_key: str | None
    problem: str | None


class Push:
    """Manages browsers with push messages. Endpoints go to the store and the sending process, nowhere else."""

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
        self._private_hosts = frozenset(base.private_hosts)
        self._counters = counters
        self._sending: set[asyncio.Task[None]] = set()

    async def replace_key(self) -> None:
        """Forget the key that signs messages, and the browsers that have subscribed with it."""
        await self._store.write(lambda tx: tx.push.drop_key())
        await self.offer()

    async def offer(self) -> Offer:
        """Return the key that browsers need in order to subscribe, if this node can sign with it.

        It is created at the first start; of several nodes, one creates it.
        """
        key = await self._key()
        try:
            decrypt_key(self._device_key, key)
        except outlet_rules.PushKeyUnreadable as error:
            return Offer(public_key=None, problem=error.message)
        return Offer(public_key=key.public_key, problem=None)

    async def of_user(self, user_id: str) -> list[PushSubscription]:
        now = self._clock.now()
        return await self._store.read(lambda tx: tx.push.of_user(user_id, now))

    async def subscribe(
        self, user_id: str, token_id: str, name: str, offered: outlet_rules.Offered, contact: str | None
    ) -> PushSubscription:
        """Add a browser, or renew it: each has one subscription, which belongs to who subscribed last."""
        now = self._clock.now()
        check_point(offered.p256dh)
        await check_public(offered.service, self._private_hosts, "endpoint")

        async def work(tx: Tx) -> PushSubscription:
            await tx.push.hold_user(user_id)
            await tx.push.drop_ended(now)
            browsers = await tx.push.of_user(user_id, now)
            known = next((each for each in browsers if each.endpoint == offered.endpoint), None)
            if known is not None:
                renewed = replace(known, token_id=token_id, p256dh=offered.p256dh, auth=offered.auth, contact=contact)
                await tx.push.save(renewed)
                return renewed
            if len(browsers) >= outlet_rules.MAX_BROWSERS:
                raise outlet_rules.TooManyBrowsers
            made = PushSubscription(
                id=ids.new_id(now),
                user_id=user_id,
                token_id=token_id,
                name=outlet_rules.free_name(name, {each.name for each in browsers}),
                endpoint=offered.endpoint,
                service=offered.service,
                p256dh=offered.p256dh,
                auth=offered.auth,
                contact=contact,
                created_at=now,
            )
            await tx.push.add(made)
            return made

        return await self._store.write(work)

    async def delete(self, subscription_id: str, user_id: str) -> None:
        await self._store.write(lambda tx: tx.push.delete(subscription_id, user_id))

    async def test(self, subscription_id: str, user_id: str) -> Delivery:
        """Send a test message to a browser."""
        now = self._clock.now()

        async def choose(tx: Tx) -> list[PushSubscription]:
            found = [each for each in await tx.push.of_user(user_id, now) if each.id == subscription_id]
            if not found:
                raise NoSuchBrowser(subscription_id)
            return found

        [delivery] = await self._send(user_id, choose, _TEST, "high")
        return delivery

    async def send(self, user_id: str, message: Mapping[str, Any], urgency: str) -> list[Delivery]:
        """Send a message to every browser of a user."""
        now = self._clock.now()
        if not await self._store.read(lambda tx: tx.push.of_user(user_id, now)):
            return []  # the usual case, without a write
        return await self._send(user_id, lambda tx: tx.push.of_user(user_id, now), message, urgency)

    def send_soon(self, user_id: str, message: Mapping[str, Any], urgency: str) -> None:
        """Send a message in the background; one that fails is logged and not sent again."""
        task = asyncio.ensure_future(self._send_quietly(user_id, message, urgency))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def idle(self) -> None:
        """Wait until nothing is sent in the background."""
        while self._sending:
            await asyncio.wait(self._sending)

    async def aclose(self) -> None:
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)

    async def _send_quietly(self, user_id: str, message: Mapping[str, Any], urgency: str) -> None:
        try:
            await self.send(user_id, message, urgency)
        except StoreUnavailable:  # which the store logs
            pass
        except Exception:  # the run that asks must go on
            log.exception("push message not sent", extra={"code": message["code"]})

    async def _send(
        self,
        user_id: str,
        choose: Callable[[Tx], Coroutine[Any, Any, list[PushSubscription]]],
        message: Mapping[str, Any],
        urgency: str,
    ) -> list[Delivery]:
        taken = await self._store.write(lambda tx: self._take(tx, user_id, choose), is_synced=False)
        free = [each.browser for each in taken if each.delivery is None]
        try:
            answers = await self._hand_over(free, message, urgency) if free else {}
        except outlet_rules.PushKeyUnreadable as error:
            answers = {each.id: PushAnswer(error=error.message) for each in free}
        deliveries = {
            each.browser.id: each.delivery or self._to_delivery(each.browser, answers.get(each.browser.id))
            for each in taken
        }
        if deliveries:
            self._counters.note_deliveries(list(deliveries.values()))
            await self._note(user_id, deliveries, answers)
        return list(deliveries.values())

    async def _take(
        self, tx: Tx, user_id: str, choose: Callable[[Tx], Coroutine[Any, Any, list[PushSubscription]]]
    ) -> list[Taken]:
        """Count a message to each browser, if its limits allow one."""
        now = self._clock.now()
        await tx.push.hold_user(user_id)  # another node that counts waits
        taken: list[Taken] = []
        user = await tx.agents.user(user_id)
        for browser in await choose(tx):
            counted = outlet_rules.count_message(browser, now)
            until = outlet_rules.wait_of(browser.wait_until, now)
            if until is not None:
                reason = f"its push service takes nothing before {write_time(until, user and user.timezone)}"
                taken.append(Taken(browser=browser, delivery=_limited(browser, reason)))
            elif counted is None:
                free_at = write_time(outlet_rules.free_at(browser), user and user.timezone)
                reason = f"at most {outlet_rules.PER_HOUR} messages an hour; free again at {free_at}"
                taken.append(Taken(browser=browser, delivery=_limited(browser, reason)))
            else:
                await tx.push.save(counted)
                taken.append(Taken(browser=counted, delivery=None))
        return taken

    async def _hand_over(
        self, browsers: Sequence[PushSubscription], message: Mapping[str, Any], urgency: str
    ) -> dict[str, PushAnswer]:
        """Encrypt a message for each browser, and send it to their push services."""
        key, text = await self._key(), orjson.dumps(message)
        private = decrypt_key(self._device_key, key)
        requests = {each.id: self._request(each, private, key.public_key, text, urgency) for each in browsers}
        return await self.process.push(requests)

    def _request(
        self, browser: PushSubscription, private: ec.EllipticCurvePrivateKey, public: str, text: bytes, urgency: str
    ) -> PushRequest:
        now = self._clock.now()
        return PushRequest(
            endpoint=browser.endpoint,
            headers={
                "Authorization": authorize(private, public, browser.endpoint, browser.contact, now),
                "Content-Encoding": "aes128gcm",
                "Content-Type": "application/octet-stream",
                "TTL": str(int(_KEPT.total_seconds())),
                "Urgency": urgency,
            },
            body=encrypt(text, browser.p256dh, browser.auth),
        )

    def _to_delivery(self, browser: PushSubscription, answer: PushAnswer | None) -> Delivery:
        if answer is None:
            reason = f"no answer within {self.process.seconds:g} s; it may or may not have arrived"
            return Delivery(kind="push", channel=browser.name, outcome="timed_out", reason=reason)
        if answer.status in _GONE:
            reason = "the browser has ended its subscription, so it was removed"
            return Delivery(kind="push", channel=browser.name, outcome="gone", reason=reason)
        if answer.status == _TOO_MANY:
            return _limited(browser, "its push service takes nothing more for now")
        if answer.error is not None:
            return Delivery(kind="push", channel=browser.name, outcome="failed", reason=answer.error)
        return Delivery(kind="push", channel=browser.name, outcome="handed_over")

    async def _note(self, user_id: str, deliveries: Mapping[str, Delivery], answers: Mapping[str, PushAnswer]) -> None:
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            await tx.push.hold_user(user_id)
            for browser in await tx.push.of_user(user_id, now):
                delivery = deliveries.get(browser.id)
                if delivery is None:
                    continue
                if delivery.outcome == "gone":
                    await tx.push.delete(browser.id, user_id)
                else:
                    noted = outlet_rules.note_delivery(browser, delivery, now)
                    await tx.push.save(_waiting(noted, answers.get(browser.id), now))

        try:
            await self._store.write(work, is_synced=False, is_repeatable=True)
        except StoreUnavailable as error:  # the message was sent, and must not be sent again
            log.warning("results of push messages not saved", extra={"problem": error.message})
        for subscription_id, delivery in deliveries.items():
            if delivery.outcome != "handed_over":
                fields = {"subscription_id": subscription_id, "outcome": delivery.outcome, "reason": delivery.reason}
                log.warning("push message not sent", extra=fields)

    async def _key(self) -> PushKey:
        """Return the key that all nodes use; create it if there is none."""
        key = await self._store.read(lambda tx: tx.push.key())
        if key is not None:
            return key
        made, now = make_key(self._device_key), self._clock.now()

        async def work(tx: Tx) -> PushKey:
            await tx.push.add_key(made, now)
            return await tx.push.key() or made

        return await self._store.write(work)


def _limited(browser: PushSubscription, reason: str) -> Delivery:
    return Delivery(kind="push", channel=browser.name, outcome="rate_limited", reason=reason)


def _waiting(browser: PushSubscription, answer: PushAnswer | None, now: datetime) -> PushSubscription:
    """Note until when the push service takes nothing, if it said so."""
    if answer is None or answer.retry_after is None:
        return browser
    return replace(browser, wait_until=now + min(timedelta(seconds=answer.retry_after), _MAX_WAIT))
