"""Files that users upload to a session: saved in the agent's workspace, where its tools can read them.

They are in `uploads/SESSION/` and are deleted with their session.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from wakeful.core import ids
from wakeful.core.errors import Invalid, LimitReached, WakefulError
from wakeful.core.types import Upload
from wakeful.database.files import AgentFiles
from wakeful.homes.workspace import Workspace
from wakeful.sessions.messages import agent_of
from wakeful.store.base import Base, Job
from wakeful.store.store import Tx

MAX_UPLOAD_BYTES = 25 * 1024 * 1024
MAX_UPLOADS_BYTES = 200 * 1024 * 1024  # bytes in one session
FOLDER = "uploads"
_UNFIT = re.compile(r"[^\w .()+-]+")
_MAX_NAME = 120
_SESSION_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHOWN = 200  # characters of a path


class UploadTooLarge(LimitReached):
    code = "upload_too_large"


class ForeignFile(Invalid):
    code = "foreign_file"

    def __init__(self, path: str) -> None:
        shown = path if len(path) <= _SHOWN else path[:_SHOWN] + "…"
        super().__init__(
            f"{shown!r} is not a file that was uploaded to this session. Upload it first, then send the path you got.",
            field="files",
        )


class Uploads:
    def __init__(self, base: Base, agent_files: AgentFiles) -> None:
        self._base = base
        self._store = base.store
        self._clock = base.clock
        self._agent_files = agent_files
        self._agents_folder = base.data_dir / "agents"

    async def keep(self, session_id: str, user_id: str, files: Sequence[tuple[str, bytes]]) -> list[Upload]:
        """Save files under the names they were sent with, all or none."""
        agent = await self._store.read(lambda tx: agent_of(tx, session_id, user_id))
        workspace = self._base.workspace_of(agent.id)
        kept: list[Upload] = []

        async def write() -> None:
            for name, data in files:
                kept.append(await asyncio.to_thread(self._write, workspace, session_id, name, data))

        try:
            await self._agent_files.change_files(agent.id, None, write)
            await self._store.write(lambda tx: _add_uploads(tx, session_id, user_id, kept))
        except BaseException:  # the session was deleted meanwhile, or the disk is full
            await asyncio.to_thread(_unlink, workspace, kept)
            await asyncio.to_thread(_remove_empty, workspace / FOLDER / session_id)
            with suppress(WakefulError):
                await self._agent_files.save_files(agent.id)
            raise
        return kept

    async def remove(self, session_id: str) -> None:
        """Remove the files of a deleted session from the workspaces of all agents."""
        if self._store.is_shared:
            for agent_id in await self._store.write(lambda tx: tx.homes.delete_uploads(session_id)):
                await self._agent_files.follow_erasing(agent_id)
            return
        await asyncio.to_thread(_remove, self._agents_folder, {session_id})

    def jobs(self) -> Iterator[Job]:
        if self._store.is_shared:  # another node may have deleted sessions that have files here
            yield Job(name="uploads", every=timedelta(minutes=1), run=self.remove_orphans)

    async def remove_orphans(self) -> None:
        """Remove files of deleted sessions that a crash has left."""
        if self._store.is_shared:
            await self._store.write(lambda tx: tx.homes.delete_orphaned_uploads(), is_repeatable=True)
            return
        found = await asyncio.to_thread(_session_folders, self._agents_folder)
        live = await self._store.read(lambda tx: tx.sessions.existing(sorted(found)))
        if orphans := found - live:
            await asyncio.to_thread(_remove, self._agents_folder, orphans)

    def _write(self, workspace: Path, session_id: str, name: str, data: bytes) -> Upload:
        folder = f"{FOLDER}/{session_id}"
        kept = Workspace(workspace).add(folder, _fit_name(name), data)
        return Upload(
            id=ids.new_id(self._clock.now()),
            session_id=session_id,
            name=name or kept,
            # On a shared store each node has the workspace in a folder of its own.
            path=f"{folder}/{kept}" if self._store.is_shared else str(workspace / folder / kept),
            size=len(data),
            created_at=self._clock.now(),
        )


async def _add_uploads(tx: Tx, session_id: str, user_id: str, kept: Sequence[Upload]) -> None:
    await agent_of(tx, session_id, user_id)
    for upload in kept:
        await tx.sessions.add_upload(upload)


def _session_folders(agents: Path) -> set[str]:
    found = agents.glob(f"*/workspace/{FOLDER}/*")
    return {path.name for path in found if _SESSION_ID.fullmatch(path.name)}


def _remove(agents: Path, session_ids: set[str]) -> None:
    for session_id in session_ids:
        for folder in agents.glob(f"*/workspace/{FOLDER}/{session_id}"):
            Workspace(folder.parents[1]).remove(f"{FOLDER}/{session_id}")


def _unlink(workspace: Path, uploads: Sequence[Upload]) -> None:
    for upload in uploads:
        Workspace(workspace).unlink(upload.path)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # it has files of another upload
        if not folder.parent.is_symlink():
            folder.rmdir()


def _fit_name(name: str) -> str:
    """Return a safe file name, without directories."""
    fit = _UNFIT.sub("_", name.replace("\\", "/").rpartition("/")[2]).strip(" .")
    stem, dot, end = fit.rpartition(".")
    return f"{(stem or end)[: _MAX_NAME - 20]}{dot if stem else ''}{end[:20] if stem else ''}" or "file"
