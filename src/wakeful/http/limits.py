"""Limits of request bodies: their size, and the shape of their JSON.

The size is checked before reading if the length is known, otherwise while reading.

JSON is limited in nesting and number of values, and has no duplicate fields. A parser creates an object for every
value: 70 MB of `[[],[],…]` blocked all other requests for 12 s. So depth and values are counted first, without creating
any. The count works through the text in windows, because one call on all of it would hold the interpreter's lock for a
second.
"""

import asyncio
import ctypes
import json
import math
import re
from collections import Counter
from functools import cache
from itertools import accumulate
from typing import Any, NoReturn

from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

MAX_BODY = 72 * 1024 * 1024  # of messages with images, uploads and imports
MAX_COMPLETION = 20 * 1024 * 1024  # of chat completions, which have the whole history
MAX_JSON = 1024 * 1024
MAX_OPEN_BODY = 64 * 1024  # without a token
MAX_HOOK_BODY = 1024 * 1024  # of a delivery to a hook, also without a token
MAX_DEPTH = 100
MAX_VALUES = 100_000
MAX_FIELDS = 1_000  # of the outermost object: validation reports each unknown one, which takes 3 µs
_MAX_DIGITS = 1_000  # of a whole number; int() takes quadratic time
WINDOW = 64 * 1024
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_WHOLE_PIECES = re.compile(rb'(?:[^"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)  # stops before an unterminated string
_IN_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_NO_MARKS = bytes(set(range(256)) - set(b"[]{},"))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1, ord(","): 0}
_TRIM_AFTER = 5.0  # seconds, until the run of a message has freed it too
_trimming: set[asyncio.AbstractEventLoop] = set()


class BodyTooLarge(HTTPException):
    def __init__(self, most: int) -> None:
        super().__init__(413, f"The body of this request may have at most {most:,} bytes.")


def check_length(scope: Scope, most: int) -> None:
    """Refuse a body whose Content-Length is too large, before it is read."""
    length = Headers(scope=scope).get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > most:
        raise BodyTooLarge(most)


def limited(receive: Receive, most: int) -> Receive:
    """Refuse a body without a length as soon as more than `most` bytes have arrived."""
    received = 0

    async def receive_within_limit() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > most:
            raise BodyTooLarge(most)
        return message

    return receive_within_limit


class UnfitJson(ValueError):
    """The JSON exceeds a limit, or is invalid in a way that Python's parser accepts."""


def parse(body: bytes) -> Any:
    """Parse JSON within the limits. Raises UnfitJson, or what `json.loads` raises."""
    check_shape(body)
    try:
        # As text: bytes could be UTF-16, which check_shape does not understand.
        value = _DECODER.decode(body.decode())
    except UnicodeDecodeError as error:
        raise UnfitJson(f"The JSON is not UTF-8 at byte {error.start:,}.") from None
    if isinstance(value, dict) and len(value) > MAX_FIELDS:  # pyright: ignore[reportUnknownArgumentType]
        raise UnfitJson(f"The JSON object has {len(value):,} fields; the limit is {MAX_FIELDS:,}.")  # pyright: ignore[reportUnknownArgumentType]
    return value  # pyright: ignore[reportUnknownVariableType]


def check_shape(body: bytes) -> None:
    """Raise UnfitJson if a text is nested too deeply or has too many values. It need not be valid JSON."""
    openings = body.count(b"[") + body.count(b"{")
    if openings <= MAX_DEPTH and openings + body.count(b",") <= MAX_VALUES:
        return  # even if none of them is inside a string
    position = depth = values = 0
    while position < len(body):
        piece = _WHOLE_PIECES.match(body, position, position + WINDOW)
        assert piece is not None  # it also matches the empty string
        marks = _STRING.sub(b"", piece.group()).translate(None, _NO_MARKS)
        values += len(marks) - marks.count(b"]") - marks.count(b"}")
        if values > MAX_VALUES:
            raise UnfitJson(f"The JSON has more than {MAX_VALUES:,} values. Send less at a time.")
        depths = list(accumulate(map(_STEPS.__getitem__, marks), initial=depth))
        if max(depths) > MAX_DEPTH:
            raise UnfitJson(f"The JSON is nested more than {MAX_DEPTH} deep.")
        depth = depths[-1]
        position = piece.end() if piece.end() > position else _skip_string(body, position)


def _skip_string(body: bytes, quote: int) -> int:
    """Return the position after a string that is longer than a window."""
    position = quote + 1
    while position < len(body) and body[position] != ord('"'):
        inside = _IN_STRING.match(body, position, position + WINDOW)
        if inside is None or inside.end() == position:  # it ends with a lone backslash
            return len(body)
        position = inside.end()
    return position + 1


def _refuse_constant(name: str) -> NoReturn:
    raise UnfitJson(f"{name} is not JSON. Send a number, or null for an unknown value.")


def _read_float(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise UnfitJson(f"The number {digits[:20]} is too large. Send a smaller one, or text.")
    return number


def _read_int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise UnfitJson(f"A number has {len(digits):,} digits; the limit is {_MAX_DIGITS}. Send it as text.")
    return int(digits)


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        # Parsers differ in which of the two they use, so a proxy in between may have checked the other.
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise UnfitJson(f"The field {twice[:100]!r} occurs more than once. Send it once.")
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_read_object, parse_float=_read_float, parse_int=_read_int, parse_constant=_refuse_constant
)


def trim_soon() -> None:
    """Return freed memory to the system in a moment, once for all calls in between.

    The C library keeps it: after five messages of 70 MB, the process stayed 390 MB larger.
    """
    loop = asyncio.get_running_loop()
    if loop not in _trimming and _trim() is not None:
        _trimming.add(loop)
        loop.call_later(_TRIM_AFTER, _trim_now, loop)


def _trim_now(loop: asyncio.AbstractEventLoop) -> None:
    _trimming.discard(loop)
    loop.run_in_executor(None, _trim(), 0)


@cache
def _trim() -> Any:
    """Return malloc_trim if the C library has it (glibc)."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
