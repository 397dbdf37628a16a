"""Disk usage of this server, and how long it keeps old data."""

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from wakeful.clock import Clock
from wakeful.domain.people.accounts import Identity, OwnersOnly
from wakeful.domain.sessions.search import IndexProgress
from wakeful.service.sessions.search_index import SearchIndex
from wakeful.store.storage.storage import StoredTexts
from wakeful.store.store import Store, Tx

_MIN_FRESH_SECONDS = 5.0
_FRESH_FACTOR = 100  # a measurement is used again for this many times the time it took: a large store takes seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Retention times of old data; messages that people wrote stay."""

    events: timedelta
    skipped: timedelta
    forget_recalls_after_days: int  # 0: never
    runs: timedelta | None = None  # None: for ever
    sessions: timedelta | None = None  # those that wakes opened


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentUse:
    """Bytes of one agent, and the number of its messages and runs."""

    agent_id: str
    name: str
    user_name: str
    databases: int
    files: int
    message_bytes: int
    messages: int
    runs: int

    @property
    def total(self) -> int:
        return self.databases + self.files + self.message_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Bytes of each table and each agent at a time, the largest first."""

    at: datetime
    tables: Mapping[str, int]
    agents: Sequence[AgentUse]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUse:
    """Bytes on disk."""

    store: int
    reusable: int  # of the store: deleted, and used for new data
    workspaces: int  # agents' files, on this node
    databases: int  # agents' own databases and their snapshots, on this node
    free: int  # on the disk of the data directory, on this node
    search_index: IndexProgress  # how much of the store is in it
    sizes: Sizes


@dataclass(slots=True)
class _Measured:
    last: Sizes | None = None
    until: float = 0.0  # when it is measured again, by the monotonic clock
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # one measurement at a time, whatever the number of pages


class Storage:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        data_dir: Path,
        folders: Callable[[], Path],  # of the agents on this node
        retention: Retention,
        search_index: SearchIndex,
        on_measured: Callable[[Sizes, int, int], None] = lambda _sizes, _store, _free: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._search_index = search_index
        self._data_dir = data_dir
        self._folders = folders
        self._on_measured = on_measured
        self._measured = _Measured()
        self.retention = retention

    async def measure(self, caller: Identity) -> DiskUse:
        """Return the disk usage. Only for owners, with any scope, because it covers everyone's files."""
        if caller.user.role != "owner":
            raise OwnersOnly
        sizes = await self._measure_if_old()
        by_agent = await asyncio.to_thread(_measure, self._folders())
        pages = await self._store.free_pages()
        return DiskUse(
            store=await self._store.size(),
            reusable=0 if pages is None else pages.bytes,
            workspaces=sum(files for _, files in by_agent.values()),
            databases=sum(databases for databases, _ in by_agent.values()),
            free=shutil.disk_usage(self._data_dir).free,
            search_index=await self._search_index.progress(),
            sizes=sizes,
        )

    async def measure_sizes(self) -> Sizes:
        """Measure tables and agents, and pass the figures on to the metrics."""
        began = self._clock.monotonic()
        tables, texts, homes = await self._store.read(_read_sizes, is_long=True)
        homes = homes or await asyncio.to_thread(_measure, self._folders())
        agents = [_to_use(each, *homes.get(each.agent_id, (0, 0))) for each in texts]
        sizes = Sizes(
            at=self._clock.now(),
            tables=dict(sorted(tables.items(), key=lambda item: -item[1])),
            agents=sorted(agents, key=lambda use: -use.total),
        )
        ended = self._clock.monotonic()
        self._measured.last = sizes
        self._measured.until = ended + max(_MIN_FRESH_SECONDS, _FRESH_FACTOR * (ended - began))
        self._on_measured(sizes, await self._store.size(), shutil.disk_usage(self._data_dir).free)
        return sizes

    def forget_sizes(self) -> None:
        """Measure again when someone asks."""
        self._measured.last = None

    async def _measure_if_old(self) -> Sizes:
        async with self._measured.lock:
            last = self._measured.last
            if last is not None and self._clock.monotonic() < self._measured.until:
                return last
            return await self.measure_sizes()


async def _read_sizes(tx: Tx) -> tuple[dict[str, int], list[StoredTexts], Mapping[str, tuple[int, int]]]:
    return await tx.storage.table_sizes(), await tx.storage.texts_of_agents(), await tx.storage.sizes_of_homes()


def _to_use(texts: StoredTexts, databases: int, files: int) -> AgentUse:
    return AgentUse(
        agent_id=texts.agent_id,
        name=texts.name,
        user_name=texts.user_name,
        databases=databases,
        files=files,
        message_bytes=texts.message_bytes,
        messages=texts.messages,
        runs=texts.runs,
    )


def _measure(agents: Path) -> dict[str, tuple[int, int]]:
    """Return the bytes of the database and of the files of each agent, by its id."""
    found: dict[str, tuple[int, int]] = {}
    for folder in agents.iterdir() if agents.is_dir() else ():
        whole, own = _bytes_in(folder), _bytes_in(folder / "workspace")
        found[folder.name] = whole - own, own
    return found


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
