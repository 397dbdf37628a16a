"""Keeps the last log lines in memory, redacted before they are kept."""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast, get_args

from wakeful.app.logs.lines import fields_of
from wakeful.app.logs.preparing import Preparing
from wakeful.app.logs.redaction import redact_all, redactor
from wakeful.config import Settings, secrets_of
from wakeful.service.recent_logs import LogLevel, LogLine, RecentLogs

_MAX_TEXT = 4_000  # characters of a message, a field or a traceback: 10,000 lines must fit into memory
_HEAD = 1_000
_LEVELS = get_args(LogLevel)


@contextmanager
def kept_logs(kept: RecentLogs, settings: Settings) -> Generator[None]:
    """Keep the log lines of this process during the block."""
    handler = _Keeping(kept, redactor(secrets_of(settings)))
    handler.addFilter(Preparing())
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


class _Keeping(logging.Handler):
    def __init__(self, kept: RecentLogs, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._kept = kept
        self._redact = redact

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._kept.add(self._to_line(record))
        except Exception:  # noqa: BLE001  a faulty record must not end what it was about; logging does the same
            self.handleError(record)

    def _to_line(self, record: logging.LogRecord) -> LogLine:
        level = record.levelname.lower()
        exception = logging.Formatter().formatException(record.exc_info) if record.exc_info else None
        return LogLine(
            at=datetime.fromtimestamp(record.created, UTC),
            level=cast("LogLevel", level) if level in _LEVELS else "info",
            logger=record.name,
            message=self._clean(record.getMessage()),
            fields=cast("dict[str, Any]", redact_all(self._clean, fields_of(record))),
            exception=None if exception is None else self._clean(exception),
        )

    def _clean(self, text: str) -> str:
        text = self._redact(text)
        return text if len(text) <= _MAX_TEXT else f"{text[:_HEAD]} … {text[_HEAD - _MAX_TEXT :]}"
