"""The file that gives a data directory its id: `directory.json`, made at first start."""

import contextlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from wakeful.domain.errors import Unavailable

FILE_NAME = "directory.json"
_KEY = "device_key"
_STARTED = "started_at"
_STORE = "store"


class DirectoryUnusable(Unavailable):
    code = "directory_unusable"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryFile:
    """What the file says."""

    id: str
    key_fingerprint: str | None = None  # of the device key
    takes_any_key: bool = False  # a person wrote null, because the old key is lost
    started_at: str | None = None  # when a start first succeeded here
    store: str | None = None  # which kind of store that start had: "embedded" or "postgres"


def load(data_dir: Path) -> DirectoryFile:
    """Read the file of a data directory, or make it."""
    found = find(data_dir)
    if found is not None:
        return found
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = data_dir / FILE_NAME
        draft = _write_draft(path, {"id": secrets.token_hex(16)})
        try:
            # Whole or not at all; of two nodes that start at once on one directory, one makes it.
            with contextlib.suppress(FileExistsError):
                path.hardlink_to(draft)
        finally:
            draft.unlink()
        _sync(data_dir)
    except OSError as error:
        raise DirectoryUnusable(
            f"The data directory {str(data_dir)!r} cannot be written: {error.strerror}. "
            "Make it writable, or set WAKEFUL_DATA_DIR to another one."
        ) from error
    found = find(data_dir)
    assert found is not None
    return found


def find(data_dir: Path) -> DirectoryFile | None:
    """Read the file of a data directory; None if there is none."""
    path = data_dir / FILE_NAME
    try:
        stored: Any = orjson.loads(path.read_bytes())
        fingerprint = stored.get(_KEY)
        started_at, store = stored.get(_STARTED), stored.get(_STORE)
        if not isinstance(stored["id"], str) or not all(
            isinstance(each, str | None) for each in (fingerprint, started_at, store)
        ):
            raise TypeError
        return DirectoryFile(
            id=stored["id"],
            key_fingerprint=fingerprint,
            takes_any_key=_KEY in stored and fingerprint is None,
            started_at=started_at,
            store=store,
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise DirectoryUnusable(
            f"{str(path)!r} cannot be read as the id of a data directory ({type(error).__name__}). "
            "Nothing was changed. Restore it from a backup. Without one: if the store is embedded, delete this file, "
            'and a start makes another; on PostgreSQL, write {"id": "…"} with the id that the table directories has.'
        ) from error


def save_key(data_dir: Path, fingerprint: str) -> None:
    """Note which device key the databases in a data directory are encrypted with."""
    _change(data_dir, {_KEY: fingerprint})


def save_started(data_dir: Path, at: str, store: str) -> None:
    """Note that a start has succeeded here, so that a store that is missing later is missed."""
    _change(data_dir, {_STARTED: at, _STORE: store})


def _change(data_dir: Path, changes: dict[str, str]) -> None:
    load(data_dir)  # makes it if need be
    path = data_dir / FILE_NAME
    _write_draft(path, orjson.loads(path.read_bytes()) | changes).replace(path)
    _sync(data_dir)


def _write_draft(path: Path, stored: dict[str, Any]) -> Path:
    draft = path.with_name(f".{FILE_NAME}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(orjson.dumps(stored) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return draft


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
