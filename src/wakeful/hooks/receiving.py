"""Take deliveries of incoming hooks: prove the sender, recognise duplicates, and start a run or tell the person."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, TypeVar

from wakeful.core import ids
from wakeful.core.device_key import decrypt_secret
from wakeful.core.labels import Via, stamp
from wakeful.core.outside import HOOK
from wakeful.core.records import Hook, ReceivedDelivery, Scheme
from wakeful.core.types import Agent, Notice, Wake
from wakeful.hooks import rules, schemes
from wakeful.hooks.rules import Arrived
from wakeful.store.base import Base
from wakeful.store.sessions import NoSuchSession
from wakeful.store.store import Tx
from wakeful.timing.lifecycle import create
from wakeful.toolbox.registry import ToolCatalog

log = logging.getLogger(__name__)

_MINUTE = timedelta(minutes=1)
_IN_THREAD = 64 * 1024  # bytes, from which hashing and parsing a body would hold up other requests
_MAX_REFUSED = 10_000  # hooks whose last refusal is remembered here

T = TypeVar("T")

Answer = Literal["run", "folded", "notified", "ping", "filtered", "duplicate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A delivery, and the answer to its sender."""

    answer: Answer
    delivery: ReceivedDelivery


class Receiving:
    """Takes deliveries, also forged ones. Only a delivery whose sender is proven writes a row."""

    def __init__(self, base: Base, catalog: ToolCatalog) -> None:
        self._store = base.store
        self._clock = base.clock
        self._wake_rules = base.rules
        self._device_key = base.device_key
        self._catalog = catalog
        self._dummy = schemes.make_secret("github")
        self._refused_at: OrderedDict[str, datetime] = OrderedDict()  # by hook: when a refusal was last saved

    async def receive(self, hook_id: str, headers: schemes.Headers, body: bytes, *, is_test: bool = False) -> Received:
        """Take a delivery: durable when this returns, with its run id. A test passes the filter of events.

        Raises UnknownHook or BadSignature, which say nothing of the hook, or the reason why the sender should not or
        not yet send it again.
        """
        hook = await self._store.read(lambda tx: tx.hooks.find_open(hook_id), is_single=True)
        await self._prove(hook, headers, body)
        assert hook is not None
        arrived = await _to_thread_if_long(body, lambda: rules.read(hook.scheme, headers, body))
        now = self._clock.now()

        async def work(tx: Tx) -> Received:
            locked = await tx.hooks.lock_open(hook_id)
            if locked is None:
                raise rules.UnknownHook
            return await self._accept(tx, locked, arrived, now, is_test=is_test)

        try:
            # Repeatable: done before, it is a duplicate with the same run.
            received = await self._store.write(work, is_repeatable=True)
        except rules.DeliveryReused:
            await self._record_refusal(hook, "delivery_id_reused", rules.reused_notice(hook, now))
            raise
        except rules.TooManyDeliveries:
            await self._record_refusal(hook, "too_many_deliveries", rules.busy_notice(hook, now))
            raise
        delivery = received.delivery
        fields = {"hook_id": hook.id, "delivery": delivery.id, "run_id": delivery.run_id, "answer": received.answer}
        log.info("hook delivery", extra=fields)
        return received

    async def _prove(self, hook: Hook | None, headers: schemes.Headers, body: bytes) -> None:
        now = self._clock.now()
        if hook is None:
            # As much work as for a hook that exists, so that the time of the answer does not tell.
            headers = {"x-hub-signature-256": "sha256=0"}
            scheme: Scheme = "github"
            known = [self._dummy]
        else:
            scheme, known = hook.scheme, self._secrets_of(hook, now)
        try:
            await _to_thread_if_long(body, lambda: schemes.check(scheme, headers, body, known, now))
        except schemes.Unproven as refused:
            if hook is None:
                raise rules.UnknownHook from None
            why = refused.why if known else "wrong"
            await self._record_refusal(hook, why, rules.refused_notice(hook, rules.REFUSALS[why], now))
            raise rules.BadSignature(why) from None

    def _secrets_of(self, hook: Hook, now: datetime) -> list[str]:
        kept = [hook.secret]
        if hook.old_secret is not None and hook.old_until is not None and now < hook.old_until:
            kept.append(hook.old_secret)
        found = [decrypt_secret(self._device_key, each, hook.id) for each in kept]
        return [each for each in found if each is not None]

    async def _accept(self, tx: Tx, hook: Hook, arrived: Arrived, now: datetime, *, is_test: bool) -> Received:
        seen = await _find_same(tx, hook, arrived)
        is_wanted = is_test or (not arrived.is_ping and rules.takes(hook, arrived.event))
        if seen is not None:
            if not is_wanted or seen.outcome not in ("ping", "filtered") or seen.event == arrived.event:
                return Received(answer="duplicate", delivery=seen)
            # GitHub does not sign the event: someone may have sent the body before, as an event that starts nothing.
            await tx.hooks.delete_received(seen.id)
        made = ReceivedDelivery(
            id=ids.new_id(now),
            hook_id=hook.id,
            delivery_id=arrived.delivery_id,
            sha256=arrived.sha256,
            event=arrived.event,
            at=now,
            outcome="run",
            size=len(arrived.body),
        )
        if not is_wanted:
            made = replace(made, outcome="ping" if arrived.is_ping else "filtered")
            await tx.hooks.add_received(made, None)
        else:
            await _check_rate(tx, hook, now)
            if hook.mode == "notify":
                made = replace(made, outcome="notified")
                await tx.notices.add(rules.arrived_notice(hook, made, rules.summarise(arrived.body), now))
            else:
                made, hook = await self._start(tx, hook, made, now)
            await tx.hooks.add_received(made, arrived.body)
        await tx.hooks.record_received(hook.id, hook.session_id, now)
        return Received(answer=made.outcome, delivery=made)

    async def _start(
        self, tx: Tx, hook: Hook, delivery: ReceivedDelivery, now: datetime
    ) -> tuple[ReceivedDelivery, Hook]:
        """Book the run of a delivery, or add it to one that has not begun."""
        slot = f"hook:{hook.id}"
        waiting = await tx.wakes.live_in_slot(slot) if hook.coalesce_seconds else None
        if waiting is not None:
            run_id = ids.run_id(waiting.id, waiting.nominal_at)
            if await tx.hooks.count_of_wake(waiting.id) < rules.MAX_FOLDED:
                return replace(delivery, outcome="folded", wake_id=waiting.id, run_id=run_id), hook
        if hook.session_id is not None:
            try:
                await tx.sessions.get(hook.session_id, hook.user_id)
            except NoSuchSession:  # deleted since: a new session is the safe choice
                hook = replace(hook, session_id=None)
        if len(await tx.hooks.live_wakes(hook.id)) >= rules.MAX_WAITING:
            raise rules.TooManyWaiting
        agent = await tx.agents.get(hook.agent_id, hook.user_id)
        wake = self._wake(hook, agent, delivery, now, slot if hook.coalesce_seconds and waiting is None else None)
        if not await tx.wakes.add([wake]):
            raise rules.TooManyWaiting
        return replace(delivery, wake_id=wake.id, run_id=ids.run_id(wake.id, wake.nominal_at)), hook

    def _wake(self, hook: Hook, agent: Agent, delivery: ReceivedDelivery, now: datetime, slot: str | None) -> Wake:
        tools = self._tools_inside(agent) if hook.tools is None else hook.tools
        is_fresh = hook.session_id is None
        wake = create(
            kind="session" if is_fresh else "message",
            agent_id=agent.id,
            user_id=hook.user_id,
            session_id=hook.session_id,
            call_type="once" if hook.coalesce_seconds else "immediate",
            instructions=hook.instructions,
            timezone=agent.known_zone,
            scheduled_by="system",
            now=now,
            rules=self._wake_rules,
            at=now + timedelta(seconds=hook.coalesce_seconds) if hook.coalesce_seconds else None,
            comment=hook.name if delivery.event is None else f"{hook.name}: {delivery.event}",
            # The data stays in the transcript, so the limit is that of the session, not of this run alone.
            session_config={"tool_ids": list(tools)} if is_fresh else None,
            tools=tools,
        )
        wake = replace(wake, slot=slot, outside_sources=(f"{HOOK}{hook.name}",))
        return stamp(wake, Via(door="hook", token_id=hook.id, token_name=hook.name))

    async def _record_refusal(self, hook: Hook, why: str, notice: Notice) -> None:
        """Save why a hook last refused something, with one notice a day; at most once a minute, however many come."""
        now = self._clock.now()
        before = self._refused_at.get(hook.id)
        if before is not None and abs(now - before) < _MINUTE:
            return
        log.warning("hook delivery refused", extra={"hook_id": hook.id, "reason": why})
        self._refused_at[hook.id] = now
        self._refused_at.move_to_end(hook.id)
        if len(self._refused_at) > _MAX_REFUSED:
            self._refused_at.popitem(last=False)

        async def work(tx: Tx) -> None:
            await tx.hooks.record_refusal(hook.id, why, now)
            await tx.notices.add(notice)

        await self._store.write(work, is_synced=False, is_repeatable=True)

    def _tools_inside(self, agent: Agent) -> tuple[str, ...]:
        """Return the tools of an agent that change nothing outside."""
        return rules.tools_inside({tool.name: tool.toolset for tool in self._catalog.shown_to(agent, None)})


async def _find_same(tx: Tx, hook: Hook, arrived: Arrived) -> ReceivedDelivery | None:
    """Return the delivery that this one repeats; raise if it has its id, but another body."""
    seen = await tx.hooks.find_received(hook.id, arrived.delivery_id)
    if seen is not None and seen.sha256 != arrived.sha256:
        raise rules.DeliveryReused
    if seen is None and not arrived.is_id_signed:
        # Anyone who has seen the request could send it again with another id.
        seen = await tx.hooks.find_body(hook.id, arrived.sha256)
    return seen


async def _check_rate(tx: Tx, hook: Hook, now: datetime) -> None:
    lately = await tx.hooks.lately(hook.id, now - _MINUTE)
    if lately.count >= hook.per_minute:
        wait = (lately.first_at or now) + _MINUTE - now
        raise rules.TooManyDeliveries(hook.per_minute, max(1, -(-wait // timedelta(seconds=1))))


async def _to_thread_if_long(body: bytes, work: Callable[[], T]) -> T:
    return work() if len(body) <= _IN_THREAD else await asyncio.to_thread(work)
