"""Periodic maintenance: the liveness audit, the room on the disk, deleting old data, and the store's journal."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from wakeful.core.clock import STEP, Clock
from wakeful.core.errors import Unavailable
from wakeful.core.resources import find_disk_shortage
from wakeful.core.types import FOREVER
from wakeful.hooks.rules import KEEP_PAYLOAD
from wakeful.notices.texts import make_notice
from wakeful.operations.storage import OldData, Retention, Vacuum
from wakeful.store.base import Base, Job
from wakeful.store.completions import KEPT
from wakeful.store.hooks import KEEP
from wakeful.store.store import Store, Tx
from wakeful.wakes.recalls import Recalls

log = logging.getLogger(__name__)

CHECKPOINT_EVERY = timedelta(minutes=1)
_OVERDUE = timedelta(minutes=1)
_MAX_NAMED = 5
# Seconds after a step of the clock before anything is deleted: the clock may be wrong. Recalls are not cancelled so
# soon after a start either: the server may have been off for a month. Short enough to work with a nightly restart.
_SETTLED_AFTER = 12 * 3600
_KEEP_TOKENS = timedelta(days=30)  # after they expired or were revoked


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Findings of the liveness audit; all empty if the engine works."""

    overdue_wakes: tuple[str, ...] = ()  # due for a minute without a decision
    stuck_runs: tuple[str, ...] = ()  # their lease expired a minute ago, and no node has recovered them
    orphaned_wakes: tuple[str, ...] = ()  # queued or running, but without such a run

    @property
    def is_good(self) -> bool:
        return not (self.overdue_wakes or self.stuck_runs or self.orphaned_wakes)


class Upkeep:
    def __init__(self, base: Base, recalls: Recalls, retention: Retention, old_data: OldData) -> None:
        self._store = base.store
        self._clock = base.clock
        self._owner = base.owner
        self._node = base.node.name
        self._data_dir = base.data_dir
        self._recalls = recalls
        self._retention = retention
        self._old_data = old_data
        self._vacuum = Vacuum(base.store, base.clock)
        self.health = Health()  # as the last audit found it
        self.disk_shortage: str | None = None
        self._is_shortage_noted = False
        self._began = base.clock.monotonic()
        self._lead = _lead_of(base.clock)  # at the last audit

    def jobs(self) -> Iterator[Job]:
        yield Job(name="disk", every=timedelta(minutes=1), run=self.look_at_disk, is_at_once=True)
        yield Job(name="forgotten-recalls", every=timedelta(minutes=1), run=self.cancel_forgotten)
        yield Job(name="retention", every=timedelta(hours=1), run=self.forget)
        if not self._store.is_shared:
            yield Job(name="checkpoint", every=CHECKPOINT_EVERY, run=self.checkpoint)

    async def audit(self) -> Health:
        """Find wakes and runs that no node handles; not just after a suspend or a step of the clock."""
        last, self._lead = self._lead, _lead_of(self._clock)
        if self._lead - last > STEP.total_seconds() or self._clock.seconds_since_step() < _OVERDUE.total_seconds():
            self.health = Health()
            return self.health
        before = self._clock.now() - _OVERDUE

        async def work(tx: Tx) -> Health:
            return Health(
                overdue_wakes=tuple(await tx.wakes.overdue(before, _MAX_NAMED)),
                stuck_runs=tuple(await tx.runs.stuck(self._owner, before, FOREVER, _MAX_NAMED)),
                orphaned_wakes=tuple(await tx.wakes.orphaned(before, _MAX_NAMED)),
            )

        self.health = await self._store.read(work)
        return self.health

    async def look_at_disk(self) -> None:
        """Look whether the disk is nearly full, and notify the owners when that begins."""
        shortage = self.disk_shortage = await asyncio.to_thread(find_disk_shortage, self._data_dir)
        if shortage is None or self._is_shortage_noted:
            self._is_shortage_noted = shortage is not None
            return
        now = self._clock.now()
        log.warning("the disk is nearly full", extra={"problem": shortage})

        async def work(tx: Tx) -> None:
            for owner in await tx.accounts.hold_owners():
                await tx.notices.add(make_notice("disk_nearly_full", owner, now, node=self._node, shortage=shortage))

        await self._store.write(work)
        self._is_shortage_noted = True  # not before: a full store takes no notice, and the next minute tries again

    async def cancel_forgotten(self) -> None:
        """Cancel recalls that nobody has looked at for the days of the setting."""
        if self._retention.forget_recalls_after_days and self._is_settled():
            await self._recalls.cancel_forgotten(self._retention.forget_recalls_after_days)

    def _is_settled(self) -> bool:
        """Return whether the server has run long enough, with a steady clock, to count days without a user."""
        up = self._clock.monotonic() - self._began
        return min(up, self._clock.seconds_since_step()) >= _SETTLED_AFTER

    async def checkpoint(self) -> None:
        """Move the store's journal into its file, so that a copy of the file is nearly complete."""
        try:
            await self._store.checkpoint()
        except Unavailable as error:  # nothing is lost: the journal has it
            log.warning("store not checkpointed", extra={"problem": error.message})

    async def forget(self) -> None:
        """Delete old frames, runs, tokens and clients' keys of sessions, merge skipped runs, and free the space."""
        if self._clock.seconds_since_step() < _SETTLED_AFTER:
            return  # a clock that is wrong for an hour must not log everyone out
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            await tx.sessions.delete_old_events(now - self._retention.events)
            await tx.runs.roll_up_skipped(now - self._retention.skipped, 1_000)
            await tx.accounts.delete_ended(now, now - _KEEP_TOKENS)
            await tx.push.drop_ended(now)
            await tx.hooks.delete_old(now, now - KEEP, now - KEEP_PAYLOAD)
            await tx.webhooks.delete_old_secrets(now)
            await tx.outgoing.delete_old(now)
            await tx.client_sessions.delete_old(now - KEPT)
            await tx.booking_keys.delete_expired(now)

        await self._store.write(work, is_long=True)
        await self._old_data.delete()
        await self._vacuum.run()


def _lead_of(clock: Clock) -> float:
    """Return how far the time is ahead of the time that this machine was awake; a suspend makes it grow."""
    return clock.now().timestamp() - clock.monotonic()


async def report_loss(store: Store, clock: Clock) -> None:
    """Add a notice to every owner's inbox if the store is older than at the last start."""
    loss, now = store.loss, clock.now()
    if loss is None:
        return
    since = None if loss.since is None else loss.since.isoformat()
    log.warning(
        "the store is older than it was, a part of it is missing",
        extra={"written_after": since, "written_until": loss.until.isoformat()},
    )

    async def work(tx: Tx) -> None:
        for owner in await tx.accounts.hold_owners():
            kind = "store_behind_from_start" if loss.since is None else "store_behind"
            notice = make_notice(kind, owner, now, since=loss.since, until=loss.until, number=loss.number)
            await tx.notices.add(notice)

    await store.write(work)
