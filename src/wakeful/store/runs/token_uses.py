"""Recent bookings and runs of programs' tokens and of hooks, in the store."""

from datetime import datetime, timedelta

from wakeful.store.drivers.database import Statements
from wakeful.store.rows import from_micros, to_micros
from wakeful.store.runs.runs import Started

_HOUR = timedelta(hours=1)


class TokenUses:
    """Statements about the uses of a token or a hook, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def lock(self, token_id: str) -> None:
        """Let no other transaction count this token's uses before this one has ended."""
        if self._statements.dialect == "postgres":  # SQLite has one writer at a time
            await self._statements.fetch("lock_token", {"token_id": token_id})

    async def find(self, token_id: str, now: datetime, most: int, *, is_side_request: bool = False) -> datetime | None:
        """Return the time of the use that fills the last hour; None if there is room for another one."""
        name = "side_request_of_token" if is_side_request else "use_of_token"
        rows = await self._statements.fetch(name, _last_hour(token_id, now) | {"later": most - 1})
        return from_micros(rows[0]["at"]) if rows else None

    async def started(self, token_id: str, now: datetime) -> Started:
        """Return how many runs a token started in the last hour, itself or by its bookings."""
        [row] = await self._statements.fetch("started_by_token", _last_hour(token_id, now))
        first: int | None = row["first_at"]
        return Started(row["started"], None if first is None else from_micros(first))


def _last_hour(token_id: str, now: datetime) -> dict[str, str | int]:
    return {"token_id": token_id, "since": to_micros(now - _HOUR), "until": to_micros(now + _HOUR)}
