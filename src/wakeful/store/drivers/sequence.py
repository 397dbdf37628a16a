"""A sequence number of the embedded store that is kept twice: in the store, and in a small file beside it.

A truncated or missing journal leaves an older store that opens without an error. So about a second after a change the
number is raised in the store and, once that is synced, in the file. The file is never ahead of what is on the disk, so
a power failure cannot look like a loss; and it needs no sync of its own.
"""
# apsw's types name collections.abc.Buffer, which Python 3.11 does not have, so its methods count as partly unknown.
# pyright: reportUnknownMemberType=false

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import apsw
import orjson

from wakeful.store.rows import from_micros, to_micros

log = logging.getLogger(__name__)

SEQUENCE_FILE = "wakeful.sequence"
SOON = 1.0  # seconds from a change until it is noted
_WIDTH = 100  # bytes, always the same, so that it is overwritten in place and never grows on a full disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A store that is older than the file beside it."""

    number: int  # the last one in the file
    since: datetime | None  # writes after it may be missing; None: unknown
    until: datetime  # when the last number was written to the file


class Sequence:
    """Notes the number in the store and in the file. Used by the thread that writes."""

    def __init__(self, path: Path, now: Callable[[], datetime]) -> None:
        self._path = path
        self._now = now
        self._number: int | None = None  # None: not compared yet, so nothing is noted
        self._changes = 0  # of the connection, when it was last noted
        self._has_failed = False
        self._changed_at: float | None = None  # monotonic; of the first change since then

    def compare(self, connection: apsw.Connection) -> Loss | None:
        """Compare the store with the file, and go on from the higher number."""
        rows = cast("list[tuple[int, int]]", connection.execute("SELECT number, at FROM store_sequence").fetchall())
        number, at = rows[0]
        seen = self._read()
        if seen is None:
            if number:
                log.warning(
                    "the file with the store's sequence is missing or damaged, so a cut journal would not show",
                    extra={"path": str(self._path)},
                )
            seen = number, from_micros(at)
        self._number = max(number, seen[0])
        if seen[0] <= number:
            return None
        return Loss(number=seen[0], since=from_micros(at) if at else None, until=seen[1])

    def due_in(self, connection: apsw.Connection) -> float | None:
        """Return in how many seconds the number is to be noted; None if nothing has changed."""
        if self._number is None or connection.total_changes() == self._changes:
            return None
        if self._changed_at is None:
            self._changed_at = time.monotonic()
        return max(0.0, self._changed_at + SOON - time.monotonic())

    def note(self, connection: apsw.Connection) -> None:
        """Raise the number in the store, in a transaction of its own, and then in the file."""
        assert self._number is not None
        self._changed_at = None
        at = self._now()
        try:
            connection.execute("UPDATE store_sequence SET number = ?, at = ?", (self._number + 1, to_micros(at)))
            self._number += 1
            self._changes = connection.total_changes()
            self._write(self._number, at)
            self._has_failed = False
        except (apsw.Error, OSError) as error:  # such as a full disk: retried a second later, logged once
            if not self._has_failed:
                log.warning("the store's sequence was not noted", extra={"problem": str(error)})
            self._has_failed = True

    def _read(self) -> tuple[int, datetime] | None:
        try:
            stored: Any = orjson.loads(self._path.read_bytes())
            return int(stored["number"]), datetime.fromisoformat(stored["at"])
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _write(self, number: int, at: datetime) -> None:
        _write(self._path, number, at)


def start_sequence(path: Path, now: datetime) -> None:
    """Create the file for a store from elsewhere, whose number counts."""
    _write(path, 0, now)


def _write(path: Path, number: int, at: datetime) -> None:
    text = orjson.dumps({"number": number, "at": at.isoformat()}).ljust(_WIDTH - 1) + b"\n"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(handle, text, 0)
        os.ftruncate(handle, len(text))
    finally:
        os.close(handle)
