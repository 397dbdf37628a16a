"""Publish and subscribe: frames in order, each encoded once, in a bounded queue per subscriber.

A topic's frames have consecutive sequence numbers. A subscriber that missed some, because its queue was full or
because another node published them, reads them from the store; the hub only wakes it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from websockets.frames import Frame, Opcode

MAX_FRAMES = 512
MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Sent:
    """A numbered frame, ready to be sent to any number of clients."""

    seq: int
    text: str
    wire: bytes  # the same as a WebSocket message


def numbered(text: str, seq: int) -> Sent:
    """Add the sequence number to an encoded frame, and make the WebSocket message that every client gets."""
    text = f'{text[:-1]},"seq":{seq}}}'
    return Sent(seq, text, Frame(Opcode.TEXT, text.encode()).serialize(mask=False))


class Subscription:
    """One subscriber's queue: the next frames to send, or the mark that they must be read from the store."""

    __slots__ = ("bytes", "frames", "is_behind", "is_over", "send_now", "wake")

    def __init__(self) -> None:
        self.wake = asyncio.Event()
        # Set while the subscriber waits. Most frames find it so, and waking a task costs as much as sending them.
        self.send_now: Callable[[Sequence[Sent]], bool] | None = None  # False: it cannot, so they are queued
        self.is_behind = False  # frames must be read from the store
        self.is_over = False  # the topic has ended
        self.frames: deque[Sent] = deque()
        self.bytes = 0

    def put(self, frames: Sequence[Sent]) -> None:
        """Send frames now or queue them. A queue that is full is dropped: the subscriber then reads the store."""
        if self.send_now is not None and not self.frames and not self.is_behind and self.send_now(frames):
            return
        self.wake.set()
        if self.is_behind:
            return
        for frame in frames:
            self.frames.append(frame)
            self.bytes += len(frame.wire)
        if len(self.frames) > MAX_FRAMES or self.bytes > MAX_BYTES:
            self.fall_behind()

    def fall_behind(self) -> None:
        self.frames.clear()
        self.bytes = 0
        self.is_behind = True
        self.wake.set()

    def drain(self) -> list[Sent]:
        """Return the frames that were queued since the last call."""
        taken, self.bytes = list(self.frames), 0
        self.frames.clear()
        self.wake.clear()
        return taken


class Hub:
    """The subscriptions of this node, by topic."""

    def __init__(self) -> None:
        self._topics: dict[str, set[Subscription]] = {}

    def subscriptions(self, topic: str) -> list[Subscription]:
        return list(self._topics.get(topic, ()))

    def count_listeners(self, topic: str) -> int:
        return len(self._topics.get(topic, ()))

    @contextmanager
    def subscribe(self, topic: str) -> Generator[Subscription]:
        """Subscribe to everything that is published from now on."""
        subscription = Subscription()
        self._topics.setdefault(topic, set()).add(subscription)
        try:
            yield subscription
        finally:
            listeners = self._topics[topic]
            listeners.discard(subscription)
            if not listeners:
                del self._topics[topic]

    def publish(self, topic: str, frames: Sequence[Sent]) -> None:
        """Queue saved frames for every subscriber, without waiting."""
        for subscription in self._topics.get(topic, ()):
            subscription.put(frames)

    def look(self, topic: str) -> None:
        """Have the subscribers read the store: another node saved frames."""
        for subscription in self._topics.get(topic, ()):
            subscription.fall_behind()

    def end(self, topic: str) -> None:
        """End the subscriptions of a topic: its session was deleted."""
        for subscription in self._topics.get(topic, ()):
            subscription.is_over = True
            subscription.wake.set()

    def look_everywhere(self) -> None:
        """Have every subscriber read the store: announcements may have been lost."""
        for topic in self._topics:
            self.look(topic)


def session_topic(session_id: str) -> str:
    return f"session:{session_id}"


def user_topic(user_id: str) -> str:
    return f"user:{user_id}"
