"""What the routes call: every service, handed in once."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from wakeful.domain.mcp_servers import McpState
from wakeful.domain.model_trials import ModelTrial
from wakeful.hub import Hub
from wakeful.service.accounts import Accounts
from wakeful.service.agenda import AgendaService
from wakeful.service.agent_data import AgentData
from wakeful.service.agents import AgentService
from wakeful.service.approvals import Approvals
from wakeful.service.bookings import Bookings
from wakeful.service.channels import Channels
from wakeful.service.directories import Directories
from wakeful.service.feed import Feed
from wakeful.service.instruction_files import InstructionFiles
from wakeful.service.metrics import Metrics
from wakeful.service.next_runs import NextRuns
from wakeful.service.notices import NoticeService
from wakeful.service.pauses import PauseService
from wakeful.service.presence import PresenceService
from wakeful.service.profiles import Profiles
from wakeful.service.recalls import Recalls
from wakeful.service.runs import RunService
from wakeful.service.schedules import Schedules
from wakeful.service.sessions import SessionService
from wakeful.service.storage import Storage
from wakeful.service.stream import Stream
from wakeful.service.uploads import Uploads
from wakeful.service.wakes import WakeService


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The verbs behind the doors."""

    accounts: Accounts
    agenda: AgendaService
    agents: AgentService
    approvals: Approvals
    bookings: Bookings
    channels: Channels
    data: AgentData
    directories: Directories
    feed: Feed
    hub: Hub
    instructions: InstructionFiles
    mcp_states: Callable[[], Sequence[McpState]]
    metrics: Metrics
    next_runs: NextRuns
    notices: NoticeService
    pauses: PauseService
    presence: PresenceService
    profiles: Profiles
    recalls: Recalls
    runs: RunService
    schedules: Schedules
    sessions: SessionService
    storage: Storage
    stream: Stream
    toolset_of: Mapping[str, str | None]  # every tool of our own, by its name
    try_model: Callable[[str | None], Awaitable[ModelTrial]]  # by name; None: the server's own
    uploads: Uploads
    wakes: WakeService
    workspace_of: Callable[[str], Path]  # where an agent's files lie


async def _services(request: Request) -> Services:
    return request.app.state.services


ServicesDep = Annotated[Services, Depends(_services)]
