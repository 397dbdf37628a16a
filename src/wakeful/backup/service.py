"""Backups of a running server, and scheduled ones."""

import asyncio
import contextlib
import errno
import fcntl
import glob
import logging
import os
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Generator, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from wakeful.backup.age import Decryptor, Encryptor, FileKey, Passphrase
from wakeful.backup.archive import PIECE, ArchiveReader, Keys, keys_member
from wakeful.backup.contents import BackupSource, to_its_end
from wakeful.core.clock import Clock
from wakeful.core.errors import Conflict, Unavailable, WakefulError
from wakeful.core.files import sync_folder
from wakeful.core.identity import Identity, OwnersOnly
from wakeful.core.jobs import Job
from wakeful.core.records import BackupState
from wakeful.notices import texts as notices_texts
from wakeful.store.store import Store, Tx

# Scheduled backups: when one is due, how it is named, and which are kept.


PREFIX, SUFFIX = "wakeful-", ".age"
_NAME = re.compile(r"wakeful-\d{4}-\d\d-\d\dT\d{6}Z\.age")
_RETRY = timedelta(minutes=10)  # after a failure
_ABANDONED = timedelta(minutes=5)  # since the node that makes a backup was last heard of


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


# A backup on disk: written beside its name, read back, and only then given it.


_SYNC_EVERY = 2 * 1024 * 1024  # bytes: a commit of the server on the same disk waits for as many, so no more at once
_DRAFT = ".partial"


class BackupExists(Conflict):
    code = "backup_exists"


class CannotWriteBackup(Unavailable):
    code = "cannot_write_backup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A backup that was written and read back."""

    path: Path
    size: int
    entries: int
    left_out: Sequence[str]
    changed: Sequence[str]


class BackupFile:
    """Encrypts the inside of a backup into a file. Unless it is finished, nothing is left of it."""

    def __init__(self, path: Path, to: Sequence[str] | Passphrase, keys: Keys | None = None) -> None:
        self.path = path
        self._draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_DRAFT}")
        self._encryptor = Encryptor(to)
        self._keys = keys
        self._handle = -1
        self._size = self._unsynced = 0

    def __enter__(self) -> Self:
        if self.path.exists():
            raise BackupExists(f"{str(self.path)!r} exists, and a backup replaces no file. Give another name.")
        with self._naming():
            delete_drafts(self.path.parent, self.path.name)
            self._handle = os.open(self._draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._handle, fcntl.LOCK_EX)
            self._put(self._encryptor.head)
            if self._keys is not None:
                self.write(keys_member(self._keys))
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            with contextlib.suppress(OSError):
                self._draft.unlink()

    def write(self, data: bytes) -> None:
        with self._naming():
            self._put(self._encryptor.update(data))

    def finish(self, on_read: Callable[[int], None] = lambda _: None) -> Made:
        """Read back what was written, compare it with its manifest, and give the file its name."""
        steps = self.finishing(on_read)
        while (made := next_or_end(steps)) is None:
            pass
        return made

    def finishing(self, on_read: Callable[[int], None] = lambda _: None) -> Generator[None, None, Made]:
        """Do the same in small steps."""
        with self._naming():
            self._put(self._encryptor.finish())
            os.fsync(self._handle)
            reader, entries = self._verify(on_read), 0
            for _, pieces in reader.entries():
                entries += 1
                for _ in pieces:
                    yield
            if self.path.exists():
                raise BackupExists(f"{str(self.path)!r} was created meanwhile, and a backup replaces no file.")
            self._draft.rename(self.path)
            sync_folder(self.path.parent)
            os.close(self._handle)
            self._handle = -1
        return Made(path=self.path, size=self._size, entries=entries, left_out=reader.left_out, changed=reader.changed)

    def _verify(self, on_read: Callable[[int], None]) -> ArchiveReader:
        os.lseek(self._handle, 0, os.SEEK_SET)
        key = FileKey(self._encryptor.file_key)
        return ArchiveReader(Decryptor(CountedReader(self._handle, on_read), lambda _: [key]))

    def _put(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._handle, rest) :]
        self._size += len(data)
        self._unsynced += len(data)
        if self._unsynced >= _SYNC_EVERY:
            os.fdatasync(self._handle)
            self._unsynced = 0

    @contextlib.contextmanager
    def _naming(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            what = "its disk is full" if full else (error.strerror or str(error))
            then = f" {self._size:,} bytes had been written. Free space, or choose another disk." if full else ""
            raise CannotWriteBackup(
                f"The backup {str(self.path)!r} cannot be written: {what}.{then} Nothing of it was kept."
            ) from error


class CountedReader:
    """Reads a descriptor in large pieces, and counts the bytes."""

    def __init__(self, handle: int, on_read: Callable[[int], None] = lambda _: None) -> None:
        self._handle = handle
        self._on_read = on_read
        self._rest = memoryview(b"")

    def read(self, size: int) -> bytes:
        if not self._rest:
            data = os.read(self._handle, PIECE)
            self._on_read(len(data))
            self._rest = memoryview(data)
        piece, self._rest = self._rest[:size], self._rest[size:]
        return bytes(piece)


async def write_backup(
    file: BackupFile, pieces: AsyncIterator[bytes], on_read: Callable[[int], None] = lambda _: None
) -> Made:
    """Write a backup without keeping the event loop from other work."""
    with file:
        async for piece in pieces:
            await to_its_end(partial(file.write, piece))
        steps = file.finishing(on_read)
        # In one go, a thread that decrypts would keep the event loop waiting for the interpreter, 5 ms at a time.
        while (made := await to_its_end(partial(next_or_end, steps))) is None:
            pass
        return made


def next_or_end(steps: Generator[None, None, Made]) -> Made | None:
    """Do the next step; return the result after the last one."""
    try:
        next(steps)
    except StopIteration as end:
        return end.value
    return None


def delete_drafts(folder: Path, prefix: str) -> None:
    """Delete what backups that were killed have left; one that is being written is locked."""
    for draft in folder.glob(f".{glob.escape(prefix)}*{_DRAFT}"):
        with contextlib.suppress(OSError), draft.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.unlink()


# Scheduled backups: made by one of the nodes that have a directory for them, and loud when they fail.


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

    def jobs(self) -> Iterator[Job]:
        yield Job(name="backups", every=LOOK_EVERY, run=self.look)

    async def look(self) -> None:
        """Make a backup if one is due and no other node makes it."""
        state, now = await self.state(), self._clock.now()
        if self.plan is None or not is_due(state, self.plan.every, now):
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
                await tx.notices.add(notices_texts.backup_failed(owner, error, state.finished_at, now))

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


# Backups of a running server, for its owners.


log = logging.getLogger(__name__)


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
