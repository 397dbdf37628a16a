"""A client of a node's /ws/events without the socket: the frames of a user from now on."""

import json
from typing import Any

from harness import Harness, eventually


class EventsFeed:
    """The frames that the harness's user is sent from now on."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._feed = harness.node.services.feed
        self._after = self._feed.last_seq(harness.user.id)

    async def frames(self) -> list[dict[str, Any]]:
        """Return all frames so far. They come in the order of the commits, so a last commit's frame marks the end."""
        last = await self._harness.session()
        await eventually(lambda: self._has(last.id))
        return [frame for frame in self._read() if frame.get("session_id") != last.id]

    async def recalls(self) -> list[tuple[str, str]]:
        """Return action and status of every `recall_update` so far."""
        return [(each["action"], each["status"]) for each in await self.frames() if each["type"] == "recall_update"]

    async def _has(self, session_id: str) -> bool:
        return any(frame.get("session_id") == session_id for frame in self._read())

    def _read(self) -> list[dict[str, Any]]:
        frames = self._feed.after(self._harness.user.id, self._after)
        assert frames is not None, "the feed asked for a resync"
        return [json.loads(frame.text) for frame in frames]


async def said_in(harness: Harness, session_id: str) -> list[tuple[str, str]]:
    """Return action and status of every `recall_update` in a session's stream."""
    frames = [json.loads(frame.text) for frame in await harness.node.stream.after(session_id, 0)]
    return [(each["action"], each["status"]) for each in frames if each["type"] == "recall_update"]
