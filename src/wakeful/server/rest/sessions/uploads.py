"""Uploads to a session: how many and how large they may be."""

from collections.abc import Sequence

from fastapi import UploadFile

from wakeful.domain.errors import Invalid
from wakeful.domain.types import Upload
from wakeful.server.services import Services
from wakeful.service.sessions.sessions import MAX_UPLOAD_BYTES, MAX_UPLOADS_BYTES, UploadTooLarge


class NoFiles(Invalid):
    code = "no_files"

    def __init__(self) -> None:
        super().__init__(
            "There is no file in the request. Send at least one as the multipart form field `files`.", field="files"
        )


async def keep_uploads(files: Sequence[UploadFile], session_id: str, user_id: str, services: Services) -> list[Upload]:
    """Save uploaded files, all or none."""
    room = await services.sessions.room_for_uploads(session_id, user_id)
    if not files:
        raise NoFiles
    for file in files:
        if (file.size or 0) > MAX_UPLOAD_BYTES:
            raise UploadTooLarge(
                f"{file.filename!r} has {file.size:,} bytes; the limit is {MAX_UPLOAD_BYTES:,}.", field="files"
            )
    if sum(file.size or 0 for file in files) > room:
        raise UploadTooLarge(
            f"These files do not fit: a session can have {MAX_UPLOADS_BYTES:,} bytes, and {max(0, room):,} are left.",
            field="files",
        )
    contents = [(file.filename or "", await file.read()) for file in files]
    return await services.uploads.keep(session_id, user_id, contents)
