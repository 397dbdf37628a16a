"""What the routes call: every service, handed in once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from wakeful.hub import Hub
from wakeful.service.accounts import Accounts
from wakeful.service.agents import AgentService
from wakeful.service.feed import Feed
from wakeful.service.runs import RunService
from wakeful.service.sessions import SessionService
from wakeful.service.stream import Stream
from wakeful.service.wakes import WakeService


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The verbs behind the doors."""

    accounts: Accounts
    agents: AgentService
    feed: Feed
    hub: Hub
    runs: RunService
    sessions: SessionService
    stream: Stream
    wakes: WakeService
    workspaces: Path  # each agent's files lie in a folder of its own here


async def _services(request: Request) -> Services:
    return request.app.state.services


ServicesDep = Annotated[Services, Depends(_services)]
