"""Publish and subscribe: frames in order, each encoded once, in a bounded queue per subscriber.

A topic's frames have consecutive sequence numbers. A subscriber that missed some, because its queue was full or
because another node published them, reads them from where they are kept; the hub only wakes it.
"""

import asyncio
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import orjson
from websockets.frames import Frame, Opcode

from wakeful.domain.events import SessionFrame, UserFrame
from wakeful.domain.frames import to_wire

MOST_FRAMES = 512
MOST_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Sent:
    """A numbered frame, ready to be sent to any number of clients."""

    seq: int
    text: str
    wire: bytes  # the same as a WebSocket message


def encode(frame: SessionFrame | UserFrame) -> str:
    """Write a frame as JSON, without the fields that are None."""
    return orjson.dumps(to_wire(frame), option=orjson.OPT_UTC_Z).decode()


def numbered(text: str, seq: int) -> Sent:
    """Give an encoded frame its number, without encoding it again, and the form that every client is sent."""
    text = f'{text[:-1]},"seq":{seq}}}'
    return Sent(seq, text, Frame(Opcode.TEXT, text.encode()).serialize(mask=False))


class Subscription:
    """One subscriber's queue. It holds what is next to be sent, or knows that it must be read elsewhere."""

    __slots__ = ("_bytes", "_frames", "is_behind", "is_over", "wake")

    def __init__(self) -> None:
        self.wake = asyncio.Event()
        self.is_behind = False  # something is to be read from where the frames are kept
        self.is_over = False  # the topic has ended
        self._frames: deque[Sent] = deque()
        self._bytes = 0

    def put(self, frames: Sequence[Sent]) -> None:
        """Queue frames, or forget the queue if it is full: this subscriber will read them at its own pace."""
        self.wake.set()
        if self.is_behind:
            return
        for frame in frames:
            self._frames.append(frame)
            self._bytes += len(frame.wire)
        if len(self._frames) > MOST_FRAMES or self._bytes > MOST_BYTES:
            self.fall_behind()

    def fall_behind(self) -> None:
        self._frames.clear()
        self._bytes = 0
        self.is_behind = True
        self.wake.set()

    def take(self) -> list[Sent]:
        """Return what has come since the last time."""
        taken = list(self._frames)
        self._frames.clear()
        self._bytes = 0
        self.wake.clear()
        return taken


class Hub:
    """The subscriptions of this node, by topic."""

    def __init__(self) -> None:
        self._topics: dict[str, set[Subscription]] = {}

    def count_listeners(self, topic: str) -> int:
        return len(self._topics.get(topic, ()))

    @contextmanager
    def subscribe(self, topic: str) -> Generator[Subscription]:
        """Get everything that is published from now on."""
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
        """Hand saved frames to the subscribers. Never waits for any of them."""
        for subscription in self._topics.get(topic, ()):
            subscription.put(frames)

    def look(self, topic: str) -> None:
        """Have the subscribers read what another node saved; those that have it already find nothing new."""
        for subscription in self._topics.get(topic, ()):
            subscription.fall_behind()

    def end(self, topic: str) -> None:
        """End the subscriptions of a topic whose subject was deleted."""
        for subscription in self._topics.get(topic, ()):
            subscription.is_over = True
            subscription.wake.set()

    def look_everywhere(self) -> None:
        """Have every subscriber read again: news may have been lost."""
        for topic in self._topics:
            self.look(topic)


def session_topic(session_id: str) -> str:
    return f"session:{session_id}"


def user_topic(user_id: str) -> str:
    return f"user:{user_id}"
