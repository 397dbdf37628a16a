"""How much disk this server takes, and for how long it keeps what is over."""

import asyncio
import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from wakeful.domain.people.accounts import Identity, OwnersOnly
from wakeful.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """For how long what is over is kept; messages and runs stay."""

    events: timedelta
    skipped: timedelta
    forget_recalls_after_days: int  # 0: never


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUse:
    """Bytes on disk."""

    store: int
    workspaces: int  # agents' files, on this node
    databases: int  # agents' own databases and their snapshots, on this node


class Storage:
    """Measures the disk when someone asks."""

    def __init__(self, store: Store, data_dir: Path, retention: Retention) -> None:
        self._store = store
        self._agents = data_dir / "agents"
        self.retention = retention

    async def measure(self, caller: Identity) -> DiskUse:
        """Count what everything takes. It is about everyone's files, so it is an owner's."""
        if caller.user.role != "owner":
            raise OwnersOnly
        workspaces, databases = await asyncio.to_thread(_measure, self._agents)
        return DiskUse(store=await self._store.size(), workspaces=workspaces, databases=databases)


def _measure(agents: Path) -> tuple[int, int]:
    workspaces = databases = 0
    for folder in agents.iterdir() if agents.is_dir() else ():
        whole, own = _bytes_in(folder), _bytes_in(folder / "workspace")
        workspaces += own
        databases += whole - own
    return workspaces, databases


def _bytes_in(folder: Path) -> int:
    """Count the files of a folder, and not what its links lead to."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).lstat().st_size
            except FileNotFoundError:
                continue  # an agent deleted it in between
    return total
