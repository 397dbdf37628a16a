"""Notices to people, and the decisions behind them, in the store."""

from collections.abc import Sequence

from wakeful.domain.types import Decision, Notice
from wakeful.store.database import Statements
from wakeful.store.rows import DECISIONS, NOTICES


class Notices:
    """Statements about what was told and why, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add(self, notice: Notice) -> bool:
        """Put a notice into the inbox, unless the same thing was told already."""
        return bool(await self._statements.fetch("add_notice", NOTICES.write(notice)))

    async def of_user(self, user_id: str, most: int = 100) -> list[Notice]:
        rows = await self._statements.fetch("notices_of_user", {"user_id": user_id, "most": most})
        return [NOTICES.read(row) for row in rows]

    async def record(self, decisions: Sequence[Decision]) -> None:
        await self._statements.fetch_many(
            "add_decisions",
            [{**DECISIONS.write(decision), "position": number} for number, decision in enumerate(decisions)],
        )

    async def decisions_of(self, wake_id: str, most: int = 1_000) -> list[Decision]:
        rows = await self._statements.fetch("decisions_of_wake", {"wake_id": wake_id, "most": most})
        return [DECISIONS.read(row) for row in rows]
