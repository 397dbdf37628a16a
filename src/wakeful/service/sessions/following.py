"""Follow one run: its frames in order, from whichever node executes it."""

from collections.abc import AsyncGenerator, Mapping
from datetime import timedelta
from typing import Any

import orjson

from wakeful.clock import Clock
from wakeful.domain.events import ENDS
from wakeful.domain.types import Run
from wakeful.hub import Hub, Sent, Subscription, session_topic
from wakeful.service.retrying import insist
from wakeful.service.runs.runs import RunService
from wakeful.service.sessions.stream import Stream

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
                subscription.take()
                if subscription.is_over or await self._is_over(run):
                    return True
                left = until - self._clock.monotonic()
                if left <= 0:
                    return False
                await self._clock.wait(self._clock.now() + timedelta(seconds=left), subscription.wake)

    async def _new_frames(self, session_id: str, subscription: Subscription, cursor: int) -> list[Sent]:
        taken = [frame for frame in subscription.take() if frame.seq > cursor]
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
