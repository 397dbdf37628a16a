"""Sizes of tables and agents in the store, and the deletion of old rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from wakeful.store.drivers.database import Statements
from wakeful.store.rows import to_micros

_SEARCH = "search_terms"  # an index of SQLite is several tables


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTexts:
    """Messages and runs of one agent in the store."""

    agent_id: str
    name: str
    user_name: str
    messages: int = 0
    message_bytes: int = 0
    runs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OldRun:
    """A run that may be deleted."""

    id: str
    wake_id: str | None
    queued_at: int  # microseconds


class StorageRows:
    """Statements about sizes and old rows, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def table_sizes(self) -> dict[str, int]:
        """Return the bytes of each table with its indexes. In SQLite it reads the whole file."""
        found: dict[str, int] = {}
        for row in await self._statements.fetch("table_sizes", {}):
            name = _SEARCH if row["name"].startswith(_SEARCH) else row["name"]
            found[name] = found.get(name, 0) + row["bytes"]
        return found

    async def texts_of_agents(self) -> list[StoredTexts]:
        """Return how much of each agent is in the store. It reads every message."""
        texts = {row["agent_id"]: row for row in await self._statements.fetch("texts_of_agents", {})}
        runs = {row["agent_id"]: row["runs"] for row in await self._statements.fetch("runs_of_agents", {})}
        return [
            StoredTexts(
                agent_id=row["id"],
                name=row["name"],
                user_name=row["user_name"],
                messages=texts[row["id"]]["messages"] if row["id"] in texts else 0,
                message_bytes=texts[row["id"]]["bytes"] if row["id"] in texts else 0,
                runs=runs.get(row["id"], 0),
            )
            for row in await self._statements.fetch("named_agents", {})
        ]

    async def sizes_of_homes(self) -> Mapping[str, tuple[int, int]]:
        """Return the bytes of each agent's database and files; only a shared store has them."""
        if self._statements.dialect == "sqlite":
            return {}
        rows = await self._statements.fetch("sizes_of_homes", {})
        return {row["agent_id"]: (row["databases"], row["files"]) for row in rows}

    async def users(self) -> list[str]:
        return [row["id"] for row in await self._statements.fetch("all_users", {})]

    async def old_runs(self, user_id: str, before: datetime, after: tuple[int, str], most: int) -> list[OldRun]:
        """Return runs of a user that ended before a time, the oldest first, after a place (queued_at, id)."""
        params = {
            "user_id": user_id,
            "before": to_micros(before),
            "after": after[0],
            "after_id": after[1],
            "most": most,
        }
        rows = await self._statements.fetch("old_runs", params)
        return [OldRun(id=row["id"], wake_id=row["wake_id"], queued_at=row["queued_at"]) for row in rows]

    async def delete_runs(self, runs: Sequence[OldRun], before: datetime) -> int:
        """Delete runs with their usage and decisions, and wakes that are over and have no run left."""
        deleted = 0
        for run in runs:
            if not await self._statements.fetch("delete_run", {"id": run.id, "before": to_micros(before)}):
                continue
            deleted += 1
            await self._statements.fetch("delete_usage_of_run", {"run_id": run.id})
            if run.wake_id is None:
                continue
            await self._statements.fetch("delete_decisions_of_run", {"wake_id": run.wake_id, "run_id": run.id})
            if await self._statements.fetch("delete_ended_wake", {"id": run.wake_id}):
                await self._statements.fetch("delete_decisions_of_wake", {"wake_id": run.wake_id})
        return deleted

    async def old_sessions(self, user_id: str, before: datetime, most: int) -> list[str]:
        """Return unattended sessions of a user that nothing happened in since a time."""
        params = {"user_id": user_id, "before": to_micros(before), "most": most}
        return [row["id"] for row in await self._statements.fetch("old_sessions", params)]
