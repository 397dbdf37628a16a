"""Backups of this server, for its owners."""

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from wakeful.server.auth import Admin
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["health"])


@router.post("/backups", response_class=StreamingResponse)
async def stream_backup(caller: Admin, services: ServicesDep) -> StreamingResponse:
    """Stream the inside of a backup: a tar file that is not encrypted yet, without the device key.

    Owners only. `wakeful backup` encrypts it as it arrives. The last member is the manifest; without it, the stream
    was broken off.
    """
    return StreamingResponse(services.backups.begin(caller), media_type="application/x-tar")
