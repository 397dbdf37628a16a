"""Redaction of secrets in log lines, also in those that libraries write."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, cast
from urllib.parse import quote

GONE = "[secret]"
PLAIN = frozenset({int, float, bool, type(None)})  # values that hold no text
_MIN_LENGTH = 6  # a shorter text is not a secret, and would be found inside other words

# Secrets that the server creates: tokens, cookies, page secrets, tickets, login codes.
_OURS = r"wkf_[\w-]{20,}"
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


class Redactor:
    """Redacts texts: the known secrets, and everything that looks like one."""

    def __init__(self, known: Collection[str] = ()) -> None:
        long = [secret for secret in known if len(secret) >= _MIN_LENGTH]
        words = sorted({*long, *(quote(secret, safe="") for secret in long)}, key=len, reverse=True)
        patterns = [*map(re.escape, words), _OURS, _HEADER, _CREDENTIALS, _IN_QUERY, _IN_ADDRESS]
        self._found = re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)
        self._signs = (*_SIGNS, *(word.lower() for word in words))

    def __call__(self, text: str) -> str:
        return self._found.sub(_replace, text) if self.may_find(text) else text

    def may_find(self, text: str) -> bool:
        """Return whether a text could hold a secret: much quicker than looking for one."""
        lower = text.lower()
        return any(sign in lower for sign in self._signs)

    def clean(self, lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the fields of log lines without secrets, with values that JSON has."""
        if self._are_harmless(lines):
            return [dict(fields) for fields in lines]
        return [redact_all(self, fields) for fields in lines]

    def _are_harmless(self, lines: Sequence[Mapping[str, Any]]) -> bool:
        """Look at all values at once, since nearly all lines hold ids, codes and numbers."""
        texts: list[str] = []
        for fields in lines:
            for value in fields.values():
                if type(value) is str:
                    texts.append(value)
                elif type(value) not in PLAIN:
                    return False
            if _has_secret_name(tuple(fields)):
                return False
        return not self.may_find(" ".join(texts))


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


@lru_cache(1_000)
def _has_secret_name(names: tuple[str, ...]) -> bool:
    return any(_is_secret_name(name) for name in names)


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
