"""Delivers notices outside of the inbox: over the channels of their user, and as push messages to their browsers."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from wakeful.clock import Clock
from wakeful.domain.inbox import push as push_rules
from wakeful.domain.inbox.channels import Delivery
from wakeful.domain.inbox.times import write_times
from wakeful.domain.types import Agent, Notice
from wakeful.service.inbox.channels import Channels
from wakeful.service.inbox.push import Push
from wakeful.service.retrying import insist
from wakeful.store.store import Store, Tx

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
        message, urgency = push_rules.message_of(notice, body, about.agent), push_rules.urgency_of(notice)
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
        await insist(lambda: self._store.write(lambda tx: tx.notices.settle(notice_id, now), is_synced=False))
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
