"""Disk usage of this server, for its owners."""

from fastapi import APIRouter
from pydantic import AwareDatetime, Field

from wakeful.server.auth import Reader
from wakeful.server.rest.sessions.search import IndexShape
from wakeful.server.rest.shapes import Shape
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep
from wakeful.service.storage.storage import AgentUse

router = APIRouter(route_class=DoorRoute, tags=["health"])


class RetentionShape(Shape):
    """Retention of data about ended runs and wakes; set in the server's settings."""

    events_hours: int  # a run's frames after its end; its messages stay
    skipped_days: int  # skipped occurrences, before they are aggregated
    forget_recalls_after_days: int  # recurring recalls without activity of their user; 0: never
    runs_days: int  # ended runs and wakes that are over; 0: for ever
    sessions_days: int  # sessions that wakes opened, in which no person wrote; 0: for ever


class TableSize(Shape):
    """A table of the store, with its indexes."""

    name: str
    bytes: int


class AgentSize(Shape):
    """The data of an agent."""

    agent_id: str
    name: str
    user_name: str
    database_bytes: int
    file_bytes: int
    message_bytes: int
    messages: int
    runs: int


class StorageShape(Shape):
    """Bytes on disk; workspaces and databases only of the node that responds."""

    store_bytes: int
    reusable_bytes: int = Field(description="Of the store: was deleted, and is used for new data.")
    workspace_bytes: int
    database_bytes: int
    free_bytes: int  # on the disk of the data directory
    search_index: IndexShape
    retention: RetentionShape
    measured_at: AwareDatetime = Field(description="When tables and agents were measured.")
    tables: list[TableSize] = Field(description="The largest first.")
    agents: list[AgentSize] = Field(description="The largest first, of all users.")


@router.get("/storage")
async def get_storage(caller: Reader, services: ServicesDep) -> StorageShape:
    """Show the disk usage of the store, workspaces and agents' databases. Owners only, with any scope."""
    used, kept = await services.storage.measure(caller), services.storage.retention
    return StorageShape(
        store_bytes=used.store,
        reusable_bytes=used.reusable,
        workspace_bytes=used.workspaces,
        database_bytes=used.databases,
        free_bytes=used.free,
        search_index=IndexShape.model_validate(used.search_index),
        retention=RetentionShape(
            events_hours=int(kept.events.total_seconds() // 3600),
            skipped_days=kept.skipped.days,
            forget_recalls_after_days=kept.forget_recalls_after_days,
            runs_days=0 if kept.runs is None else kept.runs.days,
            sessions_days=0 if kept.sessions is None else kept.sessions.days,
        ),
        measured_at=used.sizes.at,
        tables=[TableSize(name=name, bytes=size) for name, size in used.sizes.tables.items()],
        agents=[_to_body(each) for each in used.sizes.agents],
    )


def _to_body(use: AgentUse) -> AgentSize:
    return AgentSize(
        agent_id=use.agent_id,
        name=use.name,
        user_name=use.user_name,
        database_bytes=use.databases,
        file_bytes=use.files,
        message_bytes=use.message_bytes,
        messages=use.messages,
        runs=use.runs,
    )
