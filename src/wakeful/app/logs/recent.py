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
from wakeful.service.recent_logs import LogLevel, LogLine, RecentLogs

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
            self._kept.add(self._to_lines(record))
        except Exception:  # noqa: BLE001  a faulty record must not end what it was about; logging does the same
            self.handleError(record)

    def _to_lines(self, record: logging.LogRecord) -> list[LogLine]:
        level = record.levelname.lower()
        traceback = traceback_of(record)
        at = datetime.fromtimestamp(record.created, UTC)
        known = cast("LogLevel", level) if level in _LEVELS else "info"
        message = self._clean(record.getMessage())
        exception = None if traceback is None else self._clean(traceback)
        return [
            LogLine(at=at, level=known, logger=record.name, message=message, fields=fields, exception=exception)
            for fields in map(_shorten, clean_fields(self._redact, record))
        ]

    def _clean(self, text: str) -> str:
        return _cut(self._redact(text))


def _shorten(fields: dict[str, Any]) -> dict[str, Any]:
    is_short = all(len(each) <= _MAX_TEXT if type(each) is str else type(each) in PLAIN for each in fields.values())
    return fields if is_short else redact_all(_cut, fields)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_HEAD]} … {text[_HEAD - _MAX_TEXT :]}"
