"""The files of a server in its data directory, and their permissions: only the server's user may enter its folders."""

import logging
from pathlib import Path

from wakeful.core.errors import StoreUnavailable
from wakeful.core.resources import remedy_of
from wakeful.homes.directories import ID_FILE
from wakeful.store.drivers.sqlite_thread import SEQUENCE_FILE

log = logging.getLogger(__name__)

STORE_FILE = "wakeful.sqlite"
MOVED_FILE = f"{STORE_FILE}.moved"  # after `wakeful move`
MOVED_AGENTS = "agents.moved"  # their files then, as they were

_PRIVATE = 0o700
_INSIDE = ("*", "*/workspace", "*/skills", "*/snapshots", "*/quarantine")

# Moved in this order. The record of an earlier start is the last: after a crash in between, a start without --new is
# still refused.
OURS = (
    STORE_FILE,
    f"{STORE_FILE}-journal",
    f"{STORE_FILE}-shm",
    f"{STORE_FILE}-wal",
    MOVED_FILE,
    MOVED_AGENTS,
    SEQUENCE_FILE,
    "backups",
    "mcp",
    "agents",
    ID_FILE,
)


def is_something(path: Path) -> bool:
    """Return whether there is something to move; an empty folder does not count, since a first start creates it too."""
    if path.is_dir() and not path.is_symlink():
        return any(path.iterdir())
    return path.exists() or path.is_symlink()


def make_private(data_dir: Path) -> None:
    """Create the data directory, and close the folders in it to other users of the machine.

    A data directory that exists keeps its mode: it may be open to a group on purpose, for example for backups.
    """
    agents = data_dir / "agents"
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
        agents.mkdir(exist_ok=True, mode=_PRIVATE)
        for folder in (agents, *(found for pattern in _INSIDE for found in agents.glob(pattern))):
            _close(folder)
    except OSError as error:
        raise StoreUnavailable(
            f"Cannot write in the data directory {str(data_dir)!r}: {error.strerror}. "
            + remedy_of(error, "Make it writable for this user, or set WAKEFUL_DATA_DIR to another one.")
        ) from error


def _close(folder: Path) -> None:
    if folder.is_symlink() or not folder.is_dir():
        return
    mode = folder.stat().st_mode & 0o777
    if mode & 0o077:
        folder.chmod(_PRIVATE)
        log.info("directory closed to other users", extra={"path": str(folder), "mode": f"{mode:o}"})
