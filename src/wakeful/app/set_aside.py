"""`wakeful serve --new`: move an earlier server's data aside, so that the next start is a first one."""

import asyncio
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from wakeful.agentdb.keys.keys import has_device_key
from wakeful.app.files import STORE_FILE, device_key_of
from wakeful.clock import SystemClock
from wakeful.config import Settings
from wakeful.domain.errors import Conflict, Unavailable
from wakeful.service.agents import directory_file
from wakeful.store.drivers.postgres import PostgresDatabase
from wakeful.store.drivers.sequence import SEQUENCE_FILE
from wakeful.store.drivers.sqlite import SqliteDatabase, has_agents, hold, size_of
from wakeful.store.errors import StoreUnreadable

# In this order. The mark of an earlier start goes last: after a crash in between, a plain start is refused again.
_OURS = (
    STORE_FILE,
    f"{STORE_FILE}-journal",
    f"{STORE_FILE}-shm",
    f"{STORE_FILE}-wal",
    SEQUENCE_FILE,
    "backups",
    "mcp",
    "agents",
    directory_file.FILE_NAME,
)


class StoreHasContent(Conflict):
    code = "store_has_content"


class CannotSetAside(Unavailable):
    code = "cannot_set_aside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """Data of an earlier server, to be moved aside."""

    data_dir: Path
    names: list[str]
    why: str  # it cannot be gone on with

    def describe(self) -> list[str]:
        return [_describe(self.data_dir / name) for name in self.names]


def find_earlier(settings: Settings) -> Earlier | None:
    """Return what would be moved aside, or None if there is nothing. Refuses a store that can be gone on with."""
    data_dir = settings.data_dir
    if not data_dir.is_dir():
        return None
    with hold(data_dir):
        why = asyncio.run(_why_not_usable(settings))
        names = [name for name in _OURS if _is_something(data_dir / name)]
        _check_movable(data_dir, names)
    return Earlier(data_dir=data_dir, names=names, why=why) if names else None


def set_aside(settings: Settings, earlier: Earlier) -> Path:
    """Move data of an earlier server into a folder of its own in the data directory. Nothing is deleted."""
    with hold(earlier.data_dir):
        asyncio.run(_why_not_usable(settings))  # another process may have put it right while the person was asked
        try:
            folder = _make_folder(earlier.data_dir, SystemClock().now())
            for name in earlier.names:
                (earlier.data_dir / name).rename(folder / name)
                _sync(folder)
                _sync(earlier.data_dir)
        except OSError as error:
            raise CannotSetAside(
                f"{str(error.filename)!r} cannot be moved: {error.strerror}. What was moved before it is in a folder "
                f"set-aside-TIME in {str(earlier.data_dir)!r}; nothing was deleted. Say `wakeful serve --new` again "
                "when it can be."
            ) from error
    return folder


async def _why_not_usable(settings: Settings) -> str:
    """Say why the store cannot be gone on with; raise if it can."""
    if settings.database_url is not None:
        database = PostgresDatabase(settings.database_url.get_secret_value())
        await database.open()
        try:
            if await database.has_agents():
                raise StoreHasContent(
                    "The PostgreSQL database has content, so there is nothing to begin anew, and nothing was changed. "
                    "Leave --new out; or set WAKEFUL_DATABASE_URL (database_url) to an empty database."
                )
        finally:
            await database.close()
        return "The PostgreSQL database is empty."
    path = settings.data_dir / STORE_FILE
    if not size_of(path):
        return f"The store {str(path)!r} is {'empty (0 bytes)' if path.exists() else 'missing'}."
    key = None
    if settings.device_key is not None or has_device_key(settings.config_dir):
        key = device_key_of(settings)  # or raise: with a damaged one no start succeeds afterwards either
    elif settings.store_encryption:
        return f"The device key of the store {str(path)!r} is missing."
    try:
        connection = SqliteDatabase(path, key if settings.store_encryption else None).connect()
        try:
            is_used = has_agents(connection)
        finally:
            connection.close()
    except StoreUnreadable:
        return (
            f"The store {str(path)!r} cannot be read: it is damaged, or encrypted with another key than the device key "
            f"in {str(settings.config_dir)!r}."
        )
    if is_used:
        raise StoreHasContent(
            f"The store {str(path)!r} can be read and has content, so --new is refused and nothing was changed. Leave "
            "--new out to go on with it. To begin anew all the same, set WAKEFUL_DATA_DIR (data_dir) to another "
            "directory, or move this one away while no server runs."
        )
    return f"The store {str(path)!r} has no content."


def _is_something(path: Path) -> bool:
    """Leave out an empty folder, which a first start makes too."""
    if path.is_dir() and not path.is_symlink():
        return any(path.iterdir())
    return path.exists() or path.is_symlink()


def _check_movable(data_dir: Path, names: list[str]) -> None:
    for name in names:
        path = data_dir / name
        if path.is_mount() or path.lstat().st_dev != data_dir.stat().st_dev:
            raise CannotSetAside(
                f"{str(path)!r} is on another file system than the data directory, so it cannot be moved aside in one "
                "step. Nothing was changed. Move what is in it away yourself, and try again."
            )


def _make_folder(data_dir: Path, now: datetime) -> Path:
    at = f"{now:%Y-%m-%dT%H%M%SZ}"
    number = 1
    while True:
        folder = data_dir / (f"set-aside-{at}" if number == 1 else f"set-aside-{at}-{number}")
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            number += 1
        else:
            return folder


def _describe(path: Path) -> str:
    if path.is_dir():
        count = sum(1 for _ in path.iterdir())
        return f"{path.name}/ ({count} {'entry' if count == 1 else 'entries'})"
    return f"{path.name} ({size_of(path):,} bytes)"


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
