"""The file by which commands find a running server: its address counts only while the server holds the lock.

Every command imports this module, so it imports little. `announcing` writes the file.
"""

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE_NAME = "server.lock"  # in the data directory


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A running server, as its lock file describes it."""

    address: str
    pid: int
    version: str


def find_running(data_dir: Path) -> Running | None:
    """Return the server that runs with this data directory, if one does and this user may know it."""
    try:
        handle = os.open(data_dir / FILE_NAME, os.O_RDONLY | os.O_CLOEXEC)
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
