"""The channels of a person: make, change, try, and tell what happened."""

import asyncio
import logging
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from ipaddress import ip_address
from typing import Any

from wakeful.clock import Clock
from wakeful.domain import ids
from wakeful.domain.addresses import is_public
from wakeful.domain.errors import StoreUnavailable
from wakeful.domain.inbox import channels as rules
from wakeful.domain.inbox.channels import (
    BadAddress,
    ChannelNameTaken,
    Delivery,
    PrivateAddress,
    TooManyChannels,
)
from wakeful.domain.types import Channel, Notice
from wakeful.service.inbox.channel_process import ChannelProcess
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

_AGAIN = "(Sent once more: the server went down while it sent this.)"
_TEST = ("A test from Wakeful", "This channel works: what your agents have to tell you arrives here.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliveries:
    """What became of a notice outside of the inbox."""

    deliveries: tuple[Delivery, ...] = ()
    is_muted: bool = False  # the wake it is about was asked to be silent


class Channels:
    """Everything about channels. Their addresses go into the store and to the process that sends, nowhere else."""

    def __init__(self, store: Store, clock: Clock, process: ChannelProcess, private_hosts: Collection[str]) -> None:
        self._store = store
        self._clock = clock
        self._process = process
        self._private_hosts = frozenset(private_hosts)

    @property
    def patience(self) -> timedelta:
        """Return how long it may take to tell them all."""
        return timedelta(seconds=self._process.seconds)

    async def of_user(self, user_id: str) -> list[Channel]:
        return await self._store.read(lambda tx: tx.channels.of_user(user_id))

    async def add(self, user_id: str, name: str, url: str, *, enabled: bool = True) -> Channel:
        """Add a channel, if its address leads over the network to a service and nowhere else."""
        now = self._clock.now()
        url = rules.check_url(url)
        channel = Channel(
            id=ids.new_id(now),
            user_id=user_id,
            name=rules.check_name(name),
            url=url,
            shown=await self._look(url),
            enabled=enabled,
            created_at=now,
            updated_at=now,
        )

        async def work(tx: Tx) -> Channel:
            if len(await tx.channels.of_user(user_id)) >= rules.MAX_CHANNELS:
                raise TooManyChannels
            if not await tx.channels.add(channel):
                raise ChannelNameTaken(channel.name)
            return channel

        return await self._store.write(work)

    async def change(self, channel_id: str, user_id: str, changes: Mapping[str, Any]) -> Channel:
        """Change the name, the address, or whether it is used at all."""
        now = self._clock.now()
        changed = dict(changes)
        if "name" in changed:
            changed["name"] = rules.check_name(changed["name"])
        if "url" in changed:
            await self._store.read(lambda tx: tx.channels.read(channel_id, user_id))  # before anything is asked outside
            changed["url"] = rules.check_url(changed["url"])
            changed |= {"shown": await self._look(changed["url"]), "last_error": None, "last_error_at": None}

        async def work(tx: Tx) -> Channel:
            before = await tx.channels.get(channel_id, user_id)
            others = [each.name for each in await tx.channels.of_user(user_id) if each.id != channel_id]
            after = replace(before, **changed, updated_at=now)
            if after.name in others:
                raise ChannelNameTaken(after.name)
            await tx.channels.save(after)
            return after

        return await self._store.write(work)

    async def delete(self, channel_id: str, user_id: str) -> None:
        await self._store.write(lambda tx: tx.channels.delete(channel_id, user_id))

    async def test(self, channel_id: str, user_id: str) -> Delivery:
        """Send a few words over a channel, be it on or off."""

        async def choose(tx: Tx) -> list[Channel]:
            return [await tx.channels.get(channel_id, user_id)]

        [delivery] = await self._send(choose, *_TEST)
        return delivery

    async def deliver(self, notice: Notice) -> Deliveries:
        """Tell a notice to every channel of its person that is on. It stays in the inbox, whatever happens here."""
        is_muted = False

        async def choose(tx: Tx) -> list[Channel]:
            nonlocal is_muted
            wake = None if notice.wake_id is None else await tx.wakes.find(notice.wake_id)
            is_muted = wake is not None and wake.muted
            return [] if is_muted else await tx.channels.to_tell(notice.user_id)

        body = notice.body if notice.told_at is None else f"{notice.body}\n\n{_AGAIN}"
        deliveries = await self._send(choose, notice.title, body)
        return Deliveries(deliveries=tuple(deliveries), is_muted=is_muted)

    async def _send(self, choose: Any, title: str, body: str) -> list[Delivery]:
        now = self._clock.now()

        async def take(tx: Tx) -> list[tuple[Channel, bool]]:
            taken: list[tuple[Channel, bool]] = []
            for channel in await choose(tx):
                counted = rules.count(channel, now)
                if counted is not None:
                    await tx.channels.save(counted)
                taken.append((counted or channel, counted is not None))
            return taken

        taken = await self._store.write(take, is_synced=False)
        addresses = {channel.id: channel.url for channel, may_send in taken if may_send}
        # Outside of any transaction: whoever is slow here keeps nobody else waiting.
        errors = await self._process.send(addresses, title, body) if addresses else {}
        deliveries = {channel.id: self._judge(channel, may_send, errors) for channel, may_send in taken}
        if deliveries:
            await self._note([channel for channel, _ in taken], deliveries)
        return list(deliveries.values())

    def _judge(self, channel: Channel, may_send: bool, errors: Mapping[str, str | None]) -> Delivery:
        if not may_send:
            until = rules.free_at(channel)
            reason = f"{rules.PER_HOUR} messages an hour are the most; free again at {until:%Y-%m-%d %H:%M:%S} UTC"
            return Delivery(channel=channel.name, outcome="rate_limited", reason=reason)
        if channel.id not in errors:
            reason = f"no answer within {self._process.seconds:g} s; it may or may not have arrived"
            return Delivery(channel=channel.name, outcome="timed_out", reason=reason)
        error = errors[channel.id]
        return Delivery(channel=channel.name, outcome="sent" if error is None else "failed", reason=error)

    async def _note(self, channels: Sequence[Channel], deliveries: Mapping[str, Delivery]) -> None:
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            current = {each.id: each for each in await tx.channels.of_user(channels[0].user_id)}
            for channel_id, delivery in deliveries.items():
                if channel_id in current:  # else it was deleted meanwhile
                    await tx.channels.save(rules.note(current[channel_id], delivery, now))

        try:
            await self._store.write(work, is_synced=False, is_repeatable=True)
        except StoreUnavailable as error:  # it is sent all the same, and must not be sent again because of this
            log.warning("deliveries not noted on their channels", extra={"problem": error.message})
        for channel_id, delivery in deliveries.items():
            if delivery.outcome != "sent":
                log.warning(
                    "channel not told",
                    extra={"channel_id": channel_id, "outcome": delivery.outcome, "reason": delivery.reason},
                )

    async def _look(self, url: str) -> str:
        """Return what may be shown of an address, or refuse it."""
        looked = await self._process.look(url)
        if looked.problem is not None:
            raise BadAddress(looked.schema, looked.problem)
        for host in looked.goes_to:
            if host not in self._private_hosts:
                await _check_public(host)
        return rules.show(looked.schema, looked.host)


async def _check_public(host: str) -> None:
    """Refuse a host that is plainly near. Who sends looks again, at the address it really goes to."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return  # perhaps there is no name service just now; sending will tell
    for *_, address in found:
        if not is_public(ip_address(str(address[0]).partition("%")[0])):
            raise PrivateAddress(host)
