"""All services of a node, for the routes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from wakeful.domain.agents.mcp_servers import McpState
from wakeful.hub import Hub
from wakeful.service.agents.agents import AgentService
from wakeful.service.agents.database import AgentData
from wakeful.service.agents.directories import Directories
from wakeful.service.agents.instruction_files import InstructionFiles
from wakeful.service.backup.backups import Backups
from wakeful.service.backup.scheduled import ScheduledBackups
from wakeful.service.completions.completions import Completions
from wakeful.service.homes.moving_in import MovingIn
from wakeful.service.hooks.hooks import Hooks
from wakeful.service.hooks.receiving import Receiving
from wakeful.service.hooks.webhooks import Webhooks
from wakeful.service.inbox.channels import Channels
from wakeful.service.inbox.deliverer import Deliverer
from wakeful.service.inbox.feed import Feed
from wakeful.service.inbox.notices import NoticeService
from wakeful.service.inbox.push import Push
from wakeful.service.metrics.metrics import Metrics
from wakeful.service.models.models import ModelService
from wakeful.service.nodes.nodes import Nodes
from wakeful.service.people.accounts import Accounts
from wakeful.service.pings.pings import Pings
from wakeful.service.recent_logs import RecentLogs
from wakeful.service.runs.approvals import Approvals
from wakeful.service.runs.run_waits import RunWaits
from wakeful.service.runs.runs import RunService
from wakeful.service.runs.stopping import Stopping
from wakeful.service.sessions.presence import PresenceService
from wakeful.service.sessions.profiles import Profiles
from wakeful.service.sessions.search import Search
from wakeful.service.sessions.search_index import SearchIndex
from wakeful.service.sessions.sessions import SessionService
from wakeful.service.sessions.stream import Stream
from wakeful.service.sessions.uploads import Uploads
from wakeful.service.storage.storage import Storage
from wakeful.service.wakes.agenda import AgendaService
from wakeful.service.wakes.bookings import Bookings
from wakeful.service.wakes.departures import Departures
from wakeful.service.wakes.next_runs import NextRuns
from wakeful.service.wakes.pauses import PauseService
from wakeful.service.wakes.recalls import Recalls
from wakeful.service.wakes.schedules import Schedules
from wakeful.service.wakes.wakes import WakeService


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """All services of a node."""

    accounts: Accounts
    agenda: AgendaService
    agents: AgentService
    approvals: Approvals
    backups: Backups
    bookings: Bookings
    channels: Channels
    completions: Completions
    data: AgentData
    deliverer: Deliverer
    departures: Departures
    directories: Directories
    feed: Feed
    hooks: Hooks
    hub: Hub
    instructions: InstructionFiles
    mcp_states: Callable[[], Sequence[McpState]]
    metrics: Metrics
    models: ModelService
    moving_in: MovingIn
    next_runs: NextRuns
    nodes: Nodes
    notices: NoticeService
    pauses: PauseService
    pings: Pings
    presence: PresenceService
    profiles: Profiles
    push: Push
    recalls: Recalls
    receiving: Receiving
    recent_logs: RecentLogs
    run_waits: RunWaits
    runs: RunService
    scheduled_backups: ScheduledBackups
    schedules: Schedules
    search: Search
    search_index: SearchIndex
    sessions: SessionService
    stopping: Stopping
    storage: Storage
    stream: Stream
    toolset_of: Callable[[], Mapping[str, str | None]]  # of each of the server's own tools, by name
    uploads: Uploads
    wakes: WakeService
    webhooks: Webhooks
    workspace_of: Callable[[str], Path]  # the directory of an agent's files


async def _services(request: Request) -> Services:
    return request.app.state.services


ServicesDep = Annotated[Services, Depends(_services)]
