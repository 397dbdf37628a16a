"""Routes of MCP servers and their state; they are configured in the settings file only."""

from fastapi import APIRouter

from wakeful.http.auth import Reader
from wakeful.http.routes import DoorRoute
from wakeful.http.services import ServicesDep
from wakeful.http.shapes import Shape, shape_of
from wakeful.mcp.rules import McpState

router = APIRouter(route_class=DoorRoute, tags=["mcp servers"])


class McpServerShape(shape_of(McpState)):
    """An MCP server on this node, without its command or address, which only the settings file has."""


class McpServerList(Shape):
    mcp_servers: list[McpServerShape]


@router.get("/mcp-servers")
async def list_mcp_servers(caller: Reader, services: ServicesDep) -> McpServerList:
    """List the MCP servers that agents can use, and their state on this node."""
    is_owner = caller.user.role == "owner"
    states = [state for state in services.mcp_states() if is_owner or state.for_users]
    return McpServerList(mcp_servers=[McpServerShape.model_validate(state) for state in states])
