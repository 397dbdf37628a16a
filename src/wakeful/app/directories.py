"""The directories on this machine: only the server's user may enter them."""

import logging
from pathlib import Path

from wakeful.store.errors import StoreUnavailable

log = logging.getLogger(__name__)

_PRIVATE = 0o700
_INSIDE = ("*", "*/workspace", "*/skills", "*/snapshots", "*/quarantine")


def make_private(data_dir: Path) -> None:
    """Make the data directory, and close what lies in it to other users of the machine.

    0.1 left agents' directories to the umask. The data directory itself is only closed if we make it: whoever made it
    may want a group, such as one for backups, to look into it.
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
            "Make it writable for this user, or set WAKEFUL_DATA_DIR to another one."
        ) from error


def _close(folder: Path) -> None:
    if folder.is_symlink() or not folder.is_dir():
        return
    mode = folder.stat().st_mode & 0o777
    if mode & 0o077:
        folder.chmod(_PRIVATE)
        log.info("directory closed to other users", extra={"path": str(folder), "mode": f"{mode:o}"})
