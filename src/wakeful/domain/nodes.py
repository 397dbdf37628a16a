"""Nodes: the servers that share a store."""

from dataclasses import dataclass
from datetime import datetime

from wakeful.domain.errors import Conflict, NotFound

MCP_ELSEWHERE = "mcp_elsewhere"  # the reason of a run that waits for a node with its MCP servers


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIdentity:
    """The facts about a node that others know."""

    owner: str  # of its claims: random, new at every start
    name: str
    version: str
    place: str = ""  # host and data directory
    mcp_servers: tuple[str, ...] = ()  # names in its settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node, as the store knows it."""

    id: str
    name: str
    version: str
    place: str  # host and data directory
    started_at: datetime
    seen_at: datetime  # its last heartbeat
    is_alive: bool = True  # it has had a heartbeat within its lease
    is_draining: bool
    mcp_servers: tuple[str, ...]
    runs: int  # that it executes
    agents: int  # whose database and files it has used last


class NoSuchNode(NotFound):
    code = "no_such_node"

    def __init__(self, node_id: str) -> None:
        super().__init__(f"There is no node {node_id!r}. `wakeful node ls` and GET /nodes list them.")


class OnlyNode(Conflict):
    code = "only_node"
    text = (
        "This server has an embedded store, so there is no other node that could take over its runs. Stop the server "
        "instead, or pause the agents."
    )
