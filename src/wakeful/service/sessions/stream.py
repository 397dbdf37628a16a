"""Streams of frames of sessions: saved before they are sent, so that clients can read them later."""

from collections.abc import Sequence
from dataclasses import dataclass

from wakeful.domain.news import FramesSaved, LookAgain, SessionGone
from wakeful.domain.types import Run
from wakeful.hub import Hub, Sent, numbered, session_topic
from wakeful.store.sessions.sessions import SavedFrames
from wakeful.store.store import Store, Tx

_PAGE = 200  # rows; a row is up to 100 ms of a stream
_PAGE_CHARACTERS = 256 * 1024  # about; a client that reads nothing holds one page in our memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The position at which a client that connects now starts."""

    last_seq: int  # the newest frame
    active_run: Run | None = None  # the running run
    replay_from: int = 0  # its first frame
    replay_count: int = 0


class Stream:
    """The frames of sessions. `tx.say` saves them; this publishes and reads them."""

    def __init__(self, store: Store, hub: Hub) -> None:
        self._store = store
        self._hub = hub
        store.on(FramesSaved, self._publish)
        store.on(SessionGone, lambda news: hub.end(session_topic(news.session_id)))
        store.on(LookAgain, lambda _: hub.look_everywhere())

    def _publish(self, news: FramesSaved) -> None:
        topic = session_topic(news.session_id)
        if not news.frames:  # another node saved them
            self._hub.look(topic)
        elif self._hub.count_listeners(topic):
            self._hub.publish(topic, [numbered(text, seq) for seq, text in enumerate(news.frames, news.first_seq)])

    async def open(self, session_id: str, user_id: str) -> Opening:
        """Return where a client starts in a session, or raise if the user has no such session."""

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
        """Return whether all frames after a number are still kept, and the number was used."""
        last, first = await self._store.read(lambda tx: tx.sessions.seqs(session_id))
        return after == last or (first is not None and first - 1 <= after < last)

    async def last_seq(self, session_id: str) -> int:
        """Return the number of the newest frame."""
        return (await self._store.read(lambda tx: tx.sessions.seqs(session_id)))[0]

    async def after(self, session_id: str, after: int) -> list[Sent]:
        """Return a page of the frames after a number; empty if there are no more."""
        rows = await self._store.read(lambda tx: tx.sessions.events_after(session_id, after, _PAGE, _PAGE_CHARACTERS))
        return _number(rows, after)

    async def of_run(self, run: Run, after: int, most: int) -> list[Sent]:
        """Return the frames of a run after a number, as far as they are still kept."""
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
        """Return whether a run was started by a wake, not by a message."""
        run = await self._store.read(lambda tx: tx.runs.read(run_id))
        return run.is_headless


def _number(rows: Sequence[SavedFrames], after: int) -> list[Sent]:
    return [
        numbered(text, seq)
        for row in rows
        for seq, text in enumerate(row.frames, start=row.last_seq - len(row.frames) + 1)
        if seq > after
    ]
