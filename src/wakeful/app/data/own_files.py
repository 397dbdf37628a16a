"""The files of a server in its data directory, which are moved aside and restored together."""

from pathlib import Path

from wakeful.app.data.earlier_data import MOVED_AGENTS, MOVED_FILE, STORE_FILE
from wakeful.service.agents import directory_file
from wakeful.store.drivers.sequence import SEQUENCE_FILE

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
    directory_file.FILE_NAME,
)


def is_something(path: Path) -> bool:
    """Return whether there is something to move; an empty folder does not count, since a first start creates it too."""
    if path.is_dir() and not path.is_symlink():
        return any(path.iterdir())
    return path.exists() or path.is_symlink()
