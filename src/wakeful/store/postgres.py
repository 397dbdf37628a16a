"""The shared store: PostgreSQL, any number of nodes."""

import asyncio
import contextlib
import logging
import re
import secrets
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any, TypeVar

import asyncpg
import orjson
from asyncpg.pool import PoolConnectionProxy

from wakeful.domain.resources import find_shortage
from wakeful.store import queries
from wakeful.store.database import Listener, Params, Row, SideConnection, Values, Work
from wakeful.store.errors import BrokenReference, StoreUnavailable

T = TypeVar("T")

log = logging.getLogger(__name__)

_PLAIN = re.compile(r"[\w -]+", re.ASCII)
_CHANNEL = "wakeful"
_MIGRATION_LOCK = 0x77616B65
_TRIES = 5
_LISTEN_AGAIN_SECONDS = 0.5
_WITHOUT_DESCRIPTORS_SECONDS = 5.0
_TELL_SECONDS = 0.005  # what is told together; and a claim comes to its work first

# Our statements are small and each is served by an index, in its order: one plan each, made once, whatever the
# statistics say today. Left to itself, PostgreSQL sorts the whole queue for each claim and scans young tables per row.
_SERVER_SETTINGS = {"jit": "off", "plan_cache_mode": "force_generic_plan"} | {
    f"enable_{way}": "off" for way in ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort")
}

# A claim that lost a race for a session, or two transactions that waited for each other: the work may be run again.
_RACES = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.UniqueViolationError)
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # what asyncpg says when a connection is lost between two messages of one question
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    OSError,
)


class _Connection(asyncpg.Connection):
    """A pooled connection that is not reset: we set nothing on it, and the reset is a second round trip per use."""

    def get_reset_query(self) -> str:
        return ""


class PostgresDatabase:
    """A store on a PostgreSQL server."""

    dialect = "postgres"

    def __init__(self, url: str, *, most_connections: int = 12) -> None:
        self._url = url
        self._name = secrets.token_hex(4)  # of this node, on what it tells the others
        self._most_connections = most_connections
        self._pool: asyncpg.Pool[Any] | None = None
        self._unsynced: asyncpg.Pool[Any] | None = None  # its commits do not wait for the disk
        self._listeners: list[Listener] = []
        self._listening: asyncio.Task[None] | None = None
        self._untold: list[str] = []
        self._telling: asyncio.Task[None] | None = None

    async def open(self) -> None:
        with _errors_named():
            self._pool = await self._make_pool(self._most_connections, _SERVER_SETTINGS)
            self._unsynced = await self._make_pool(2, _SERVER_SETTINGS | {"synchronous_commit": "off"})
        self._listening = asyncio.create_task(self._keep_listening(), name="wakeful-listen")

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listening
            self._listening = None
        if self._telling is not None:
            await asyncio.wait([self._telling], timeout=5)
        pools = [pool for pool in (self._pool, self._unsynced) if pool is not None]
        self._pool = self._unsynced = None
        for pool in pools:
            try:
                await asyncio.wait_for(pool.close(), timeout=5)
            except TimeoutError:
                pool.terminate()

    async def write(self, work: Work[T], *, is_synced: bool = True, is_single: bool = False) -> T:
        pool = self._pool if is_synced else self._unsynced
        write = self._write_alone if is_single else self._write
        for attempt in range(1, _TRIES):
            with contextlib.suppress(*_RACES):
                return await write(pool, work)
            await asyncio.sleep(0.002 * attempt)
        try:
            return await write(pool, work)
        except _RACES as error:
            raise BrokenReference(str(error)) from error

    async def _write(self, pool: "asyncpg.Pool[Any] | None", work: Work[T]) -> T:
        async with _acquire(pool) as connection:
            statements = _Statements(connection)
            try:
                await connection.execute("BEGIN")
                result = await work(statements)
                # The news goes with the commit, in one journey, and PostgreSQL passes it on only if that succeeds.
                await connection.execute(f"{self._news_sql(statements.news)}COMMIT")
            except BaseException as error:
                if isinstance(error, _LOST):  # it may have been committed all the same, and to look does no harm
                    self._deliver(statements.news)
                with contextlib.suppress(*_LOST):  # then there is nothing to roll back, and the first error says more
                    await connection.execute("ROLLBACK")
                raise
        self._deliver(statements.news)
        return result

    async def _write_alone(self, pool: "asyncpg.Pool[Any] | None", work: Work[T]) -> T:
        async with _acquire(pool) as connection:
            statements = _Statements(connection)
            result = await work(statements)
        self._deliver(statements.news)
        self._untold.extend(statements.news)
        if self._untold and self._telling is None:
            self._telling = asyncio.create_task(self._tell_others(), name="wakeful-tell")
        return result

    async def _tell_others(self) -> None:
        """Pass on what was told by statements that were a transaction by themselves, together with what comes soon."""
        await asyncio.sleep(_TELL_SECONDS)
        news, self._untold, self._telling = self._untold, [], None
        try:
            async with _acquire(self._unsynced) as connection:
                await connection.execute(self._news_sql(news))
        except StoreUnavailable:
            log.warning("news for other nodes got lost; they look for themselves in time", exc_info=True)

    async def read(self, work: Work[T], *, is_single: bool = False) -> T:
        async with _acquire(self._pool) as connection:
            if is_single:
                return await work(_Statements(connection))
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                return await work(_Statements(connection))

    async def run_script(self, script: str) -> None:
        async with _acquire(self._pool) as connection, connection.transaction():
            await connection.execute(script)

    @contextlib.asynccontextmanager
    async def only_one_node(self) -> AsyncGenerator[None]:
        async with _acquire(self._pool) as connection:
            await connection.execute("SELECT pg_advisory_lock($1)", _MIGRATION_LOCK)
            try:
                yield
            finally:
                await connection.execute("SELECT pg_advisory_unlock($1)", _MIGRATION_LOCK)

    async def side_connection(self) -> SideConnection:
        with _errors_named():
            return _Side(await asyncpg.connect(self._url, command_timeout=20))

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    async def size(self) -> int:
        async with _acquire(self._pool) as connection:
            return await connection.fetchval("SELECT pg_database_size(current_database())")

    async def has_agents(self) -> bool:
        """Tell whether anyone has worked with this database, with or without our tables in it."""
        async with _acquire(self._pool) as connection:
            if await connection.fetchval("SELECT to_regclass('agents') IS NULL"):
                return False
            return await connection.fetchval("SELECT EXISTS (SELECT 1 FROM agents)")

    async def checkpoint(self) -> None:
        """Do nothing: PostgreSQL checkpoints by itself."""

    async def read_clock(self) -> int | None:
        async with _acquire(self._pool) as connection:
            return await connection.fetchval("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)")

    def _make_pool(self, most: int, settings: dict[str, str]) -> "asyncpg.Pool[Any]":
        return asyncpg.create_pool(
            self._url,
            min_size=1,
            max_size=most,
            connection_class=_Connection,
            command_timeout=60,
            server_settings=settings,
        )

    def _deliver(self, news: Sequence[str]) -> None:
        for text in dict.fromkeys(news):
            for listener in self._listeners:
                listener(text)

    def _news_sql(self, news: Sequence[str]) -> str:
        # They are words of ours and ids, and stand in the statement as they are.
        assert all(_PLAIN.fullmatch(text) for text in news), news
        return "".join(f"SELECT pg_notify('{_CHANNEL}', '{self._name} {text}');" for text in dict.fromkeys(news))

    def _hear(self, _connection: object, _pid: int, _channel: str, news: object) -> None:
        sender, _, text = str(news).partition(" ")
        if sender != self._name:  # what is our own was delivered when it was committed
            self._deliver([text])

    async def _keep_listening(self) -> None:
        """Hold one connection that listens; when it is lost, take another and tell everyone to look for themselves."""
        while True:
            try:
                connection: asyncpg.Connection[Any] = await asyncpg.connect(self._url)
                try:
                    lost = asyncio.Event()
                    connection.add_termination_listener(lambda _, lost=lost: lost.set())
                    await connection.add_listener(_CHANNEL, self._hear)
                    self._deliver(["look"])
                    await lost.wait()
                finally:
                    connection.terminate()  # at once: we may be here because the store is closed
                log.warning("listening connection lost")
            except _LOST:
                log.warning("cannot listen to the database", exc_info=True)
            await asyncio.sleep(_LISTEN_AGAIN_SECONDS)


@contextlib.asynccontextmanager
async def _acquire(pool: "asyncpg.Pool[Any] | None") -> "AsyncGenerator[asyncpg.Connection[Any]]":
    if pool is None:
        raise StoreUnavailable("The store is closed.")
    with _errors_named():
        connection = await _take(pool)
        try:
            yield connection  # pyright: ignore[reportReturnType]
        finally:
            await pool.release(connection)


async def _take(pool: "asyncpg.Pool[Any]") -> "PoolConnectionProxy[Any]":
    """Take a connection; while there is no descriptor for a new one, wait until one of the others is free."""
    give_up_at = time.monotonic() + _WITHOUT_DESCRIPTORS_SECONDS
    while True:
        try:
            return await pool.acquire()
        except OSError as error:
            if find_shortage(error) is None or time.monotonic() > give_up_at:
                raise
        await asyncio.sleep(0.02)


class _Statements:
    dialect = "postgres"

    def __init__(self, connection: "asyncpg.Connection[Any]") -> None:
        self._connection = connection
        self._queries = queries.for_postgres()
        self.news: list[str] = []

    async def fetch(self, name: str, params: Params) -> Sequence[Row]:
        query = self._queries[name]
        return await self._connection.fetch(query.sql, *query.in_order(params))

    async def fetch_many(self, name: str, params: Sequence[Params]) -> Sequence[Row]:
        query = self._queries[name]
        return await self._fetch_rows(name, [query.in_order(each) for each in params])

    async def write_each(self, name: str, rows: Sequence[Values]) -> set[str]:
        return {row["id"] for row in await self._fetch_rows(name, rows)}

    async def _fetch_rows(self, name: str, rows: Sequence[Values]) -> Sequence[Row]:
        if not rows:
            return []
        query = self._queries[name]
        # What is left out is null to the server, and half of a row is.
        objects = [
            {name: value for name, value in zip(query.names, row, strict=True) if value is not None} for row in rows
        ]
        return await self._connection.fetch(query.sql, orjson.dumps(objects).decode())

    def tell(self, news: str) -> None:
        self.news.append(news)


class _Side:
    def __init__(self, connection: "asyncpg.Connection[Any]") -> None:
        self._connection = connection
        self._queries = queries.for_postgres()

    async def fetch(self, name: str, params: Params) -> Sequence[Row]:
        query = self._queries[name]
        with _errors_named():
            return await self._connection.fetch(query.sql, *query.in_order(params))

    async def close(self) -> None:
        await self._connection.close(timeout=2)


@contextlib.contextmanager
def _errors_named() -> Generator[None]:
    try:
        yield
    except asyncpg.ForeignKeyViolationError as error:
        raise BrokenReference(str(error)) from error
    except _LOST as error:
        raise StoreUnavailable(
            f"PostgreSQL does not answer ({type(error).__name__}: {error}). Try again in a moment, but look first: "
            "a change that was under way may have been made."
        ) from error
