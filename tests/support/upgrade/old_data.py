"""Copies of the data of earlier versions, to start today's server on.

async with running_old_server(copy_old_data("sqlite", tmp_path).settings) as server: ...
"""

import asyncio
import gzip
import json
import shutil
import sys
import tarfile
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg

from live_server import Server, running_server
from upgrade.moved_data import execute
from wakeful.config.settings import Settings, load_settings
from wakeful.core.clock import SystemClock
from wakeful.core.sources import FILE_NAME
from wakeful.datadir.device_key import database_of

DATA = Path(__file__).parents[2] / "data"
USED = "0.2/used"  # in which every feature was used; its server was killed
USED_AT = "/opt/wakeful-data"  # where it was made, in the settings file


STOPPED_AT = datetime.fromisoformat(json.loads((DATA / "0.2/postgres/facts.json").read_text())["stopped_at"])


class OldClock(SystemClock):
    """Shows the time at which a version was stopped, and goes on from there: its plans are still to come."""

    def __init__(self, stopped_at: datetime) -> None:
        super().__init__()
        self._behind = super().read_wall_clock() - stopped_at

    def read_wall_clock(self) -> datetime:
        return super().read_wall_clock() - self._behind


@dataclass(frozen=True, kw_only=True)
class OldData:
    """A copy of the data of one backend, and the ids and names in it."""

    settings: dict[str, Any]
    facts: dict[str, str]

    @property
    def stopped_at(self) -> datetime:
        return datetime.fromisoformat(self.facts["stopped_at"])

    @property
    def agent_folder(self) -> Path:
        return self.settings["data_dir"] / "agents" / self.facts["agent_id"]


def copy_old_data(backend: str, folder: Path, postgres_url: str | None = None, version: str = "0.2") -> OldData:
    """Copy the directories of one backend into a folder, and load the dump into an empty PostgreSQL database."""
    place = DATA / version / backend
    for name in ("data", "config", "backups"):
        if (place / name).is_dir():
            shutil.copytree(place / name, folder / name)
            (folder / name).chmod(0o700)
    for path in (folder / "config").iterdir():
        path.chmod(0o600)  # which git does not keep
    facts = json.loads((place / "facts.json").read_text())
    settings: dict[str, Any] = {
        "data_dir": folder / "data",
        "config_dir": folder / "config",
        "token": facts["token"],
        "model": "demo",
    }
    if postgres_url is not None:
        asyncio.run(_load(postgres_url, gzip.decompress((place / "dump.sql.gz").read_bytes()).decode()))
        settings["database_url"] = postgres_url
    if version == USED:
        settings |= _settle_used(place, folder)
    return OldData(settings=settings, facts=facts)


def _settle_used(place: Path, folder: Path) -> dict[str, Any]:
    """Unpack the data, put its MCP program into the folder, and return what its settings file says."""
    with tarfile.open(place / "data.tar.xz") as archive:
        archive.extractall(folder, filter="tar")
    shutil.copyfile(place.parent / "mcp_db.py", folder / "mcp_db.py")
    (folder / "python").symlink_to(sys.executable)
    file = folder / "config" / FILE_NAME
    file.write_text(file.read_text().replace(USED_AT, str(folder)))
    read = load_settings({"WAKEFUL_CONFIG_DIR": str(file.parent)})
    return {name: getattr(read, name) for name in read.model_fields_set - {"data_dir", "config_dir"}}


async def change(old: OldData, sql: str) -> None:
    """Run statements in the database of a copy that no server has open."""
    url = old.settings.get("database_url")
    if url is not None:
        await asyncio.to_thread(execute, url, sql)
        return
    connection = database_of(Settings.model_validate(old.settings)).connect()
    connection.execute(sql)
    connection.close()


def running_old_server(
    settings: Mapping[str, object], stopped_at: datetime = STOPPED_AT
) -> AbstractAsyncContextManager[Server]:
    """Run today's server on a copy, at the time of the copy."""
    return running_server(settings, clock=OldClock(stopped_at))


async def _load(url: str, dump: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("DROP SCHEMA public CASCADE")  # the dump creates it, or its tables without it
        await connection.execute("CREATE SCHEMA public")
        await connection.execute(dump)
    finally:
        await connection.close()
