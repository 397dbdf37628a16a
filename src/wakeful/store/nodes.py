"""Nodes in the store, and what they share: pings, storage, backups, moves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import orjson

from wakeful.core.events import NodeChanged, RunChanged, RunQueued
from wakeful.core.records import BackupState, Node, NodeIdentity, NoSuchNode
from wakeful.core.types import Run
from wakeful.store.drivers.database import Row, Statements
from wakeful.store.rows import RUNS, Table, to_micros

# Nodes, and runs that wait for a node with their MCP servers, in the store.


_NODES = Table(Node)


class NodeRows:
    """Statements about nodes, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def describe(
        self, node: NodeIdentity, started_at: datetime, *, is_draining: bool, token_id: str | None
    ) -> None:
        """Record what others may know of a node whose row is there."""
        params = {
            "owner": node.owner,
            "name": node.name,
            "version": node.version,
            "started_at": to_micros(started_at),
            "mcp_servers": orjson.dumps(node.mcp_servers).decode(),
            "is_draining": int(is_draining),
            "token_id": token_id,
        }
        await self._statements.fetch("describe_node", params)

    async def set_token(self, owner: str, token_id: str) -> None:
        """Record the owner's token of a node, which is kept while it runs."""
        await self._statements.fetch("set_node_token", {"owner": owner, "token_id": token_id})

    async def all(self, since: datetime) -> list[Node]:
        """Return every node that is known; those with a heartbeat since a moment are alive."""
        return _NODES.read_all(await self._statements.fetch("all_nodes", {"since": to_micros(since)}))

    async def count_agents(self) -> int:
        return (await self._statements.fetch("count_agents", {}))[0]["agents"]

    async def set_draining(self, owner: str, *, is_draining: bool) -> None:
        if not await self._statements.fetch("set_draining", {"owner": owner, "is_draining": int(is_draining)}):
            raise NoSuchNode(owner)
        self._statements.news.append(NodeChanged(owner))

    async def find_draining(self, owner: str) -> bool | None:
        """Return whether a node is to drain; None: its row is missing, or nothing is described in it."""
        rows = await self._statements.fetch("node_by_owner", {"owner": owner})
        return bool(rows[0]["is_draining"]) if rows and rows[0]["name"] else None

    async def is_mcp_missing(self, since: datetime) -> bool:
        """Return whether an agent needs MCP servers that no node has had since a moment."""
        return bool(await self._statements.fetch("agents_without_mcp_node", {"since": to_micros(since)}))

    async def hold_for_mcp(self, since: datetime) -> list[Run]:
        """Mark queued runs whose MCP servers no node has had since a moment, and return those newly marked."""
        return self._changed(await self._statements.fetch("hold_runs_for_mcp", {"since": to_micros(since)}))

    async def release_for_mcp(self, since: datetime) -> None:
        """Take the mark off runs whose MCP servers a node has."""
        rows = await self._statements.fetch("release_runs_for_mcp", {"since": to_micros(since)})
        if rows:
            self._statements.news.extend(RunChanged(row["id"], "queued") for row in rows)
            self._statements.news.append(RunQueued())

    async def interrupt_for_mcp(self, before: datetime, error: str, now: datetime) -> list[Run]:
        """End the marked messages that have waited since before a moment."""
        params = {"before": to_micros(before), "error": error, "now": to_micros(now)}
        return self._changed(await self._statements.fetch("interrupt_messages_for_mcp", params))

    def _changed(self, rows: Sequence[Row]) -> list[Run]:
        runs = RUNS.read_all(rows)
        self._statements.news.extend(RunChanged(run.id, run.status, run.reason) for run in runs)
        return runs


# The last heartbeat ping of all nodes, in the store.


class PingRows:
    """Statements about the heartbeat ping, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def take(self, now: datetime, before: datetime, *, is_ready: bool) -> bool:
        """Note a ping of now if the last one is older than `before`; return whether it was."""
        params = {"now": to_micros(now), "before": to_micros(before), "is_ready": int(is_ready)}
        return bool(await self._statements.fetch("take_heartbeat_ping", params))


# Sizes of tables and agents in the store, and the deletion of old rows.


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


# Scheduled backups in the store: which node makes the next one, and how the last ones ended.


_STATES = Table(BackupState)


class BackupRows:
    """Statements about scheduled backups, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def state(self) -> BackupState:
        return _STATES.read_first(await self._statements.fetch("scheduled_backups", {})) or BackupState()

    async def claim(self, before: BackupState, node: str, now: datetime) -> BackupState | None:
        """Begin a backup on a node; None: another node has begun one since this state was read."""
        earlier, renewed = (0 if at is None else to_micros(at) for at in (before.started_at, before.renewed_at))
        params = {"now": to_micros(now), "node": node, "before": earlier, "renewed_before": renewed}
        if not await self._statements.fetch("claim_scheduled_backup", params):
            return None
        return replace(before, started_at=now, renewed_at=now, node=node)

    async def renew(self, started_at: datetime, now: datetime) -> None:
        await self._statements.fetch(
            "renew_scheduled_backup", {"started_at": to_micros(started_at), "now": to_micros(now)}
        )

    async def finish(self, started_at: datetime, now: datetime, file: str, size: int) -> None:
        params = {"started_at": to_micros(started_at), "now": to_micros(now), "file": file, "size": size}
        await self._statements.fetch("finish_scheduled_backup", params)

    async def fail(self, started_at: datetime, now: datetime, error: str) -> None:
        params = {"started_at": to_micros(started_at), "now": to_micros(now), "error": error}
        await self._statements.fetch("fail_scheduled_backup", params)


# Moves of an embedded store to this one, in the store.


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
