"""The brake on the bookings and runs of one token or hook."""

from datetime import datetime

from wakeful.core.labels import HOUR, TokenBraked, Via
from wakeful.core.types import Rules
from wakeful.store.store import Tx

SIDE_REQUESTS = 4  # for each run that a token may start: a chat page asks for up to three after a message


async def check_brake(tx: Tx, via: Via | None, now: datetime, rules: Rules, *, is_side_request: bool = False) -> None:
    """Refuse a booking or a run of a token that has used up its hour. Until the transaction ends, no other one counts.

    Requests for titles, tags and follow-ups are counted apart, so that they leave no less room for messages. Call it
    before anything else that locks a row, so that all transactions take their locks in the same order.
    """
    if via is None or not via.is_braked or via.token_id is None:
        return
    await tx.token_uses.lock(via.token_id)
    most = rules.runs_per_token * (SIDE_REQUESTS if is_side_request else 1)
    used_at = await tx.token_uses.find(via.token_id, now, most, is_side_request=is_side_request)
    if used_at is not None:
        what = "asked for {} titles, tags and follow-ups" if is_side_request else "booked or started {} runs"
        raise TokenBraked(via, what.format(most), used_at + HOUR, now)
