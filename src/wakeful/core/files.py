"""Small files: written so that a crash leaves all or nothing, and the one by which commands find a running server.

The address in that file counts only while the server holds its lock; `app/listening.py` writes it. Every command
imports this module, so it imports little.
"""

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp
from typing import Any


@contextmanager
def draft_of(path: Path, data: bytes) -> Generator[Path]:
    """Write a synced temporary file next to a path, to be linked or renamed to it. Only the server's user may read it.

    Creates the directory if it is missing. The draft is removed afterwards.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = mkstemp(prefix=f".{path.name}-", dir=path.parent)  # created with mode 0600
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def replace_file(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, in one step; after a crash it has the old content or the new."""
    with draft_of(path, data) as draft:
        draft.replace(path)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make new names in a directory durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


LOCK_FILE = "server.lock"  # in the data directory


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A running server, as its lock file describes it."""

    address: str
    pid: int
    version: str


def find_running(data_dir: Path) -> Running | None:
    """Return the server that runs with this data directory, if one does and this user may know it."""
    try:
        handle = os.open(data_dir / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if _is_free(handle):
            return None  # its server has ended, and left the file behind
        found: Any = json.loads(os.read(handle, 4096))
        return Running(address=str(found["address"]), pid=int(found["pid"]), version=str(found["version"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it is being written
    finally:
        os.close(handle)


def _is_free(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
