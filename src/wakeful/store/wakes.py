"""Wakes in the store."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Literal

import orjson

from wakeful.core.errors import NotFound
from wakeful.core.events import RecallAction, WakeChanged, WakeDueSooner
from wakeful.core.frames import Recall, recall_update
from wakeful.core.types import Bounds, CallType, SetAside, Wake, WakeKind
from wakeful.core.values import value
from wakeful.core.zones import Offsets
from wakeful.store.drivers.database import Row, Statements
from wakeful.store.rows import ADDED_WAKE, MOVED_WAKE, WAKES, from_micros, read_bounds, to_micros
from wakeful.store.sessions import SessionFrames

SOON = timedelta(seconds=30)  # what is due before the scheduler looks again by itself


class NoSuchWake(NotFound):
    code = "no_such_wake"

    def __init__(self, wake_id: str) -> None:
        super().__init__(
            f"There is no wake {wake_id!r}. `wakeful wake ls --all` and GET /wakes list yours, ended ones included."
        )


@value
class DueWake:
    """A due wake with the context that the decision needs."""

    wake: Wake
    agent_timezone: str
    agent_bounds: str
    gone: str | None
    has_pauses: bool  # some pause of its user reaches past its planned instant
    busy_run_id: str | None
    waiting_run_id: str | None
    running_run_id: str | None
    free_turn: int | None  # where the queue stands, if nothing waits in it

    def read_bounds(self) -> Bounds:
        return read_bounds(self.agent_bounds)


@value
class Gone:
    """A deleted user, or a deleted agent of one."""

    user_id: str
    agent_id: str | None = None

    @property
    def reason(self) -> str:
        return "user_gone" if self.agent_id is None else "agent_gone"


@value
class _Finished:
    """A wake whose run ended: the part of it that a frame needs."""

    id: str
    kind: WakeKind
    session_id: str | None
    call_type: CallType


class WakeRows:
    """Statements about wakes, in one transaction.

    A method that changes a wake takes the word for what it does (`action`) where the rows do not tell, leaves the news,
    and says it in a recall's session, so that both sockets say the same. None: subscribers see no change.
    """

    def __init__(self, statements: Statements, frames: SessionFrames) -> None:
        self._statements = statements
        self._frames = frames

    async def add(self, wakes: Sequence[Wake]) -> set[str]:
        """Book wakes and return the ids of those that found room."""
        added = await self._statements.write_each("add_wakes", [ADDED_WAKE(wake) for wake in wakes])
        booked = [wake for wake in wakes if wake.id in added]
        for wake in booked:
            self._announce(wake, _changed(wake, "scheduled"), wake.updated_at)
        self._announce_if_soon(booked)
        return added

    async def get(self, wake_id: str, user_id: str | None = None) -> Wake:
        """Read a wake in order to change it. With a user, someone else's is not there."""
        return _one(await self._statements.fetch("lock_wake", {"id": wake_id}), wake_id, user_id)

    async def read(self, wake_id: str, user_id: str | None = None) -> Wake:
        return _one(await self._statements.fetch("wake_by_id", {"id": wake_id}), wake_id, user_id)

    async def find(self, wake_id: str) -> Wake | None:
        rows = await self._statements.fetch("wake_by_id", {"id": wake_id})
        return WAKES.read(rows[0]) if rows else None

    async def booked_by(self, run_ids: Sequence[str]) -> list[Wake]:
        """Return the wakes that these runs booked."""
        rows = await self._statements.fetch_many("wakes_booked_by_runs", [{"booked_by_run": each} for each in run_ids])
        return WAKES.read_all(rows)

    async def mute(self, wake_id: str, muted: bool, now: datetime) -> Wake:
        """Let a wake's notices go to the inbox alone, or to the channels again."""
        params = {"id": wake_id, "muted": int(muted), "now": to_micros(now)}
        wake = WAKES.read((await self._statements.fetch("mute_wake", params))[0])
        self._announce(wake, _changed(wake, "rescheduled"), now)
        return wake

    async def set_ping(self, wake_id: str, url: str | None, shown: str | None, now: datetime) -> Wake:
        """Set the address that a wake's runs are reported to, with the part of it that may be shown."""
        params = {"id": wake_id, "ping_url": url, "ping_to": shown, "now": to_micros(now)}
        wake = WAKES.read((await self._statements.fetch("set_wake_ping", params))[0])
        self._announce(wake, _changed(wake, "rescheduled"), now)
        return wake

    async def ping_urls(self, wake_ids: Collection[str]) -> dict[str, str]:
        """Return the secret addresses of those wakes that have one."""
        rows = await self._statements.fetch_many("ping_urls_of_wakes", [{"id": wake_id} for wake_id in wake_ids])
        return {row["id"]: row["ping_url"] for row in rows}

    async def mark_seen(self, wake_id: str, now: datetime) -> None:
        """Note that a person used or changed a wake."""
        await self._statements.fetch("see_wake", {"id": wake_id, "now": to_micros(now)})

    async def forgotten_recalls(self, before: datetime, most: int = 1, wake_id: str | None = None) -> list[str]:
        """Return the recurring recalls that no person has touched since; with an id, that one or none."""
        params = {"before": to_micros(before), "most": most, "id": wake_id}
        rows = await self._statements.fetch("forgotten_recalls", params)
        return [row["id"] for row in rows]

    async def in_slot(self, slot: str) -> Wake | None:
        """Read the live wake of a slot, without locking it."""
        rows = await self._statements.fetch("wake_in_slot", {"slot": slot})
        return WAKES.read(rows[0]) if rows else None

    async def of_user(
        self,
        user_id: str,
        *,
        agent_id: str | None = None,
        status: str | None = None,
        is_live: bool = False,
        after: tuple[datetime, str] | None = None,
        most: int = 50,
    ) -> list[Wake]:
        """Return a page of a user's wakes, the soonest first."""
        at, after_id = (None, None) if after is None else (to_micros(after[0]), after[1])
        rows = await self._statements.fetch(
            "live_wakes_of_user" if is_live else "wakes_of_user",
            {
                "user_id": user_id,
                "agent_id": agent_id,
                "status": status,
                "after": at,
                "after_id": after_id,
                "most": most,
            },
        )
        return [WAKES.read(row) for row in rows]

    async def live_in_slot(self, slot: str) -> Wake | None:
        rows = await self._statements.fetch("live_wake_in_slot", {"slot": slot})
        return WAKES.read(rows[0]) if rows else None

    async def of_session(
        self,
        session_id: str,
        most: int = 50,
        *,
        door: Literal["recall", "scheduler"] | None = None,
        is_live: bool = False,
        before: tuple[datetime, str] | None = None,
    ) -> list[Wake]:
        """Return a page of what was booked in a session, the newest first."""
        at, before_id = (None, None) if before is None else (to_micros(before[0]), before[1])
        params = {
            "session_id": session_id,
            "of_scheduler": None if door is None else int(door == "scheduler"),
            "before": at,
            "before_id": before_id,
            "most": most,
        }
        query = "live_wakes_of_session" if is_live else "wakes_of_session"
        return [WAKES.read(row) for row in await self._statements.fetch(query, params)]

    async def due(self, now: datetime, most: int, skip: int = 0) -> list[DueWake]:
        """Return a page of the due wakes, without those that another node has locked."""
        rows = await self._statements.fetch("due_wakes", {"now": to_micros(now), "most": most, "skip": skip})
        return [_due(row) for row in rows]

    async def set_aside(self, error: str, until: datetime, now: datetime, skip: int = 0) -> SetAside | None:
        """Postpone one of the due wakes without reading its row, and return which one that was."""
        params = {"error": error, "until": to_micros(until), "now": to_micros(now), "skip": skip}
        rows = await self._statements.fetch("set_wake_aside", params)
        if not rows:
            return None
        wake = _read_set_aside(rows[0])
        action = "failed" if wake.status == "failed" else "deferred"
        self._announce(wake, WakeChanged(wake.id, action, wake.status, wake.nominal_at), now)
        return wake

    async def move(self, changes: Sequence[tuple[Wake, RecallAction | None]]) -> set[str]:
        """Save how wakes went on or ended, and return the ids of those whose row had not changed since it was read."""
        moved = await self._statements.write_each("move_wakes", [MOVED_WAKE(wake) for wake, _ in changes])
        for wake, action in changes:
            if action is not None and wake.id in moved:
                self._announce(wake, _changed(wake, action), wake.updated_at)
                if action == "failed" and wake.status == "pending":  # a recurring one comes back
                    self._announce(wake, _changed(wake, "rescheduled"), wake.updated_at)
        self._announce_if_soon([wake for wake, _ in changes if wake.status == "pending" and wake.id in moved])
        return moved

    async def edit(self, wake: Wake) -> bool:
        is_edited = bool(await self._statements.fetch("edit_wake", WAKES.write(wake)))
        if is_edited:
            self._announce(wake, _changed(wake, "rescheduled"), wake.updated_at)
            self._announce_if_soon([wake])
        return is_edited

    async def some(self, wake_ids: Sequence[str]) -> list[Wake]:
        rows = await self._statements.fetch_many("wakes_by_ids", [{"id": wake_id} for wake_id in wake_ids])
        return [WAKES.read(row) for row in rows]

    async def planned_ahead(self, now: datetime) -> list[str]:
        """Return the pending wakes with times that were counted from a moment after now."""
        return [row["id"] for row in await self._statements.fetch("wakes_planned_ahead", {"now": to_micros(now)})]

    async def zone_rules(self) -> dict[str, Offsets]:
        """Return the offsets that wakes were planned with, by zone."""
        rows = await self._statements.fetch("zone_rules", {})
        return {row["zone"]: _read_offsets(row["offsets"]) for row in rows}

    async def lock_zone_rules(self, zone: str) -> Offsets | None:
        """Read the offsets of a zone in order to change them."""
        rows = await self._statements.fetch("lock_zone_rules", {"zone": zone})
        return _read_offsets(rows[0]["offsets"]) if rows else None

    async def save_zone_rules(self, zone: str, offsets: Offsets) -> None:
        text = orjson.dumps([(to_micros(at), offset // timedelta(seconds=1)) for at, offset in offsets]).decode()
        await self._statements.fetch("save_zone_rules", {"zone": zone, "offsets": text})

    async def zones(self) -> set[str]:
        """Return the zones of pending wakes whose time is a wall-clock time."""
        return {row["timezone"] for row in await self._statements.fetch("zones_of_wakes", {})}

    async def by_clocks_of(self, zone: str) -> list[Wake]:
        """Read the pending wakes whose time is a wall-clock time in a zone, in order to change them."""
        return WAKES.read_all(await self._statements.fetch("wakes_by_clocks_of_zone", {"zone": zone}))

    async def mark_finished(self, finished: Sequence[tuple[str, str | None]], now: datetime) -> None:
        """Record that the runs of these wakes succeeded or were stopped; each comes with the reason to save."""
        at = to_micros(now)
        params = [{"id": wake_id, "reason": reason, "updated_at": at} for wake_id, reason in finished]
        rows = list(await self._statements.fetch_many("mark_wakes_finished", params))
        if self._statements.dialect == "sqlite":
            unchanged = {wake_id for wake_id, _ in finished} - {row["id"] for row in rows}
            asked = [{"id": wake_id, "updated_at": at} for wake_id in unchanged]
            rows += await self._statements.fetch_many("recurring_wakes", asked)
        for row in rows:
            wake = _Finished(id=row["id"], kind=row["kind"], session_id=row["session_id"], call_type=row["call_type"])
            action = _finished_action(wake, row["status"])
            if action is not None:
                change = WakeChanged(wake.id, action, row["status"], from_micros(row["nominal_at"]))
                self._announce(wake, change, now)

    async def release_held(self, user_id: str, agent_id: str | None, now: datetime) -> int:
        """Make wakes due that a pause or bounds hold; without an agent, all of the user's."""
        rows = await self._statements.fetch(
            "release_held_wakes", {"user_id": user_id, "agent_id": agent_id, "now": to_micros(now)}
        )
        if rows:
            self._statements.news.append(WakeDueSooner())
        return len(rows)

    async def next_moment(
        self,
        owner: str,
        since: datetime,
        shed_after: timedelta,
        *,
        last_hold: datetime,
        judge_at: datetime,
        latest: datetime,
    ) -> datetime | None:
        """Return when the scheduler must look next.

        What ended after `since` was not seen yet. Leases are judged from `judge_at` on; one that ends after `latest` is
        void.
        """
        params = {
            "owner": owner,
            "judge_at": to_micros(judge_at),
            "latest": to_micros(latest),
            "now": to_micros(since),
            "shed_after": shed_after // timedelta(microseconds=1),
            "last_hold": to_micros(last_hold),
        }
        rows = await self._statements.fetch("next_attempt", params)
        at: int | None = rows[0]["at"]
        return None if at is None else from_micros(at)

    async def cancel_ephemeral(self, now: datetime) -> int:
        """Cancel the wakes that were booked to last until a restart."""
        ended = [
            WAKES.read(row) for row in await self._statements.fetch("cancel_ephemeral_wakes", {"now": to_micros(now)})
        ]
        for wake in ended:
            self._announce(wake, _changed(wake, "cancelled"), now)
        return len(ended)

    async def count_live(self, user_id: str, agent_id: str | None, before: datetime) -> int:
        """Return how many live wakes of an agent, or of all of a user's, are planned before an instant."""
        params = {"user_id": user_id, "agent_id": agent_id, "before": to_micros(before)}
        return (await self._statements.fetch("count_live_wakes", params))[0]["wakes"]

    async def left_by_gone(self) -> list[Gone]:
        """Return the deleted agents and users that still have live wakes."""
        rows = await self._statements.fetch("left_by_gone", {})
        return [Gone(user_id=row["user_id"], agent_id=row["agent_id"]) for row in rows]

    async def overdue(self, before: datetime, most: int) -> list[str]:
        rows = await self._statements.fetch("overdue_wakes", {"before": to_micros(before), "most": most})
        return [row["id"] for row in rows]

    async def orphaned(self, before: datetime, most: int) -> list[str]:
        rows = await self._statements.fetch("orphaned_wakes", {"before": to_micros(before), "most": most})
        return [row["id"] for row in rows]

    def _announce(self, wake: Recall, change: WakeChanged, now: datetime) -> None:
        """Leave the news of a change and, for a recall, say it in its session."""
        self._statements.news.append(change)
        if wake.kind == "recall" and wake.session_id is not None:
            self._frames.say(wake.session_id, [recall_update(wake, change)], now)

    def _announce_if_soon(self, wakes: Sequence[Wake]) -> None:
        if is_any_soon(wakes):
            self._statements.news.append(WakeDueSooner())


def is_any_soon(wakes: Sequence[Wake]) -> bool:
    """Return whether one of these wakes is due before schedulers look again by themselves."""
    return any(wake.attempt_at - wake.updated_at < SOON for wake in wakes)


def _changed(wake: Wake, action: RecallAction) -> WakeChanged:
    return WakeChanged(wake.id, action, wake.status, wake.nominal_at)


def _finished_action(wake: Recall, status: str) -> RecallAction | None:
    """Return the action to announce at the end of a run; a recall that fires once was announced at its start."""
    if wake.call_type == "recurring":
        return "rescheduled" if status == "pending" else "fired" if status == "fired" else None
    return None if wake.kind == "recall" else "fired"


def _one(rows: Sequence[Row], wake_id: str, user_id: str | None) -> Wake:
    if not rows or (user_id is not None and rows[0]["user_id"] != user_id):
        raise NoSuchWake(wake_id)
    return WAKES.read(rows[0])


def _read_offsets(text: str) -> Offsets:
    return tuple((from_micros(at), timedelta(seconds=seconds)) for at, seconds in orjson.loads(text))


def _read_set_aside(row: Row) -> SetAside:
    return SetAside(
        id=row["id"],
        kind=row["kind"],
        user_id=row["user_id"],
        agent_id=row["agent_id"],
        session_id=row["session_id"],
        call_type=row["call_type"],
        nominal_at=from_micros(row["nominal_at"]),
        status=row["status"],
    )


def _due(row: Row) -> DueWake:
    gone = "user_gone" if row["user_deleted_at"] is not None else None
    return DueWake(
        wake=WAKES.read(row),
        agent_timezone=row["agent_timezone"],
        agent_bounds=row["agent_bounds"],
        gone=gone or ("agent_gone" if row["agent_deleted_at"] is not None else None),
        has_pauses=row["has_pauses"] is not None,
        busy_run_id=row["busy_run_id"],
        waiting_run_id=row["waiting_run_id"],
        running_run_id=row["running_run_id"],
        free_turn=row["free_turn"],
    )


# Repeated bookings of programs: their keys, and their latest wakes, in the store.


KEPT = timedelta(hours=24)


class BookingKeys:
    """Statements about repeated bookings, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def claim(self, token_id: str, key: str, wake_id: str, now: datetime) -> str:
        """Return the wake that has a key of a token: this one, or an earlier one of the last 24 hours."""
        params = {
            "token_id": token_id,
            "key": key,
            "wake_id": wake_id,
            "now": to_micros(now),
            "since": to_micros(now - KEPT),
            "latest": to_micros(now + KEPT),
        }
        [row] = await self._statements.fetch("claim_booking_key", params)
        return row["wake_id"]

    async def latest(self, wake: Wake, since: datetime, until: datetime) -> list[Wake]:
        """Return what the token that books a wake has booked lately for the same agent with the same text."""
        params = {
            "token_id": wake.token_id,
            "agent_id": wake.agent_id,
            "instructions": wake.instructions,
            "since": to_micros(since),
            "until": to_micros(until),
        }
        return WAKES.read_all(await self._statements.fetch("latest_wakes_of_token", params))

    async def delete_expired(self, now: datetime) -> None:
        """Delete the keys that count no more."""
        params = {"since": to_micros(now - KEPT), "latest": to_micros(now + KEPT)}
        await self._statements.fetch("delete_expired_booking_keys", params)
