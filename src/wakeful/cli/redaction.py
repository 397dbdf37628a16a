"""Secrets are taken out of every log line, whoever wrote it: our own code or a library at its most talkative."""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, cast
from urllib.parse import quote

GONE = "[secret]"
_SHORTEST = 6  # characters; a shorter one is no secret, and would be found inside of other words

# Everything we make: tokens, cookies, page secrets, tickets, login codes.
_OURS = r"wkf_[\w-]{20,}"
# In an address.
_IN_QUERY = r"(?<=[?&])(?P<parameter>ticket|code|token|access_token|api_key|key|secret|password)=[^&\s\"'<>\\]+"
# The password of an address.
_IN_ADDRESS = r"(?<=://)[^/\s:@\"']*:[^/\s@\"']+(?=@)"
# A header in any form that libraries write one: 'Cookie: x', {'cookie': 'x'}, (b'cookie', b'x').
_HEADER = (
    r"(?P<header>\b(?:proxy-)?authorization|\b(?:set-)?cookie|\bx-wakeful-page|\bx-api-key|\bapi-key)"
    r"(?P<between>[\"']?\s*[:=]\s*|[\"']\s*,\s*)(?:b(?=[\"']))?"
    r"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\"'\r\n][^\r\n]*)"
)
# The scheme of a header's value that stands by itself.
_CREDENTIALS = r"(?P<scheme>\b(?:bearer|basic) )[\w.~+/=-]+"


def redactor(known: Collection[str] = ()) -> Callable[[str], str]:
    """Make what takes secrets out of a text: those that look like one, and those that are known."""
    long = [secret for secret in known if len(secret) >= _SHORTEST]
    words = sorted({*long, *(quote(secret, safe="") for secret in long)}, key=len, reverse=True)
    patterns = [*map(re.escape, words), _OURS, _HEADER, _CREDENTIALS, _IN_QUERY, _IN_ADDRESS]
    found = re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)
    return lambda text: found.sub(_replace, text)


def redact_all(redact: Callable[[str], str], value: Any) -> Any:
    """Take secrets out of a value of a log line, however deep; what JSON does not know becomes text."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, dict):
        fields = cast(dict[Any, Any], value)
        return {redact(str(key)): redact_all(redact, each) for key, each in fields.items()}
    if isinstance(value, (list, tuple)):
        return [redact_all(redact, each) for each in cast(Sequence[Any], value)]
    return redact(str(value))


def _replace(found: re.Match[str]) -> str:
    named = found.groupdict()
    if named["header"]:
        return f"{named['header']}{named['between']}{GONE}"
    if named["scheme"]:
        return f"{named['scheme']}{GONE}"
    if named["parameter"]:
        return f"{named['parameter']}={GONE}"
    return GONE
