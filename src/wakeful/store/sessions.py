"""Sessions, their transcripts and their events in the store."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import orjson

from wakeful.domain.errors import NotFound
from wakeful.domain.types import Message, Session
from wakeful.store.database import Statements
from wakeful.store.rows import MESSAGES, SESSIONS, to_micros


class NoSuchSession(NotFound):
    code = "no_such_session"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"There is no session {session_id!r}.")


class Sessions:
    """Statements about sessions, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add(self, sessions: Sequence[Session]) -> None:
        await self._statements.fetch_many("add_sessions", [SESSIONS.write(session) for session in sessions])

    async def get(self, session_id: str, user_id: str) -> Session:
        rows = await self._statements.fetch("session_of_user", {"id": session_id, "user_id": user_id})
        if not rows:
            raise NoSuchSession(session_id)
        return SESSIONS.read(rows[0])

    async def append(self, message: Message) -> Message:
        """Put a message at the end of its session's transcript."""
        rows = await self._statements.fetch("take_positions", {"id": message.session_id, "count": 1})
        if not rows:
            raise NoSuchSession(message.session_id)
        params = {**MESSAGES.write(message), "position": rows[0]["last_position"]}
        await self._statements.fetch("add_message", params)
        return message

    async def steps_of(self, run_id: str) -> list[Message]:
        rows = await self._statements.fetch("messages_of_run", {"run_id": run_id})
        return [MESSAGES.read(row) for row in rows]

    async def messages(self, session_id: str, after: int = 0, most: int = 1_000) -> list[Message]:
        params = {"session_id": session_id, "after": after, "most": most}
        return [MESSAGES.read(row) for row in await self._statements.fetch("messages_of_session", params)]

    async def append_events(self, session_id: str, run_id: str, frames: Sequence[Any], now: datetime) -> int:
        """Save frames with the next sequence numbers of their session and return the last one."""
        rows = await self._statements.fetch("take_seqs", {"id": session_id, "count": len(frames)})
        if not rows:
            raise NoSuchSession(session_id)
        last: int = rows[0]["last_seq"]
        await self._statements.fetch_many(
            "add_events",
            [
                {
                    "session_id": session_id,
                    "seq": last - len(frames) + number,
                    "run_id": run_id,
                    "at": to_micros(now),
                    "data": orjson.dumps(frame).decode(),
                }
                for number, frame in enumerate(frames, start=1)
            ],
        )
        return last

    async def events_after(self, session_id: str, after: int, most: int = 1_000) -> list[tuple[int, dict[str, Any]]]:
        params = {"session_id": session_id, "after": after, "most": most}
        rows = await self._statements.fetch("events_after", params)
        return [(row["seq"], cast("dict[str, Any]", orjson.loads(row["data"]))) for row in rows]

    async def delete_old_events(self, before: datetime) -> None:
        await self._statements.fetch("delete_old_events", {"before": to_micros(before)})
