"""`directory.json`, the file with the id of a data directory, created at first start."""

import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from wakeful.domain.errors import Unavailable
from wakeful.domain.resources import remedy_of
from wakeful.service.durable_files import draft_of, sync_folder

FILE_NAME = "directory.json"
_KEY = "device_key"
_STARTED = "started_at"
_STORE = "store"
_MOVE = "move"


class DirectoryUnusable(Unavailable):
    code = "directory_unusable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A move of the embedded store to PostgreSQL that was begun here."""

    id: str
    to: str  # host, port and name of the database
    at: str
    is_done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryFile:
    """The content of the file."""

    id: str
    key_fingerprint: str | None = None  # of the device key
    takes_any_key: bool = False  # someone wrote null, because the old key is lost
    started_at: str | None = None  # time of the first successful start
    store: str | None = None  # "embedded" or "postgres"
    move: Move | None = None  # while there is one, the embedded store is not started


def load(data_dir: Path) -> DirectoryFile:
    """Read the file of a data directory, or create it."""
    found = find(data_dir)
    if found is not None:
        return found
    path = data_dir / FILE_NAME
    try:
        with draft_of(path, _encode({"id": secrets.token_hex(16)})) as draft, suppress(FileExistsError):
            path.hardlink_to(draft)  # never replaces: of two nodes that start at once, one creates it
        sync_folder(data_dir)
    except OSError as error:
        raise DirectoryUnusable(
            f"The data directory {str(data_dir)!r} cannot be written: {error.strerror}. "
            + remedy_of(error, "Make it writable, or set WAKEFUL_DATA_DIR to another one.")
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
            move=Move(**stored[_MOVE]) if stored.get(_MOVE) is not None else None,
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise DirectoryUnusable(
            f"{str(path)!r} cannot be read as the id of a data directory ({type(error).__name__}). "
            "Nothing was changed. Restore it from a backup. Without one: if the store is embedded, delete this file, "
            'and restart; on PostgreSQL, write {"id": "…"} with the id from the table directories.'
        ) from error


def save_key(data_dir: Path, fingerprint: str) -> None:
    """Record which device key the databases in a data directory are encrypted with."""
    _change(data_dir, {_KEY: fingerprint})


def save_started(data_dir: Path, at: str, store: str) -> None:
    """Record a successful start, so that a store that is missing later is noticed."""
    _change(data_dir, {_STARTED: at, _STORE: store})


def save_move(data_dir: Path, move: Move | None) -> None:
    """Record a move to PostgreSQL, or None when it is undone."""
    _change(data_dir, {_MOVE: None if move is None else asdict(move)})


def _change(data_dir: Path, changes: dict[str, Any]) -> None:
    load(data_dir)  # creates it if it is missing
    path = data_dir / FILE_NAME
    with draft_of(path, _encode(orjson.loads(path.read_bytes()) | changes)) as draft:
        draft.replace(path)
    sync_folder(data_dir)


def _encode(stored: dict[str, Any]) -> bytes:
    return orjson.dumps(stored, option=orjson.OPT_APPEND_NEWLINE)
