"""Open, list, read, rename and delete sessions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from wakeful.core import ids
from wakeful.core.clock import Clock
from wakeful.core.errors import Conflict, Invalid
from wakeful.core.types import Message, Pause, Run, Session, Upload, Wake
from wakeful.sessions.messages import all_messages, read_own
from wakeful.sessions.uploads import MAX_UPLOADS_BYTES, ForeignFile, Uploads
from wakeful.store.store import Store, Tx
from wakeful.timing import lifecycle
from wakeful.timing.bounds import is_held

MAX_TITLE = 200  # characters


_PAGE = 1_000


class SessionBusy(Conflict):
    code = "session_busy"

    def __init__(self, run: Run) -> None:
        what = "a scheduled run" if run.is_headless else "another message"
        super().__init__(
            f"The agent is still working on {what} in this session (run {run.id!r}). "
            "Wait for its end or stop it, then send the message again."
        )
        self.run = run


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


def _title(title: str) -> str:
    title = " ".join(title.split())
    if len(title) > MAX_TITLE:
        raise Invalid(f"A title has at most {MAX_TITLE} characters, got {len(title)}. Shorten it.", field="title")
    return title
