"""Backups of this server, for its owners."""

from datetime import datetime

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from wakeful.backup.service import Backups
from wakeful.http.auth import Admin, Reader
from wakeful.http.routes import DoorRoute
from wakeful.http.services import Need
from wakeful.http.shapes import Shape

router = APIRouter(route_class=DoorRoute, tags=["health"])


class BackupPlanShape(Shape):
    """The settings of scheduled backups on the node that responds."""

    every_seconds: int
    keep: int
    recipients: int  # how many


class BackupsShape(Shape):
    """Scheduled backups of all nodes. Backups that `wakeful backup` writes are not counted."""

    plan: BackupPlanShape | None  # null: this node makes none
    started_at: datetime | None  # the last attempt
    node: str | None
    is_running: bool
    finished_at: datetime | None  # the last success
    file: str | None
    size: int | None
    failed_at: datetime | None  # the last failure
    error: str | None
    is_failing: bool  # the last attempt failed


@router.get("/backups")
async def get_backups(caller: Reader, backups: Need[Backups]) -> BackupsShape:
    """Show the schedule of backups, the last one, and the last failure. Owners only, with any scope."""
    plan, state = await backups.scheduled(caller)
    return BackupsShape.from_fields(
        state,
        is_running=state.is_running,
        is_failing=state.is_failing,
        plan=None
        if plan is None
        else BackupPlanShape(
            every_seconds=int(plan.every.total_seconds()), keep=plan.keep, recipients=len(plan.recipients)
        ),
    )


@router.post("/backups", response_class=StreamingResponse)
async def stream_backup(caller: Admin, backups: Need[Backups]) -> StreamingResponse:
    """Stream the inside of a backup: a tar file that is not encrypted yet, without the device key.

    Owners only. `wakeful backup` encrypts it as it arrives. The last member is the manifest; without it, the stream
    was broken off.
    """
    return StreamingResponse(backups.begin(caller), media_type="application/x-tar")
