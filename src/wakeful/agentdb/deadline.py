"""The time limit of the request a worker is carrying out.

A progress handler interrupts SQLite; loops in Python call `check`. A worker has one thread and one request at a time,
so there is one deadline.
"""

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from wakeful.agentdb.errors import Refusal

T = TypeVar("T")

_ITEMS_BETWEEN_CHECKS = 50  # reading the clock takes longer than reading a row, on some virtual machines 5 µs


class _Deadline:
    at = float("inf")  # on the monotonic clock
    is_stopping = False


def begin(seconds: float) -> None:
    """Start the clock for a request."""
    _Deadline.at = time.monotonic() + seconds


def stop() -> None:
    """End the current request, and refuse new ones: the server is shutting down."""
    _Deadline.is_stopping = True


def is_past() -> bool:
    return _Deadline.is_stopping or time.monotonic() > _Deadline.at


def check() -> None:
    """Raise if the request has run out of time."""
    if is_past():
        raise too_late()


def checked(items: Iterable[T]) -> Iterator[T]:
    """Yield items until the request runs out of time."""
    for number, item in enumerate(items):
        if not number % _ITEMS_BETWEEN_CHECKS:
            check()
        yield item


def too_late() -> Refusal:
    return Refusal("timeout", "This took too long and was stopped. Nothing was changed. Ask for less at a time.")
