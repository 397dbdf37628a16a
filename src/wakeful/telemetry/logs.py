"""Log lines: a message and its fields, as text or JSON, with secrets redacted and repeated failures left out.

Secrets are redacted in lines of libraries too. An engine that fires thousands of wakes logs each of
them, at the cost of one record.
"""

import json
import logging
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple, cast
from urllib.parse import quote

import orjson

from wakeful.core.types import ClaimedRun
from wakeful.telemetry.log_writer import LogWriter

# Fields of log lines: the run that the current task works on, and those of many similar events at once.
#
# An engine that fires thousands of wakes logs each of them, at the cost of one record.


_fields: ContextVar[Mapping[str, str] | None] = ContextVar("wakeful_run", default=None)


def enter_run(run: ClaimedRun, trace_id: str | None = None) -> None:
    """Mark the current task, and those that it starts, as working on a run."""
    fields = {"run_id": run.id, "session_id": run.session_id}
    _fields.set(fields if trace_id is None else {**fields, "trace_id": trace_id})


def run_fields() -> Mapping[str, str]:
    """Return the ids of the current run, and of its trace if there is one; empty outside of a run."""
    return _fields.get() or {}


# ── Many similar events ──────────────────────────────────────────────────────────────────────────────────────────────

EACH = "wakeful_each"  # attribute of a record: the fields of each of its lines


class Lines(NamedTuple):
    """Fields of lines: their names once, and the values of each line in that order."""

    names: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]

    def as_dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.names, row, strict=True)) for row in self.rows]


def log_each(log: logging.Logger, message: str, names: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> None:
    """Log a line for each of these events, at `info`. Making a record takes longer than writing its line."""
    if len(rows) == 1:
        log.info(message, extra=dict(zip(names, rows[0], strict=True)))
    elif rows:
        log.info(message, extra={EACH: Lines(names, rows)})


# Redaction of secrets in log lines, also in those that libraries write.


GONE = "[secret]"
PLAIN = frozenset({int, float, bool, type(None)})  # values that hold no text
_HARMLESS = PLAIN | {str}
_IDS = frozenset({"run_id", "session_id", "agent_id", "wake_id", "trace_id"})  # made by the server, from hex digits
_MIN_LENGTH = 6  # a shorter text is not a secret, and would be found inside other words

# Secrets that the server creates: tokens, cookies, page secrets, tickets, login codes.
_OUR_TOKENS = r"wkf_[\w-]{20,}"
# A parameter of a URL, whatever its name begins with: subscription-key, access_token.
_IN_QUERY = r"(?<=[?&])(?P<parameter>[\w.-]*(?:ticket|code|token|key|secret|password|signature|sig))=[^&\s\"'<>\\]+"
# A user and password in a URL.
_IN_ADDRESS = r"(?<=://)[^/\s:@\"']*:[^/\s@\"']+(?=@)"
# A header in the forms in which libraries log it: 'Cookie: x', {'cookie': 'x'}, (b'cookie', b'x').
_HEADER = (
    r"(?P<header>\b(?:proxy-)?authorization|\b(?:set-)?cookie|\bx-wakeful-page|\bx-api-key|\bapi-key)"
    r"(?P<between>[\"']?\s*[:=]\s*|[\"']\s*,\s*)(?:b(?=[\"']))?"
    r"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\"'\r\n][^\r\n]*)"
)
# A header's value without its name.
_CREDENTIALS = r"(?P<scheme>\b(?:bearer|basic) )[\w.~+/=-]+"
# The name of a field whose value is a secret.
_SECRET_FIELD = re.compile(
    r"(?:authorization|cookie|x-wakeful-page|api[-_]?key|token|secret|password|ticket)$", re.IGNORECASE
)
# A text without any of these holds nothing that the patterns find. Looking for them takes a tenth of the time.
_SIGNS = ("wkf_", "authorization", "cookie", "x-wakeful-page", "api-key", "bearer ", "basic ", "://", "?", "&")


class CleanFields(NamedTuple):
    """Fields of log lines without secrets; `is_bare` if no value needs quotes."""

    lines: Lines
    is_bare: bool


class Redactor:
    """Redacts texts: the known secrets, and everything that looks like one."""

    def __init__(self, known: Collection[str] = ()) -> None:
        long = [secret for secret in known if len(secret) >= _MIN_LENGTH]
        words = sorted({*long, *(quote(secret, safe="") for secret in long)}, key=len, reverse=True)
        patterns = [*map(re.escape, words), _OUR_TOKENS, _HEADER, _CREDENTIALS, _IN_QUERY, _IN_ADDRESS]
        self._found = re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)
        self._signs = (*_SIGNS, *(word.lower() for word in words))

    def __call__(self, text: str) -> str:
        return self._found.sub(_replace, text) if self.may_find(text) else text

    def may_find(self, text: str) -> bool:
        """Return whether a text could hold a secret: much quicker than looking for one."""
        lower = text.lower()
        return any(sign in lower for sign in self._signs)

    def clean(self, lines: Lines) -> CleanFields:
        """Return the fields of log lines without secrets, with values that JSON has.

        It looks at each different text once, since nearly all values are ids, codes and numbers: a busy engine writes
        thousands of lines a second.
        """
        texts = _different_texts(lines)
        if texts is not None:
            text = "\n".join(texts)
            if not self.may_find(text):
                return CleanFields(lines, is_bare=_is_bare(text, texts))
        found = [redact_all(self, fields) for fields in lines.as_dicts()]
        return CleanFields(Lines(tuple(found[0]), [tuple(each.values()) for each in found]), is_bare=False)


@cache
def find_redactor(known: frozenset[str]) -> Redactor:
    """Return the redactor of these secrets: one for all handlers, so that a record is redacted once."""
    return Redactor(known)


def redact_all(redact: Callable[[str], str], value: Any) -> Any:
    """Redact a field of a log line, also in nested values; types that JSON does not have become text."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        fields = cast(Mapping[Any, Any], value)
        return {redact(str(key)): _redact_field(redact, str(key), each) for key, each in fields.items()}
    if isinstance(value, (list, tuple)):
        return [redact_all(redact, each) for each in cast(Sequence[Any], value)]
    return redact(str(value))


def _redact_field(redact: Callable[[str], str], name: str, value: Any) -> Any:
    is_secret = isinstance(value, (str, bytes)) and _is_secret_name(name)
    return GONE if is_secret else redact_all(redact, value)


def _different_texts(lines: Lines) -> set[str] | None:
    """Return the texts in the fields that are not ids; None if there may be more in them than plain values."""
    places, has_secret = _find_texts(lines.names)
    if has_secret:
        return None
    texts: set[str] = set()
    for place in places:
        column = [row[place] for row in lines.rows]
        kinds = set(map(type, column))
        if not kinds <= _HARMLESS:
            return None
        if str in kinds:
            texts.update(column if len(kinds) == 1 else [each for each in column if type(each) is str])
    return texts


def _is_bare(text: str, texts: set[str]) -> bool:
    """Return whether no text needs quotes; `text` is all of them, a line each."""
    is_printable = text.replace("\n", "").isprintable() and text.count("\n") < max(1, len(texts))
    return is_printable and " " not in text and '"' not in text and "=" not in text and "" not in texts


@lru_cache(1_000)
def _find_texts(names: tuple[str, ...]) -> tuple[list[int], bool]:
    """Return the places of fields that are not ids, and whether one of them is a secret by its name."""
    places = [place for place, name in enumerate(names) if name not in _IDS]
    return places, any(_is_secret_name(name) for name in names)


def _is_secret_name(name: str) -> bool:
    return _SECRET_FIELD.search(name) is not None


def _replace(found: re.Match[str]) -> str:
    named = found.groupdict()
    if named["header"]:
        return f"{named['header']}{named['between']}{GONE}"
    if named["scheme"]:
        return f"{named['scheme']}{GONE}"
    if named["parameter"]:
        return f"{named['parameter']}={GONE}"
    return GONE


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
