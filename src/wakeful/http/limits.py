"""Size limits of request bodies: checked before reading if the length is known, otherwise while reading."""

import asyncio
import ctypes
import json
import logging
import math
import re
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from itertools import accumulate
from typing import Any, NoReturn

from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wakeful.core.clock import Clock

MAX_BODY = 72 * 1024 * 1024  # of messages with images, uploads and imports
MAX_COMPLETION = 20 * 1024 * 1024  # of chat completions, which have the whole history
MAX_JSON = 1024 * 1024
MAX_OPEN_BODY = 64 * 1024  # without a token
MAX_HOOK_BODY = 1024 * 1024  # of a delivery to a hook, also without a token


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


# Limits of JSON in requests: nesting, number of values, and no duplicate fields.
#
# A parser creates an object for every value: 70 MB of `[[],[],…]` blocked all other requests for 12 s. So depth and
# values are counted first, without creating any. The count works through the text in windows, because one call on all
# of it would hold the interpreter's lock for a second.


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


# Rate limit for log records that unauthenticated clients can cause, so that they cannot fill the log.


MAX_A_MINUTE = 20
_MAX_KINDS = 100

# uvicorn logs every request that it cannot parse and every refused socket, asyncio connections that it cannot accept.
_LOGGERS = ("uvicorn.error", "asyncio")


class Repeats(logging.Filter):
    """Passes the first few records of a kind per minute, and adds to the next how many were left out."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._since = 0.0
        self._logged: dict[object, int] = {}  # in this minute, by kind
        self._left_out: dict[object, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now, kind = self._clock.monotonic(), record.msg  # the message before its arguments are inserted
        if now - self._since >= 60:
            self._since = now
            self._logged.clear()
        if self._logged.get(kind, 0) >= MAX_A_MINUTE or len(self._logged) >= _MAX_KINDS:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return False
        self._logged[kind] = self._logged.get(kind, 0) + 1
        if left_out := self._left_out.pop(kind, 0):
            record.msg = f"{record.msg} ({left_out} more like it were left out)"
        return True


@contextmanager
def bounded_logs(clock: Clock) -> Generator[None]:
    """Limit the loggers of uvicorn and asyncio inside the block."""
    repeats = Repeats(clock)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for each in loggers:
        each.addFilter(repeats)
    try:
        yield
    finally:
        for each in loggers:
            each.removeFilter(repeats)


# Return the memory of large bodies to the system.
#
# The C library keeps freed memory: after five messages of 70 MB, the process stayed 390 MB larger.


_DELAY = 5.0  # seconds, until the run of a message has freed it too

_due: set[asyncio.AbstractEventLoop] = set()


def trim_soon() -> None:
    """Return freed memory to the system in a moment, once for all calls in between."""
    loop = asyncio.get_running_loop()
    if loop not in _due and _trim() is not None:
        _due.add(loop)
        loop.call_later(_DELAY, _trim_now, loop)


def _trim_now(loop: asyncio.AbstractEventLoop) -> None:
    _due.discard(loop)
    loop.run_in_executor(None, _trim(), 0)


@cache
def _trim() -> Any:
    """Return malloc_trim if the C library has it (glibc)."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


# Logs each request, if the setting `log_requests` asks for it.


log = logging.getLogger(__name__)

_MAX_PATH = 200


class RequestLog:
    """Logs the end of each HTTP request and each socket: no query, header or body, which may hold secrets."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def noted_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "websocket.close":
                status = message.get("code", 1000)
            await send(message)

        try:
            await self._app(scope, receive, noted_send)
        finally:
            client = scope.get("client") or ("",)
            fields = {
                "method": scope.get("method", "socket"),
                "path": _path(scope),
                "status": status,
                "seconds": round(time.monotonic() - began, 3),
                "client": client[0],
            }
            log.info("request", extra=fields)


def _path(scope: Scope) -> str:
    """Return the path as it was sent, percent-encoded: decoded, it could contain a line break."""
    return (scope.get("raw_path") or b"").partition(b"?")[0].decode("latin-1")[:_MAX_PATH]
