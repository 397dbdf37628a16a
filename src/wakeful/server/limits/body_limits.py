"""Size limits of request bodies: checked before reading if the length is known, otherwise while reading."""

from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

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
