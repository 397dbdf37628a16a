"""Write the files of a backup into a new folder. No link is followed, whatever the backup says."""

import contextlib
import os
from collections.abc import Generator, Iterator
from pathlib import Path

from wakeful.service.backup.archive import Entry, UnfitBackup

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Extraction:
    """A folder that is being filled."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: list[tuple[str, Entry]] = []

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
                _write(folder, name, entry, pieces)

    def finish(self) -> None:
        """Give the folders their modes and times, the inner ones first."""
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


def _write(folder: int, name: str, entry: Entry, pieces: Iterator[bytes]) -> None:
    handle = os.open(name, _WRITE, 0o600, dir_fd=folder)
    try:
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(handle, rest) :]
        os.fchmod(handle, entry.mode)
        os.utime(handle, (entry.mtime, entry.mtime))
    finally:
        os.close(handle)
