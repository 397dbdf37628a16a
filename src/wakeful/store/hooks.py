"""Incoming hooks and their deliveries in the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from wakeful.core.errors import NotFound
from wakeful.core.records import Hook, Payload, ReceivedDelivery
from wakeful.store.drivers.database import Row, Statements
from wakeful.store.rows import HOOKS, RECEIVED_DELIVERIES, from_micros, to_micros


@dataclass(frozen=True, slots=True)
class Lately:
    """Number of deliveries in the last minute, and the time of the first."""

    count: int
    first_at: datetime | None


class HookRows:
    """Statements about incoming hooks, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add(self, hook: Hook) -> bool:
        """Add a hook. False if the user has one of that name."""
        return bool(await self._statements.fetch("add_hook", HOOKS.write(hook)))

    async def of_user(self, user_id: str) -> list[Hook]:
        return HOOKS.read_all(await self._statements.fetch("hooks_of_user", {"user_id": user_id}))

    async def get(self, hook_id: str, user_id: str) -> Hook:
        """Read a hook in order to change it."""
        rows = await self._statements.fetch("hook_of_user", {"id": hook_id, "user_id": user_id})
        if not rows:
            raise NoSuchHook(hook_id)
        return HOOKS.read(rows[0])

    async def read(self, hook_id: str, user_id: str) -> Hook:
        found = next((each for each in await self.of_user(user_id) if each.id == hook_id), None)
        if found is None:
            raise NoSuchHook(hook_id)
        return found

    async def find_open(self, hook_id: str) -> Hook | None:
        """Read a hook that takes deliveries, of any person."""
        return HOOKS.read_first(await self._statements.fetch("open_hook", {"id": hook_id}))

    async def lock_open(self, hook_id: str) -> Hook | None:
        """Read a hook in order to take a delivery; another node that takes one waits."""
        return HOOKS.read_first(await self._statements.fetch("lock_open_hook", {"id": hook_id}))

    async def save(self, hook: Hook) -> None:
        await self._statements.fetch("save_hook", HOOKS.write(hook))

    async def record_received(self, hook_id: str, session_id: str | None, now: datetime) -> None:
        params = {"id": hook_id, "session_id": session_id, "now": to_micros(now)}
        await self._statements.fetch("note_hook_delivery", params)

    async def record_refusal(self, hook_id: str, why: str, now: datetime) -> None:
        await self._statements.fetch("note_hook_refusal", {"id": hook_id, "why": why, "now": to_micros(now)})

    async def delete(self, hook_id: str, user_id: str) -> None:
        if not await self._statements.fetch("delete_hook", {"id": hook_id, "user_id": user_id}):
            raise NoSuchHook(hook_id)

    async def delete_of_agent(self, agent_id: str) -> None:
        await self._statements.fetch("delete_hooks_of_agent", {"agent_id": agent_id})

    async def add_received(self, delivery: ReceivedDelivery, payload: bytes | None) -> None:
        await self._statements.fetch("add_hook_delivery", {**RECEIVED_DELIVERIES.write(delivery), "payload": payload})

    async def delete_received(self, delivery_id: str) -> None:
        await self._statements.fetch("delete_hook_delivery", {"id": delivery_id})

    async def find_received(self, hook_id: str, delivery_id: str) -> ReceivedDelivery | None:
        params = {"hook_id": hook_id, "delivery_id": delivery_id}
        return RECEIVED_DELIVERIES.read_first(await self._statements.fetch("hook_delivery_by_sender", params))

    async def find_body(self, hook_id: str, sha256: str) -> ReceivedDelivery | None:
        params = {"hook_id": hook_id, "sha256": sha256}
        return RECEIVED_DELIVERIES.read_first(await self._statements.fetch("hook_delivery_by_body", params))

    async def lately(self, hook_id: str, since: datetime) -> Lately:
        times = {"since": to_micros(since), "until": to_micros(since + 2 * timedelta(minutes=1))}
        [row] = await self._statements.fetch("hook_deliveries_lately", {"hook_id": hook_id, **times})
        return Lately(row["taken"], None if row["first_at"] is None else from_micros(row["first_at"]))

    async def deliveries(
        self, hook_id: str, before: tuple[datetime, str] | None = None, most: int = 50
    ) -> list[ReceivedDelivery]:
        """Return a page of a hook's deliveries, the latest first."""
        at, before_id = (None, None) if before is None else (to_micros(before[0]), before[1])
        params = {"hook_id": hook_id, "before": at, "before_id": before_id, "most": most}
        return RECEIVED_DELIVERIES.read_all(await self._statements.fetch("deliveries_of_hook", params))

    async def payload(self, hook_id: str, delivery_id: str) -> Payload:
        rows = await self._statements.fetch("payload_of_hook_delivery", {"id": delivery_id, "hook_id": hook_id})
        if not rows:
            raise NoSuchDelivery(delivery_id)
        return _payload(rows[0])

    async def of_wake(self, wake_id: str) -> tuple[str, Sequence[Payload]] | None:
        """Return the name of the hook that booked a wake, and its deliveries, the oldest first."""
        rows = await self._statements.fetch("deliveries_of_wake", {"wake_id": wake_id})
        return (rows[0]["hook_name"], [_payload(row) for row in rows]) if rows else None

    async def count_of_wake(self, wake_id: str) -> int:
        return (await self._statements.fetch("count_deliveries_of_wake", {"wake_id": wake_id}))[0]["taken"]

    async def live_wakes(self, hook_id: str) -> list[str]:
        """Return the wakes of a hook whose runs have not begun."""
        return [row["id"] for row in await self._statements.fetch("live_wakes_of_hook", {"hook_id": hook_id})]

    async def delete_old(self, now: datetime, deliveries: datetime, payloads: datetime) -> None:
        """Delete old deliveries, old payloads of ended runs, and secrets whose time is over."""
        await self._statements.fetch("delete_old_hook_deliveries", {"before": to_micros(deliveries)})
        await self._statements.fetch("drop_old_hook_payloads", {"before": to_micros(payloads)})
        await self._statements.fetch("delete_old_hook_secrets", {"now": to_micros(now)})


def _payload(row: Row) -> Payload:
    body = row["payload"]
    return Payload(delivery=RECEIVED_DELIVERIES.read(row), body=None if body is None else bytes(body))


KEEP = timedelta(days=30)  # deliveries; the same one again is a duplicate for as long


class NoSuchHook(NotFound):
    code = "no_such_hook"

    def __init__(self, hook_id: str) -> None:
        super().__init__(f"There is no hook {hook_id!r}. `wakeful hook ls` and GET /hooks list yours.")


class NoSuchDelivery(NotFound):
    code = "no_such_delivery"

    def __init__(self, delivery_id: str) -> None:
        super().__init__(
            f"There is no delivery {delivery_id!r} of this hook. `wakeful hook deliveries` lists those of the last "
            f"{KEEP.days} days."
        )
