"""Log lines: a message and its fields, as text or JSON, with secrets redacted."""

import logging
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any

import orjson

from wakeful.app.logs.redaction import redact_all, redactor

_PLAIN = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}


def setup_logging(level: str, style: str, secrets: Collection[str] = (), node: str | None = None) -> None:
    """Log to standard error, and redact known secrets and everything that looks like one.

    With the name of a node, every line has it: lines of several nodes may be collected in one place.
    """
    handler = logging.StreamHandler()
    redact = redactor(secrets)
    handler.setFormatter(_Json(redact, node) if style == "json" else _Text(redact, node))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("uvicorn.error").setLevel("WARNING" if level == "info" else level.upper())


def keep_quiet() -> None:
    """Print no log lines in this process: its command prints the results."""
    logging.getLogger().addHandler(logging.NullHandler())


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in record.__dict__.items() if key not in _PLAIN}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


class _Formatter(logging.Formatter):
    def __init__(self, redact: Callable[[str], str], node: str | None = None) -> None:
        super().__init__()
        self._redact = redact
        self._node = {} if node is None else {"node": node}

    def fields_of(self, record: logging.LogRecord) -> dict[str, Any]:
        return self._node | fields_of(record)


class _Text(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {key}={value}" for key, value in self.fields_of(record).items())
        room = record.name.removeprefix("wakeful.")
        line = f"{_time(record)} {record.levelname.lower():7} {room}: {record.getMessage()}{fields}"
        return self._redact(f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line)


class _Json(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self.fields_of(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(redact_all(self._redact, line)).decode()
