"""Redaction of secrets in log lines, also in those that libraries write."""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, cast
from urllib.parse import quote

GONE = "[secret]"
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


def redactor(known: Collection[str] = ()) -> Callable[[str], str]:
    """Return a function that redacts a text: the known secrets, and everything that looks like one."""
    long = [secret for secret in known if len(secret) >= _MIN_LENGTH]
    words = sorted({*long, *(quote(secret, safe="") for secret in long)}, key=len, reverse=True)
    patterns = [*map(re.escape, words), _OURS, _HEADER, _CREDENTIALS, _IN_QUERY, _IN_ADDRESS]
    found = re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)
    signs = (*_SIGNS, *(word.lower() for word in words))

    def redact(text: str) -> str:
        lower = text.lower()
        return found.sub(_replace, text) if any(sign in lower for sign in signs) else text

    return redact


def redact_all(redact: Callable[[str], str], value: Any) -> Any:
    """Redact a field of a log line, also in nested values; types that JSON does not have become text."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, dict):
        fields = cast(dict[Any, Any], value)
        return {redact(str(key)): _redact_field(redact, str(key), each) for key, each in fields.items()}
    if isinstance(value, (list, tuple)):
        return [redact_all(redact, each) for each in cast(Sequence[Any], value)]
    return redact(str(value))


def _redact_field(redact: Callable[[str], str], name: str, value: Any) -> Any:
    is_secret = isinstance(value, (str, bytes)) and _SECRET_FIELD.search(name)
    return GONE if is_secret else redact_all(redact, value)


def _replace(found: re.Match[str]) -> str:
    named = found.groupdict()
    if named["header"]:
        return f"{named['header']}{named['between']}{GONE}"
    if named["scheme"]:
        return f"{named['scheme']}{GONE}"
    if named["parameter"]:
        return f"{named['parameter']}={GONE}"
    return GONE
