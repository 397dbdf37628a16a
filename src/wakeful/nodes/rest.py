"""The nodes that share a store, for owners."""

from fastapi import APIRouter
from pydantic import AwareDatetime, Field

from wakeful.http.auth import Admin, Reader
from wakeful.http.routes import DoorRoute
from wakeful.http.services import Need
from wakeful.http.shapes import PathId, Shape
from wakeful.nodes.service import Nodes

router = APIRouter(route_class=DoorRoute, tags=["nodes"])


class NodeShape(Shape):
    """One server process on the store."""

    id: str = Field(description="New at every start of the node.")
    name: str
    version: str
    place: str = Field(description="Host and data directory.")
    started_at: AwareDatetime
    seen_at: AwareDatetime = Field(description="The last heartbeat.")
    is_alive: bool = Field(description="Its last heartbeat is not older than a lease.")
    is_draining: bool = Field(description="It claims no runs, and has handed back those it had.")
    mcp_servers: list[str] = Field(description="Names in its settings. It claims no runs of agents that need others.")
    runs: int = Field(description="Runs that it executes.")
    agents: int = Field(description="Agents whose database and files it has used last; their runs go there first.")


class NodeList(Shape):
    nodes: list[NodeShape]
    this_id: str = Field(description="The node that responds.")


@router.get("/nodes")
async def list_nodes(caller: Reader, nodes: Need[Nodes]) -> NodeList:
    """List the nodes that share the store; with an embedded store, this one. Owners only, with any scope."""
    found = await nodes.list(caller)
    return NodeList(nodes=[NodeShape.model_validate(node) for node in found], this_id=nodes.identity.owner)


@router.post("/nodes/{node_id}/drain")
async def drain_node(caller: Admin, nodes: Need[Nodes], node_id: PathId) -> NodeShape:
    """Have a node claim no more runs and hand back those it has, until it restarts. Owners only."""
    return NodeShape.model_validate(await nodes.drain(node_id, caller))


@router.post("/nodes/{node_id}/undrain")
async def undrain_node(caller: Admin, nodes: Need[Nodes], node_id: PathId) -> NodeShape:
    """Have a node claim runs again. Owners only."""
    return NodeShape.model_validate(await nodes.undrain(node_id, caller))
