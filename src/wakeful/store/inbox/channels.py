"""Channels in the store."""

from wakeful.domain.inbox.channels import NoSuchChannel
from wakeful.domain.types import Channel
from wakeful.store.drivers.database import Statements
from wakeful.store.rows import CHANNELS


class ChannelRows:
    """Statements about the ways to reach people, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add(self, channel: Channel) -> bool:
        """Add a channel. False if the user has one of that name."""
        return bool(await self._statements.fetch("add_channel", CHANNELS.write(channel)))

    async def of_user(self, user_id: str) -> list[Channel]:
        return CHANNELS.read_all(await self._statements.fetch("channels_of_user", {"user_id": user_id}))

    async def get(self, channel_id: str, user_id: str) -> Channel:
        """Read a channel in order to change it."""
        rows = await self._statements.fetch("channel_of_user", {"id": channel_id, "user_id": user_id})
        if not rows:
            raise NoSuchChannel(channel_id)
        return CHANNELS.read(rows[0])

    async def read(self, channel_id: str, user_id: str) -> Channel:
        found = next((each for each in await self.of_user(user_id) if each.id == channel_id), None)
        if found is None:
            raise NoSuchChannel(channel_id)
        return found

    async def to_tell(self, user_id: str) -> list[Channel]:
        return CHANNELS.read_all(await self._statements.fetch("channels_to_tell", {"user_id": user_id}))

    async def save(self, channel: Channel) -> None:
        await self._statements.fetch("save_channel", CHANNELS.write(channel))

    async def delete(self, channel_id: str, user_id: str) -> None:
        if not await self._statements.fetch("delete_channel", {"id": channel_id, "user_id": user_id}):
            raise NoSuchChannel(channel_id)
