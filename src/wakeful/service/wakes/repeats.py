"""Repeated bookings of programs: clients retry, and a request that is sent twice books once."""

from datetime import datetime, timedelta

from wakeful.domain.doors.booking import KeyTaken, is_repeat, is_same_task
from wakeful.domain.types import Wake
from wakeful.store.store import Tx

_RETRIED_WITHIN = timedelta(seconds=60)


async def find_repeated(tx: Tx, wake: Wake, key: str | None, now: datetime) -> Wake | None:
    """Return the wake that an earlier request of the same token booked, if this request repeats it.

    With a key, that of the last 24 hours; without one, the same booking within a minute. Until the transaction ends,
    no other one of this token looks.
    """
    assert wake.token_id is not None
    await tx.token_uses.lock(wake.token_id)
    if key is None:
        found = await tx.booking_keys.latest(wake, now - _RETRIED_WITHIN, now + _RETRIED_WITHIN)
        return next((first for first in found if is_repeat(first, wake)), None)
    first_id = await tx.booking_keys.take(wake.token_id, key, wake.id, now)
    first = None if first_id == wake.id else await tx.wakes.find(first_id)
    if first is not None and not is_same_task(first, wake):
        raise KeyTaken(key, first)
    return first
