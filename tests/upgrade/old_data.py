"""Copies of the data of version 0.1.0, to start today's server on.

async with running_old_server(copy_old_data("sqlite", tmp_path).settings) as server: ...
"""

import asyncio
import json
import shutil
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg

from live_server import Server, running_server
from wakeful.clock import SystemClock

OLD = Path(__file__).parents[1] / "data" / "0.1"


STOPPED_AT = datetime(2026, 11, 16, 23, 50, tzinfo=UTC)  # minutes after the last change of the data


class ClockOf01(SystemClock):
    """Shows the time at which 0.1 was stopped, and goes on from there: what it had planned is still to come."""

    def __init__(self) -> None:
        super().__init__()
        self._behind = super().read_wall_clock() - STOPPED_AT

    def read_wall_clock(self) -> datetime:
        return super().read_wall_clock() - self._behind


@dataclass(frozen=True, kw_only=True)
class OldData:
    """A copy of the data of one backend, and the ids and names in it."""

    settings: dict[str, Any]
    facts: dict[str, str]

    @property
    def agent_folder(self) -> Path:
        return self.settings["data_dir"] / "agents" / self.facts["agent_id"]


def copy_old_data(backend: str, folder: Path, postgres_url: str | None = None) -> OldData:
    """Copy the directories of one backend into a folder, and load the dump into an empty PostgreSQL database."""
    for name in ("data", "config"):
        shutil.copytree(OLD / backend / name, folder / name)
        (folder / name).chmod(0o700)
    for path in (folder / "config").iterdir():
        path.chmod(0o600)  # which git does not keep
    facts = json.loads((OLD / backend / "facts.json").read_text())
    settings: dict[str, Any] = {
        "data_dir": folder / "data",
        "config_dir": folder / "config",
        "token": facts["token"],
        "model": "demo",
    }
    if postgres_url is not None:
        asyncio.run(_load(postgres_url, (OLD / backend / "dump.sql").read_text()))
        settings["database_url"] = postgres_url
    return OldData(settings=settings, facts=facts)


def running_old_server(settings: Mapping[str, object]) -> AbstractAsyncContextManager[Server]:
    """Run today's server on a copy, at the time of the copy."""
    return running_server(settings, clock=ClockOf01())


async def _load(url: str, dump: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("DROP SCHEMA public")  # the dump creates it, or its tables without it
        await connection.execute("CREATE SCHEMA public")
        await connection.execute(dump)
    finally:
        await connection.close()
