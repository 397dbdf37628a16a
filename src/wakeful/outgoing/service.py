"""A user's channels: add, change, test, and deliver notices to them."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from wakeful.core import ids
from wakeful.core.clock import Clock
from wakeful.core.counters import SendCounters
from wakeful.core.errors import StoreUnavailable
from wakeful.core.events import NoticeAdded
from wakeful.core.hub import Hub, user_topic
from wakeful.core.jobs import Job
from wakeful.core.outgoing import check_public
from wakeful.core.records import ViewsOf
from wakeful.core.types import Agent, Channel, Notice, Run
from wakeful.core.zones import write_time
from wakeful.outgoing import rules
from wakeful.outgoing.process import ChannelProcess
from wakeful.outgoing.push import Push
from wakeful.outgoing.rules import Delivery
from wakeful.notices import texts as notices_texts
from wakeful.notices.service import write_times
from wakeful.store.base import Base
from wakeful.store.errors import insist
from wakeful.store.store import Store, Tx
from wakeful.timing import next_run_request

log = logging.getLogger(__name__)

_TEST = ("A test from Wakeful", "This channel works: messages of your agents arrive here.")


class Channels:
    """Manages channels. Their addresses go to the store and the sending process, nowhere else."""

    def __init__(
        self,
        base: Base,
        process: ChannelProcess,
        counters: SendCounters,
    ) -> None:
        self._store = base.store
        self._clock = base.clock
        self.process = process
        self._private_hosts = frozenset(base.private_hosts)
        self._counters = counters

    async def of_user(self, user_id: str) -> list[Channel]:
        return await self._store.read(lambda tx: tx.channels.of_user(user_id))

    async def add(self, user_id: str, name: str, url: str, *, enabled: bool = True) -> Channel:
        """Add a channel, if its address is that of a public service."""
        now = self._clock.now()
        url = rules.check_url(url)
        channel = Channel(
            id=ids.new_id(now),
            user_id=user_id,
            name=rules.check_name(name),
            url=url,
            shown=await self._inspect(url),
            enabled=enabled,
            created_at=now,
            updated_at=now,
        )

        async def work(tx: Tx) -> Channel:
            if len(await tx.channels.of_user(user_id)) >= rules.MAX_CHANNELS:
                raise rules.TooManyChannels
            if not await tx.channels.add(channel):
                raise rules.ChannelNameTaken(channel.name)
            return channel

        return await self._store.write(work)

    async def change(self, channel_id: str, user_id: str, changes: Mapping[str, Any]) -> Channel:
        """Change the name or the address, or switch a channel on or off."""
        now = self._clock.now()
        changed = dict(changes)
        if "name" in changed:
            changed["name"] = rules.check_name(changed["name"])
        if "url" in changed:
            await self._store.read(lambda tx: tx.channels.read(channel_id, user_id))  # before the address is checked
            changed["url"] = rules.check_url(changed["url"])
            changed |= {"shown": await self._inspect(changed["url"]), "last_error": None, "last_error_at": None}

        async def work(tx: Tx) -> Channel:
            before = await tx.channels.get(channel_id, user_id)
            others = [each.name for each in await tx.channels.of_user(user_id) if each.id != channel_id]
            after = replace(before, **changed, updated_at=now)
            if after.name in others:
                raise rules.ChannelNameTaken(after.name)
            await tx.channels.save(after)
            return after

        return await self._store.write(work)

    async def delete(self, channel_id: str, user_id: str) -> None:
        await self._store.write(lambda tx: tx.channels.delete(channel_id, user_id))

    async def test(self, channel_id: str, user_id: str) -> Delivery:
        """Send a test message over a channel, even if it is off."""

        async def choose(tx: Tx) -> list[Channel]:
            return [await tx.channels.get(channel_id, user_id)]

        [delivery] = await self._send(choose, *_TEST)
        return delivery

    async def send(self, user_id: str, title: str, body: str) -> list[Delivery]:
        """Send a message over every channel of a user that is on."""
        return await self._send(lambda tx: tx.channels.to_tell(user_id), title, body)

    async def _send(
        self, choose: Callable[[Tx], Coroutine[Any, Any, list[Channel]]], title: str, body: str
    ) -> list[Delivery]:
        now = self._clock.now()

        zone: str | None = None

        async def take(tx: Tx) -> list[tuple[Channel, bool]]:
            nonlocal zone
            taken: list[tuple[Channel, bool]] = []
            for channel in await choose(tx):
                counted = rules.count_message(channel, now)
                if counted is not None:
                    await tx.channels.save(counted)
                else:
                    user = await tx.agents.user(channel.user_id)
                    zone = user and user.timezone
                taken.append((counted or channel, counted is not None))
            return taken

        taken = await self._store.write(take, is_synced=False)
        addresses = {channel.id: channel.url for channel, may_send in taken if may_send}
        # Outside of the transaction, because a slow service must not block other writes.
        errors = await self.process.send(addresses, title, body) if addresses else {}
        deliveries = {channel.id: self._to_delivery(channel, may_send, errors, zone) for channel, may_send in taken}
        if deliveries:
            self._counters.note_deliveries(list(deliveries.values()))
            await self._note([channel for channel, _ in taken], deliveries)
        return list(deliveries.values())

    def _to_delivery(
        self, channel: Channel, may_send: bool, errors: Mapping[str, str | None], zone: str | None
    ) -> Delivery:
        if not may_send:
            until = write_time(rules.free_at(channel), zone)
            reason = f"at most {rules.PER_HOUR} messages an hour; free again at {until}"
            return Delivery(channel=channel.name, outcome="rate_limited", reason=reason)
        if channel.id not in errors:
            reason = f"no answer within {self.process.seconds:g} s; it may or may not have arrived"
            return Delivery(channel=channel.name, outcome="timed_out", reason=reason)
        error = errors[channel.id]
        return Delivery(channel=channel.name, outcome="sent" if error is None else "failed", reason=error)

    async def _note(self, channels: Sequence[Channel], deliveries: Mapping[str, Delivery]) -> None:
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            current = {each.id: each for each in await tx.channels.of_user(channels[0].user_id)}
            for channel_id, delivery in deliveries.items():
                if channel_id in current:  # else it was deleted meanwhile
                    await tx.channels.save(rules.note_delivery(current[channel_id], delivery, now))

        try:
            await self._store.write(work, is_synced=False, is_repeatable=True)
        except StoreUnavailable as error:  # the message was sent, and must not be sent again
            log.warning("results of deliveries not saved", extra={"problem": error.message})
        for channel_id, delivery in deliveries.items():
            if delivery.outcome != "sent":
                fields = {"channel_id": channel_id, "outcome": delivery.outcome, "reason": delivery.reason}
                log.warning("notice not sent over a channel", extra=fields)

    async def _inspect(self, url: str) -> str:
        """Return the part of an address that may be shown, or refuse the address."""
        found = await self.process.inspect(url)
        if found.problem is not None:
            raise rules.BadAddress(found.schema, found.problem)
        for host in found.goes_to:
            await check_public(host, self._private_hosts)
        return rules.show_channel(found.schema, found.host)


# ── One notice, over channels and to browsers ────────────────────────────────────────────────────────────────────────

_AGAIN = "(Sent once more: the server went down while it sent this.)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliveries:
    """The deliveries of a notice to channels and browsers."""

    deliveries: tuple[Delivery, ...] = ()
    is_muted: bool = False  # the user muted the wake it is about


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """The facts about a notice that its delivery depends on."""

    zone: str | None
    agent: Agent | None
    is_muted: bool


class Deliverer:
    """Sends a notice everywhere. It stays in the inbox in any case."""

    def __init__(
        self, store: Store, clock: Clock, channels: Channels, push: Push, public_address: str | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._channels = channels
        self._push = push
        self._public_address = public_address

    @property
    def patience(self) -> timedelta:
        """Return how long a delivery may take."""
        return timedelta(seconds=max(self._channels.process.seconds, self._push.process.seconds))

    async def deliver(self, notice: Notice) -> Deliveries:
        """Send a notice over every channel of its user that is on, and to every browser."""
        about = await self._store.read(lambda tx: _context_of(tx, notice))
        if about.is_muted:
            return Deliveries(is_muted=True)
        body = write_times(notice, about.zone).body
        body = body if notice.told_at is None else f"{body}\n\n{_AGAIN}"
        message, urgency = rules.message_of(notice, body, about.agent), rules.urgency_of(notice)
        over_channels, to_browsers = await asyncio.gather(
            self._channels.send(notice.user_id, notice.title, self._with_link(body, notice)),
            self._push.send(notice.user_id, message, urgency),
        )
        return Deliveries(deliveries=(*over_channels, *to_browsers))

    def _with_link(self, body: str, notice: Notice) -> str:
        """Add the page of the session, or else the inbox, if the server's owner has set the address for people."""
        if self._public_address is None:
            return body
        place = "inbox" if notice.session_id is None else f"sessions/{notice.session_id}"
        return f"{body}\n\n{self._public_address}/ui/{place}"

    async def mark_delivered(self, notice_id: str) -> datetime:
        """Record that a notice was delivered, retrying until the store answers, so that no node delivers it again."""
        now = self._clock.now()
        await insist(lambda: self._store.write(lambda tx: tx.notices.mark_delivered(notice_id, now), is_synced=False))
        return now


async def _context_of(tx: Tx, notice: Notice) -> _Context:
    user = await tx.agents.user(notice.user_id)
    wake = None if notice.wake_id is None else await tx.wakes.find(notice.wake_id)
    agents = [] if notice.agent_id is None else await tx.agents.of_user(notice.user_id)
    return _Context(
        zone=user and user.timezone,
        agent=next((agent for agent in agents if agent.id == notice.agent_id), None),
        is_muted=wake is not None and wake.muted,
    )


# ── Every notice: after the commit, once, by the node that claims it first ───────────────────────────────────────────

_ABANDONED = timedelta(minutes=1)  # plus the channels' time limit: the age of an abandoned claim
_STALE = timedelta(hours=1)  # an older notice is only shown in the inbox
_MAX_SWEPT = 20
_STOP_WITHIN = 5.0  # seconds for running deliveries when the node stops


class Outbox:
    """Claims and delivers notices that were not delivered yet."""

    def __init__(self, store: Store, clock: Clock, deliverer: Deliverer) -> None:
        self._store = store
        self._clock = clock
        self._deliverer = deliverer
        self._delivering: set[asyncio.Task[None]] = set()
        store.on(NoticeAdded, self._take)

    def _take(self, news: NoticeAdded) -> None:
        task = asyncio.ensure_future(self._deliver(news.notice_id))
        self._delivering.add(task)
        task.add_done_callback(self._delivering.discard)

    def jobs(self) -> Iterator[Job]:
        yield Job(name="deliveries", every=timedelta(minutes=1), run=self.sweep)

    async def sweep(self) -> None:
        """Deliver notices that a stopped node has left."""
        if self._clock.seconds_since_step() < (self._deliverer.patience + _ABANDONED).total_seconds():
            return  # running deliveries would look abandoned, and be sent twice
        before = self._abandoned_before()
        for notice_id in await self._store.read(lambda tx: tx.notices.untold(before, _MAX_SWEPT)):
            await self._deliver(notice_id)

    async def idle(self) -> None:
        """Wait until no delivery is running."""
        while self._delivering:
            await asyncio.wait(self._delivering)

    async def aclose(self) -> None:
        """Wait a few seconds for running deliveries, then cancel them."""
        if self._delivering:
            _, late = await asyncio.wait(self._delivering, timeout=_STOP_WITHIN)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _deliver(self, notice_id: str) -> None:
        now, before = self._clock.now(), self._abandoned_before()
        try:
            notice = await self._store.write(lambda tx: tx.notices.claim(notice_id, now, before), is_synced=False)
            if notice is None:
                return
            if now - notice.created_at < _STALE:
                await self._deliverer.deliver(notice)
            await self._deliverer.mark_delivered(notice_id)
        except StoreUnavailable:  # the store logs it, and the next sweep finds the notice
            pass
        except Exception:  # the notice is in the inbox, and others must still be delivered
            log.exception("notice could not be delivered", extra={"notification_id": notice_id})

    def _abandoned_before(self) -> datetime:
        return self._clock.now() - self._deliverer.patience - _ABANDONED


# ── Notifications from an agent ──────────────────────────────────────────────────────────────────────────────────────

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """A notification in the inbox, and where else it was delivered."""

    notice: Notice
    is_new: bool  # False: it was in the inbox already
    open_pages: int = 0  # on this node
    deliveries: Deliveries | None = None  # None: it is not new


class Notify:
    """Adds an agent's notifications to the inbox and sends them over the channels, limited and without duplicates."""

    def __init__(self, store: Store, clock: Clock, deliverer: Deliverer, hub: Hub, views_of: ViewsOf) -> None:
        self._store = store
        self._clock = clock
        self._deliverer = deliverer
        self._hub = hub
        self._views_of = views_of

    async def send(self, run: Run, agent: Agent, title: str, body: str, view_ref: str | None = None) -> Notified:
        """Add a notification to the inbox and send it over the channels, but the same text only once an hour."""
        now = self._clock.now()
        # Claimed from the start, so that the outbox leaves it to us: our answer says what the channels did.
        notice = replace(notices_texts.from_agent(run, title, body, now), view_ref=view_ref, taken_at=now)
        if view_ref is not None:
            next_run_request.check_view(view_ref, await self._views_of(agent), field="view_ref")

        async def work(tx: Tx) -> Notified:
            lately = await tx.notices.of_agent(run.user_id, run.agent_id, notices_texts.NOTIFY, now - _HOUR)
            same = next((each for each in lately if (each.title, each.body) == (notice.title, notice.body)), None)
            if same is not None:  # our own, if the answer to a first attempt was lost
                return Notified(notice=same, is_new=same.id == notice.id)
            # Two nodes that count at once may let one more through, which does no harm.
            if len(lately) >= notices_texts.PER_HOUR:
                raise notices_texts.TooManyNotices(lately[-notices_texts.PER_HOUR].created_at + _HOUR, agent.zone)
            return Notified(notice=notice, is_new=await tx.notices.add(notice))

        notified = await self._store.write(work, is_repeatable=True)
        if not notified.is_new:
            return notified
        pages = self._hub.count_listeners(user_topic(run.user_id))
        deliveries = await self._deliverer.deliver(notice)
        notice = replace(notice, told_at=await self._deliverer.mark_delivered(notice.id))
        return replace(notified, notice=notice, open_pages=pages, deliveries=deliveries)
