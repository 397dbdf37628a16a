"""Data directories, the nodes on them, and the agents bound to them, in the store."""

from collections.abc import Sequence
from datetime import datetime

from wakeful.domain.agents.directories import AwayDirectory, Directory
from wakeful.domain.news import RunChanged, RunQueued
from wakeful.domain.types import Run
from wakeful.store.drivers.database import Row, Statements
from wakeful.store.rows import RUNS, Table, from_micros, to_micros

_AWAY = Table(AwayDirectory)


class DirectoryRows:
    """Statements about data directories, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def save(
        self, directory_id: str, place: str, key_fingerprint: str | None, now: datetime, *, overwrite: bool
    ) -> str | None:
        """Keep a directory, and return the fingerprint of its device key; a known one stays unless overwritten."""
        params = {
            "id": directory_id,
            "place": place,
            "key_fingerprint": key_fingerprint,
            "seen_at": to_micros(now),
            "overwrite": int(overwrite),
        }
        return (await self._statements.fetch("save_directory", params))[0]["key_fingerprint"]

    async def of_agent(self, agent_id: str, since: datetime) -> Directory | None:
        """Return the directory that an agent is bound to; None: it has no database and no files."""
        params = {"agent_id": agent_id, "since": to_micros(since)}
        rows = await self._statements.fetch("directory_of_agent", params)
        return _read(rows[0]) if rows else None

    async def bind(self, agent_id: str, directory_id: str) -> None:
        """Bind an agent to the directory that its files are in, unless it is bound already."""
        await self._statements.fetch("bind_agent", {"agent_id": agent_id, "directory_id": directory_id})

    async def unbind(self, agent_id: str, directory_id: str) -> None:
        """Note that an agent's files were moved from a directory into its home."""
        await self._statements.fetch("unbind_agent", {"agent_id": agent_id, "directory_id": directory_id})

    async def see_node(self, owner: str, directory_id: str, key_fingerprint: str, now: datetime) -> None:
        """Note that a node is alive."""
        at = to_micros(now)
        params = {"owner": owner, "directory_id": directory_id, "key_fingerprint": key_fingerprint, "now": at}
        await self._statements.fetch("see_node", params)
        await self._statements.fetch("see_directory", {"id": directory_id, "now": at})

    async def delete_node(self, owner: str) -> None:
        await self._statements.fetch("delete_node", {"owner": owner})

    async def delete_dead_nodes(self, before: datetime) -> None:
        await self._statements.fetch("delete_dead_nodes", {"before": to_micros(before)})

    async def has_other_key(self, directory_id: str, key_fingerprint: str, since: datetime) -> bool:
        """Return whether a running node has the same directory and another device key."""
        params = {"directory_id": directory_id, "key_fingerprint": key_fingerprint, "since": to_micros(since)}
        return bool(await self._statements.fetch("live_node_with_other_key", params))

    async def away(self, since: datetime, own: str) -> list[AwayDirectory]:
        """Return the directories besides our own that agents need and no node has had since a moment."""
        params = {"since": to_micros(since), "own": own}
        return _AWAY.read_all(await self._statements.fetch("away_directories", params))

    async def hold_runs(self, since: datetime, own: str) -> list[Run]:
        """Mark the queued runs whose directory no node has had since a moment, and return those newly marked."""
        return self._changed(await self._statements.fetch("hold_runs", {"since": to_micros(since), "own": own}))

    async def release_runs(self, directory_id: str) -> None:
        """Take the mark off the runs that waited for a directory."""
        rows = await self._statements.fetch("release_held_runs", {"directory_id": directory_id})
        if rows:
            self._statements.news.extend(RunChanged(row["id"], "queued") for row in rows)
            self._statements.news.append(RunQueued())

    async def interrupt_messages(self, before: datetime, own: str, error: str, now: datetime) -> list[Run]:
        """End the held messages whose directory no node has had since a moment."""
        params = {"before": to_micros(before), "own": own, "error": error, "now": to_micros(now)}
        return self._changed(await self._statements.fetch("interrupt_held_messages", params))

    def _changed(self, rows: Sequence[Row]) -> list[Run]:
        runs = RUNS.read_all(rows)
        self._statements.news.extend(RunChanged(run.id, run.status, run.reason) for run in runs)
        return runs


def _read(row: Row) -> Directory:
    return Directory(
        id=row["id"],
        place=row["place"],
        seen_at=from_micros(row["seen_at"]),
        is_alive=row["alive"] is not None,
    )
