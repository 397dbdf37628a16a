"""Disk usage of this server, and how long it keeps old data."""

import asyncio
import os
import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from wakeful.domain.people.accounts import Identity, OwnersOnly
from wakeful.domain.sessions.search import IndexProgress
from wakeful.service.sessions.search_index import SearchIndex
from wakeful.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Retention times of old data; messages and runs stay."""

    events: timedelta
    skipped: timedelta
    forget_recalls_after_days: int  # 0: never


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUse:
    """Bytes on disk."""

    store: int
    workspaces: int  # agents' files, on this node
    databases: int  # agents' own databases and their snapshots, on this node
    free: int  # on the disk of the data directory, on this node
    search_index: IndexProgress  # how much of the store is in it


class Storage:
    def __init__(self, store: Store, data_dir: Path, retention: Retention, search_index: SearchIndex) -> None:
        self._store = store
        self._search_index = search_index
        self._data_dir = data_dir
        self._agents = data_dir / "agents"
        self.retention = retention

    async def measure(self, caller: Identity) -> DiskUse:
        """Return the disk usage. Only for owners, with any scope, because it covers everyone's files."""
        if caller.user.role != "owner":
            raise OwnersOnly
        workspaces, databases = await asyncio.to_thread(_measure, self._agents)
        free = shutil.disk_usage(self._data_dir).free
        return DiskUse(
            store=await self._store.size(),
            workspaces=workspaces,
            databases=databases,
            free=free,
            search_index=await self._search_index.progress(),
        )


def _measure(agents: Path) -> tuple[int, int]:
    workspaces = databases = 0
    for folder in agents.iterdir() if agents.is_dir() else ():
        whole, own = _bytes_in(folder), _bytes_in(folder / "workspace")
        workspaces += own
        databases += whole - own
    return workspaces, databases


def _bytes_in(folder: Path) -> int:
    """Return the size of the files in a folder. Links are not followed."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).lstat().st_size
            except FileNotFoundError:
                continue  # deleted in between
    return total
