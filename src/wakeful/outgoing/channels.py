"""A user's channels: add, change, test, and send notices over them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson

from wakeful.core import ids
from wakeful.core.outgoing import check_public
from wakeful.core.records import Outgoing
from wakeful.core.types import Channel, Outlet
from wakeful.core.zones import write_time
from wakeful.outgoing import rules
from wakeful.outgoing.notify import FRESH, read_notice
from wakeful.outgoing.outbox import Kind, Outbox
from wakeful.outgoing.rules import CANCELLED, TEST, Answer, Mail, Result
from wakeful.store.base import Base
from wakeful.store.store import Tx

_TEST = {"title": "A test from Wakeful", "body": "This channel works: messages of your agents arrive here."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """What is sent over a channel."""

    channel: Channel
    title: str
    body: str
    place: str | None  # on the page


class ChannelKind(Kind[Letter]):
    """Messages over channels, which apprise sends."""

    name = "channel"
    problem = "notice not sent over a channel"
    fresh = FRESH
    most_abandoned = 1

    def __init__(self, seconds: float, public_address: str | None) -> None:
        self.seconds = seconds
        self._public_address = public_address

    async def find_target(self, tx: Tx, message: Outgoing, now: datetime) -> Letter | Result:
        channel = await tx.channels.lock(message.target)
        if channel is None or not (channel.enabled or message.event == TEST):
            return CANCELLED
        if message.event == TEST:
            letter = Letter(channel=channel, place=None, **orjson.loads(message.body))
        elif (told := await read_notice(tx, message)) is not None:
            place = "inbox" if told.notice.session_id is None else f"sessions/{told.notice.session_id}"
            letter = Letter(channel=channel, title=told.notice.title, body=told.body, place=place)
        else:
            return CANCELLED
        counted = rules.count_message(channel, now)
        if counted is None:
            return await rate_limited(tx, channel)
        await tx.channels.save(counted)
        return letter

    def to_request(self, message: Outgoing, target: Letter, now: datetime) -> Mail:  # noqa: ARG002
        """Add the place on the page to the text, if the server's owner has set the address for people."""
        has_link = self._public_address is not None and target.place is not None
        text = f"{target.body}\n\n{self._public_address}/ui/{target.place}" if has_link else target.body
        return Mail(url=target.channel.url, title=target.title, text=text)

    def read_answer(self, answer: Answer) -> Result:
        outcome = "sent" if answer.is_good else "timed_out" if answer.problem == "timed_out" else "failed"
        return Result(outcome=outcome, reason=answer.detail or None)

    async def record(self, tx: Tx, message: Outgoing, result: Result, now: datetime) -> bool:
        channel = await tx.channels.lock(message.target)
        if channel is not None:  # else it was deleted meanwhile
            await tx.channels.save(rules.record_result(channel, result, now))
        return True

    def log_fields(self, message: Outgoing) -> Mapping[str, str]:
        return {"channel_id": message.target}


async def rate_limited(tx: Tx, outlet: Outlet) -> Result:
    """Return the result for a channel or browser that has had its messages of an hour."""
    user = await tx.agents.user(outlet.user_id)
    until = write_time(rules.free_at(outlet), user and user.timezone)
    reason = f"at most {rules.PER_HOUR} messages an hour; free again at {until}"
    return Result(outcome="rate_limited", reason=reason)


class Channels:
    """Manages channels. Their addresses go to the store and the sending process, nowhere else."""

    def __init__(
        self,
        base: Base,
        outbox: Outbox,
    ) -> None:
        self._store = base.store
        self._clock = base.clock
        self._outbox = outbox
        self._private_hosts = frozenset(base.private_hosts)

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

    async def test(self, channel_id: str, user_id: str) -> Result:
        """Send a test message over a channel, even if it is off."""
        message = rules.make_test("channel", channel_id, orjson.dumps(_TEST).decode(), self._clock.now())

        async def work(tx: Tx) -> None:
            await tx.channels.get(channel_id, user_id)
            await tx.outgoing.add([message])

        await self._store.write(work)
        return (await self._outbox.send_now([message]))[message.id]

    async def _inspect(self, url: str) -> str:
        """Return the part of an address that may be shown, or refuse the address."""
        found = await self._outbox.sender.inspect(url)
        if found.problem is not None:
            raise rules.BadAddress(found.schema, found.problem)
        for host in found.goes_to:
            await check_public(host, self._private_hosts)
        return rules.show_channel(found.schema, found.host)
