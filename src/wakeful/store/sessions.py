"""Sessions in the store: transcripts, events, frames, presence, the search index."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

import orjson

from wakeful.core import ids
from wakeful.core.errors import NotFound
from wakeful.core.events import FramesSaved, RunFrame, SessionChanged, SessionGone, WakeDueSooner
from wakeful.core.frames import to_wire
from wakeful.core.search import MAX_SEARCHED, SEARCHED_ROLES, Found, IndexProgress, terms_of
from wakeful.core.types import Message, Run, Session, Upload
from wakeful.store import rows as queries
from wakeful.store.drivers.database import Params, Row, Statements
from wakeful.store.rows import FOUND, MESSAGES, SESSIONS, UPLOADS, to_micros


# Frames that a transaction adds to sessions' streams.
@dataclass(frozen=True, slots=True)
class _Said:
    """Frames of one row in `events`."""

    session_id: str
    run_id: str | None
    writing_id: str | None
    now: datetime
    texts: tuple[str, ...]


class SessionFrames:
    """Collects frames while a transaction's work goes on, and saves them together at its end.

    On PostgreSQL that takes two round trips, whatever the number of sessions.
    """

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._said: list[_Said] = []

    def say(
        self,
        session_id: str,
        frames: Sequence[RunFrame],
        now: datetime,
        *,
        run_id: str | None = None,
        writing_id: str | None = None,
    ) -> None:
        """Add frames to a session's stream: saved in this transaction, published after its commit.

        Work that may be done again after a lost answer gives a `writing_id`, and its frames are saved once.
        """
        if frames:
            texts = tuple(orjson.dumps(to_wire(frame, run_id), option=orjson.OPT_UTC_Z).decode() for frame in frames)
            self._said.append(_Said(session_id, run_id, writing_id, now, texts))

    async def save(self) -> None:
        """Save what was said under the next sequence numbers of each session; a deleted session gets none."""
        if not self._said:
            return
        new = [each for each in self._said if not await self._is_saved(each)]
        counts: dict[str, int] = {}
        for each in new:
            counts[each.session_id] = counts.get(each.session_id, 0) + len(each.texts)
        # In one order, so that two transactions never wait for each other's session.
        taken = [{"id": session_id, "last_seq": counts[session_id]} for session_id in sorted(counts)]
        rows = await self._statements.fetch_many("take_seqs", taken)
        next_seqs: dict[str, int] = {row["id"]: row["last_seq"] - counts[row["id"]] + 1 for row in rows}
        events = [self._place(each, next_seqs) for each in new if each.session_id in next_seqs]
        await self._statements.fetch_many("add_events", events)

    async def _is_saved(self, said: _Said) -> bool:
        """Return whether an earlier try saved this and its answer was lost; SQLite has no answers to lose."""
        if said.writing_id is None or self._statements.dialect == "sqlite":
            return False
        rows = await self._statements.fetch("last_event", {"session_id": said.session_id})
        if not rows or rows[0]["id"] != said.writing_id:
            return False
        self._leave_news(said, rows[0]["seq"] - len(said.texts) + 1)
        return True

    def _place(self, said: _Said, next_seqs: dict[str, int]) -> dict[str, object]:
        first = next_seqs[said.session_id]
        next_seqs[said.session_id] = first + len(said.texts)
        self._leave_news(said, first)
        return {
            "session_id": said.session_id,
            "seq": first + len(said.texts) - 1,
            "run_id": said.run_id,
            "id": said.writing_id or ids.new_id(said.now),
            "at": to_micros(said.now),
            "frames": len(said.texts),
            "data": "\n".join(said.texts),
        }

    def _leave_news(self, said: _Said, first_seq: int) -> None:
        self._statements.news.append(FramesSaved(said.session_id, first_seq, said.texts))


# Presence of people in sessions, and the holds that let them write first, in the store.


MESSAGE = "message"  # the source for a message; any other is a node with an open socket


def page_of(user_id: str) -> str:
    """Return the place of an open page of a user, which is saved like a session; ids of sessions have no colon."""
    return f"user:{user_id}"


class Presence:
    """Statements about presence, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def save(self, session_ids: Sequence[str], source: str, until: datetime) -> None:
        """Note that a person is present in these sessions until an instant."""
        at = to_micros(until)
        rows = [{"session_id": each, "source": source, "until": at} for each in session_ids]
        await self._statements.fetch_many("save_presence", rows)

    async def has_page(self, user_id: str, now: datetime) -> bool:
        """Return whether a user has the page open, on any node."""
        params = {"session_id": page_of(user_id), "now": to_micros(now)}
        return bool(await self._statements.fetch("presence_in_session", params))

    async def end(self, session_id: str, source: str) -> None:
        await self._statements.fetch("end_presence", {"session_id": session_id, "source": source})

    async def end_all_of_nodes(self) -> None:
        await self._statements.fetch("end_presence_of_nodes", {})

    async def delete_expired(self, now: datetime, latest: datetime) -> None:
        """Delete what has ended, or would end later than anything that is saved now."""
        await self._statements.fetch("delete_expired_presence", {"now": to_micros(now), "latest": to_micros(latest)})

    async def hold(self, ended: Sequence[Run], now: datetime, until: datetime) -> None:
        """Let no queued wake start before an instant in the sessions of these runs, if a person is present there."""
        rows = [
            queries.row_of(
                "hold_sessions",
                {
                    "id": run.session_id,
                    "held_until": to_micros(until),
                    "woken_at": to_micros(now) if run.is_headless else None,
                },
            )
            for run in ended
            if run.session_id is not None
        ]
        if rows and await self._statements.write_each("hold_sessions", rows):
            self._statements.news.append(WakeDueSooner())  # every scheduler looks again when the hold ends


# The search index in the store: texts by their terms, and how far the index has been built.


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """Progress in the texts from before the upgrade: they are indexed from these ids on; None: all."""

    sessions_before: str | None
    messages_before: str | None
    next_number: int  # of the next text; they go down
    done: int
    total: int

    @property
    def progress(self) -> IndexProgress:
        if self.sessions_before is None and self.messages_before is None:
            return IndexProgress(is_complete=True, percent=100)
        return IndexProgress(is_complete=False, percent=min(99, 100 * self.done // max(1, self.total)))


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierText:
    """A title or a message from before the upgrade."""

    id: str
    user_id: str
    session_id: str
    message_id: str | None
    text: str  # empty if it is not searched


class SearchRows:
    """Statements about the search index, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add_message(self, message: Message, user_id: str) -> None:
        if message.role in SEARCHED_ROLES:
            await self._add([_row(user_id, message.session_id, message.id, message.content)])

    async def add_titles(self, titles: Sequence[tuple[str, str, str]]) -> None:
        """Index the titles of new sessions: user, session and title."""
        await self._add([_row(user_id, session_id, None, title) for user_id, session_id, title in titles])

    async def replace_title(self, user_id: str, session_id: str, title: str) -> None:
        await self._statements.fetch("forget_search_title", {"session_id": session_id})
        await self.add_titles([(user_id, session_id, title)])

    async def find(self, user_id: str, terms: Sequence[str], before: int, most: int, *, is_title: bool) -> list[Found]:
        """Return a user's texts that have all of these terms, the latest first."""
        await self._statements.fetch("prepare_search", {})
        params: Params = {
            "user_id": user_id,
            "terms": self._all_of([_scope(user_id, is_title=is_title), *terms]),
            "before": before,
            "most": most,
        }
        return FOUND.read_all(await self._statements.fetch("search_titles" if is_title else "search_messages", params))

    async def indexed(self) -> Indexed:
        [row] = await self._statements.fetch("search_progress", {})
        return Indexed(**row)

    async def earlier_titles(self, before: str, most: int) -> list[EarlierText]:
        rows = await self._statements.fetch("titles_before", {"before": before, "most": most})
        return [
            EarlierText(id=row["id"], user_id=row["user_id"], session_id=row["id"], message_id=None, text=row["title"])
            for row in rows
        ]

    async def earlier_messages(self, before: str, most: int) -> list[EarlierText]:
        params = {"before": before, "most": most, "most_characters": MAX_SEARCHED}
        return [
            EarlierText(
                id=row["id"],
                user_id=row["user_id"],
                session_id=row["session_id"],
                message_id=row["id"],
                text=row["content"] if row["role"] in SEARCHED_ROLES else "",
            )
            for row in await self._statements.fetch("messages_before", params)
        ]

    async def add_earlier(self, rows: Sequence[Params], now: Indexed, done_before: int) -> bool:
        """Add rows of earlier texts and note how far it goes; False if another node was first."""
        moved = {
            "sessions_before": now.sessions_before,
            "messages_before": now.messages_before,
            "next_number": now.next_number,
            "done": now.done,
            "done_before": done_before,
        }
        if not await self._statements.fetch("move_search_progress", moved):
            return False
        await self._statements.fetch_many("add_earlier_search_texts", rows)
        return True

    async def _add(self, rows: Sequence[Params | None]) -> None:
        await self._statements.fetch_many("add_search_texts", [row for row in rows if row is not None])

    def _all_of(self, terms: Sequence[str]) -> str:
        """Return the query for texts with all of these; no term contains a quote."""
        if self._statements.dialect == "sqlite":
            return " AND ".join(f'"{term}"' for term in terms)
        return " & ".join(f"'{term}'" for term in terms)


def rows_of(texts: Sequence[EarlierText], last_number: int) -> Sequence[Params]:
    """Make the rows of texts that are given the latest first, numbered down from a number; in ascending order.

    SQLite writes its index to the file whenever a number is lower than the one before.
    """
    found = (_row(each.user_id, each.session_id, each.message_id, each.text) for each in texts)
    kept = [row for row in found if row is not None]
    return [{**row, "number": last_number - place} for place, row in enumerate(kept)][::-1]


def _row(user_id: str, session_id: str, message_id: str | None, text: str) -> Params | None:
    """Make the row of a text, if there is anything in it to search."""
    terms = terms_of(text)
    if not terms:
        return None
    scope = _scope(user_id, is_title=message_id is None)
    return {
        "user_id": user_id,
        "session_id": session_id,
        "message_id": message_id,
        "terms": " ".join([scope, *sorted(terms)]),
    }


def _scope(user_id: str, *, is_title: bool) -> str:
    """Return a term that all titles, or all messages, of a user have: others' texts do not slow a search down."""
    return f"{'title' if is_title else 'message'}-{user_id}"


# Sessions, their transcripts and their events in the store.


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

    async def first_seq_of_run(self, session_id: str, run_id: str) -> int | None:
        """Return the number of a run's first frame, if it has any that are still kept."""
        [row] = await self._statements.fetch("first_seq_of_run", {"session_id": session_id, "run_id": run_id})
        return row["first_seq"]

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
