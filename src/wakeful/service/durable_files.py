"""Writes small files so that a crash leaves either the whole new file or none of it."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkstemp


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
