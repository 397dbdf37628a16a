"""Presence of people in sessions, and the holds that let them write first, in the store."""

from collections.abc import Sequence
from datetime import datetime

from wakeful.domain.news import WakeDueSooner
from wakeful.domain.types import Run
from wakeful.store import queries
from wakeful.store.drivers.database import Statements
from wakeful.store.rows import to_micros

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

    async def forget(self, now: datetime, latest: datetime) -> None:
        """Forget what has ended, or would end later than anything that is saved now."""
        await self._statements.fetch("forget_presence", {"now": to_micros(now), "latest": to_micros(latest)})

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
