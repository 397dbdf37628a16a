"""Notices to people, and the decisions behind them, in the store."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from wakeful.domain.hooks.webhooks import notice_added
from wakeful.domain.news import NoticeAdded
from wakeful.domain.types import Decision, Notice
from wakeful.store.drivers.database import Statements
from wakeful.store.hooks.webhooks import WebhookRows
from wakeful.store.rows import DECISIONS, NOTICES, to_micros


class Notices:
    """Statements about notices and decisions, in one transaction."""

    def __init__(self, statements: Statements, webhooks: WebhookRows) -> None:
        self._statements = statements
        self._webhooks = webhooks

    async def add(self, notice: Notice) -> bool:
        """Put a notice into the inbox, unless the same one is there already."""
        is_new = bool(await self._statements.fetch("add_notice", NOTICES.write(notice)))
        if is_new:
            self._statements.news.append(NoticeAdded(notice.id))
            await self._webhooks.note([notice_added(notice)])
        return is_new

    async def find(self, notice_id: str) -> Notice | None:
        return NOTICES.read_first(await self._statements.fetch("notice_by_id", {"id": notice_id}))

    async def take(self, notice_id: str, now: datetime, left_behind: datetime) -> Notice | None:
        """Claim a notice in order to deliver it to the channels; None if another node has it.

        A claim from before `left_behind` has been abandoned. A notice is claimed at most twice.
        """
        params = {"id": notice_id, "now": to_micros(now), "left_behind": to_micros(left_behind)}
        return NOTICES.read_first(await self._statements.fetch("take_notice", params))

    async def settle(self, notice_id: str, now: datetime) -> None:
        """Note that every channel was tried."""
        await self._statements.fetch("settle_notice", {"id": notice_id, "now": to_micros(now)})

    async def untold(self, before: datetime, most: int) -> list[str]:
        rows = await self._statements.fetch("untold_notices", {"before": to_micros(before), "most": most})
        return [row["id"] for row in rows]

    async def mark_read(self, user_id: str, notice_id: str | None, now: datetime) -> int:
        """Mark one notice as read, or all of a user's."""
        params = {"user_id": user_id, "id": notice_id, "now": to_micros(now)}
        return len(await self._statements.fetch("read_notices", params))

    async def resolve(self, user_id: str, agent_id: str, code: str, now: datetime) -> None:
        """Note that what the notices of an agent under one code ask for was done; they count as read."""
        params = {"user_id": user_id, "agent_id": agent_id, "code": code, "now": to_micros(now)}
        await self._statements.fetch("resolve_notices", params)

    async def of_user(self, user_id: str, most: int = 100) -> list[Notice]:
        return NOTICES.read_all(await self._statements.fetch("notices_of_user", {"user_id": user_id, "most": most}))

    async def of_agent(self, user_id: str, agent_id: str, code: str, since: datetime) -> list[Notice]:
        """Return the notices about an agent under one code since an hour ago, the oldest first."""
        times = {"since": to_micros(since), "until": to_micros(since + timedelta(hours=2))}
        params = {"user_id": user_id, "agent_id": agent_id, "code": code, **times}
        return NOTICES.read_all(await self._statements.fetch("notices_of_agent", params))

    async def record(self, decisions: Sequence[Decision]) -> None:
        await self._statements.fetch_many(
            "add_decisions",
            [{**DECISIONS.write(decision), "position": number} for number, decision in enumerate(decisions)],
        )

    async def decisions_of(self, wake_id: str, most: int = 1_000) -> list[Decision]:
        return DECISIONS.read_all(await self._statements.fetch("decisions_of_wake", {"wake_id": wake_id, "most": most}))
