"""Permissions of the data directory: only the server's user may enter its folders."""

import logging
from pathlib import Path

from wakeful.domain.resources import remedy_of
from wakeful.store.errors import StoreUnavailable

log = logging.getLogger(__name__)

_PRIVATE = 0o700
_INSIDE = ("*", "*/workspace", "*/skills", "*/snapshots", "*/quarantine")


def make_private(data_dir: Path) -> None:
    """Create the data directory, and close the folders in it to other users of the machine.

    Version 0.1 left the mode of agents' directories to the umask. A data directory that exists keeps its mode: it may
    be open to a group on purpose, for example for backups.
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
