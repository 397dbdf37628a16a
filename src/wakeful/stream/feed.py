"""The frames of /ws/events: changes of everything a user owns.

They are kept in memory. Their numbers are this node's own and start at its start time. A client with a number of
another node, from before a restart, or too old gets a `session_sync` and loads everything again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from wakeful.core.clock import Clock
from wakeful.core.errors import StoreUnavailable
from wakeful.core.events import (
    AgentChanged,
    AgentUpdate,
    ApprovalChanged,
    ApprovalUpdate,
    DatabaseChanged,
    DbUpdate,
    LookAgain,
    NoticeAdded,
    Notification,
    RunChanged,
    SessionChanged,
    SessionGone,
    SessionUpdate,
    UserFrame,
    WakeChanged,
)
from wakeful.core.frames import encode, run_update, wake_update
from wakeful.core.hub import Hub, Sent, numbered, user_topic
from wakeful.core.types import Run
from wakeful.notices.service import write_times
from wakeful.store.rows import to_micros
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

_MAX_KEPT = 1_000  # frames of one user, for clients that reconnect

_Read = WakeChanged | RunChanged | ApprovalChanged | SessionChanged | SessionGone | AgentChanged | NoticeAdded
_ToUser = tuple[str, UserFrame]


@dataclass(slots=True)
class _Sent:
    """The frames sent to one user."""

    last_seq: int
    frames: deque[Sent]


class Feed:
    """Turns news into frames, for users that a client of this node has subscribed for."""

    def __init__(self, store: Store, hub: Hub, clock: Clock) -> None:
        self._store = store
        self._hub = hub
        self._first_seq = to_micros(clock.now())
        self._sent: dict[str, _Sent] = {}
        self._waiting: list[_Read] = []
        self._reading: asyncio.Task[None] | None = None
        for kind in get_args(_Read):
            store.on(kind, self._queue)
        store.on(DatabaseChanged, self._send_database)
        store.on(LookAgain, lambda _: self._resync_all())

    def last_seq(self, user_id: str) -> int:
        """Return the number of the last frame sent to a user, and keep the frames from now on."""
        return self._sent.setdefault(user_id, _Sent(self._first_seq, deque(maxlen=_MAX_KEPT))).last_seq

    def after(self, user_id: str, after: int) -> list[Sent] | None:
        """Return the frames of a user after a number; None if they are no longer kept here."""
        sent = self._sent.get(user_id)
        if sent is None or after > sent.last_seq or after < sent.last_seq - len(sent.frames):
            return None
        return [frame for frame in sent.frames if frame.seq > after]

    def _queue(self, news: _Read) -> None:
        """Queue news. One task reads it in the order of the commits, so that frames keep that order."""
        if not self._sent:  # no client has ever subscribed here
            return
        self._waiting.append(news)
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._read_waiting())

    def _resync_all(self) -> None:
        """Have every client load everything again: news may have been lost."""
        self._waiting.clear()
        for user_id, sent in self._sent.items():
            sent.last_seq += 1
            sent.frames.clear()
            self._hub.look(user_topic(user_id))

    async def _read_waiting(self) -> None:
        try:
            while self._waiting:
                news, self._waiting = self._waiting, []
                try:
                    for user_id, frame in await self._store.read(lambda tx, news=news: _to_frames(tx, news)):
                        self._send(user_id, frame)
                except StoreUnavailable:  # the store logs it
                    self._resync_all()
                except Exception:
                    log.exception("news could not be read")
                    self._resync_all()
        finally:
            self._reading = None

    def _send_database(self, news: DatabaseChanged) -> None:
        frame = DbUpdate(
            agent_id=news.agent_id, table=news.table, in_flight=news.in_flight, last_change=news.last_change
        )
        self._send(news.user_id, frame)

    def _send(self, user_id: str, frame: UserFrame) -> None:
        sent = self._sent.get(user_id)
        if sent is None:
            return
        sent.last_seq += 1
        one = numbered(encode(frame), sent.last_seq)
        sent.frames.append(one)
        self._hub.publish(user_topic(user_id), [one])


async def _to_frames(tx: Tx, news: Sequence[_Read]) -> list[_ToUser]:
    """Return the frames of news with their users, in the same order. News of deleted rows has none."""
    wake_ids = {each.wake_id: None for each in news if isinstance(each, WakeChanged)}
    run_ids = {each.run_id: None for each in news if isinstance(each, RunChanged | ApprovalChanged)}
    wakes = {wake.id: wake for wake in await tx.wakes.some(list(wake_ids))}
    runs = {run.id: run for run in await tx.runs.some(list(run_ids))}
    made: list[_ToUser | None] = []
    for each in news:
        match each:
            case WakeChanged():
                wake = wakes.get(each.wake_id)
                made.append(None if wake is None else (wake.user_id, wake_update(wake, each)))
            case RunChanged():
                run = runs.get(each.run_id)
                made.append(None if run is None else (run.user_id, run_update(run, each)))
            case ApprovalChanged():
                run = runs.get(each.run_id)
                made.append(None if run is None else await _of_approvals(tx, run))
            case SessionChanged():
                made.append(await _of_session(tx, each.session_id))
            case SessionGone():
                made.append((each.user_id, SessionUpdate(session_id=each.session_id, action="deleted")))
            case AgentChanged():
                made.append((each.user_id, await _of_agent(tx, each)))
            case NoticeAdded():
                made.append(await _of_notice(tx, each.notice_id))
    return [each for each in made if each is not None]


async def _of_approvals(tx: Tx, run: Run) -> _ToUser | None:
    if run.session_id is None:
        return None
    waiting = sum(each.status == "pending" for each in await tx.approvals.of_run(run.id))
    frame = ApprovalUpdate(run_id=run.id, session_id=run.session_id, agent_id=run.agent_id, waiting=waiting)
    return run.user_id, frame


async def _of_session(tx: Tx, session_id: str) -> _ToUser | None:
    session = await tx.sessions.find(session_id)
    if session is None:
        return None
    return session.user_id, SessionUpdate(
        session_id=session.id, agent_id=session.agent_id, title=session.title, action="changed"
    )


async def _of_agent(tx: Tx, news: AgentChanged) -> AgentUpdate:
    found = next((agent for agent in await tx.agents.of_user(news.user_id) if agent.id == news.agent_id), None)
    if found is None:
        return AgentUpdate(agent_id=news.agent_id, action="deleted")
    return AgentUpdate(agent_id=news.agent_id, name=found.name, action="changed")


async def _of_notice(tx: Tx, notice_id: str) -> _ToUser | None:
    notice = await tx.notices.find(notice_id)
    if notice is None:
        return None
    user = await tx.agents.user(notice.user_id)
    text = write_times(notice, user and user.timezone)
    return notice.user_id, Notification(
        notification_id=notice.id,
        code=notice.code,
        title=notice.title,
        body=text.body,
        times=text.times,
        agent_id=notice.agent_id,
        session_id=notice.session_id,
        run_id=notice.run_id,
        wake_id=notice.wake_id,
        view_ref=notice.view_ref,
    )
