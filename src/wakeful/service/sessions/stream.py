"""What sessions have said: saved before it is sent, and read again by those who come later."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from wakeful.domain.events import RunFrame
from wakeful.domain.types import Run
from wakeful.hub import Hub, Sent, encode, numbered, session_topic
from wakeful.store.sessions.sessions import SavedFrames
from wakeful.store.store import Store, Tx

_NEWS = "events"
_PAGE = 200  # rows; a row is up to 100 ms of a stream
_PAGE_CHARACTERS = 256 * 1024  # about; a client that reads nothing holds one page in our memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Where someone who comes in now begins."""

    last_seq: int  # the newest frame
    active_run: Run | None = None  # the run that is under way
    replay_from: int = 0  # its first frame
    replay_count: int = 0


class Stream:
    """The frames of sessions. `node` names this process, so that it does not take its own news for another's."""

    def __init__(self, store: Store, hub: Hub, node: str) -> None:
        self._store = store
        self._hub = hub
        self._node = node

    async def add(
        self, tx: Tx, session_id: str, run_id: str | None, frames: Sequence[RunFrame], writing_id: str, now: datetime
    ) -> list[Sent]:
        """Save frames as part of a transaction. Publish what comes back once it is committed."""
        texts = [encode(frame, run_id) for frame in frames]
        last = None
        if self._store.is_shared:
            last = await tx.sessions.seq_of_writing(session_id, writing_id)  # saved before, and the answer got lost
            tx.tell(f"{_NEWS} {self._node} {session_id}")
        if last is None:
            last = await tx.sessions.add_frames(session_id, run_id, texts, writing_id, now)
        if last is None:
            return []
        first = last - len(texts) + 1
        return [numbered(text, seq) for seq, text in enumerate(texts, start=first)]

    def publish(self, session_id: str, frames: Sequence[Sent]) -> None:
        """Hand saved frames to those who watch."""
        self._hub.publish(session_topic(session_id), frames)

    def hear(self, news: str) -> None:
        """Take a hint from the store: another node has saved frames, or hints may have been lost."""
        if news == "look":
            self._hub.look_everywhere()
        elif news.startswith(_NEWS):
            _, node, session_id = news.split(" ")
            if node != self._node:
                self._hub.look(session_topic(session_id))

    async def open(self, session_id: str, user_id: str) -> Opening:
        """Return where to begin in a session, or raise if this user has no such session."""

        async def work(tx: Tx) -> Opening:
            await tx.sessions.get(session_id, user_id)
            last_seq, _ = await tx.sessions.seqs(session_id)
            run = await tx.runs.under_way_in(session_id)
            extent = None if run is None else await tx.sessions.extent_of_run(session_id, run.id)
            if run is None or extent is None:
                return Opening(last_seq=last_seq)
            return Opening(last_seq=last_seq, active_run=run, replay_from=extent.first_seq, replay_count=extent.frames)

        return await self._store.read(work)

    async def has_all_after(self, session_id: str, after: int) -> bool:
        """Tell whether everything past a number is still kept, and the number is one that was given."""
        last, first = await self._store.read(lambda tx: tx.sessions.seqs(session_id))
        return after == last or (first is not None and first - 1 <= after < last)

    async def after(self, session_id: str, after: int) -> list[Sent]:
        """Return the next frames past a number: a page of them, none if there are no more."""
        rows = await self._store.read(lambda tx: tx.sessions.events_after(session_id, after, _PAGE, _PAGE_CHARACTERS))
        return _number(rows, after)

    async def of_run(self, run: Run, after: int, most: int) -> list[Sent]:
        """Return what a run said past a number, as far as it is still kept."""
        if run.session_id is None:
            return []
        session_id = run.session_id

        async def work(tx: Tx) -> list[SavedFrames]:
            extent = await tx.sessions.extent_of_run(session_id, run.id)
            if extent is None:
                return []
            start = max(after, extent.first_seq - 1)
            rows = await tx.sessions.events_after(session_id, start, most)
            return [row for row in rows if row.run_id == run.id]

        return _number(await self._store.read(work), after)[:most]

    async def is_headless(self, run_id: str) -> bool:
        """Tell whether a run was one that nobody had asked for in the chat."""
        run = await self._store.read(lambda tx: tx.runs.read(run_id))
        return run.is_headless


def _number(rows: Sequence[SavedFrames], after: int) -> list[Sent]:
    return [
        numbered(text, seq)
        for row in rows
        for seq, text in enumerate(row.frames, start=row.last_seq - len(row.frames) + 1)
        if seq > after
    ]
