"""Scheduled backups: made by one of the nodes that have a directory for them, and loud when they fail."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from wakeful.clock import Clock
from wakeful.domain.backup import schedule
from wakeful.domain.backup.schedule import BackupState
from wakeful.domain.errors import Unavailable, WakefulError
from wakeful.domain.inbox import notices
from wakeful.service.backup.backup_file import BackupFile, Made, delete_drafts, write_backup
from wakeful.service.backup.source import BackupSource
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

LOOK_EVERY = timedelta(minutes=1)


class BackupDirUnusable(Unavailable):
    code = "backup_dir_unusable"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupPlan:
    """The settings of scheduled backups."""

    folder: Path
    recipients: Sequence[str]
    every: timedelta
    keep: int


class ScheduledBackups:
    """Makes a backup when one is due, and deletes old ones."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        source: BackupSource,
        node: str,
        plan: BackupPlan | None,  # None: this node makes none
        on_ended: Callable[[str], None] = lambda _outcome: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._source = source
        self._node = node
        self.plan = plan
        self._on_ended = on_ended
        self.last = BackupState()  # as this node has last read it

    async def state(self) -> BackupState:
        self.last = await self._store.read(lambda tx: tx.backups.state(), is_single=True)
        return self.last

    async def look(self) -> None:
        """Make a backup if one is due and no other node makes it."""
        state, now = await self.state(), self._clock.now()
        if self.plan is None or not schedule.is_due(state, self.plan.every, now):
            return
        taken = await self._store.write(lambda tx: tx.backups.take(state, self._node, now))
        if taken is not None:
            await self._make(self.plan, now)

    async def _make(self, plan: BackupPlan, began: datetime) -> None:
        log.info("backup begun", extra={"folder": str(plan.folder)})
        renewing = asyncio.create_task(self._renew(began))
        try:
            made = await self._write(plan, began)
        except WakefulError as error:
            await self._note_failure(began, error.message)
            return
        except OSError as error:
            await self._note_failure(began, f"The directory {str(plan.folder)!r} cannot be used: {error.strerror}.")
            return
        except Exception as error:  # a backup that fails must be noticed, for whatever reason
            log.exception("backup failed")
            await self._note_failure(began, f"An unexpected error: {type(error).__name__}. The log has more.")
            return
        finally:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing
        await self._store.write(lambda tx: tx.backups.finish(began, self._clock.now(), made.path.name, made.size))
        self._on_ended("made")
        fields = {"file": made.path.name, "bytes": made.size, "left_out": len(made.left_out)}
        log.info("backup made", extra=fields | {"seconds": round((self._clock.now() - began).total_seconds(), 1)})
        await asyncio.to_thread(_delete_old, plan)
        await self.state()

    async def _write(self, plan: BackupPlan, began: datetime) -> Made:
        await asyncio.to_thread(_prepare, plan.folder)
        file = BackupFile(plan.folder / schedule.name_of(began), plan.recipients)
        async with aclosing(self._source.stream()) as pieces:
            return await write_backup(file, pieces)

    async def _renew(self, began: datetime) -> None:
        """Record every minute that this node is still at it, so that no other one begins."""
        while True:
            await asyncio.sleep(LOOK_EVERY.total_seconds())
            with suppress(Unavailable):
                await self._store.write(lambda tx: tx.backups.renew(began, self._clock.now()))

    async def _note_failure(self, began: datetime, error: str) -> None:
        log.error("backup failed", extra={"problem": error})
        self._on_ended("failed")
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            await tx.backups.fail(began, now, error)
            state = await tx.backups.state()
            for owner in await tx.accounts.hold_owners():
                await tx.notices.add(notices.backup_failed(owner, error, state.finished_at, now))

        await self._store.write(work)
        await self.state()


def _prepare(folder: Path) -> None:
    if not folder.is_dir():
        # Not created: an unmounted disk would be filled below its mount point.
        raise BackupDirUnusable(
            f"The directory {str(folder)!r} (backup_dir) does not exist. Create it, or mount its disk; the next "
            "attempt is in ten minutes."
        )
    delete_drafts(folder, schedule.PREFIX)


def _delete_old(plan: BackupPlan) -> None:
    for name in schedule.find_old([path.name for path in plan.folder.iterdir()], plan.keep):
        with suppress(OSError):
            (plan.folder / name).unlink()
            log.info("old backup deleted", extra={"file": name})
