"""The one way out: claims messages that are due, has them sent, and records the results.

A message is added to the table `outgoing` in the transaction of what it is about. One node claims it; if that goes down
before the result is saved, it is sent again under the same id.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, TypeVar

from wakeful.core.errors import StoreUnavailable, WakefulError
from wakeful.core.events import LookAgain, OutgoingQueued
from wakeful.core.records import Outgoing
from wakeful.core.types import FOREVER
from wakeful.outgoing import rules
from wakeful.outgoing.rules import CANCELLED, DROPPED, Answer, Mail, Request, Result
from wakeful.outgoing.sender import Sender
from wakeful.store.base import Base, SendCounters
from wakeful.store.errors import insist
from wakeful.store.rows import from_micros
from wakeful.store.store import Tx

log = logging.getLogger(__name__)

_BATCH = 32
_LANES = 2  # batches of a kind at once, so that a target which does not answer holds up few others
_AT_ONCE = 2  # sendings that somebody waits for
ABANDONED = timedelta(minutes=1)  # plus the time limit of its kind: the age of an abandoned claim
_RENEWED_AFTER = timedelta(seconds=10)
LOOK_EVERY = timedelta(seconds=30)
_STOP_WITHIN = 5.0  # seconds for what is being sent when the node stops
_LONG_AGO = from_micros(0)

T = TypeVar("T")


class Kind(Generic[T]):
    """A way to send messages: their target, the request, what an answer means, and when to try again."""

    name: ClassVar[str]  # of its messages in the table
    problem: ClassVar[str]  # the log line of a message that was not sent
    seconds: float  # the time limit of a batch, after which its process is killed
    ladder: Sequence[timedelta] = ()  # waits before further attempts
    fresh: timedelta | None = None  # an older message is dropped
    most_abandoned: int | None = None  # claims that may be left behind before a message is dropped
    is_kept: bool = False  # settled messages stay, and can be replayed

    async def find_target(self, tx: Tx, message: Outgoing, now: datetime) -> T | Result:
        """Read what a request is made from, and count it; a result if nothing is to be sent."""
        raise NotImplementedError

    def to_request(self, message: Outgoing, target: T, now: datetime) -> Request | Mail:
        raise NotImplementedError

    def read_answer(self, answer: Answer) -> Result:
        reason = rules.explain(answer, "it")
        return Result(outcome="sent" if reason is None else "failed", reason=reason)

    async def record(self, tx: Tx, message: Outgoing, result: Result, now: datetime) -> bool:  # noqa: ARG002
        """Save what a result says about the target, and return whether a failed message is tried again."""
        return True

    def log_fields(self, message: Outgoing) -> Mapping[str, str]:
        return {"target": message.target}


class Outbox:
    """Sends the messages of all kinds: in order to each target, and at least once, also if a node goes down."""

    def __init__(self, base: Base, sender: Sender, kinds: Sequence[Kind[Any]], counters: SendCounters) -> None:
        self._store = base.store
        self._clock = base.clock
        self.sender = sender
        self.kinds: Mapping[str, Kind[Any]] = {kind.name: kind for kind in kinds}
        self._counters = counters
        self._nudged = {name: [asyncio.Event() for _ in range(_LANES)] for name in self.kinds}
        self._by_hand = asyncio.Semaphore(_AT_ONCE)
        self._sending: set[asyncio.Task[Any]] = set()
        base.store.on(OutgoingQueued, lambda news: self._nudge(news.kind))
        base.store.on(LookAgain, lambda _: self._nudge(*self.kinds))

    def _nudge(self, *names: str) -> None:
        for name in names:
            for event in self._nudged.get(name, ()):
                event.set()

    async def run(self) -> None:
        """Send what is due, for ever."""
        async with asyncio.TaskGroup() as group:
            for name, lanes in self._nudged.items():
                for nudged in lanes:
                    group.create_task(self._follow(name, nudged), name=f"wakeful-outbox-{name}")

    async def _follow(self, name: str, nudged: asyncio.Event) -> None:
        while True:
            nudged.clear()
            until = self._clock.now() + LOOK_EVERY
            try:
                is_due, next_at = await self._look(name)
                while is_due:
                    is_due = await self.send_due(name) > 0
                    _, next_at = await self._look(name)
                until = min(until, next_at or until)
            except StoreUnavailable:  # the store logs it
                pass
            except Exception:  # other messages must still be sent
                log.exception("messages not sent", extra={"kind": name})
            await self._clock.wait(until, nudged)

    async def _look(self, name: str) -> tuple[bool, datetime | None]:
        now = self._clock.now()
        return await self._store.read(lambda tx: tx.outgoing.next_at(name, now))

    async def send_due(self, name: str) -> int:
        """Send a batch of one kind that is due, and return how many messages there were."""
        now = self._clock.now()
        lease = timedelta(seconds=self.kinds[name].seconds) + ABANDONED
        # Another lane or node may have claimed at a later reading of the clock, while this one waited for it.
        left_behind, latest = now - lease, now + lease
        if self._clock.seconds_since_step() < lease.total_seconds():
            left_behind, latest = _LONG_AGO, FOREVER  # what is being sent would look abandoned, and be sent twice
        claimed = await self._store.write(
            lambda tx: tx.outgoing.claim(name, now, left_behind, latest, _BATCH), is_synced=False
        )
        if claimed:
            sending = asyncio.ensure_future(self._send(self.kinds[name], claimed))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)
            await asyncio.shield(sending)  # a node that stops waits a moment for it
        return len(claimed)

    async def send_now(self, messages: Sequence[Outgoing]) -> dict[str, Result]:
        """Send messages that were added as claimed, and return the results by their ids."""
        async with self._by_hand:
            now = self._clock.now()
            if any(each.taken_at is None or now - each.taken_at > _RENEWED_AFTER for each in messages):
                messages = await self._store.write(lambda tx: _renew(tx, messages, now))
            kinds = sorted({each.kind for each in messages})
            sent = await asyncio.gather(
                *(self._send(self.kinds[kind], [each for each in messages if each.kind == kind]) for kind in kinds)
            )
        return {message_id: result for results in sent for message_id, result in results.items()}

    async def aclose(self) -> None:
        """Wait a few seconds for what is being sent, then cancel it."""
        if self._sending:
            _, late = await asyncio.wait(self._sending, timeout=_STOP_WITHIN)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _send(self, kind: Kind[Any], messages: Sequence[Outgoing]) -> dict[str, Result]:
        """Send messages of one kind, and save the results. One whose time did not come is released."""
        now, messages = self._clock.now(), rules.in_order(messages)
        targets = await self._store.write(lambda tx: _find_targets(tx, kind, messages, now), is_synced=False)
        results = {each: target for each, target in targets.items() if isinstance(target, Result)}
        groups: dict[str, dict[str, Request | Mail]] = {}
        for message in messages:
            if message.id in results:
                continue
            try:
                request = kind.to_request(message, targets[message.id], now)
            except WakefulError as error:  # such as a key that cannot be decrypted
                results[message.id] = Result(outcome="failed", reason=error.message)
            else:
                groups.setdefault(message.target, {})[message.id] = request
        if groups:
            # Outside of a transaction, because a slow service must not block other writes.
            answers = await self.sender.send([*groups.values()], kind.seconds)
            for group in groups.values():
                late = next((each for each in group if each not in answers), None)
                if late is not None:
                    answers[late] = rules.timed_out(kind.seconds)
            results |= {each: kind.read_answer(answer) for each, answer in answers.items()}
        await self._record(kind, messages, results)
        return results

    async def _record(self, kind: Kind[Any], messages: Sequence[Outgoing], results: Mapping[str, Result]) -> None:
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            for message in messages:
                await _save_result(tx, kind, message, results.get(message.id), now)

        # Until the store answers, so that no node sends it again.
        await insist(lambda: self._store.write(work, is_synced=False))
        for message in messages:
            result = results.get(message.id, CANCELLED)
            if result != CANCELLED:
                self._counters.count_outgoing(kind.name, result.outcome)
            if not result.is_sent and result not in (CANCELLED, DROPPED):
                fields = {"message_id": message.id, "outcome": result.outcome, "status": result.status}
                log.warning(kind.problem, extra={**kind.log_fields(message), **fields, "reason": result.reason})


async def _renew(tx: Tx, messages: Sequence[Outgoing], now: datetime) -> list[Outgoing]:
    return [replace(each, taken_at=now) for each in messages if await tx.outgoing.renew(each, now)]


async def _find_targets(tx: Tx, kind: Kind[T], messages: Sequence[Outgoing], now: datetime) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for message in messages:
        is_late = kind.fresh is not None and now - message.created_at >= kind.fresh
        if is_late or (kind.most_abandoned is not None and message.abandoned > kind.most_abandoned):
            found[message.id] = DROPPED
        else:
            found[message.id] = await kind.find_target(tx, message, now)
    return found


async def _save_result(tx: Tx, kind: Kind[Any], message: Outgoing, result: Result | None, now: datetime) -> None:
    assert message.taken_at is not None
    if result is None:
        await tx.outgoing.save(rules.release(message), message.taken_at)
        return
    is_tried = result not in (CANCELLED, DROPPED) and await kind.record(tx, message, result, now)
    after = rules.settle(message, result, kind.ladder if is_tried else (), now)
    if after.settled_at is None or kind.is_kept:
        await tx.outgoing.save(after, message.taken_at)
    else:
        await tx.outgoing.delete(message, message.taken_at)
