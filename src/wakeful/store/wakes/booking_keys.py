"""Repeated bookings of programs: their keys, and their latest wakes, in the store."""

from datetime import datetime, timedelta

from wakeful.domain.types import Wake
from wakeful.store.drivers.database import Statements
from wakeful.store.rows import WAKES, to_micros

KEPT = timedelta(hours=24)


class BookingKeys:
    """Statements about repeated bookings, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def take(self, token_id: str, key: str, wake_id: str, now: datetime) -> str:
        """Return the wake that has a key of a token: this one, or an earlier one of the last 24 hours."""
        params = {
            "token_id": token_id,
            "key": key,
            "wake_id": wake_id,
            "now": to_micros(now),
            "since": to_micros(now - KEPT),
            "latest": to_micros(now + KEPT),
        }
        [row] = await self._statements.fetch("take_booking_key", params)
        return row["wake_id"]

    async def latest(self, wake: Wake, since: datetime, until: datetime) -> list[Wake]:
        """Return what the token that books a wake has booked lately for the same agent with the same text."""
        params = {
            "token_id": wake.token_id,
            "agent_id": wake.agent_id,
            "instructions": wake.instructions,
            "since": to_micros(since),
            "until": to_micros(until),
        }
        return WAKES.read_all(await self._statements.fetch("latest_wakes_of_token", params))

    async def forget(self, now: datetime) -> None:
        """Delete the keys that count no more."""
        params = {"since": to_micros(now - KEPT), "latest": to_micros(now + KEPT)}
        await self._statements.fetch("forget_booking_keys", params)
