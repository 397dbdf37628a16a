"""Nodes, and runs that wait for a node with their MCP servers, in the store."""

from collections.abc import Sequence
from datetime import datetime

import orjson

from wakeful.domain.news import NodeChanged, RunChanged, RunQueued
from wakeful.domain.nodes import Node, NodeIdentity, NoSuchNode
from wakeful.domain.types import Run
from wakeful.store.drivers.database import Row, Statements
from wakeful.store.rows import RUNS, Table, to_micros

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
