"""Disk usage of this server, and how long it keeps old data."""

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from wakeful.core.clock import Clock
from wakeful.core.identity import Identity, OwnersOnly
from wakeful.core.search import IndexProgress
from wakeful.sessions.search import SearchIndex
from wakeful.sessions.service import SessionService
from wakeful.store.base import Job
from wakeful.store.drivers.sqlite import FreePages
from wakeful.store.nodes import OldRun, StoredTexts
from wakeful.store.sessions import NoSuchSession
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

    def jobs(self) -> Iterator[Job]:
        yield Job(name="sizes", every=timedelta(hours=1), run=self.measure_sizes, is_at_once=True)

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


# ── Deleting old runs and sessions ───────────────────────────────────────────────────────────────────────────────────

log = logging.getLogger(__name__)

_RUNS_AT_ONCE = 100  # in one transaction: about 10 ms
_SESSIONS_AT_ONCE = 100
_MIN_REST_SECONDS = 0.005  # after each transaction; as long as it took, if that is longer


class OldData:
    def __init__(self, store: Store, clock: Clock, retention: Retention, sessions: SessionService) -> None:
        self._store = store
        self._clock = clock
        self._retention = retention
        self._sessions = sessions

    async def delete(self) -> None:
        """Delete what is older than it may be, in small transactions with a rest after each."""
        now, kept = self._clock.now(), self._retention
        if kept.sessions is None and kept.runs is None:
            return
        sessions = runs = 0
        for user_id in await self._store.read(lambda tx: tx.storage.users()):
            if kept.sessions is not None:
                sessions += await self._delete_sessions(user_id, now - kept.sessions)
            if kept.runs is not None:
                runs += await self._delete_runs(user_id, now - kept.runs)
        if sessions or runs:
            log.info("old data deleted", extra={"sessions": sessions, "runs": runs})

    async def _delete_sessions(self, user_id: str, before: datetime) -> int:
        deleted = 0
        while True:
            found = await self._store.read(lambda tx: tx.storage.old_sessions(user_id, before, _SESSIONS_AT_ONCE))
            for session_id in found:
                began = time.monotonic()
                try:
                    await self._sessions.delete(session_id, user_id)
                except NoSuchSession:  # its user was first
                    continue
                deleted += 1
                await _rest(began)
            if len(found) < _SESSIONS_AT_ONCE:
                return deleted

    async def _delete_runs(self, user_id: str, before: datetime) -> int:
        deleted, place = 0, (0, "")
        while True:
            began = time.monotonic()
            found = await self._find_runs(user_id, before, place)
            deleted += await self._delete_some(found, before)
            if len(found) < _RUNS_AT_ONCE:
                return deleted
            place = (found[-1].queued_at, found[-1].id)  # some of them may have stayed
            await _rest(began)

    async def _find_runs(self, user_id: str, before: datetime, place: tuple[int, str]) -> list[OldRun]:
        return await self._store.read(lambda tx: tx.storage.old_runs(user_id, before, place, _RUNS_AT_ONCE))

    async def _delete_some(self, found: list[OldRun], before: datetime) -> int:
        if not found:
            return 0
        return await self._store.write(
            lambda tx: tx.storage.delete_runs(found, before), is_synced=False, is_repeatable=True
        )


async def _rest(began: float) -> None:
    """Leave the store to others for as long as the last transaction took."""
    await asyncio.sleep(max(_MIN_REST_SECONDS, time.monotonic() - began))


# ── Space of deleted rows, given back in steps that no other write waits for ─────────────────────────────────────────

STEP_PAGES = 200  # in one transaction: about 2 ms
_SLACK_BYTES = 16 * 1024 * 1024  # that stay free: new rows need them soon, and to grow a file takes time
_SLACK_SHARE = 0.1
_MIN_VACUUM_REST_SECONDS = 0.05


class Vacuum:
    """Cuts free pages off the embedded store's file. PostgreSQL does so by itself."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def run(self) -> int:
        """Free what is more than enough, and return the bytes. A kill between two steps leaves the rest for later."""
        freed = 0
        while (pages := await self._excess()) is not None:
            began = self._clock.monotonic()
            await self._store.cut_off(min(STEP_PAGES, pages.free))
            freed += min(STEP_PAGES, pages.free) * pages.page_bytes
            # Four parts of five belong to others.
            await asyncio.sleep(max(_MIN_VACUUM_REST_SECONDS, 4 * (self._clock.monotonic() - began)))
        if freed:
            log.info("store made smaller", extra={"bytes": freed})
        return freed

    async def _excess(self) -> FreePages | None:
        """Return the free pages beyond those that stay; None: there are none."""
        pages = await self._store.free_pages()
        if pages is None or not pages.can_cut:
            return None
        slack = max(_SLACK_BYTES, int(_SLACK_SHARE * pages.total * pages.page_bytes))
        excess = pages.free - slack // pages.page_bytes
        return pages._replace(free=excess) if excess > 0 else None
