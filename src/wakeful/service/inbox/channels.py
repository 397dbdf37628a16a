"""A user's channels: add, change, test, and deliver notices to them."""

import logging
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wakeful.clock import Clock
from wakeful.domain import ids
from wakeful.domain.errors import StoreUnavailable
from wakeful.domain.inbox import channels as rules
from wakeful.domain.inbox.channels import Delivery
from wakeful.domain.types import Channel
from wakeful.domain.zones import write_time
from wakeful.service.inbox.channel_process import ChannelProcess
from wakeful.service.inbox.public_hosts import check_public
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

_TEST = ("A test from Wakeful", "This channel works: messages of your agents arrive here.")


class Channels:
    """Manages channels. Their addresses go to the store and the sending process, nowhere else."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        process: ChannelProcess,
        private_hosts: Collection[str],
        on_sent: Callable[[Sequence[Delivery]], None] = lambda _: None,
    ) -> None:
        self._on_sent = on_sent
        self._store = store
        self._clock = clock
        self.process = process
        self._private_hosts = frozenset(private_hosts)

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
                counted = rules.count(channel, now)
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
            self._on_sent(list(deliveries.values()))
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
                    await tx.channels.save(rules.note(current[channel_id], delivery, now))

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
        return rules.show(found.schema, found.host)
