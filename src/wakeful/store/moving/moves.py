"""Moves of an embedded store to this one, in the store."""

from wakeful.store.drivers.database import Statements


class MoveRows:
    """Statements about moves, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def find_blocking(self) -> str | None:
        """Return "unfinished" or "undone" if a move keeps servers from this store."""
        rows = await self._statements.fetch("blocking_move", {})
        if not rows:
            return None
        return "unfinished" if rows[0]["undone_at"] is None else "undone"
