"""Backups: of a running server, when they are due or an owner asks; from the data directory; before a migration."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from wakeful.backup.age import Identity as age_Identity
from wakeful.backup.age import Passphrase
from wakeful.backup.archive import Keys
from wakeful.backup.backup_file import BackupFile, Made, delete_drafts, write_backup
from wakeful.backup.contents import BackupSource
from wakeful.config.recipients import parse_every
from wakeful.config.settings import Settings
from wakeful.config.settings_file import without_secrets
from wakeful.core.clock import Clock, SystemClock
from wakeful.core.errors import Conflict, NotFound, Unavailable, WakefulError
from wakeful.core.identity import Identity, OwnersOnly
from wakeful.core.records import BackupState
from wakeful.core.sources import FILE_NAME
from wakeful.datadir.device_key import database_of, device_key_of
from wakeful.datadir.files import STORE_FILE, finish_restore
from wakeful.datadir.lost_data import check_device_key
from wakeful.notices.texts import make_notice
from wakeful.store.base import Job
from wakeful.store.drivers.database import Database
from wakeful.store.drivers.sqlite import hold, size_of
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

LOOK_EVERY = timedelta(minutes=1)
PREFIX, SUFFIX = "wakeful-", ".age"
_NAME = re.compile(r"wakeful-\d{4}-\d\d-\d\dT\d{6}Z\.age")
_RETRY = timedelta(minutes=10)  # after a failure
_ABANDONED = timedelta(minutes=5)  # since the node that makes a backup was last heard of


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

    def jobs(self) -> Iterator[Job]:
        yield Job(name="backups", every=LOOK_EVERY, run=self.look)

    async def look(self) -> None:
        """Make a backup if one is due and no other node makes it."""
        state, now = await self.state(), self._clock.now()
        if self.plan is None or not is_due(state, self.plan.every, now):
            return
        taken = await self._store.write(lambda tx: tx.backups.claim(state, self._node, now))
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
        file = BackupFile(plan.folder / name_of(began), plan.recipients)
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
                kind = "first_backup_failed" if state.finished_at is None else "backup_failed"
                await tx.notices.add(make_notice(kind, owner, now, error=error, last=state.finished_at))

        await self._store.write(work)
        await self.state()


def _prepare(folder: Path) -> None:
    if not folder.is_dir():
        # Not created: an unmounted disk would be filled below its mount point.
        raise BackupDirUnusable(
            f"The directory {str(folder)!r} (backup_dir) does not exist. Create it, or mount its disk; the next "
            "attempt is in ten minutes."
        )
    delete_drafts(folder, PREFIX)


def _delete_old(plan: BackupPlan) -> None:
    for name in find_old([path.name for path in plan.folder.iterdir()], plan.keep):
        with suppress(OSError):
            (plan.folder / name).unlink()
            log.info("old backup deleted", extra={"file": name})


def is_due(state: BackupState, every: timedelta, now: datetime) -> bool:
    """Return whether a backup is to be made now. A clock that was set back does not keep it from being made."""
    if state.started_at is None or state.started_at > now:
        return True
    if state.is_running:  # unless its node is dead
        return state.renewed_at is None or not timedelta() <= now - state.renewed_at < _ABANDONED
    return now - state.started_at >= (min(_RETRY, every) if state.is_failing else every)


def name_of(now: datetime) -> str:
    return f"{PREFIX}{now:%Y-%m-%dT%H%M%SZ}{SUFFIX}"


def find_old(names: Collection[str], keep: int) -> Sequence[str]:
    """Return the names of backups to delete, so that some are kept. Other files are nobody's to delete."""
    return sorted(name for name in names if _NAME.fullmatch(name))[:-keep]


# ── For owners ───────────────────────────────────────────────────────────────────────────────────────────────────────


class BackupRunning(Conflict):
    code = "backup_running"
    text = "Another backup of this server is running. Wait until it has ended, and try again."


class Backups:
    """Streams backups to owners, one at a time."""

    def __init__(self, source: BackupSource, scheduled: ScheduledBackups) -> None:
        self._source = source
        self._scheduled = scheduled
        self._is_running = False

    async def scheduled(self, caller: Identity) -> tuple[BackupPlan | None, BackupState]:
        """Return the settings of scheduled backups and how the last ones ended. Only for owners."""
        if caller.user.role != "owner":
            raise OwnersOnly
        return self._scheduled.plan, await self._scheduled.state()

    def begin(self, caller: Identity) -> AsyncGenerator[bytes]:
        """Return the inside of a backup, not encrypted. Only for owners: it has everyone's data.

        The keys are never in it: they are in files that only programs on the server's machine can read.
        """
        if caller.user.role != "owner":
            raise OwnersOnly
        if self._is_running:
            raise BackupRunning
        return self._stream(caller)

    async def _stream(self, caller: Identity) -> AsyncGenerator[bytes]:
        if self._is_running:
            raise BackupRunning
        self._is_running = True
        size, is_whole = 0, False
        log.info("backup begun", extra={"user_id": caller.user.id, "token_id": caller.token_id})
        try:
            async with aclosing(self._source.stream()) as pieces:
                async for piece in pieces:
                    size += len(piece)
                    yield piece
            is_whole = True
        finally:
            self._is_running = False
            outcome = "sent" if is_whole else "broken off"
            log.info("backup ended", extra={"user_id": caller.user.id, "bytes": size, "outcome": outcome})


# Make a backup: from a running server, from the data directory, and before a migration.


_BEFORE_MIGRATION = "wakeful-before-migration"
# A step, and its number of bytes so far.
OnBytes = Callable[[str, int], None]


class NothingToBackUp(NotFound):
    code = "nothing_to_back_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A new age identity and its recipient."""

    identity: str
    recipient: str


def make_key_pair() -> KeyPair:
    identity = age_Identity.new()
    return KeyPair(identity=identity.text, recipient=identity.recipient)


def backup_source(
    settings: Settings, database: Database, device_key: bytes, clock: Clock, *, is_live: bool
) -> BackupSource:
    """Return the source of backups of a node."""
    url = settings.database_url
    return BackupSource(
        database=database,
        postgres_url=None if url is None else url.get_secret_value(),
        data_dir=settings.data_dir,
        device_key=device_key,
        is_store_encrypted=settings.store_encryption and url is None,
        read_settings=lambda: without_secrets(settings.config_dir / FILE_NAME),
        clock=clock,
        is_live=is_live,
    )


def backup_plan(settings: Settings) -> BackupPlan | None:
    """Return the settings of scheduled backups; None: there are to be none."""
    if settings.backup_dir is None:
        return None
    return BackupPlan(
        folder=settings.backup_dir,
        recipients=settings.backup_recipients,
        every=parse_every(settings.backup_every),
        keep=settings.backup_keep,
    )


def read_keys(settings: Settings) -> Keys:
    """Return the keys of this machine, for a backup with keys."""
    check_device_key(settings)
    path = settings.config_dir / FILE_NAME
    text = path.read_text(encoding="utf-8") if path.exists() else None
    return Keys(device_key=device_key_of(settings).hex(), settings=text)


def save_stream(
    pieces: Iterator[bytes], path: Path, to: Sequence[str] | Passphrase, keys: Keys | None, on_bytes: OnBytes
) -> Made:
    """Encrypt what a server streams into a file, read it back, and give it its name."""
    count = _Count(on_bytes)
    with BackupFile(path, to, keys) as file:
        for piece in pieces:
            file.write(piece)
            count.add("written", len(piece))
        count.start_over()
        return file.finish(lambda size: count.add("read back", size))


def back_up_stopped(
    settings: Settings, path: Path, to: Sequence[str] | Passphrase, keys: Keys | None, on_bytes: OnBytes
) -> Made:
    """Back up a store that no server of this data directory uses."""
    finish_restore(settings)
    is_embedded = settings.database_url is None
    if is_embedded and not size_of(settings.data_dir / STORE_FILE):
        raise NothingToBackUp(
            f"There is no store in {str(settings.data_dir)!r}, so there is nothing to back up. Set WAKEFUL_DATA_DIR to "
            "the directory of the server, or give its address with --url."
        )
    check_device_key(settings)
    database, device_key = database_of(settings), device_key_of(settings)
    source = backup_source(settings, database, device_key, SystemClock(), is_live=False)
    count = _Count(on_bytes)

    async def make() -> Made:
        return await write_backup(
            BackupFile(path, to, keys), _counted(source, count), lambda size: count.add("read back", size)
        )

    with hold(settings.data_dir) if is_embedded else nullcontext():
        return asyncio.run(make())


async def _counted(source: BackupSource, count: "_Count") -> AsyncGenerator[bytes]:
    async for piece in source.stream(lambda size: count.add("written", size)):
        yield piece
    count.start_over()


class _Count:
    def __init__(self, on_bytes: OnBytes) -> None:
        self._on_bytes = on_bytes
        self._size = 0

    def add(self, what: str, size: int) -> None:
        self._size += size
        self._on_bytes(what, self._size)

    def start_over(self) -> None:
        self._size = 0


# ── Before a migration ───────────────────────────────────────────────────────────────────────────────────────────────


class MigrationNotBackedUp(Unavailable):
    code = "migration_not_backed_up"


async def back_up_before_migration(
    settings: Settings, database: Database, device_key: bytes, clock: Clock, schema: int
) -> None:
    """Write a backup of a store on PostgreSQL, which has no way back from a migration without one.

    The device key opens it, and the recipients in the settings, if there are any. An embedded store is copied as a file
    instead (`store/migrate.py`).
    """
    folder = settings.backup_dir or settings.data_dir / "backups"
    now = clock.now()
    path = folder / f"{_BEFORE_MIGRATION}-schema{schema}-{now:%Y-%m-%dT%H%M%SZ}.age"
    log.info("store is backed up before its migration", extra={"path": str(path)})
    source = backup_source(settings, database, device_key, clock, is_live=True)
    recipients = [age_Identity.derived(device_key).recipient, *settings.backup_recipients]
    try:
        _prepare_copy(folder)
        async with aclosing(source.stream()) as pieces:
            made = await write_backup(BackupFile(path, recipients), pieces)
    except (Unavailable, OSError) as error:
        problem = error.message if isinstance(error, Unavailable) else f"{error.strerror} ({error.filename})."
        raise MigrationNotBackedUp(
            f"The schema of this PostgreSQL database is older (migration {schema}), and must be migrated. Before that, "
            f"everything in it is copied to {str(folder)!r}, which failed: {problem} Nothing was migrated. Fix that "
            "and start again; or, if you have a backup of your own, start with --no-backup."
        ) from error
    log.info("store backed up before its migration", extra={"path": str(path), "bytes": made.size})


def _prepare_copy(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    delete_drafts(folder, _BEFORE_MIGRATION)
