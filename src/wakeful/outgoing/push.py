"""Push messages to a user's browsers: subscribe, remove, test, and send."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import orjson

from wakeful.core import ids
from wakeful.core.outgoing import check_public
from wakeful.core.records import Outgoing
from wakeful.core.types import PushSubscription
from wakeful.core.zones import write_time
from wakeful.outgoing import rules
from wakeful.outgoing.channels import rate_limited
from wakeful.outgoing.notify import FRESH, read_notice
from wakeful.outgoing.outbox import Kind, Outbox
from wakeful.outgoing.rules import CANCELLED, Answer, Request, Result
from wakeful.outgoing.web_push import authorize, check_point, decrypt_key, encrypt, make_key
from wakeful.store.base import Base
from wakeful.store.notices import NoSuchBrowser, PushKey
from wakeful.store.store import Tx

_KEPT = timedelta(days=1)  # how long a push service keeps a message for a browser that is not running
_TRY_SECONDS = 60.0
_GONE = (404, 410)
_TOO_MANY = 429
_USUAL_WAIT = 60  # seconds, if a push service that takes nothing more does not say how long
_TEST: Mapping[str, Any] = {
    "id": "test",
    "code": "test",
    "title": "A test from Wakeful",
    "body": "This browser shows notifications of your agents, also while the page is closed.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """What is sent to a browser, and the key that signs it."""

    browser: PushSubscription
    shown: Mapping[str, Any]
    key: PushKey


class PushKind(Kind[Pushed]):
    """Messages to browsers, encrypted for each, which their push services pass on."""

    name = "push"
    problem = "push message not sent"
    fresh = FRESH
    most_abandoned = 1

    def __init__(self, seconds: float, device_key: bytes) -> None:
        self.seconds = seconds
        self._device_key = device_key

    async def find_target(self, tx: Tx, message: Outgoing, now: datetime) -> Pushed | Result:
        browser, key = await tx.push.lock(message.target, now), await tx.push.key()
        shown: Mapping[str, Any] | None = orjson.loads(message.body)
        if message.event == "notice":
            told = await read_notice(tx, message)
            shown = None if told is None else rules.message_of(told.notice, told.body, told.agent)
        if browser is None or key is None or shown is None:
            return CANCELLED
        if browser.wait_until is not None and browser.wait_until > now:
            user = await tx.agents.user(browser.user_id)
            until = write_time(browser.wait_until, user and user.timezone)
            return Result(outcome="rate_limited", reason=f"its push service takes nothing before {until}")
        counted = rules.count_message(browser, now)
        if counted is None:
            return await rate_limited(tx, browser)
        await tx.push.save(counted)
        return Pushed(browser=counted, shown=shown, key=key)

    def to_request(self, message: Outgoing, target: Pushed, now: datetime) -> Request:  # noqa: ARG002
        browser, key = target.browser, target.key
        signer = decrypt_key(self._device_key, key)
        headers = {
            "Authorization": authorize(signer, key.public_key, browser.endpoint, browser.contact, now),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(int(_KEPT.total_seconds())),
            "Urgency": rules.urgency_of(target.shown["code"]),
        }
        body = encrypt(orjson.dumps(target.shown), browser.p256dh, browser.auth)
        return Request(
            url=browser.endpoint, headers=headers, body=body, seconds=_TRY_SECONDS, pauses=rules.SHORT_PAUSES
        )

    def read_answer(self, answer: Answer) -> Result:
        if answer.is_good:
            return Result(outcome="handed_over")
        if answer.status in _GONE:
            return Result(outcome="gone", reason="the browser has ended its subscription, so it was removed")
        if answer.status == _TOO_MANY:
            wait = _USUAL_WAIT if answer.retry_after is None else answer.retry_after
            reason = "its push service takes nothing more for now"
            return Result(outcome="rate_limited", reason=reason, retry_after=wait)
        outcome = "timed_out" if answer.problem == "timed_out" else "failed"
        return Result(outcome=outcome, reason=rules.explain(answer, "the push service"))

    async def record(self, tx: Tx, message: Outgoing, result: Result, now: datetime) -> bool:
        browser = await tx.push.lock(message.target, now)
        if browser is not None and result.outcome == "gone":
            await tx.push.delete(browser.id, browser.user_id)
        elif browser is not None:
            wait = result.retry_after and now + min(timedelta(seconds=result.retry_after), rules.MAX_WAIT)
            await tx.push.save(
                replace(rules.record_result(browser, result, now), wait_until=wait or browser.wait_until)
            )
        return True

    def log_fields(self, message: Outgoing) -> Mapping[str, str]:
        return {"subscription_id": message.target}


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
        outbox: Outbox,
    ) -> None:
        self._store = base.store
        self._clock = base.clock
        self._device_key = base.device_key
        self._outbox = outbox
        self._private_hosts = frozenset(base.private_hosts)

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
        except rules.PushKeyUnreadable as error:
            return Offer(public_key=None, problem=error.message)
        return Offer(public_key=key.public_key, problem=None)

    async def of_user(self, user_id: str) -> list[PushSubscription]:
        now = self._clock.now()
        return await self._store.read(lambda tx: tx.push.of_user(user_id, now))

    async def subscribe(
        self, user_id: str, token_id: str, name: str, offered: rules.Offered, contact: str | None
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
            if len(browsers) >= rules.MAX_BROWSERS:
                raise rules.TooManyBrowsers
            made = PushSubscription(
                id=ids.new_id(now),
                user_id=user_id,
                token_id=token_id,
                name=rules.free_name(name, {each.name for each in browsers}),
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

    async def test(self, subscription_id: str, user_id: str) -> Result:
        """Send a test message to a browser."""
        now = self._clock.now()
        message = rules.make_test("push", subscription_id, orjson.dumps(_TEST).decode(), now)

        async def work(tx: Tx) -> None:
            if all(each.id != subscription_id for each in await tx.push.of_user(user_id, now)):
                raise NoSuchBrowser(subscription_id)
            await tx.outgoing.add([message])

        await self._store.write(work)
        return (await self._outbox.send_now([message]))[message.id]

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
