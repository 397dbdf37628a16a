"""Sessions, their transcripts and their events in the store."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

import orjson

from wakeful.domain.errors import NotFound
from wakeful.domain.news import SessionChanged, SessionGone
from wakeful.domain.types import Message, Session, Upload
from wakeful.store.drivers.database import Params, Row, Statements
from wakeful.store.rows import MESSAGES, SESSIONS, UPLOADS, to_micros
from wakeful.store.sessions.search import SearchRows

_ANY_NUMBER = 1 << 60


class NoSuchSession(NotFound):
    code = "no_such_session"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"There is no session {session_id!r}. GET /sessions lists yours; it may have been deleted.")


@dataclass(frozen=True, slots=True)
class SavedFrames:
    """The encoded frames of one moment."""

    last_seq: int
    run_id: str | None
    frames: Sequence[str]


@dataclass(frozen=True, slots=True)
class Extent:
    """The number of a run's frames, and their place in its session."""

    frames: int
    first_seq: int
    last_seq: int


class SessionRows:
    """Statements about sessions, in one transaction."""

    def __init__(self, statements: Statements, search: SearchRows) -> None:
        self._statements = statements
        self._search = search

    async def add(self, sessions: Sequence[Session]) -> None:
        await self._statements.fetch_many("add_sessions", [SESSIONS.write(session) for session in sessions])
        await self._search.add_titles([(each.user_id, each.id, each.title) for each in sessions])
        self._statements.news.extend(SessionChanged(session.id) for session in sessions)

    async def get(self, session_id: str, user_id: str) -> Session:
        rows = await self._statements.fetch("session_of_user", {"id": session_id, "user_id": user_id})
        if not rows:
            raise NoSuchSession(session_id)
        return SESSIONS.read(rows[0])

    async def find(self, session_id: str) -> Session | None:
        """Read a session of any user."""
        return SESSIONS.read_first(await self._statements.fetch("session_by_id", {"id": session_id}))

    async def of_user(
        self,
        user_id: str,
        agent_id: str | None,
        before: tuple[datetime, str] | None,
        most: int,
        *,
        named: str | None = None,
        booked: Literal["recall", "any"] | None = None,
        is_unattended: bool | None = None,
    ) -> list[Session]:
        """Return a page of a user's sessions, the latest first; of those with some words in the title, if any, or with
        a live wake.

        Unattended are the sessions that a wake began and no person has written in.
        """
        at, before_id = (None, None) if before is None else (to_micros(before[0]), before[1])
        params: Params = {
            "user_id": user_id,
            "agent_id": agent_id,
            "before": at,
            "before_id": before_id,
            "most": most,
            "title": None if named is None else f"%{_as_written(named.lower())}%",
            "booked": booked,
            "is_unattended": None if is_unattended is None else int(is_unattended),
        }
        return SESSIONS.read_all(await self._statements.fetch("sessions_of_user", params))

    async def rename(self, session_id: str, user_id: str, title: str) -> Session:
        rows = await self._statements.fetch("rename_session", {"id": session_id, "user_id": user_id, "title": title})
        session = self._changed(rows, session_id)
        await self._search.replace_title(user_id, session_id, title)
        return session

    async def hand_over(
        self, session_id: str, user_id: str, agent_id: str, tool_limit: tuple[str, ...] | None
    ) -> Session:
        """Let another agent go on there."""
        limit = None if tool_limit is None else orjson.dumps(tool_limit).decode()
        rows = await self._statements.fetch(
            "hand_over_session", {"id": session_id, "user_id": user_id, "agent_id": agent_id, "tool_limit": limit}
        )
        return self._changed(rows, session_id)

    async def give_title(self, session_id: str, title: str) -> None:
        """Name a session that has no name yet."""
        rows = await self._statements.fetch("title_session", {"id": session_id, "title": title})
        if rows:
            self._statements.news.append(SessionChanged(session_id))
            await self._search.replace_title(rows[0]["user_id"], session_id, title)

    async def delete(self, session_id: str, user_id: str) -> None:
        if not await self._statements.fetch("delete_session", {"id": session_id, "user_id": user_id}):
            raise NoSuchSession(session_id)
        self._statements.news.append(SessionGone(session_id, user_id))

    async def append(self, message: Message) -> Message:
        """Put a message at the end of its session's transcript and return it with its position."""
        taken = {"id": message.session_id, "count": 1, "now": to_micros(message.created_at)}
        rows = await self._statements.fetch("take_positions", taken)
        if not rows:
            raise NoSuchSession(message.session_id)
        placed = replace(message, position=rows[0]["last_position"])
        await self._statements.fetch("add_message", MESSAGES.write(placed))
        await self._search.add_message(placed, rows[0]["user_id"])
        if message.role == "user" and message.wake_id is None:  # a run's steps are announced by its frames and its end
            self._statements.news.append(SessionChanged(message.session_id))
        return placed

    async def preload(self, messages: Sequence[Message]) -> None:
        """Put the history of a conversation into its new session, in a few statements. It is not searched."""
        if not messages:
            return
        taken = {"id": messages[0].session_id, "count": len(messages), "now": to_micros(messages[-1].created_at)}
        [row] = await self._statements.fetch("take_positions", taken)
        first = row["last_position"] - len(messages) + 1
        placed = [MESSAGES.write(replace(each, position=first + place)) for place, each in enumerate(messages)]
        await self._statements.fetch_many("add_messages", placed)

    async def supersede(self, session_id: str, first: int, before: int, run_id: str) -> None:
        """Mark the messages from one position up to another as an earlier version that a run replaces."""
        params = {"session_id": session_id, "first": first, "before": before, "run_id": run_id}
        await self._statements.fetch("supersede_messages", params)
        self._statements.news.append(SessionChanged(session_id))

    async def steps_of(self, run_id: str) -> list[Message]:
        return MESSAGES.read_all(await self._statements.fetch("messages_of_run", {"run_id": run_id}))

    async def messages(self, session_id: str, after: int = 0, most: int = 1_000) -> list[Message]:
        params = {"session_id": session_id, "after": after, "most": most}
        return MESSAGES.read_all(await self._statements.fetch("messages_of_session", params))

    async def add_image(self, image_id: str, session_id: str, media_type: str, content: bytes) -> None:
        params = {"id": image_id, "session_id": session_id, "media_type": media_type, "content": content}
        await self._statements.fetch("add_image", params)

    async def image(self, image_id: str, session_id: str) -> tuple[str, bytes] | None:
        rows = await self._statements.fetch("image_of_session", {"id": image_id, "session_id": session_id})
        return (rows[0]["media_type"], bytes(rows[0]["content"])) if rows else None

    async def existing(self, session_ids: Sequence[str]) -> set[str]:
        """Return which of these sessions exist."""
        found: set[str] = set()
        for session_id in session_ids:
            found |= {row["id"] for row in await self._statements.fetch("session_exists", {"id": session_id})}
        return found

    async def add_upload(self, upload: Upload) -> None:
        await self._statements.fetch("add_upload", UPLOADS.write(upload))

    async def uploads(self, session_id: str) -> list[Upload]:
        return UPLOADS.read_all(await self._statements.fetch("uploads_of_session", {"session_id": session_id}))

    async def events_after(
        self, session_id: str, after: int, most: int, most_characters: int = _ANY_NUMBER
    ) -> list[SavedFrames]:
        """Return the first rows that hold frames past a number, in order; at least one if there is one."""
        params = {"session_id": session_id, "after": after, "most": most, "most_characters": most_characters}
        return [
            SavedFrames(last_seq=row["seq"], run_id=row["run_id"], frames=row["data"].split("\n"))
            for row in await self._statements.fetch("events_after", params)
        ]

    async def extent_of_run(self, session_id: str, run_id: str) -> Extent | None:
        """Return where a run's frames lie, if it has any that are still kept."""
        [row] = await self._statements.fetch("frames_of_run", {"session_id": session_id, "run_id": run_id})
        return Extent(row["frames"], row["first_seq"], row["last_seq"]) if row["frames"] else None

    async def seqs(self, session_id: str) -> tuple[int, int | None]:
        """Return the last number that was given, and the first whose frame is still kept."""
        rows = await self._statements.fetch("seqs_of_session", {"id": session_id})
        if not rows:
            raise NoSuchSession(session_id)
        return rows[0]["last_seq"], rows[0]["first_seq"]

    async def delete_old_events(self, before: datetime) -> None:
        await self._statements.fetch("delete_old_events", {"before": to_micros(before)})

    def _changed(self, rows: Sequence[Row], session_id: str) -> Session:
        if not rows:
            raise NoSuchSession(session_id)
        self._statements.news.append(SessionChanged(session_id))
        return SESSIONS.read(rows[0])


def _as_written(text: str) -> str:
    """Escape the characters that mean something to LIKE."""
    return re.sub(r"([\\%_])", r"\\\1", text)
