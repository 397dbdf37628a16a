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


class DirectoryUnusable(Unavailable):
    code = "directory_unusable"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryFile:
    """What the file says."""

    id: str
    key_fingerprint: str | None = None  # of the device key
    takes_any_key: bool = False  # a person wrote null, because the old key is lost


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
        if not isinstance(stored["id"], str) or not isinstance(fingerprint, str | None):
            raise TypeError
        return DirectoryFile(
            id=stored["id"], key_fingerprint=fingerprint, takes_any_key=_KEY in stored and fingerprint is None
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise DirectoryUnusable(
            f"{str(path)!r} cannot be read as the id of a data directory ({type(error).__name__}). "
            'Restore it from a backup, or write {"id": "…"} with the id that the log or the notices name.'
        ) from error


def save_key(data_dir: Path, fingerprint: str) -> None:
    """Note which device key the databases in a data directory are encrypted with."""
    path = data_dir / FILE_NAME
    _write_draft(path, {"id": load(data_dir).id, _KEY: fingerprint}).replace(path)
    _sync(data_dir)


def _write_draft(path: Path, stored: dict[str, str]) -> Path:
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
