"""The raw limit: insert, claim and finish in batches, with the engine's drivers and durability, and nothing else.

As in the engine, inserts and finishes are synced to disk before they count. A claim need not be: if it is lost,
it is simply made again. The connections have the engine's settings, as far as they matter to these statements.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import apsw
import asyncpg

TABLE = """
CREATE TABLE jobs (
    id TEXT PRIMARY KEY, due BIGINT NOT NULL, status TEXT NOT NULL, payload TEXT NOT NULL,
    owner TEXT, lease_until BIGINT
);
CREATE INDEX jobs_due ON jobs (due) WHERE status = 'pending';
"""
INSERT = "INSERT INTO jobs (id, due, status, payload) VALUES ({0}, {1}, {2}, {3})"
CLAIM = (
    "UPDATE jobs SET status = 'running', owner = 'raw', lease_until = {0} WHERE status = 'pending' AND id IN "
    "(SELECT id FROM jobs WHERE status = 'pending' AND due <= {1} ORDER BY due LIMIT {2}{lock}) RETURNING id, due"
)
FINISH = "UPDATE jobs SET status = 'done' WHERE id = {0} AND owner = 'raw'"
NEXT = "SELECT MIN(due) FROM jobs WHERE status = 'pending'"
PAYLOAD = "Read notes.txt with read_file and write what changed to report.md. " * 3

Job = tuple[str, int, str, str]


def now() -> int:
    return time.time_ns() // 1000


def job(due: int) -> Job:
    return (str(uuid4()), due, "pending", PAYLOAD)


class Raw(Protocol):
    async def open(self) -> None: ...
    async def insert(self, jobs: Sequence[Job]) -> None: ...
    async def claim(self, at: int, most: int) -> list[tuple[str, int]]: ...
    async def finish(self, ids: Sequence[str]) -> None: ...
    async def next_due(self) -> int | None: ...
    async def close(self) -> None: ...


class RawSqlite:
    """One connection in one thread."""

    def __init__(self, path: Path, key: bytes) -> None:
        self._path = path
        self._key = key
        self._thread = ThreadPoolExecutor(1)

    def _connect(self) -> None:
        connection = self._connection = apsw.Connection(str(self._path), statementcachesize=512)
        connection.pragma("cipher", "aegis")
        connection.execute(f"PRAGMA key = 'raw:{self._key.hex()}'")
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "FULL")
        connection.pragma("cache_size", -8_000)
        connection.pragma("wal_autocheckpoint", 4_000)
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'jobs'").fetchall():
            connection.execute(TABLE)

    async def _do(self, act: Callable[[apsw.Connection], Any]) -> Any:
        def in_transaction() -> Any:
            with self._connection:
                return act(self._connection)

        return await asyncio.get_running_loop().run_in_executor(self._thread, in_transaction)

    async def open(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._connect)

    async def insert(self, jobs: Sequence[Job]) -> None:
        await self._do(lambda db: db.executemany(INSERT.format("?", "?", "?", "?"), jobs))

    async def claim(self, at: int, most: int) -> list[tuple[str, int]]:
        sql = CLAIM.format("?", "?", "?", lock="")

        def act() -> list[tuple[str, int]]:
            db = self._connection
            db.execute("PRAGMA synchronous = NORMAL")
            with db:
                taken = db.execute(sql, (at + 30_000_000, at, most)).fetchall()
            db.execute("PRAGMA synchronous = FULL")
            return taken

        return await asyncio.get_running_loop().run_in_executor(self._thread, act)

    async def finish(self, ids: Sequence[str]) -> None:
        await self._do(lambda db: db.executemany(FINISH.format("?"), [(each,) for each in ids]))

    async def next_due(self) -> int | None:
        return await self._do(lambda db: db.execute(NEXT).fetchall()[0][0])

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
        self._thread.shutdown()


class RawPostgres:
    """One connection that books, one that claims without waiting for the disk, one that finishes."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def open(self) -> None:
        self._connection = await asyncpg.connect(self._url)
        self._claiming = await asyncpg.connect(self._url, server_settings={"synchronous_commit": "off"})
        self._booking = await asyncpg.connect(self._url)
        if not await self._connection.fetchval("SELECT to_regclass('jobs')"):
            await self._connection.execute(TABLE)

    async def insert(self, jobs: Sequence[Job]) -> None:
        await self._booking.executemany(INSERT.format("$1", "$2", "$3", "$4"), jobs)

    async def claim(self, at: int, most: int) -> list[tuple[str, int]]:
        sql = CLAIM.format("$1", "$2", "$3", lock=" FOR UPDATE SKIP LOCKED")
        return [(row["id"], row["due"]) for row in await self._claiming.fetch(sql, at + 30_000_000, at, most)]

    async def finish(self, ids: Sequence[str]) -> None:
        await self._connection.executemany(FINISH.format("$1"), [(each,) for each in ids])

    async def next_due(self) -> int | None:
        return await self._connection.fetchval(NEXT)

    async def close(self) -> None:
        await self._booking.close()
        await self._claiming.close()
        await self._connection.close()


class Grouped:
    """Inserts that wait at the same time go into one commit."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw
        self._waiting: list[tuple[Job, asyncio.Future[None]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def insert(self, one: Job) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((one, future))
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        await future

    async def _work(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            await self._raw.insert([one for one, _ in batch])
            for _, future in batch:
                future.set_result(None)
        self._worker = None


async def fire_all(raw: Raw, count: int, most: int) -> None:
    """Claim and finish what is due until all is done."""
    done = 0
    while done < count:
        taken = await raw.claim(now(), most)
        await raw.finish([each for each, _ in taken])
        done += len(taken)


async def fire_exactly(raw: Raw, count: int, nudged: asyncio.Event, note: Callable[[int], None]) -> None:
    """Sleep until the next job, claim it, note how late it is; finish it afterwards."""
    done = 0
    while done < count:
        due = await raw.next_due()
        wait = 30.0 if due is None else (due - now()) / 1e6
        if wait > 0:
            await _sleep(wait, nudged)
            continue
        taken = await raw.claim(now(), 64)
        at = now()
        for _, planned in taken:
            note(at - planned)
        await raw.finish([each for each, _ in taken])
        done += len(taken)


async def _sleep(seconds: float, nudged: asyncio.Event) -> None:
    nudged.clear()
    timer = asyncio.get_running_loop().call_later(seconds, nudged.set)
    await nudged.wait()
    timer.cancel()


async def call_many(callers: int, seconds: float, act: Callable[[], Awaitable[object]]) -> float:
    """Let `callers` tasks repeat an act for a while and return how often it was done per second."""
    began, done = time.perf_counter(), 0
    until = began + seconds

    async def caller() -> None:
        nonlocal done
        while time.perf_counter() < until:
            await act()
            done += 1

    await asyncio.gather(*[caller() for _ in range(callers)])
    return done / (time.perf_counter() - began)
