"""Write the files of a backup into a new folder. No link is followed, whatever the backup says."""

import contextlib
import os
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from wakeful.backup.archive import Entry, UnfitBackup

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SYNC_EVERY = 16 * 1024 * 1024  # bytes: the disk writes while the next ones are decrypted
_SYNC_FROM = 1024 * 1024  # bytes of a file; smaller ones are synced together, at the end
_MAX_SYNCS = 32  # waiting, each with an open file
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Extraction:
    """A folder that is being filled. Large files are synced by a thread meanwhile."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: list[tuple[str, Entry]] = []
        self._thread = ThreadPoolExecutor(1, "wakeful-sync")
        self._syncs: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()

    def add(self, path: str, entry: Entry, pieces: Iterator[bytes]) -> None:
        """Create an entry at a path below the root."""
        *folders, name = path.split("/")
        with self._opened(folders, entry.name) as folder:
            if entry.kind == "folder":
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=folder)
                self._folders.append((path, entry))
            elif entry.kind == "link":
                os.symlink(entry.target, name, dir_fd=folder)
            else:
                self._write(folder, name, entry, pieces)

    def _write(self, folder: int, name: str, entry: Entry, pieces: Iterator[bytes]) -> None:
        handle, unsynced = os.open(name, _WRITE, 0o600, dir_fd=folder), 0
        try:
            for piece in pieces:
                rest = memoryview(piece)
                while rest:
                    rest = rest[os.write(handle, rest) :]
                unsynced += len(piece)
                if unsynced >= _SYNC_EVERY:
                    self._sync(handle)
                    unsynced = 0
            os.fchmod(handle, entry.mode)
            os.utime(handle, (entry.mtime, entry.mtime))
            if unsynced >= _SYNC_FROM:
                self._sync(handle)
        finally:
            os.close(handle)

    def _sync(self, handle: int) -> None:
        if len(self._syncs) >= _MAX_SYNCS:
            self._syncs.popleft().result()
        self._syncs.append(self._thread.submit(_sync, os.dup(handle)))

    def finish(self) -> None:
        """Give the folders their modes and times, the inner ones first. Raises what a sync has met."""
        for each in self._syncs:
            each.result()
        for path, entry in reversed(self._folders):
            *folders, name = path.split("/")
            with self._opened([*folders, name], entry.name) as folder:
                os.fchmod(folder, entry.mode | 0o700)
                os.utime(folder, (entry.mtime, entry.mtime))

    @contextlib.contextmanager
    def _opened(self, folders: list[str], name: str) -> Generator[int]:
        handle = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for each in folders:
                below = _open_below(handle, each, name)
                os.close(handle)
                handle = below
            yield handle
        finally:
            os.close(handle)


def _open_below(handle: int, folder: str, name: str) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700, dir_fd=handle)
    try:
        return os.open(folder, _FOLDER, dir_fd=handle)
    except OSError as error:
        raise UnfitBackup(
            f"The backup has {name!r}, which is refused: its path leads through a link or a file. Wakeful makes no "
            "such file. Nothing was changed."
        ) from error


def _sync(handle: int) -> None:
    try:
        os.fdatasync(handle)
    finally:
        os.close(handle)
