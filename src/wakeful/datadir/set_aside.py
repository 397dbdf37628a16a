"""`wakeful serve --new`: move an earlier server's data aside, so that the next start is a first one."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, count
from pathlib import Path

from wakeful.config.settings import Settings
from wakeful.core.clock import SystemClock
from wakeful.core.device_key import has_device_key
from wakeful.core.errors import Conflict, Unavailable
from wakeful.core.files import sync_folder
from wakeful.datadir.device_key import device_key_of
from wakeful.datadir.files import OURS, STORE_FILE, finish_held, is_something
from wakeful.store.drivers.postgres import PostgresDatabase
from wakeful.store.drivers.sqlite import SqliteDatabase, has_agents, hold, size_of
from wakeful.store.errors import StoreUnreadable


class StoreHasContent(Conflict):
    code = "store_has_content"


class CannotSetAside(Unavailable):
    code = "cannot_set_aside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """Data of an earlier server, to be moved aside."""

    data_dir: Path
    names: list[str]
    why: str  # the store cannot be used

    def describe(self) -> list[str]:
        return [describe_path(self.data_dir / name) for name in self.names]


def find_earlier(settings: Settings) -> Earlier | None:
    """Return what would be moved aside, or None if there is nothing. Refuses if the store is usable."""
    data_dir = settings.data_dir
    if not data_dir.is_dir():
        return None
    with hold(data_dir):
        finish_held(settings)
        why = asyncio.run(_why_not_usable(settings))
        names = [name for name in OURS if is_something(data_dir / name)]
        check_movable(data_dir, names)
    return Earlier(data_dir=data_dir, names=names, why=why) if names else None


def set_aside(settings: Settings, earlier: Earlier) -> Path:
    """Move data of an earlier server into a new folder in the data directory. Nothing is deleted."""
    with hold(earlier.data_dir):
        asyncio.run(_why_not_usable(settings))  # another process may have repaired it while the user was asked
        try:
            folder = make_folder(earlier.data_dir, SystemClock().now())
            for name in earlier.names:
                (earlier.data_dir / name).rename(folder / name)
                sync_folder(folder)
                sync_folder(earlier.data_dir)
        except OSError as error:
            raise CannotSetAside(
                f"{str(error.filename)!r} cannot be moved: {error.strerror}. Files that were moved before it are in a "
                f"folder set-aside-TIME in {str(earlier.data_dir)!r}; nothing was deleted. Fix this, and run "
                "`wakeful serve --new` again."
            ) from error
    return folder


async def _why_not_usable(settings: Settings) -> str:
    """Return why the store cannot be used; raise if it can."""
    if settings.database_url is not None:
        database = PostgresDatabase(settings.database_url.get_secret_value())
        await database.open()
        try:
            if await database.has_agents():
                raise StoreHasContent(
                    "The PostgreSQL database has content, so --new is refused and nothing was changed. "
                    "Leave --new out, or set WAKEFUL_DATABASE_URL (database_url) to an empty database."
                )
        finally:
            await database.close()
        return "The PostgreSQL database is empty."
    path = settings.data_dir / STORE_FILE
    if not size_of(path):
        return f"The store {str(path)!r} is {'empty (0 bytes)' if path.exists() else 'missing'}."
    key = None
    if settings.device_key is not None or has_device_key(settings.config_dir):
        key = device_key_of(settings)  # raises if it is damaged: the next start would fail as well
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
            "--new out to use it. To start over anyway, set WAKEFUL_DATA_DIR (data_dir) to another directory, or move "
            "this one away while no server runs."
        )
    return f"The store {str(path)!r} has no content."


def check_movable(data_dir: Path, names: list[str]) -> None:
    """Raise if one of these is on another file system."""
    for name in names:
        path = data_dir / name
        if path.is_mount() or path.lstat().st_dev != data_dir.stat().st_dev:
            raise CannotSetAside(
                f"{str(path)!r} is on another file system than the data directory, so it cannot be moved aside in one "
                "step. Nothing was changed. Move its content away yourself, and try again."
            )


def make_folder(data_dir: Path, now: datetime) -> Path:
    """Create a folder for data that is moved aside."""
    name = f"set-aside-{now:%Y-%m-%dT%H%M%SZ}"
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    folder = next(data_dir / each for each in names if not (data_dir / each).exists())
    folder.mkdir(mode=0o700)
    return folder


def describe_path(path: Path) -> str:
    """Return the name of a file or folder with its size."""
    if path.is_dir():
        count = sum(1 for _ in path.iterdir())
        return f"{path.name}/ ({count} {'entry' if count == 1 else 'entries'})"
    return f"{path.name} ({size_of(path):,} bytes)"
