"""Redaction of secrets in log lines, also in those that libraries write."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple, cast
from urllib.parse import quote

from wakeful.telemetry.log_fields import Lines

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
