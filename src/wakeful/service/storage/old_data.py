"""Deletes runs and sessions from long ago, if the owner has set for how long they are kept."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import datetime

from wakeful.clock import Clock
from wakeful.service.storage.storage import Retention
from wakeful.store.sessions.sessions import NoSuchSession
from wakeful.store.storage.storage import OldRun
from wakeful.store.store import Store

log = logging.getLogger(__name__)

_RUNS_AT_ONCE = 100  # in one transaction: about 10 ms
_SESSIONS_AT_ONCE = 100
_MIN_REST_SECONDS = 0.005  # after each transaction; as long as it took, if that is longer

DeleteSession = Callable[[str, str], Awaitable[None]]  # a session of a user


class OldData:
    def __init__(self, store: Store, clock: Clock, retention: Retention, delete_session: DeleteSession) -> None:
        self._store = store
        self._clock = clock
        self._retention = retention
        self._delete_session = delete_session

    async def delete(self) -> None:
        """Delete what is older than it may be, in small transactions with a rest after each."""
        now, kept = self._clock.now(), self._retention
        if kept.sessions is None and kept.runs is None:
            return
        sessions = runs = 0
        for user_id in await self._store.read(lambda tx: tx.storage.users()):
            if kept.sessions is not None:
                sessions += await self._delete_sessions(user_id, now - kept.sessions)
            if kept.runs is not None:
                runs += await self._delete_runs(user_id, now - kept.runs)
        if sessions or runs:
            log.info("old data deleted", extra={"sessions": sessions, "runs": runs})

    async def _delete_sessions(self, user_id: str, before: datetime) -> int:
        deleted = 0
        while True:
            found = await self._store.read(lambda tx: tx.storage.old_sessions(user_id, before, _SESSIONS_AT_ONCE))
            for session_id in found:
                began = time.monotonic()
                try:
                    await self._delete_session(session_id, user_id)
                except NoSuchSession:  # its user was first
                    continue
                deleted += 1
                await _rest(began)
            if len(found) < _SESSIONS_AT_ONCE:
                return deleted

    async def _delete_runs(self, user_id: str, before: datetime) -> int:
        deleted, place = 0, (0, "")
        while True:
            began = time.monotonic()
            found = await self._find_runs(user_id, before, place)
            deleted += await self._delete_some(found, before)
            if len(found) < _RUNS_AT_ONCE:
                return deleted
            place = (found[-1].queued_at, found[-1].id)  # some of them may have stayed
            await _rest(began)

    async def _find_runs(self, user_id: str, before: datetime, place: tuple[int, str]) -> list[OldRun]:
        return await self._store.read(lambda tx: tx.storage.old_runs(user_id, before, place, _RUNS_AT_ONCE))

    async def _delete_some(self, found: list[OldRun], before: datetime) -> int:
        if not found:
            return 0
        return await self._store.write(
            lambda tx: tx.storage.delete_runs(found, before), is_synced=False, is_repeatable=True
        )


async def _rest(began: float) -> None:
    """Leave the store to others for as long as the last transaction took."""
    await asyncio.sleep(max(_MIN_REST_SECONDS, time.monotonic() - began))
