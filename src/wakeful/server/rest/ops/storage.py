"""Disk usage of this server, for its owners."""

from fastapi import APIRouter

from wakeful.server.auth import Reader
from wakeful.server.rest.sessions.search import IndexShape
from wakeful.server.rest.shapes import Shape
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["health"])


class RetentionShape(Shape):
    """Retention of data about ended runs and wakes; set in the server's settings."""

    events_hours: int  # a run's frames after its end; its messages stay
    skipped_days: int  # skipped occurrences, before they are aggregated
    forget_recalls_after_days: int  # recurring recalls without activity of their user; 0: never


class StorageShape(Shape):
    """Bytes on disk; workspaces and databases only of the node that responds."""

    store_bytes: int
    workspace_bytes: int
    database_bytes: int
    free_bytes: int  # on the disk of the data directory
    search_index: IndexShape
    retention: RetentionShape


@router.get("/storage")
async def get_storage(caller: Reader, services: ServicesDep) -> StorageShape:
    """Show the disk usage of the store, workspaces and agents' databases. Owners only, with any scope."""
    used, kept = await services.storage.measure(caller), services.storage.retention
    return StorageShape(
        store_bytes=used.store,
        workspace_bytes=used.workspaces,
        database_bytes=used.databases,
        free_bytes=used.free,
        search_index=IndexShape.model_validate(used.search_index),
        retention=RetentionShape(
            events_hours=int(kept.events.total_seconds() // 3600),
            skipped_days=kept.skipped.days,
            forget_recalls_after_days=kept.forget_recalls_after_days,
        ),
    )
