"""Keeps the last log lines in memory, redacted before they are kept."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast, get_args

from wakeful.app.logs.lines import clean_fields, traceback_of
from wakeful.app.logs.preparing import Preparing
from wakeful.app.logs.redaction import PLAIN, Redactor, find_redactor, redact_all
from wakeful.config import Settings, secrets_of
from wakeful.service.log_batches import Lines
from wakeful.service.recent_logs import LogLevel, LogRecordLines, RecentLogs

_MAX_TEXT = 4_000  # characters of a message, a field or a traceback: 10,000 lines must fit into memory
_HEAD = 1_000
_LEVELS = get_args(LogLevel)


@contextmanager
def kept_logs(kept: RecentLogs, settings: Settings) -> Generator[None]:
    """Keep the log lines of this process during the block."""
    handler = _Keeping(kept, find_redactor(frozenset(secrets_of(settings))))
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
