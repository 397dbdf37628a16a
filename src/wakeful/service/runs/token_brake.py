"""The brake on the bookings and runs of one token or hook."""

from datetime import datetime

from wakeful.domain.bounds.limits import Rules
from wakeful.domain.via import HOUR, TokenBraked, Via
from wakeful.store.store import Tx


async def check_brake(tx: Tx, via: Via | None, now: datetime, rules: Rules) -> None:
    """Refuse a booking or a run of a token that has used up its hour. Until the transaction ends, no other one counts.

    Call it before anything else that locks a row, so that all transactions take their locks in the same order.
    """
    if via is None or not via.is_braked or via.token_id is None:
        return
    await tx.token_uses.lock(via.token_id)
    used_at = await tx.token_uses.find(via.token_id, now, rules.runs_per_token)
    if used_at is not None:
        raise TokenBraked(via, rules.runs_per_token, used_at + HOUR, now)
