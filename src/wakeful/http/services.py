"""All services of a node, for the routes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

if TYPE_CHECKING:
    from wakeful.agents.instruction_files import InstructionFiles
    from wakeful.agents.service import AgentService, Profiles
    from wakeful.backup.service import Backups, ScheduledBackups
    from wakeful.completions.service import Completions
    from wakeful.core.hub import Hub
    from wakeful.database.moving_in import MovingIn
    from wakeful.database.service import AgentData
    from wakeful.delivery.pings import Pings
    from wakeful.delivery.push import Push
    from wakeful.delivery.service import Channels, Deliverer, Outbox
    from wakeful.homes.directories import Directories
    from wakeful.hooks.receiving import Receiving
    from wakeful.hooks.service import Hooks
    from wakeful.mcp.rules import McpState
    from wakeful.models.service import ModelService
    from wakeful.nodes.service import Nodes
    from wakeful.notices.service import NoticeService
    from wakeful.operations.metrics import Metrics
    from wakeful.operations.storage import Storage
    from wakeful.people.service import Accounts
    from wakeful.runs.approvals import Approvals
    from wakeful.runs.departures import Departures
    from wakeful.runs.service import RunService, RunWaits, Stopping
    from wakeful.sessions.search import Search, SearchIndex
    from wakeful.sessions.service import PresenceService, SessionService, Uploads
    from wakeful.stream.feed import Feed
    from wakeful.stream.service import Stream
    from wakeful.telemetry.recent_logs import RecentLogs
    from wakeful.wakes.agenda import AgendaService, PauseService
    from wakeful.wakes.bookings import Bookings
    from wakeful.wakes.next_runs import NextRuns
    from wakeful.wakes.recalls import Recalls
    from wakeful.wakes.schedules import Schedules
    from wakeful.wakes.service import WakeService
    from wakeful.webhooks.service import Webhooks


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
    outbox: Outbox
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
