"""Routes for MCP servers and their state. They are configured in the settings file only."""

from fastapi import APIRouter

from wakeful.domain.agents.mcp_servers import McpState
from wakeful.server.auth import Reader
from wakeful.server.rest.shapes import Shape, shape_of
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

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
