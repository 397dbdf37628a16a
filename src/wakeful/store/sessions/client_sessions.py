"""Sessions that programs go on with through chat completions, in the store."""

from collections.abc import Sequence
from datetime import datetime

from wakeful.domain.completions.history import ClientSession
from wakeful.store.drivers.database import Statements
from wakeful.store.rows import CLIENT_SESSIONS, to_micros

_MAX_SAME = 10  # sessions with the same history


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

    async def forget(self, before: datetime) -> None:
        """Forget the sessions whose client last wrote before an instant; the sessions themselves stay."""
        await self._statements.fetch("forget_client_sessions", {"before": to_micros(before)})
