"""Lists that come in pages: `next` is what to send as `page` for the following one."""

import base64
import binascii
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Query

from wakeful.domain.errors import Invalid

Most = Annotated[int, Query(alias="limit", ge=1, le=200, description="How many at most.")]
Page = Annotated[str | None, Query(max_length=200, description="Where to go on: the `next` of the page before.")]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BadPage(Invalid):
    code = "bad_page"

    def __init__(self, page: str) -> None:
        super().__init__(f"`page` must be the `next` of the previous page, got {page!r}.", field="page")


def read_page(page: str | None) -> tuple[datetime, str] | None:
    """Read where a page begins."""
    if page is None:
        return None
    try:
        at, _, last_id = base64.urlsafe_b64decode(page.encode()).decode().partition(" ")
        if not at.isascii() or len(at) > 18 or "\x00" in last_id:
            raise BadPage(page)
        return _EPOCH + timedelta(microseconds=int(at)), last_id
    except (binascii.Error, ValueError, OverflowError):
        raise BadPage(page) from None


def next_page(found: Sequence[object], most: int, at: datetime | None, last_id: str | None) -> str | None:
    """Write where the page after this one begins; None if this is the last."""
    if len(found) < most or at is None or last_id is None:
        return None
    micros = (at - _EPOCH) // timedelta(microseconds=1)
    return base64.urlsafe_b64encode(f"{micros} {last_id}".encode()).decode()
