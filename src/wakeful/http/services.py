"""All services of a node. A route asks for the ones that it needs by their type:

@router.get("/wakes")
async def list_wakes(caller: Reader, wakes: Need[WakeService]) -> …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from fastapi import Depends, Request

if TYPE_CHECKING:
    from wakeful.agents.instruction_files import InstructionFiles
    from wakeful.agents.service import AgentService, Profiles
    from wakeful.backup.service import Backups, ScheduledBackups
    from wakeful.completions.service import Completions
    from wakeful.core.hub import Hub
    from wakeful.database.moving_in import MovingIn
    from wakeful.database.service import AgentData
    from wakeful.homes.directories import Directories
    from wakeful.hooks.receiving import Receiving
    from wakeful.hooks.service import Hooks
    from wakeful.mcp.rules import McpState
    from wakeful.models.service import ModelService
    from wakeful.nodes.service import Nodes
    from wakeful.notices.service import NoticeService
    from wakeful.operations.metrics import Metrics
    from wakeful.operations.storage import Storage
    from wakeful.outgoing.channels import Channels
    from wakeful.outgoing.outbox import Outbox
    from wakeful.outgoing.pings import Pings
    from wakeful.outgoing.push import Push
    from wakeful.people.service import Accounts
    from wakeful.runs.approvals import Approvals
    from wakeful.runs.service import RunService, RunWaits
    from wakeful.runs.stopping import Departures, Stopping
    from wakeful.sessions.presence import PresenceService
    from wakeful.sessions.search import Search, SearchIndex
    from wakeful.sessions.service import SessionService
    from wakeful.sessions.uploads import Uploads
    from wakeful.stream.feed import Feed
    from wakeful.stream.service import Stream
    from wakeful.telemetry.recent_logs import RecentLogs
    from wakeful.wakes.agenda import AgendaService
    from wakeful.wakes.bookings import Bookings
    from wakeful.wakes.next_runs import NextRuns
    from wakeful.wakes.pauses import PauseService
    from wakeful.wakes.recalls import Recalls
    from wakeful.wakes.schedules import Schedules
    from wakeful.wakes.service import WakeService
    from wakeful.webhooks.service import Webhooks


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """All services of a node, by their names, and by their types: `services[Recalls]`."""

    accounts: Accounts
    agenda: AgendaService
    agents: AgentService
    approvals: Approvals
    backups: Backups
    bookings: Bookings
    channels: Channels
    completions: Completions
    data: AgentData
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
    by_type: dict[type[Any], object] = field(init=False, repr=False, default_factory=dict[type[Any], object])

    def __post_init__(self) -> None:
        for name in (each.name for each in fields(self) if each.init):
            service: object = getattr(self, name)
            self.by_type[type(service)] = service

    def __getitem__(self, wanted: type[T]) -> T:
        return cast("T", self.by_type[wanted])


async def _services(request: Request) -> Services:
    return request.app.state.services


@cache
def _finder(wanted: type[Any]) -> Any:
    async def find(request: Request) -> Any:
        return request.app.state.services[wanted]

    return Depends(find)


if TYPE_CHECKING:
    Need = Annotated[T, "the service of this type"]
else:

    class Need:
        """`Need[Recalls]` is the service of that type, as the parameter of a route."""

        def __class_getitem__(cls, wanted: type[Any]) -> Any:
            return Annotated[wanted, _finder(wanted)]


ServicesDep = Annotated[Services, Depends(_services)]  # for routes that hand them on, or need one of a feature above
