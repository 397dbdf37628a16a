"""The last log lines of this process, kept in memory for owners; redacted before they are kept."""

import asyncio
import logging
from collections import deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex
from threading import Lock
from typing import Any, Literal, cast, get_args

from wakeful.core.clock import Clock
from wakeful.core.errors import Invalid
from wakeful.core.identity import Identity, OwnersOnly
from wakeful.core.values import value
from wakeful.core.zones import read_duration
from wakeful.telemetry.logs import PLAIN, Lines, Preparing, Redactor, clean_fields, redact_all, traceback_of

MAX_LINES = 10_000
MAX_WAIT_SECONDS = 25.0  # proxies close a request that sends nothing for 30 or 60 seconds
_LOOK_EVERY = 0.25  # seconds, while a request waits for the next line
_MAX_TEXT = 4_000  # characters of a message, a field or a traceback: 10,000 lines must fit into memory
_HEAD = 1_000

LogLevel = Literal["debug", "info", "warning", "error", "critical"]
_LEVELS = get_args(LogLevel)
_RANKS = {level: rank for rank, level in enumerate(_LEVELS)}


@value
class LogLine:
    """One record of the log, without secrets."""

    at: datetime
    level: LogLevel
    logger: str
    message: str
    fields: Mapping[str, Any]
    exception: str | None = None


@value
class LogRecordLines:
    """A record of one or more lines, which differ in their fields."""

    at: datetime
    level: LogLevel
    logger: str
    message: str
    lines: Lines
    exception: str | None = None

    def line(self, row: tuple[Any, ...]) -> LogLine:
        return LogLine(
            at=self.at,
            level=self.level,
            logger=self.logger,
            message=self.message,
            fields=dict(zip(self.lines.names, row, strict=True)),
            exception=self.exception,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """Some lines, the place after them, and how many were dropped before they could be read."""

    lines: list[LogLine]
    next: str
    missed: int = 0


class BadLogPlace(Invalid):
    code = "bad_log_place"
    field = "after"
    text = "`after` must be the `next` of an earlier response."


class BadSince(Invalid):
    code = "bad_since"
    field = "since"

    def __init__(self, since: str) -> None:
        super().__init__(
            f"{since[:80]!r} is neither a duration such as 10m or 2h, nor a time with an offset such as "
            "2026-11-16T09:00Z."
        )


class RecentLogs:
    """The last lines. Any thread may add one; reading copies them, so that nobody waits for a reader."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._records: deque[LogRecordLines] = deque()
        self._kept = 0  # lines
        self._added = 0  # lines since the start of this process
        self._lock = Lock()
        self._start = token_hex(4)  # places of an earlier process mean nothing in this one
        self._is_closed = False

    def add(self, record: LogRecordLines) -> None:
        with self._lock:
            self._records.append(record)
            self._kept += len(record.lines.rows)
            self._added += len(record.lines.rows)
            while self._kept - len(self._records[0].lines.rows) >= MAX_LINES:
                self._kept -= len(self._records.popleft().lines.rows)

    def close(self) -> None:
        """Answer requests that wait for lines: the server stops."""
        self._is_closed = True

    async def read(
        self,
        caller: Identity,
        *,
        after: str | None,
        since: str | None,
        level: LogLevel | None,
        limit: int,
        wait_seconds: float,
    ) -> LogPage:
        """Return the last lines, or the first after a place; if there are none, wait for one. Only for owners."""
        if caller.user.role != "owner":
            raise OwnersOnly
        earliest = None if since is None else self._parse_since(since)
        place = None if after is None else self._parse_place(after)
        rank = 0 if level is None else _RANKS[level]
        until = asyncio.get_running_loop().time() + wait_seconds
        while True:
            page = await asyncio.to_thread(self._find, place, earliest, rank, limit)
            if page.lines or self._is_closed or asyncio.get_running_loop().time() >= until:
                return page
            await asyncio.sleep(_LOOK_EVERY)

    def _find(self, place: int | None, earliest: datetime | None, rank: int, limit: int) -> LogPage:
        with self._lock:
            records, added = list(self._records), self._added
        lines = [(record, row) for record in records for row in record.lines.rows][-MAX_LINES:]
        oldest = added - len(lines)  # the place of the first line that is left
        begin = max(oldest, place or 0)
        found = [
            (number, record, row)
            for number, (record, row) in enumerate(lines[begin - oldest :], begin)
            if _RANKS[record.level] >= rank and (earliest is None or record.at >= earliest)
        ]
        if place is None:
            found, end = found[-limit:], added
        else:
            end = added if len(found) <= limit else found[limit - 1][0] + 1
            found = found[:limit]
        missed = 0 if place is None else begin - place
        return LogPage(lines=[record.line(row) for _, record, row in found], next=f"{self._start}-{end}", missed=missed)

    def _parse_place(self, after: str) -> int:
        start, _, number = after.partition("-")
        if not number.isdecimal() or len(number) > 15:
            raise BadLogPlace
        return min(int(number), self._added) if start == self._start else 0

    def _parse_since(self, since: str) -> datetime:
        length = read_duration(" ".join(since.lower().split()).removesuffix(" ago"))
        if length is not None:
            try:
                return self._clock.now() - length
            except OverflowError:
                raise BadSince(since) from None
        try:
            at = datetime.fromisoformat(since)
        except ValueError:
            raise BadSince(since) from None
        if at.tzinfo is None:
            raise BadSince(since)
        return at


@contextmanager
def kept_logs(kept: RecentLogs, redact: Redactor) -> Generator[None]:
    """Keep the log lines of this process during the block."""
    handler = _Keeping(kept, redact)
    handler.addFilter(Preparing())
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


class _Keeping(logging.Handler):
    def __init__(self, kept: RecentLogs, redact: Redactor) -> None:
        super().__init__()
        self._kept = kept
        self._redact = redact

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._kept.add(self._to_lines(record))  # read rarely, so a line of its own is only made then
        except Exception:  # noqa: BLE001  a faulty record must not end what it was about; logging does the same
            self.handleError(record)

    def _to_lines(self, record: logging.LogRecord) -> LogRecordLines:
        level = record.levelname.lower()
        traceback = traceback_of(record)
        at = datetime.fromtimestamp(record.created, UTC)
        known = cast("LogLevel", level) if level in _LEVELS else "info"
        message = self._clean(record.getMessage())
        exception = None if traceback is None else self._clean(traceback)
        clean = clean_fields(self._redact, record)
        # Many lines at once are those of the engine: ids, codes and numbers.
        lines = clean.lines if clean.is_bare and len(clean.lines.rows) > 1 else _shorten(clean.lines)
        return LogRecordLines(at=at, level=known, logger=record.name, message=message, lines=lines, exception=exception)

    def _clean(self, text: str) -> str:
        return _cut(self._redact(text))


def _shorten(lines: Lines) -> Lines:
    return Lines(lines.names, [tuple(map(_shorten_value, row)) for row in lines.rows])


def _shorten_value(value: Any) -> Any:
    is_short = len(value) <= _MAX_TEXT if type(value) is str else type(value) in PLAIN
    return value if is_short else redact_all(_cut, value)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_HEAD]} … {text[_HEAD - _MAX_TEXT :]}"
