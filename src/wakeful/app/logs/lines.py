"""Log lines: a message and its fields, as text or JSON, with secrets redacted."""

import json
import logging
import re
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any

import orjson

from wakeful.app.logs.preparing import VERDICT, Preparing
from wakeful.app.logs.redaction import redact_all, redactor
from wakeful.app.logs.writer import LogWriter

_PLAIN = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
    VERDICT,
}
_NEEDS_QUOTES = re.compile(r"[\s\"=\x00-\x1f\x7f-\x9f\u2028\u2029]|^$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def setup_logging(level: str, style: str, secrets: Collection[str] = ()) -> LogWriter:
    """Log to standard error, and redact known secrets and everything that looks like one.

    The level is that of Wakeful's own loggers. Libraries log warnings and errors only.
    """
    writer = LogWriter()
    redact = redactor(secrets)
    writer.setFormatter(_Json(redact) if style == "json" else _Text(redact))
    writer.addFilter(Preparing())
    logging.basicConfig(level="ERROR" if level == "error" else "WARNING", handlers=[writer], force=True)
    logging.getLogger("wakeful").setLevel(level.upper())
    logging.captureWarnings(True)
    # No handler prints these, and they cost a third of the time that making a record takes.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    return writer


def keep_quiet() -> None:
    """Print no log lines in this process: its command prints the results."""
    logging.getLogger().addHandler(logging.NullHandler())


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in record.__dict__.items() if key not in _PLAIN}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


class _Formatter(logging.Formatter):
    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def traceback_of(self, record: logging.LogRecord) -> str | None:
        if record.exc_text or not record.exc_info:
            return record.exc_text
        return self.formatException(record.exc_info)


class _Text(_Formatter):
    """One line for each record, whatever is in its fields: a text from outside cannot look like a line of its own."""

    def format(self, record: logging.LogRecord) -> str:
        # Redacted before they are quoted: the patterns do not know escaped quotation marks.
        clean = redact_all(self._redact, fields_of(record))
        fields = "".join(f" {key}={_quote(value)}" for key, value in clean.items())
        room = record.name.removeprefix("wakeful.")
        message = _escape(self._redact(record.getMessage()))
        line = f"{_time(record)} {record.levelname.lower():7} {room}: {message}{fields}"
        traceback = self.traceback_of(record)
        return f"{line}\n{self._redact(traceback)}" if traceback else line


def _quote(value: object) -> str:
    if isinstance(value, (int, float)):
        return str(value)
    text = str(value)
    return _escape(json.dumps(text, ensure_ascii=False)) if _NEEDS_QUOTES.search(text) else text


def _escape(text: str) -> str:
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


class _Json(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        if traceback := self.traceback_of(record):
            line["exception"] = traceback
        return orjson.dumps(redact_all(self._redact, line)).decode()
