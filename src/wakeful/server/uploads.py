"""Files that people give to a session: kept in the agent's workspace, where its tools can read them."""

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path

from fastapi import UploadFile

from wakeful.domain import ids
from wakeful.domain.errors import Invalid
from wakeful.domain.types import Upload
from wakeful.server.services import Services
from wakeful.service.sessions import MOST_UPLOAD, MOST_UPLOADS, UploadTooLarge

_UNFIT = re.compile(r"[^\w .()+-]+")
_LONGEST_NAME = 120


class NoFiles(Invalid):
    code = "no_files"

    def __init__(self) -> None:
        super().__init__("No file came. Send at least one, as multipart form field `files`.", field="files")


async def keep_uploads(files: Sequence[UploadFile], session_id: str, user_id: str, services: Services) -> list[Upload]:
    """Keep files and note them, all or none."""
    session = await services.sessions.get(session_id, user_id)
    if not files:
        raise NoFiles
    room = await services.sessions.room_for_uploads(session_id, user_id)
    for file in files:
        if (file.size or 0) > MOST_UPLOAD:
            raise UploadTooLarge(
                f"{file.filename!r} has {file.size:,} bytes, and at most {MOST_UPLOAD:,} are taken.", field="files"
            )
    if sum(file.size or 0 for file in files) > room:
        raise UploadTooLarge(
            f"These files do not fit: a session keeps {MOST_UPLOADS:,} bytes, and {max(0, room):,} are left.",
            field="files",
        )
    await services.directories.bind(session.agent_id)
    folder = services.workspace_of(session.agent_id) / "uploads" / session_id
    kept: list[Upload] = []
    for file in files:
        content = await file.read()
        path = await asyncio.to_thread(_write, folder, _fit_name(file.filename or ""), content)
        kept.append(
            Upload(
                id=ids.new_id(session.created_at),
                session_id=session_id,
                name=file.filename or path.name,
                path=str(path),
                size=len(content),
                created_at=services.sessions.now(),
            )
        )
    await services.sessions.add_uploads(session_id, user_id, kept)
    return kept


def _fit_name(name: str) -> str:
    """Make a name that is only a name, whatever came."""
    fit = _UNFIT.sub("_", name.replace("\\", "/").rpartition("/")[2]).strip(" .")
    stem, dot, end = fit.rpartition(".")
    return f"{(stem or end)[: _LONGEST_NAME - 20]}{dot if stem else ''}{end[:20] if stem else ''}" or "file"


def _write(folder: Path, name: str, content: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    stem, suffix = Path(name).stem, Path(name).suffix
    for number in range(1_000):
        path = folder / (name if number == 0 else f"{stem}-{number}{suffix}")
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        return path
    raise Invalid(
        f"There are too many files named {name!r} in this session. Rename it, then send it again.", field="files"
    )
