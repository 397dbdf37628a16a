"""Frames that a transaction adds to sessions' streams."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from wakeful.domain import ids
from wakeful.domain.events import RunFrame
from wakeful.domain.frames import to_wire
from wakeful.domain.news import FramesSaved
from wakeful.store.drivers.database import Statements
from wakeful.store.rows import to_micros


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
