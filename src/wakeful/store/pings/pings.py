"""The last heartbeat ping of all nodes, in the store."""

from datetime import datetime

from wakeful.store.drivers.database import Statements
from wakeful.store.rows import to_micros


class PingRows:
    """Statements about the heartbeat ping, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def take(self, now: datetime, before: datetime, *, is_ready: bool) -> bool:
        """Note a ping of now if the last one is older than `before`; return whether it was."""
        params = {"now": to_micros(now), "before": to_micros(before), "is_ready": int(is_ready)}
        return bool(await self._statements.fetch("take_heartbeat_ping", params))
