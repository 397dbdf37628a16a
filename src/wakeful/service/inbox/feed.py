"""News about everything a user owns, for those who listen. A hint: the tables are the truth.

The numbers are this node's own and count on from the time it started; a client that comes with another node's number,
or one that is too old, is told to load everything again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from wakeful.clock import Clock
from wakeful.domain.errors import StoreUnavailable
from wakeful.domain.events import (
    AgentUpdate,
    Notification,
    RecallUpdate,
    RunUpdate,
    ScheduleUpdate,
    SessionUpdate,
    UserFrame,
)
from wakeful.domain.types import Run, Wake
from wakeful.hub import Hub, Sent, encode, numbered, session_topic, user_topic
from wakeful.store.rows import to_micros
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

_KEPT = 1_000  # frames of one user, for those who come back
_LATELY = 8


@dataclass(slots=True)
class _Told:
    last_seq: int
    frames: deque[Sent]
    lately: deque[str]


class Feed:
    """Turns what the store tells into frames, for users someone listens for."""

    def __init__(self, store: Store, hub: Hub, clock: Clock) -> None:
        self._store = store
        self._hub = hub
        self._first_seq = to_micros(clock.now())
        self._told: dict[str, _Told] = {}
        self._reading: set[asyncio.Task[None]] = set()
        self._readers: dict[str, Callable[[Sequence[str]], Coroutine[Any, Any, None]]] = {
            "run": self._tell_runs,
            "session": self._tell_session,
            "agent": self._tell_agent,
            "wake": self._tell_wakes,
            "notice": self._tell_notice,
        }

    def last_seq(self, user_id: str) -> int:
        """Return the number of the last frame told to a user, and keep what comes from now on."""
        return self._told.setdefault(
            user_id, _Told(self._first_seq, deque(maxlen=_KEPT), deque(maxlen=_LATELY))
        ).last_seq

    def after(self, user_id: str, after: int) -> list[Sent] | None:
        """Return what a user was told past a number; None if that is not known here any more."""
        told = self._told.get(user_id)
        if told is None or after > told.last_seq or after < told.last_seq - len(told.frames):
            return None
        return [frame for frame in told.frames if frame.seq > after]

    def hear(self, news: str) -> None:
        """Take a hint from the store. Nothing is read while nobody has ever listened here."""
        word, *ids = news.split(" ")
        if word == "look":
            self._forget()
        if word == "session" and len(ids) == 2:
            self._hub.end(session_topic(ids[0]))
        reader = self._readers.get(word)
        if reader is not None and ids and self._told:
            task = asyncio.ensure_future(self._read(reader, ids))
            self._reading.add(task)
            task.add_done_callback(self._reading.discard)

    def _forget(self) -> None:
        """Hints may have been lost: whoever listens is to load everything again."""
        for told in self._told.values():
            told.last_seq += 1
            told.frames.clear()

    async def _read(self, reader: Callable[[Sequence[str]], Coroutine[Any, Any, None]], ids: Sequence[str]) -> None:
        try:
            await reader(ids)
        except StoreUnavailable:  # which logs that itself
            self._forget()
        except Exception:
            log.exception("news could not be read")

    async def _tell_runs(self, run_ids: Sequence[str]) -> None:
        for run in await self._store.read(lambda tx: tx.runs.some(run_ids)):
            self._tell(run.user_id, _of_run(run))

    async def _tell_session(self, ids: Sequence[str]) -> None:
        if len(ids) == 2:  # deleted: all that is left is whose it was
            self._tell(ids[1], SessionUpdate(session_id=ids[0], action="deleted"))
            return
        session = await self._store.read(lambda tx: tx.sessions.find(ids[0]))
        if session is not None:
            self._tell(
                session.user_id,
                SessionUpdate(session_id=session.id, agent_id=session.agent_id, title=session.title, action="changed"),
            )

    async def _tell_agent(self, ids: Sequence[str]) -> None:
        agent_id, user_id = ids
        agents = await self._store.read(lambda tx: tx.agents.of_user(user_id))
        found = next((agent for agent in agents if agent.id == agent_id), None)
        # Told each time: two changes of its settings look the same here, and the second must not pass for the first.
        if found is None:
            self.tell(user_id, AgentUpdate(agent_id=agent_id, action="deleted"))
        else:
            self.tell(user_id, AgentUpdate(agent_id=agent_id, name=found.name, action="changed"))

    async def _tell_wakes(self, wake_ids: Sequence[str]) -> None:
        async def work(tx: Tx) -> list[Wake]:
            return [await tx.wakes.read(wake_id) for wake_id in wake_ids]

        for wake in await self._store.read(work):
            self._tell(wake.user_id, _of_wake(wake))

    async def _tell_notice(self, ids: Sequence[str]) -> None:
        notice = await self._store.read(lambda tx: tx.notices.find(ids[0]))
        if notice is not None:
            self._tell(
                notice.user_id,
                Notification(
                    notification_id=notice.id,
                    code=notice.code,
                    title=notice.title,
                    body=notice.body,
                    agent_id=notice.agent_id,
                    session_id=notice.session_id,
                    run_id=notice.run_id,
                    wake_id=notice.wake_id,
                    view_ref=notice.view_ref,
                ),
            )

    def _tell(self, user_id: str, frame: UserFrame) -> None:
        told = self._told.get(user_id)
        if told is None:
            return
        text = encode(frame)
        if text in told.lately:  # two hints about one change: both found it as it is now
            return
        told.lately.append(text)
        self._send(user_id, told, text)

    def tell(self, user_id: str, frame: UserFrame) -> None:
        """Tell what is in no table of the store, to those who listen on this node."""
        told = self._told.get(user_id)
        if told is not None:
            self._send(user_id, told, encode(frame))

    def _send(self, user_id: str, told: _Told, text: str) -> None:
        told.last_seq += 1
        sent = numbered(text, told.last_seq)
        told.frames.append(sent)
        self._hub.publish(user_topic(user_id), [sent])


def _of_run(run: Run) -> RunUpdate:
    return RunUpdate(
        run_id=run.id,
        agent_id=run.agent_id,
        session_id=run.session_id,
        wake_id=run.wake_id,
        trigger=run.trigger,
        status=run.status,
        reason=run.reason,
    )


def _of_wake(wake: Wake) -> UserFrame:
    if wake.kind != "recall" or wake.session_id is None:
        return ScheduleUpdate(
            wake_id=wake.id,
            kind=wake.kind,
            agent_id=wake.agent_id,
            session_id=wake.session_id,
            trigger_at=wake.nominal_at,
            status=wake.status,
        )
    action = "cancelled" if wake.status in ("cancelled", "superseded") else "scheduled"
    return RecallUpdate(
        session_id=wake.session_id,
        recall_id=wake.id,
        call_type=wake.call_type,
        trigger_at=wake.nominal_at,
        status="pending" if wake.is_live else "cancelled" if action == "cancelled" else "fired",
        action=action if wake.is_live or action == "cancelled" else "fired",
    )
