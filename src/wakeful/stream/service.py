"""Streams of frames of sessions: saved before they are sent, so that clients can read them later."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson

from wakeful.core.clock import Clock
from wakeful.core.events import ENDS, FramesSaved, LookAgain, SessionGone
from wakeful.core.hub import Hub, Sent, Subscription, numbered, session_topic
from wakeful.core.types import Run
from wakeful.runs.service import RunService
from wakeful.store.errors import insist
from wakeful.store.sessions import SavedFrames
from wakeful.store.store import Store, Tx

_PAGE = 200  # rows; a row is up to 100 ms of a stream
_PAGE_CHARACTERS = 256 * 1024  # about; a client that reads nothing holds one page in our memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The position at which a client that connects now starts."""

    last_seq: int  # the newest frame
    active_run: Run | None = None  # the running run
    replay_from: int = 0  # its first frame


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
            first_seq = None if run is None else await tx.sessions.first_seq_of_run(session_id, run.id)
            if run is None or first_seq is None:
                return Opening(last_seq=last_seq)
            return Opening(last_seq=last_seq, active_run=run, replay_from=first_seq)

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
            first_seq = await tx.sessions.first_seq_of_run(session_id, run.id)
            if first_seq is None:
                return []
            start = max(after, first_seq - 1)
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


# ── Following one run ─────────────────────────────────────────────────────────────────────────────────────────────────


Frame = Mapping[str, Any]


class Following:
    """Follows runs to their end, for requests that wait for an answer."""

    def __init__(self, stream: Stream, hub: Hub, runs: RunService, clock: Clock) -> None:
        self._stream = stream
        self._hub = hub
        self._runs = runs
        self._clock = clock

    async def follow(self, run: Run, after: int, quiet: timedelta) -> AsyncGenerator[Frame | None]:
        """Yield the frames of a run after a number, the last of which ends it; None after each time without a frame.

        A run whose session was deleted, or that ended without a frame, ends with an error frame.
        """
        assert run.session_id is not None
        cursor = after
        with self._hub.subscribe(session_topic(run.session_id)) as subscription:
            subscription.fall_behind()  # the first frames may have been sent before
            alive_at = self._clock.monotonic()
            while True:
                is_quiet = self._clock.monotonic() - alive_at >= quiet.total_seconds()
                is_over = is_quiet and await self._is_over(run)
                if is_over:  # its last frame was saved with its end
                    subscription.fall_behind()
                for sent in await self._new_frames(run.session_id, subscription, cursor):
                    cursor = sent.seq
                    frame = orjson.loads(sent.text)
                    if frame.get("run_id") != run.id:
                        continue
                    alive_at, is_quiet = self._clock.monotonic(), False
                    yield frame
                    if frame["type"] in ENDS:
                        return
                if is_over or subscription.is_over:
                    yield await self._lost_end(run, is_session_gone=subscription.is_over)
                    return
                if is_quiet:
                    alive_at = self._clock.monotonic()
                    yield None
                await self._clock.wait(self._clock.now() + quiet, subscription.wake)

    async def wait_for_end(self, run: Run, until: float) -> bool:
        """Wait until a run has ended, or for so long that the monotonic clock shows `until`; return whether it has."""
        assert run.session_id is not None
        with self._hub.subscribe(session_topic(run.session_id)) as subscription:
            while True:
                subscription.drain()
                if subscription.is_over or await self._is_over(run):
                    return True
                left = until - self._clock.monotonic()
                if left <= 0:
                    return False
                await self._clock.wait(self._clock.now() + timedelta(seconds=left), subscription.wake)

    async def _new_frames(self, session_id: str, subscription: Subscription, cursor: int) -> list[Sent]:
        taken = [frame for frame in subscription.drain() if frame.seq > cursor]
        is_whole = all(frame.seq == seq for seq, frame in enumerate(taken, start=cursor + 1))
        if not subscription.is_behind and is_whole:
            return taken
        subscription.is_behind = False  # first: frames that are published while we read are queued again
        found: list[Sent] = []
        while page := await self._read(session_id, found[-1].seq if found else cursor):
            found += page
        return found

    async def _read(self, session_id: str, after: int) -> list[Sent]:
        return await insist(lambda: self._stream.after(session_id, after))

    async def _is_over(self, run: Run) -> bool:
        return (await insist(lambda: self._runs.get(run.id, run.user_id))).status not in ("queued", "running")

    async def _lost_end(self, run: Run, *, is_session_gone: bool) -> Frame:
        """Return the frame for a run that has ended without one."""
        if is_session_gone:
            return {"type": "error", "code": "session_deleted", "message": "The session was deleted meanwhile."}
        found = await insist(lambda: self._runs.get(run.id, run.user_id))
        return {"type": "error", "code": found.status, "message": found.error or f"The run has ended: {found.status}."}
