"""The files of a server in its data directory, their permissions, and the last steps of a restore that a crash cut off.

Only the server's user may enter its folders.

A restore writes the record `restore.json`; until it is there, the old data is untouched. From then on the new data
is the one that counts, and every command that uses the data directory finishes the remaining renames first.
"""

import logging
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from wakeful.config.settings import Settings
from wakeful.core.errors import StoreUnavailable, Unavailable
from wakeful.core.files import replace_file, sync_folder
from wakeful.core.resources import remedy_of
from wakeful.core.sources import FILE_NAME
from wakeful.homes.directories import ID_FILE
from wakeful.store.drivers.sqlite import hold
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


# The last steps of a restore to an embedded store, which a crash may have cut off.
#
# Until the record `restore.json` is there, the old data is untouched. From then on the new data is the one that counts,
# and every command that uses the data directory finishes the remaining renames first.


RECORD = "restore.json"
STAGING = "restoring-"  # folders with data that is being restored
NEW, READY = "new", "ready"  # in such a folder: before and after the old data was moved aside
SETTINGS = "settings.toml"


class RestoreUnfinished(Unavailable):
    code = "restore_unfinished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A restore that is decided, and perhaps not finished."""

    folder: str  # with the new data
    aside: str | None  # folder for the old data


def decide(data_dir: Path, decided: Decided) -> None:
    """Record that the new data counts from now on."""
    replace_file(data_dir / RECORD, orjson.dumps(asdict(decided)) + b"\n")


def finish_restore(settings: Settings) -> bool:
    """Finish a restore that was cut off, or delete what one has left that was not decided. Returns whether it did."""
    data_dir = settings.data_dir
    if not data_dir.is_dir() or not _is_left(data_dir):
        return False
    with hold(data_dir):
        return finish_held(settings)


def finish_held(settings: Settings) -> bool:
    """Do the same; the caller holds the data directory."""
    data_dir, decided = settings.data_dir, _read(settings.data_dir)
    if decided is not None:
        apply(settings, decided)
    for folder in data_dir.glob(f"{STAGING}*"):
        shutil.rmtree(folder)
    return decided is not None


def apply(settings: Settings, decided: Decided) -> None:
    """Put the new data into the place of the old. Every step may have been done before."""
    data_dir = settings.data_dir
    folder = data_dir / decided.folder
    if (folder / NEW).is_dir():
        if decided.aside is not None:
            _move_all(data_dir, data_dir / decided.aside)
        (folder / NEW).rename(folder / READY)
        sync_folder(folder)
    if (folder / READY).is_dir():
        _move_all(folder / READY, data_dir)
    _restore_settings(settings, folder / SETTINGS)
    (data_dir / RECORD).unlink()
    sync_folder(data_dir)
    if folder.is_dir():
        shutil.rmtree(folder)


def settings_path(settings: Settings, text: bytes) -> Path | None:
    """Return where the settings file of a backup goes: beside one that is there; None: they are the same."""
    path = settings.config_dir / FILE_NAME
    if not path.exists():
        return path
    return None if path.read_bytes() == text else path.with_name(f"{FILE_NAME}.restored")


def _restore_settings(settings: Settings, source: Path) -> None:
    if source.exists():
        place = settings_path(settings, source.read_bytes())
        if place is not None:
            replace_file(place, source.read_bytes())


def _move_all(source: Path, target: Path) -> None:
    for name in OURS:
        if is_something(source / name):
            if (target / name).is_dir() and not any((target / name).iterdir()):
                (target / name).rmdir()
            (source / name).rename(target / name)
    sync_folder(target)
    sync_folder(source)


def _is_left(data_dir: Path) -> bool:
    return (data_dir / RECORD).exists() or any(data_dir.glob(f"{STAGING}*"))


def _read(data_dir: Path) -> Decided | None:
    try:
        stored: Any = orjson.loads((data_dir / RECORD).read_bytes())
        return Decided(**stored)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise RestoreUnfinished(
            f"{str(data_dir / RECORD)!r} says that a restore is not finished, and cannot be read "
            f"({type(error).__name__}). Nothing was changed. The restored data is in a folder {STAGING}… there."
        ) from error
