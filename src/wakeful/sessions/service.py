"""Open, list, read, rename and delete sessions."""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar

from wakeful.core import ids
from wakeful.core.clock import MAX_WAIT, Clock
from wakeful.core.errors import Conflict, Invalid, LimitReached, StoreUnavailable, WakefulError
from wakeful.core.jobs import Job
from wakeful.core.types import Agent, Message, Pause, Rules, Run, Session, Upload, Wake
from wakeful.database.files import AgentFiles
from wakeful.homes.workspace import Workspace
from wakeful.store.base import Base
from wakeful.store.sessions import MESSAGE, page_of
from wakeful.store.store import Store, Tx
from wakeful.timing import lifecycle
from wakeful.timing.bounds import is_held

# Reads sessions and their agents for the user they belong to.


T = TypeVar("T")


async def read_own(store: Store, session_id: str, user_id: str, read: Callable[[Tx], Coroutine[Any, Any, T]]) -> T:
    """Read something of a session, or raise if the user has no such session."""

    async def work(tx: Tx) -> T:
        await tx.sessions.get(session_id, user_id)
        return await read(tx)

    return await store.read(work)


async def agent_of(tx: Tx, session_id: str, user_id: str) -> Agent:
    """Return the agent of a session, or raise if the session or the agent was deleted."""
    session = await tx.sessions.get(session_id, user_id)
    return await tx.agents.get(session.agent_id, user_id)


# Files that users upload to a session: saved in the agent's workspace, where its tools can read them.
#
# They are in `uploads/SESSION/` and are deleted with their session.


FOLDER = "uploads"
_UNFIT = re.compile(r"[^\w .()+-]+")
_MAX_NAME = 120
_SESSION_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


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


MAX_TITLE = 200  # characters
MAX_UPLOAD_BYTES = 25 * 1024 * 1024
MAX_UPLOADS_BYTES = 200 * 1024 * 1024  # bytes in one session

_PAGE = 1_000
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A session with its recall and status, as lists show it."""

    session: Session
    recall: Wake | None
    is_running: bool
    is_failed: bool  # its last run failed
    needs_approval: bool = False  # a call of its run waits for the user's answer
    is_paused: bool = False  # a pause holds its recall


class SessionService:
    def __init__(self, store: Store, clock: Clock, uploads: Uploads) -> None:
        self._store = store
        self._clock = clock
        self._uploads = uploads

    async def open(self, agent_id: str, user_id: str, title: str = "") -> Session:
        now = self._clock.now()
        session = Session(
            id=ids.new_id(now),
            agent_id=agent_id,
            user_id=user_id,
            title=_title(title),
            created_at=now,
            updated_at=now,
        )

        async def work(tx: Tx) -> Session:
            await tx.agents.get(agent_id, user_id)
            await tx.sessions.add([session])
            return session

        return await self._store.write(work)

    async def get(self, session_id: str, user_id: str) -> Session:
        return await self._store.read(lambda tx: tx.sessions.get(session_id, user_id))

    async def view(self, session_id: str, user_id: str) -> SessionView:
        now = self._clock.now()

        async def work(tx: Tx) -> SessionView:
            paused = await tx.agents.all_pauses_of(user_id, now)
            return await _view(tx, await tx.sessions.get(session_id, user_id), paused)

        return await self._store.read(work)

    async def find(
        self,
        user_id: str,
        *,
        agent_id: str | None = None,
        named: str | None = None,
        booked: Literal["recall", "any"] | None = None,
        is_unattended: bool | None = None,
        before: tuple[datetime, str] | None = None,
        most: int = 50,
    ) -> list[SessionView]:
        """Return a page of a user's sessions, the latest first."""
        now = self._clock.now()

        async def work(tx: Tx) -> list[SessionView]:
            found = await tx.sessions.of_user(
                user_id, agent_id, before, most, named=named, booked=booked, is_unattended=is_unattended
            )
            paused = await tx.agents.all_pauses_of(user_id, now)
            return [await _view(tx, session, paused) for session in found]

        return await self._store.read(work)

    async def messages(self, session_id: str, user_id: str) -> list[Message]:
        return await read_own(self._store, session_id, user_id, lambda tx: all_messages(tx, session_id))

    async def rename(self, session_id: str, user_id: str, title: str) -> Session:
        return await self._store.write(lambda tx: tx.sessions.rename(session_id, user_id, _title(title)))

    async def give_title(self, session_id: str, title: str) -> None:
        """Set the title of a session that has none."""
        await self._store.write(lambda tx: tx.sessions.give_title(session_id, title[:MAX_TITLE]))

    async def delete(self, session_id: str, user_id: str) -> None:
        """Delete a session with its messages, cancel its wakes and stop its runs. Rows of runs stay, without text."""
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            await tx.sessions.get(session_id, user_id)
            for wake in await tx.wakes.of_session(session_id, _PAGE, is_live=True):
                await tx.runs.end_queued_of_wakes([wake.id], "skipped", "session_deleted", now)
                await tx.wakes.move([(lifecycle.cancel(wake, "session_deleted", now), "cancelled")])
            run = await tx.runs.unfinished_in(session_id)
            if run is not None:
                await tx.runs.end_queued(run.id, "stopped", "session_deleted", now)
                await tx.runs.request_stop(run.id, now)
            await tx.sessions.delete(session_id, user_id)

        await self._store.write(work)
        await self._uploads.remove(session_id)

    async def room_for_uploads(self, session_id: str, user_id: str) -> int:
        """Return how many bytes may still be uploaded to a session."""
        return MAX_UPLOADS_BYTES - sum(upload.size for upload in await self._uploads_of(session_id, user_id))

    async def uploads_at(self, session_id: str, user_id: str, paths: Sequence[str]) -> list[Upload]:
        """Return the uploads of a session with these paths; any other path is refused."""
        known = {upload.path: upload for upload in await self._uploads_of(session_id, user_id)}
        for path in paths:
            if path not in known:
                raise ForeignFile(path)
        return [known[path] for path in paths]

    async def image(self, session_id: str, user_id: str, image_id: str) -> tuple[str, bytes] | None:
        return await read_own(self._store, session_id, user_id, lambda tx: tx.sessions.image(image_id, session_id))

    async def _uploads_of(self, session_id: str, user_id: str) -> list[Upload]:
        return await read_own(self._store, session_id, user_id, lambda tx: tx.sessions.uploads(session_id))


async def _view(tx: Tx, session: Session, paused: Sequence[Pause]) -> SessionView:
    recall = await tx.wakes.in_slot(f"session:{session.id}")
    run = await tx.runs.unfinished_in(session.id)
    is_failed = run is None and await tx.runs.has_failed_since(session.id, session.updated_at)
    return SessionView(
        session=session,
        recall=recall,
        is_running=run is not None,
        is_failed=is_failed,
        needs_approval=run is not None and await _waits_for_approval(tx, run.id),
        is_paused=recall is not None and is_held(recall, paused),
    )


async def _waits_for_approval(tx: Tx, run_id: str) -> bool:
    return any(each.status == "pending" for each in await tx.approvals.of_run(run_id))


async def all_messages(tx: Tx, session_id: str) -> list[Message]:
    """Return the whole transcript of a session."""
    found: list[Message] = []
    while True:
        page = await tx.sessions.messages(session_id, found[-1].position if found else 0, _PAGE)
        found += page
        if len(page) < _PAGE:
            return found


def _title(title: str) -> str:
    title = " ".join(title.split())
    if len(title) > MAX_TITLE:
        raise Invalid(f"A title has at most {MAX_TITLE} characters, got {len(title)}. Shorten it.", field="title")
    return title


# Presence of users in sessions: an open socket on any node, or a recent message.
#
# When a run ends in a session where a user is present, queued wakes are held for a second, so that a message sent on
# receipt of the end goes first. Presence and holds are rows: every node sees them, and they expire.


log = logging.getLogger(__name__)

_SOCKET_LASTS = 3 * MAX_WAIT  # without renewal, as when its node was killed
_MAX_LASTS = timedelta(hours=1)  # a row that lasts longer was written by a wrong clock


class PresenceService:
    """The presence of this node's sockets. `node` is the id of this process."""

    def __init__(self, store: Store, clock: Clock, node: str) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._sockets: Counter[str] = Counter()  # by session, and by user for open pages

    def has_page(self, user_id: str) -> AbstractAsyncContextManager[None]:
        """Count a user as one who has the page open during the block, whatever it shows."""
        return self.watching(page_of(user_id))

    @asynccontextmanager
    async def watching(self, session_id: str) -> AsyncGenerator[None]:
        """Count a user as present in a session during the block."""
        self._sockets[session_id] += 1
        try:
            if self._sockets[session_id] == 1:
                with suppress(StoreUnavailable):  # a page can still read; its presence is saved by the next renewal
                    await self._save([session_id])
            yield
        finally:
            self._sockets[session_id] -= 1
            if not self._sockets[session_id]:
                del self._sockets[session_id]
                await self._end(session_id)

    async def run(self) -> None:
        """Renew the presence of open sockets until cancelled."""
        never = asyncio.Event()
        while True:
            await self._clock.wait(self._clock.now() + MAX_WAIT, never)
            never.clear()
            try:
                await self.renew()
            except StoreUnavailable:  # the store logs it
                pass
            except Exception:
                log.exception("presence could not be renewed")

    async def renew(self) -> None:
        """Renew the presence of every open socket, and delete expired rows."""
        await self._save(list(self._sockets))
        now = self._clock.now()
        latest = now + _MAX_LASTS
        await self._store.write(lambda tx: tx.presence.forget(now, latest), is_synced=False)

    async def end_all_of_nodes(self) -> None:
        """Delete the presence of sockets of earlier processes; only for a store that no other process uses."""
        await self._store.write(lambda tx: tx.presence.end_all_of_nodes())

    async def _save(self, session_ids: list[str]) -> None:
        if not session_ids:
            return
        until = self._clock.now() + _SOCKET_LASTS
        await self._store.write(lambda tx: tx.presence.save(session_ids, self._node, until), is_synced=False)

    async def _end(self, session_id: str) -> None:
        with suppress(StoreUnavailable):  # then it expires
            await self._store.write(lambda tx: tx.presence.end(session_id, self._node), is_synced=False)
            if self._sockets[session_id]:  # a socket was opened meanwhile, and the deleted row was its own
                await self._save([session_id])


async def note_writing(tx: Tx, session_id: str, now: datetime, rules: Rules) -> None:
    """Count a user who sent a message, or tried to, as present for a while."""
    await tx.presence.save([session_id], MESSAGE, now + rules.talking_within)


async def hold_wakes(tx: Tx, ended: Sequence[Run], now: datetime, rules: Rules) -> None:
    """Hold queued wakes in the sessions of ended runs where a user is present, so that a message goes first."""
    await tx.presence.hold(ended, now, now + rules.hold_for)


class SessionBusy(Conflict):
    code = "session_busy"

    def __init__(self, run: Run) -> None:
        what = "a scheduled run" if run.is_headless else "another message"
        super().__init__(
            f"The agent is still working on {what} in this session (run {run.id!r}). "
            "Wait for its end or stop it, then send the message again."
        )
        self.run = run
