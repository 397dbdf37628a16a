"""Copies of a file as it was before a migration; encrypted as it is."""

import os
import secrets
from pathlib import Path

from wakeful.agentdb.errors import Refusal

KEPT = 5


def take(path: Path, at: str) -> Path:
    """Copy the file while a transaction of ours keeps others from writing. Call it before that one writes."""
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise Refusal("unavailable", "The database is in use elsewhere, so no snapshot could be made. Try again.")
    folder = path.parent / "snapshots"
    folder.mkdir(mode=0o700, exist_ok=True)
    copy = folder / f"{at.replace(':', '').replace('+0000', 'Z')}-{secrets.token_hex(3)}.sqlite"
    with (
        path.open("rb") as source,
        os.fdopen(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target,
    ):
        while block := source.read(1024 * 1024):
            target.write(block)
        target.flush()
        os.fsync(target.fileno())
    return copy


def forget_old(path: Path) -> None:
    """Keep the latest few."""
    for old in of(path)[:-KEPT]:
        old.unlink(missing_ok=True)


def of(path: Path) -> list[Path]:
    """Return the snapshots of a database, the oldest first."""
    return sorted((path.parent / "snapshots").glob("*.sqlite"))
