"""A backup on disk: written beside its name, read back, and only then given it."""

import contextlib
import errno
import fcntl
import glob
import os
import secrets
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from wakeful.backup.age import Decryptor, Encryptor, FileKey, Passphrase
from wakeful.backup.archive import PIECE, ArchiveReader, Keys, keys_member
from wakeful.backup.contents import to_its_end
from wakeful.core.errors import Conflict, Unavailable
from wakeful.core.files import sync_folder

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
