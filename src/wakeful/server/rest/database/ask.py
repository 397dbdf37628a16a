"""Run operations on an agent's database for the caller of a route."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends

from wakeful.domain.people.accounts import Identity
from wakeful.domain.types import Scope
from wakeful.server.auth import require
from wakeful.server.services import ServicesDep
from wakeful.service.agents.database import AgentData, By, Door


class Ask:
    """Runs operations for one request. Errors name commands for the page and the command line, routes for others."""

    def __init__(self, data: AgentData, caller: Identity) -> None:
        self.door: Door = "command" if caller.door in ("page", "cli") else "route"
        self.data = data
        self.caller = caller

    async def __call__(self, agent_id: str, op: str, /, **args: Any) -> Any:
        """Run an operation and return its result, which FastAPI validates against the route's return type."""
        return await self.data.run_for(self.caller, self.door, agent_id, op, **args)

    async def by(self, agent_id: str) -> By:
        """Return the caller as the author of an operation."""
        return await self.data.person(agent_id, self.caller.user.id, self.door)


def _asking(scope: Scope) -> Callable[..., Awaitable[Ask]]:
    async def ask(caller: Annotated[Identity, Depends(require(scope))], services: ServicesDep) -> Ask:
        return Ask(services.data, caller)

    ask.scope = scope  # pyright: ignore[reportFunctionMemberAccess]  (the route checks it before it reads the body)
    return ask


Reading = Annotated[Ask, Depends(_asking("read"))]
Writing = Annotated[Ask, Depends(_asking("chat"))]
Administering = Annotated[Ask, Depends(_asking("admin"))]
