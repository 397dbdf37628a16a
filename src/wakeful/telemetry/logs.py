"""Log lines: a message and its fields, as text or JSON, with secrets redacted and repeated failures left out."""

import json
import logging
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

from wakeful.telemetry.log_fields import EACH, Lines, run_fields
from wakeful.telemetry.log_writer import LogWriter
from wakeful.telemetry.redaction import CleanFields, Redactor, find_redactor

# Prepares log records: the ids of their run, quiet libraries, one traceback for many failures of a kind.


VERDICT = "wakeful_verdict"  # attribute of a record that was prepared

_OURS = "wakeful"
_SECONDS = 60.0
_MAX_LINES = 20  # of one kind of failure per minute, the first with its traceback
_MAX_KINDS = 200


class Preparing(logging.Filter):
    """Prepares each record once, for whichever handler sees it first.

    Libraries log requests with their content and headers below the level of a warning, and some set their own level
    from the environment; such records are dropped here.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._failures = _Failures(monotonic)

    def filter(self, record: logging.LogRecord) -> bool:
        verdict: bool | None = record.__dict__.get(VERDICT)
        if verdict is None:
            verdict = record.__dict__[VERDICT] = self._prepare(record)
        return verdict

    def _prepare(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING and record.name.partition(".")[0] != _OURS:
            return False
        for name, value in run_fields().items():
            record.__dict__.setdefault(name, value)
        return not record.exc_info or self._failures.take(record)


class _Failures:
    """Counts records with a traceback by their kind: logger, message and type of the exception."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._since = float("-inf")
        self._logged: dict[object, int] = {}  # in this minute
        self._left_out: dict[object, int] = {}

    def take(self, record: logging.LogRecord) -> bool:
        """Return whether to log a failure; all but the first of its kind in a minute lose their traceback."""
        now = self._monotonic()
        if now - self._since >= _SECONDS:
            self._since = now
            self._logged.clear()
        error = record.exc_info[1] if record.exc_info else None
        kind = record.name, record.msg, type(error)
        count = self._logged.get(kind, 0)
        if count >= _MAX_LINES or (count == 0 and len(self._logged) >= _MAX_KINDS):
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return False
        self._logged[kind] = count + 1
        if left_out := self._left_out.pop(kind, 0):
            record.__dict__["left_out"] = left_out
        if count:
            record.__dict__.setdefault("error", f"{type(error).__name__}: {error}")
            record.exc_info = None
        return True


# ── Text and JSON ────────────────────────────────────────────────────────────────────────────────────────────────────


_CLEAN = "wakeful_clean"  # attribute of a record: the redactor, and what it made of the fields
_PLAIN = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
    VERDICT,
    EACH,
    _CLEAN,
}
_NONE = CleanFields(Lines((), ()), is_bare=True)


def setup_logging(level: str, style: str, secrets: Collection[str] = (), node: str | None = None) -> LogWriter:
    """Log to standard error, and redact known secrets and everything that looks like one.

    The level is that of Wakeful's own loggers. Libraries log warnings and errors only. With the name of a node, every
    line has it: lines of several nodes may be collected in one place.
    """
    writer = LogWriter()
    redact = find_redactor(frozenset(secrets))
    writer.setFormatter(_Json(redact, node) if style == "json" else _Text(redact, node))
    writer.addFilter(Preparing())
    logging.basicConfig(level="ERROR" if level == "error" else "WARNING", handlers=[writer], force=True)
    logging.getLogger("wakeful").setLevel(level.upper())
    logging.captureWarnings(True)
    # No handler prints these, and they cost time with each record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    return writer


def keep_quiet() -> None:
    """Print no log lines in this process: its command prints the results."""
    logging.getLogger().addHandler(logging.NullHandler())


def clean_fields(redact: Redactor, record: logging.LogRecord) -> CleanFields:
    """Return the fields of each line of a record, redacted: once, for all handlers with the same redactor."""
    by, found = record.__dict__.get(_CLEAN, (None, _NONE))
    if by is not redact:
        found = redact.clean(_fields_of(record))
        record.__dict__[_CLEAN] = redact, found
    return found


def _fields_of(record: logging.LogRecord) -> Lines:
    """Return the fields of each line of a record. Most records are one line."""
    common = {key: value for key, value in record.__dict__.items() if key not in _PLAIN}
    each: Lines | None = record.__dict__.get(EACH)
    if each is None:
        return Lines(tuple(common), [tuple(common.values())])
    if not common:
        return each
    return Lines((*each.names, *common), [(*row, *common.values()) for row in each.rows])


def traceback_of(record: logging.LogRecord) -> str | None:
    """Return the traceback of a record, if it has one."""
    if record.exc_text or not record.exc_info:
        return record.exc_text
    return logging.Formatter().formatException(record.exc_info)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


class _Formatter(logging.Formatter):
    def __init__(self, redact: Redactor, node: str | None) -> None:
        super().__init__()
        self._redact = redact
        self._node = {} if node is None else {"node": node}
        self._node_words = "" if node is None else f" node={_quote(node)}"


class _Text(_Formatter):
    """One line for each record, whatever is in its fields: a text from outside cannot look like a line of its own."""

    def format(self, record: logging.LogRecord) -> str:
        logger = record.name.removeprefix("wakeful.")
        message = _escape(self._redact(record.getMessage()))
        head = f"{_time(record)} {record.levelname.lower():7} {logger}: {message}"
        # Redacted before they are quoted: the patterns do not know escaped quotation marks.
        lines = _spell_all(head + self._node_words, clean_fields(self._redact, record))
        traceback = traceback_of(record)
        return "\n".join(lines if traceback is None else [*lines, *map(_escape, self._redact(traceback).split("\n"))])


def _spell_all(head: str, clean: CleanFields) -> list[str]:
    names, rows = clean.lines
    template = head.replace("%", "%%") + _template(names)
    if clean.is_bare:
        return [template % row for row in rows]
    return [template % tuple([_quote(str(value)) for value in row]) for row in rows]


@lru_cache(1_000)
def _template(names: tuple[str, ...]) -> str:
    return "".join(f" {name.replace('%', '%%')}=%s" for name in names)


def _quote(text: str) -> str:
    is_bare = text and text.isprintable() and not any(sign in text for sign in ' "=')
    return text if is_bare else _escape(json.dumps(text, ensure_ascii=False))


def _escape(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


class _Json(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        head: dict[str, Any] = {
            "at": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redact(record.getMessage()),
        }
        traceback = traceback_of(record)
        end = {} if traceback is None else {"exception": self._redact(traceback)}
        found = clean_fields(self._redact, record).lines.as_dicts()
        return "\n".join([orjson.dumps({**head, **self._node, **fields, **end}).decode() for fields in found])
