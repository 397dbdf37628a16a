"""Sessions that programs go on with through chat completions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from wakeful.store.drivers.database import Statements
from wakeful.store.rows import Table, to_micros

KEPT = timedelta(days=30)  # after the last message
_MAX_SAME = 10  # sessions with the same history


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSession:
    """A session that a program goes on with, and the last message it sent there."""

    session_id: str
    user_id: str
    client_key: str | None
    history_key: str
    run_id: str
    at: datetime


CLIENT_SESSIONS = Table(ClientSession)


class ClientSessionRows:
    """Statements about clients' sessions, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def by_key(self, user_id: str, client_key: str) -> ClientSession | None:
        """Return the session in which a conversation with a client's own key goes on."""
        params = {"user_id": user_id, "client_key": client_key, "most": 1}
        return CLIENT_SESSIONS.read_first(await self._statements.fetch("client_sessions_by_key", params))

    async def by_history(self, user_id: str, history_key: str) -> Sequence[ClientSession]:
        """Return the sessions whose client had sent these messages, the latest first."""
        params = {"user_id": user_id, "history_key": history_key, "most": _MAX_SAME}
        return CLIENT_SESSIONS.read_all(await self._statements.fetch("client_sessions_by_history", params))

    async def save(self, session: ClientSession) -> None:
        await self._statements.fetch("save_client_session", CLIENT_SESSIONS.write(session))

    async def delete_old(self, before: datetime) -> None:
        """Delete the rows of sessions whose client last wrote before an instant; the sessions themselves stay."""
        await self._statements.fetch("delete_old_client_sessions", {"before": to_micros(before)})
