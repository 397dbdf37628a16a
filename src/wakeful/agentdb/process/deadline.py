"""The time limit of the request a worker is carrying out.

SQLite is interrupted by its progress handler; loops of Python's own, which SQLite never sees, call `check`. A worker
has one thread and one request at a time, so there is one deadline.
"""

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from wakeful.agentdb.errors import Refusal

T = TypeVar("T")

_ITEMS_BETWEEN_LOOKS = 50  # to read the clock takes longer than to read a row, on some virtual machines 5 µs


class _Deadline:
    at = float("inf")  # on the monotonic clock
    is_stopping = False


def begin(seconds: float) -> None:
    """Start the clock for a request."""
    _Deadline.at = time.monotonic() + seconds


def stop() -> None:
    """End the request under way, and let none begin: the server is going down."""
    _Deadline.is_stopping = True


def is_past() -> bool:
    return _Deadline.is_stopping or time.monotonic() > _Deadline.at


def check() -> None:
    """Raise a refusal if the request has run out of time."""
    if is_past():
        raise too_late()


def checked(items: Iterable[T]) -> Iterator[T]:
    """Pass items on as long as there is time."""
    for number, item in enumerate(items):
        if not number % _ITEMS_BETWEEN_LOOKS:
            check()
        yield item


def too_late() -> Refusal:
    return Refusal("timeout", "That took too long and was stopped. Nothing was changed. Ask for less at a time.")
