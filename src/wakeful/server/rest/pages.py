"""Pages of lists: send `next` as `page` to get the next one."""

import base64
import binascii
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypeVar

from fastapi import Query

from wakeful.domain.errors import Invalid

Most = Annotated[int, Query(alias="limit", ge=1, le=200, description="How many at most.")]
Page = Annotated[str | None, Query(max_length=200, description="The `next` of the page before.")]

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BadPage(Invalid):
    code = "bad_page"

    def __init__(self, page: str) -> None:
        super().__init__(f"`page` must be the `next` of the previous page, got {page!r}.", field="page")


def read_page(page: str | None) -> tuple[datetime, str] | None:
    """Parse where a page begins: after this time and id."""
    if page is None:
        return None
    try:
        at, _, last_id = base64.urlsafe_b64decode(page.encode()).decode().partition(" ")
        if not at.isascii() or len(at) > 18 or "\x00" in last_id:
            raise BadPage(page)
        return _EPOCH + timedelta(microseconds=int(at)), last_id
    except (binascii.Error, ValueError, OverflowError):
        raise BadPage(page) from None


def next_page(found: Sequence[T], most: int, place_of: Callable[[T], tuple[datetime, str]]) -> str | None:
    """Return where the next page begins, after the time and id of the last entry; None if there is none."""
    if len(found) < most:
        return None
    at, last_id = place_of(found[-1])
    micros = (at - _EPOCH) // timedelta(microseconds=1)
    return base64.urlsafe_b64encode(f"{micros} {last_id}".encode()).decode()
