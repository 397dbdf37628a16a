"""Messages to something outside in the store: added with what they are about, claimed, sent and settled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from wakeful.core import ids
from wakeful.core.events import OutgoingQueued
from wakeful.core.records import Outgoing
from wakeful.core.types import Run
from wakeful.store.drivers.database import Statements
from wakeful.store.rows import ADDED_OUTGOING, OUTGOING, from_micros, to_micros

KEEP = timedelta(days=30)  # settled messages, of kinds that keep them


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressed:
    """A message, and the name of the channel or browser that it is for."""

    message: Outgoing
    name: str


class OutgoingRows:
    """Statements about messages to something outside, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add(self, messages: Sequence[Outgoing]) -> None:
        """Add messages; a target gets one about the same thing once."""
        if messages and await self._statements.write_each("add_outgoing", [*map(ADDED_OUTGOING, messages)]):
            self._statements.news.extend(map(OutgoingQueued, {each.kind for each in messages if each.taken_at is None}))

    async def tell(
        self,
        user_id: str,
        event: str,
        about: str,
        body: Mapping[str, Any],
        at: datetime,
        *,
        kinds: Sequence[str] = ("channel", "push"),
        taken_at: datetime | None = None,
    ) -> list[Addressed]:
        """Add a message for every channel of a person that is on, and every browser; done again, it is the same."""
        outlets = await self._statements.fetch("outlets_of_user", {"user_id": user_id})
        told = [
            Addressed(
                message=Outgoing(
                    id=ids.outgoing_id(about, row["id"], at),
                    kind=row["kind"],
                    target=row["id"],
                    event=event,
                    about=about,
                    body=orjson.dumps(body).decode(),
                    next_at=at,
                    taken_at=taken_at,
                    created_at=at,
                ),
                name=row["name"],
            )
            for row in outlets
            if row["kind"] in kinds
        ]
        await self.add([each.message for each in told])
        return told

    async def add_pings(self, pings: Sequence[tuple[Run, str, str | None]], at: datetime) -> None:
        """Add pings of runs whose wake had an address when it fired: each with its event and a reason code."""
        await self.add(
            [
                Outgoing(
                    id=ids.new_id(at),
                    kind="ping",
                    target=run.wake_id,
                    event=event,
                    about=f"{event}:{run.id}:{run.fence}",  # a run that is continued ends again
                    body=orjson.dumps({"run_id": run.id, "code": code or ""}).decode(),
                    next_at=at,
                    created_at=at,
                )
                for run, event, code in pings
                if run.has_ping and run.wake_id is not None
            ]
        )

    async def claim(
        self, kind: str, now: datetime, left_behind: datetime, latest: datetime, most: int
    ) -> list[Outgoing]:
        """Claim messages of one kind that are due, for targets that no node is sending to."""
        await self._statements.fetch("lock_outgoing", {})
        times = {"now": to_micros(now), "left_behind": to_micros(left_behind), "latest": to_micros(latest)}
        rows = await self._statements.fetch("claim_outgoing", {"kind": kind, "most": most, **times})
        return OUTGOING.read_all(rows)

    async def renew(self, message: Outgoing, now: datetime) -> bool:
        """Renew a claim; False if another node has made it since."""
        assert message.taken_at is not None
        params = {"id": message.id, "taken_at": to_micros(message.taken_at), "now": to_micros(now)}
        return bool(await self._statements.fetch("renew_outgoing", params))

    async def next_at(self, kind: str, now: datetime) -> tuple[bool, datetime | None]:
        """Return whether a message of a kind is due, and when the next one will be."""
        at = to_micros(now)
        [row] = await self._statements.fetch("next_outgoing", {"kind": kind, "now": at})
        is_due = row["first_at"] is not None and row["first_at"] <= at
        return is_due, None if row["next_at"] is None else from_micros(row["next_at"])

    async def find(self, target: str, message_id: str) -> Outgoing | None:
        rows = await self._statements.fetch("outgoing_by_id", {"id": message_id, "target": target})
        return OUTGOING.read_first(rows)

    async def of_target(
        self, target: str, before: tuple[datetime, str] | None = None, most: int = 50
    ) -> list[Outgoing]:
        """Return a page of the messages to a target, the latest first."""
        at, before_id = (None, None) if before is None else (to_micros(before[0]), before[1])
        params = {"target": target, "before": at, "before_id": before_id, "most": most}
        return OUTGOING.read_all(await self._statements.fetch("outgoing_of_target", params))

    async def save(self, message: Outgoing, claimed_at: datetime | None = None) -> None:
        """Save a message; with the time of a claim, only if that still holds."""
        at = None if claimed_at is None else to_micros(claimed_at)
        await self._statements.fetch("save_outgoing", {**OUTGOING.write(message), "claimed_at": at})
        if message.status == "pending":
            self._statements.news.append(OutgoingQueued(message.kind))

    async def delete(self, message: Outgoing, claimed_at: datetime) -> None:
        """Delete a message that is settled, if the claim still holds."""
        await self._statements.fetch("delete_outgoing", {"id": message.id, "claimed_at": to_micros(claimed_at)})

    async def cancel(self, target: str, now: datetime) -> None:
        """Give up what waits to be sent."""
        await self._statements.fetch("cancel_outgoing", {"target": target, "now": to_micros(now)})

    async def delete_of_target(self, target: str) -> None:
        await self._statements.fetch("delete_outgoing_of_target", {"target": target})

    async def delete_old(self, now: datetime) -> None:
        await self._statements.fetch("delete_old_outgoing", {"before": to_micros(now - KEEP)})
