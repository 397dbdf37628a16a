"""Timeouts of a node's connections to PostgreSQL, so that a dead node does not block the others.

A node that is frozen or has lost its power inside a transaction keeps its row locks until the server ends that
transaction. Everything is set by SET after connecting: PgBouncer refuses it among the start-up parameters.
"""

import asyncio
import contextlib
import logging
import secrets
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import asyncpg
import orjson

from wakeful.core.errors import StoreBusy, StoreUnavailable
from wakeful.core.events import LookAgain, News, RunChanged, WakeChanged
from wakeful.core.resources import find_shortage
from wakeful.store import rows as queries
from wakeful.store.drivers.database import Deliver, Params, Row, SideConnection, Values, Work
from wakeful.store.errors import (
    BrokenReference,
    ConnectionLost,
    NotificationsLost,
    StoreClosed,
    StoreFull,
    StoreReadOnly,
)
from wakeful.store.news import decode, encode

# PostgreSQL keeps one plan for each statement of a connection, perhaps made while a table was empty, and guesses that
# LIMIT :most is a tenth of all rows and that `rows(…)` are a hundred. With that it would scan and hash whole tables for
# the rows of a batch, and sort all runs of a user for one page. Every statement has an index for its rows and their
# order, so these ways are ruled out. To set this for single statements would cost each of them a round trip.
_PLANS = {"jit": "off", "plan_cache_mode": "force_generic_plan"} | {
    f"enable_{way}": "off" for way in ("seqscan", "bitmapscan", "hashjoin", "mergejoin")
}

# A peer that has lost its power or its network is noticed within 14 seconds, by the server and by us.
_IDLE_SECONDS, _PROBE_SECONDS, _PROBES, _UNACKNOWLEDGED_MS = 5, 3, 3, 10_000
_KEEPALIVE = {
    "tcp_keepalives_idle": str(_IDLE_SECONDS),
    "tcp_keepalives_interval": str(_PROBE_SECONDS),
    "tcp_keepalives_count": str(_PROBES),
    "tcp_user_timeout": str(_UNACKNOWLEDGED_MS),
}

_NAME = {"application_name": "wakeful"}

# For changes of the schema, and for nodes that wait until another one has made them.
UNLIMITED = (
    "SET idle_in_transaction_session_timeout = 0; SET lock_timeout = 0; SET application_name = wakeful_migrating"
)

# The server itself ends a transaction only while it waits for the next command. A node that stops between preparing a
# statement and running it, or in the middle of a large answer, leaves a backend that counts as active, with its locks.
_END_STUCK = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE
    datname = current_database() AND usename = current_user AND application_name = 'wakeful' AND state = 'active'
    AND (
        wait_event = 'ClientRead' AND state_change < clock_timestamp() - interval '{idle} seconds'
        OR wait_event = 'ClientWrite' AND state_change < clock_timestamp() - interval '{answer} seconds'
    )
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """Seconds, made for a lease: within that and five more, another node has taken over."""

    idle: float  # of a transaction between two statements, before the server ends it
    lock: float  # of a statement that waits for a row lock
    answer: float  # until the answer to a statement: the connection may be dead
    reach: float  # until a new connection, or the answer to a heartbeat

    @classmethod
    def of_lease(cls, lease: timedelta) -> "SessionLimits":
        seconds = lease.total_seconds()
        return cls(
            # There are three heartbeats per lease, and one of them may have to wait for a row lock.
            idle=min(5.0, max(1.0, seconds / 3)),
            lock=1.5,  # more than deadlock_timeout: a deadlock is found as such, and its work is run again
            answer=min(20.0, seconds + 3),
            reach=min(10.0, max(2.0, seconds / 3)),
        )

    def sql(self, settings: Mapping[str, str] | None = None) -> str:
        """Return the SET statements for a new connection; the settings win over the limits."""
        limits = {
            "idle_in_transaction_session_timeout": f"{self.idle * 1000:.0f}",
            "lock_timeout": f"{self.lock * 1000:.0f}",
        }
        whole = _NAME | _PLANS | _KEEPALIVE | limits | dict(settings or {})
        return "; ".join(f"SET {name} = {value}" for name, value in whole.items())

    @property
    def end_stuck(self) -> str:
        """Return the query that ends the connections of stopped nodes which the server does not end by itself."""
        return _END_STUCK.format(idle=self.idle, answer=self.answer)


def keep_alive(connection: "asyncpg.Connection[Any]") -> None:
    """Turn on TCP keepalive, so that a dead server is noticed; nothing to do on a UNIX socket."""
    transport: Any = connection._transport  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
    line: socket.socket | None = transport.get_extra_info("socket")
    if line is None or line.family not in (socket.AF_INET, socket.AF_INET6):
        return
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _IDLE_SECONDS),
        ("TCP_KEEPINTVL", _PROBE_SECONDS),
        ("TCP_KEEPCNT", _PROBES),
        ("TCP_USER_TIMEOUT", _UNACKNOWLEDGED_MS),
    ):
        option: int | None = getattr(socket, name, None)  # not every system has each
        if option is not None:
            line.setsockopt(socket.IPPROTO_TCP, option, value)


# PostgreSQL's errors as errors of the store, with a text that says what to do.


# The connection was lost, or none could be opened.
LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # raised when a connection is lost between two messages of one request
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.IdleSessionTimeoutError,
    OSError,
)

_ENDED_BY_SERVER = (
    asyncpg.AdminShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.IdleSessionTimeoutError,
)
_TRY_AGAIN = "Try again in a moment"
_REFUSALS: dict[type[Exception], str] = {
    asyncpg.OutOfMemoryError: "PostgreSQL is out of memory. Nothing was changed. Give its machine more memory, or "
    "lower work_mem and max_connections",
    asyncpg.TooManyConnectionsError: "PostgreSQL has no connection left for this server. Nothing was changed. Raise "
    "max_connections, or close other clients of it",
    asyncpg.InsufficientResourcesError: "PostgreSQL has run out of a resource. Nothing was changed. Its log says which",
    asyncpg.QueryCanceledError: "PostgreSQL cut off a statement that took too long, or that someone cancelled. Nothing "
    "was changed. Look at statement_timeout and at what keeps the server busy",
    asyncpg.PostgresSystemError: "PostgreSQL cannot use its files. Look at its disk and its log",
    asyncpg.InvalidAuthorizationSpecificationError: "PostgreSQL refuses the login of this server. Check the user and "
    "the password in WAKEFUL_DATABASE_URL",
    asyncpg.InvalidCatalogNameError: "PostgreSQL does not have the database that WAKEFUL_DATABASE_URL names. "
    "Create it, or correct the name",
    asyncpg.InsufficientPrivilegeError: "PostgreSQL does not let the user of this server do this. Nothing was changed. "
    "Make it the owner of its tables",
}


@contextmanager
def errors_named(*, may_be_done: bool = False) -> Generator[None]:
    """Translate errors of the block; `may_be_done` if it commits, so that a lost answer leaves the commit in doubt."""
    try:
        yield
    except asyncpg.ForeignKeyViolationError as error:
        raise BrokenReference(str(error)) from error
    except asyncpg.LockNotAvailableError as error:
        raise StoreBusy from error
    except LOST as error:
        raise _lost(error, may_be_done) from error
    except asyncpg.DiskFullError as error:
        raise StoreFull("PostgreSQL's data") from error
    except asyncpg.ReadOnlySQLTransactionError as error:
        raise StoreReadOnly(
            "PostgreSQL is read-only, so nothing was changed. If it is a standby, point WAKEFUL_DATABASE_URL at the "
            f"primary; otherwise turn default_transaction_read_only off. It said: {error}."
        ) from error
    except tuple(_REFUSALS) as error:
        words = next(words for kind, words in _REFUSALS.items() if isinstance(error, kind))
        raise StoreUnavailable(f"{words}. It said: {error}.") from error


def _lost(error: Exception, may_be_done: bool) -> StoreUnavailable:
    said = f"PostgreSQL does not answer ({type(error).__name__}: {error})."
    # Before the server ends a connection with one of these errors, it has confirmed every commit: anything else was
    # rolled back. After any other loss, a commit may have been made.
    if any(isinstance(each, _ENDED_BY_SERVER) for each in (error, error.__cause__)):
        may_be_done = False
    # After a timeout, waiting for another one would not help.
    kind = StoreUnavailable if isinstance(error, TimeoutError) else ConnectionLost
    if may_be_done:
        return kind(f"{said} {_TRY_AGAIN}, but look first: the change may have been made.", is_in_doubt=True)
    return kind(f"{said} Nothing was changed. {_TRY_AGAIN}.")


# The shared store: PostgreSQL, any number of nodes.


T = TypeVar("T")

log = logging.getLogger(__name__)

_CHANNEL = "wakeful"
_MIGRATION_LOCK = 0x77616B65
_TRIES = 5
_RECONNECT_AFTER = (0.0, 0.05, 0.15, 0.4)  # seconds; after that the caller gets an error
_LISTEN_AGAIN_SECONDS = 0.5
_WITHOUT_DESCRIPTORS_SECONDS = 5.0
_NOTIFY_SECONDS = 0.005  # news of this time is sent together, after a claimed run has started
# For news that no engine waits for: one notification for each booking would cost as much as the booking.
_NOTIFY_LATER_SECONDS = 0.05
_CAN_WAIT = (WakeChanged, RunChanged)
_LONG_SECONDS = 86_400.0  # for a statement whose time depends on the amount of data
_MIGRATION_WAIT_SECONDS = 3_600.0  # for the node that migrates, which backs the store up before
_ROLLBACK_SECONDS = 1.0
_HEAR_SECONDS = 1.0
# The scheduler fires the other wakes meanwhile, and retries one whose row is locked.
_UNSYNCED = {"synchronous_commit": "off", "lock_timeout": "500"}

# A claim that lost a race for a session, a deadlock, or a newer node that has added a column which a prepared statement
# reads (asyncpg prepares it again): the work may be run again.
_RACES = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.UniqueViolationError,
    asyncpg.InvalidCachedStatementError,
)
# After these the state of the connection is unknown, so it is closed.
_HANGS_UP = (TimeoutError, asyncio.CancelledError)


class _Connection(asyncpg.Connection):
    """A pooled connection that is not reset: that would undo what is set on it, by a second round trip per use."""

    def get_reset_query(self) -> str:
        return ""


class PostgresDatabase:
    """A store on a PostgreSQL server."""

    dialect = "postgres"

    def __init__(
        self,
        url: str,
        *,
        most_connections: int = 12,
        lease: timedelta = timedelta(seconds=30),
        hear_within: timedelta = timedelta(seconds=10),  # a notification that it sends to itself at its start
    ) -> None:
        self._url = url
        self._hear_within = hear_within
        self._limits = SessionLimits.of_lease(lease)
        self._name = secrets.token_hex(4)  # of this node, in its notifications
        self._most_connections = most_connections
        self._pool: asyncpg.Pool[Any] | None = None
        self._unsynced: asyncpg.Pool[Any] | None = None  # its commits do not wait for the disk
        self._unlimited: asyncpg.Connection[Any] | None = None  # the one that has the migration lock
        self._deliver: Deliver = lambda _news: None
        self._tasks: list[asyncio.Task[None]] = []
        self._unsent: list[News] = []
        self._notifying: asyncio.Task[None] | None = None
        self._is_urgent = asyncio.Event()  # some of the unsent news cannot wait
        self._is_listening = asyncio.Event()
        self._has_heard = asyncio.Event()  # a notification of its own has come back

    async def open(self, check_empty: Callable[[], None] = lambda: None) -> None:  # noqa: ARG002  (asked once it is open)
        logging.getLogger("asyncpg.pool").addFilter(_is_news)
        with errors_named():
            self._pool = await self._make_pool(self._most_connections, self._limits.sql())
            self._unsynced = await self._make_pool(2, self._limits.sql(_UNSYNCED))
        self._is_listening.clear()
        self._has_heard.clear()
        self._tasks = [
            asyncio.create_task(self._keep_listening(), name="wakeful-listen"),
            asyncio.create_task(self._keep_ending_stuck(), name="wakeful-end-stuck"),
        ]
        try:
            await self._check_listening()
        except BaseException:
            await self.close()
            raise

    async def _check_listening(self) -> None:
        """Notify ourselves: behind a pooler in transaction mode LISTEN is lost without an error."""
        await self._notify_self()  # a standby refuses this, and says why
        try:
            async with asyncio.timeout(self._hear_within.total_seconds()):
                await self._is_listening.wait()
                while not self._has_heard.is_set():
                    await self._notify_self()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._has_heard.wait(), _HEAR_SECONDS)
        except TimeoutError as error:
            raise NotificationsLost from error

    async def _notify_self(self) -> None:
        async with self._acquire(self._unsynced) as connection:
            await connection.execute(f"SELECT pg_notify('{_CHANNEL}', '{self._name}')")

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._tasks = []
        if self._notifying is not None:
            self._is_urgent.set()
            await asyncio.wait([self._notifying], timeout=5)
        pools = [pool for pool in (self._pool, self._unsynced) if pool is not None]
        self._pool = self._unsynced = None
        for pool in pools:
            try:
                await asyncio.wait_for(pool.close(), timeout=5)
            except TimeoutError:
                pool.terminate()

    async def write(
        self,
        work: Work[T],
        *,
        is_synced: bool = True,
        is_single: bool = False,
        is_repeatable: bool = False,
        is_long: bool = False,
    ) -> T:
        pool = self._pool if is_synced else self._unsynced
        write = self._write_alone if is_single else self._write
        seconds = _LONG_SECONDS if is_long else None
        return await _reconnecting(lambda: _race(lambda: write(pool, work, seconds)), is_repeatable=is_repeatable)

    async def _write(self, pool: "asyncpg.Pool[Any] | None", work: Work[T], seconds: float | None) -> T:
        async with self._acquire(pool) as connection:
            statements = PostgresStatements(connection, seconds)
            try:
                await connection.execute("BEGIN")
                result = await work(statements)
                # The news goes with the commit, in one round trip, and PostgreSQL passes it on only if that succeeds.
                with errors_named(may_be_done=True):
                    await connection.execute(f"{self._notify_sql(statements.news)}COMMIT")
            except BaseException as error:
                if isinstance(error, StoreUnavailable) and error.is_in_doubt:
                    self._deliver([LookAgain()])
                await _roll_back(connection, error)
                raise
        self._deliver(statements.news)
        return result

    async def _write_alone(self, pool: "asyncpg.Pool[Any] | None", work: Work[T], seconds: float | None) -> T:
        async with self._acquire(pool) as connection:
            statements = PostgresStatements(connection, seconds)
            try:
                with errors_named(may_be_done=True):
                    result = await work(statements)
            except StoreUnavailable as error:
                if error.is_in_doubt:
                    self._deliver([LookAgain()])
                raise
        self._deliver(statements.news)
        self._unsent.extend(statements.news)
        if not all(isinstance(each, _CAN_WAIT) for each in statements.news):
            self._is_urgent.set()
        if self._unsent and self._notifying is None:
            self._notifying = asyncio.create_task(self._notify_others(), name="wakeful-notify")
        return result

    async def _notify_others(self) -> None:
        """Notify other nodes of statements that were a transaction by themselves, several at a time."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._is_urgent.wait(), _NOTIFY_LATER_SECONDS)
        await asyncio.sleep(_NOTIFY_SECONDS)
        news, self._unsent, self._notifying = self._unsent, [], None
        self._is_urgent.clear()
        try:
            async with self._acquire(self._unsynced) as connection:
                await connection.execute(self._notify_sql(news))
        except StoreUnavailable as error:
            log.warning("notifications for other nodes were lost; they poll", extra={"problem": error.message})

    async def read(self, work: Work[T], *, is_single: bool = False, is_long: bool = False) -> T:
        seconds = _LONG_SECONDS if is_long else None
        return await _reconnecting(
            lambda: _race(lambda: self._read(work, seconds, is_single=is_single)), is_repeatable=True
        )

    async def _read(self, work: Work[T], seconds: float | None, *, is_single: bool) -> T:
        async with self._acquire(self._pool) as connection:
            if is_single:
                return await work(PostgresStatements(connection, seconds))
            async with _snapshot(connection):
                return await work(PostgresStatements(connection, seconds))

    async def run_script(self, script: str) -> None:
        async with self._acquire_unlimited() as connection, connection.transaction():
            await connection.execute(script, timeout=_LONG_SECONDS)

    @contextlib.asynccontextmanager
    async def only_one_node(self) -> AsyncGenerator[None]:
        async with self._acquire_unlimited() as connection:
            lock = "SELECT pg_advisory_lock($1)"
            await connection.execute(lock, _MIGRATION_LOCK, timeout=_MIGRATION_WAIT_SECONDS)
            self._unlimited = connection
            try:
                yield
            finally:
                self._unlimited = None
                await connection.execute("SELECT pg_advisory_unlock($1)", _MIGRATION_LOCK)

    async def side_connection(self) -> SideConnection:
        with errors_named():
            return PostgresSide(await self._connect(command_timeout=self._limits.reach))

    def listen(self, deliver: Deliver) -> None:
        self._deliver = deliver

    async def size(self) -> int:
        return await self._read_value("SELECT pg_database_size(current_database())")

    async def has_agents(self) -> bool:
        """Return whether anyone has worked with this database, with or without our tables in it."""
        if await self._read_value("SELECT to_regclass('agents') IS NULL"):
            return False
        return await self._read_value("SELECT EXISTS (SELECT 1 FROM agents)")

    async def checkpoint(self) -> None:
        """Do nothing: PostgreSQL checkpoints by itself."""

    async def read_clock(self) -> int | None:
        return await self._read_value("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)")

    async def _read_value(self, sql: str) -> Any:
        async def read() -> Any:
            async with self._acquire(self._pool) as connection:
                return await connection.fetchval(sql)

        return await _reconnecting(read, is_repeatable=True)

    def _make_pool(self, most: int, settings: str) -> "asyncpg.Pool[Any]":
        async def set_up(connection: "asyncpg.Connection[Any]") -> None:
            keep_alive(connection)
            await connection.execute(settings)

        return asyncpg.create_pool(
            self._url,
            min_size=1,
            max_size=most,
            connection_class=_Connection,
            timeout=self._limits.reach,
            command_timeout=self._limits.answer,
            init=set_up,
        )

    async def _connect(self, command_timeout: float) -> "asyncpg.Connection[Any]":
        """Open a connection that is in no pool."""
        connection: asyncpg.Connection[Any] = await asyncpg.connect(
            self._url, timeout=self._limits.reach, command_timeout=command_timeout
        )
        keep_alive(connection)
        try:
            await connection.execute(self._limits.sql())
        except BaseException:
            connection.terminate()
            raise
        return connection

    @contextlib.asynccontextmanager
    async def _acquire(self, pool: "asyncpg.Pool[Any] | None") -> "AsyncGenerator[asyncpg.Connection[Any]]":
        if pool is None:
            raise StoreClosed
        with errors_named():
            connection = await self._take(pool)
        try:
            with errors_named():
                yield connection
        except BaseException as error:
            if _hangs_up(error):
                # The connection may be dead: any further request on it, even a cancellation, would wait again.
                _terminate(connection)
            raise
        finally:
            with contextlib.suppress(*LOST):  # it is replaced; and what was done on it before is done
                await pool.release(connection)  # pyright: ignore[reportArgumentType]

    async def _take(self, pool: "asyncpg.Pool[Any]") -> "asyncpg.Connection[Any]":
        """Take a connection; without a file descriptor for a new one, wait until one in use is free."""
        give_up_at = time.monotonic() + _WITHOUT_DESCRIPTORS_SECONDS
        while True:
            try:
                return await pool.acquire(timeout=self._limits.answer)  # pyright: ignore[reportReturnType]
            except OSError as error:
                if find_shortage(error) is None or time.monotonic() > give_up_at:
                    raise
            await asyncio.sleep(0.02)

    @contextlib.asynccontextmanager
    async def _acquire_unlimited(self) -> "AsyncGenerator[asyncpg.Connection[Any]]":
        """Take a connection without the limits on waiting and idling, for a change of the schema."""
        if self._unlimited is not None:
            yield self._unlimited
            return
        async with self._acquire(self._pool) as connection:
            await connection.execute(UNLIMITED)
            try:
                yield connection
            except BaseException:
                _terminate(connection)
                raise
            await connection.execute(self._limits.sql())

    def _notify_sql(self, news: Sequence[News]) -> str:
        return "".join(f"SELECT pg_notify('{_CHANNEL}', '{self._name} {text}');" for text in encode(news))

    def _on_notification(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        sender, _, text = str(payload).partition(" ")
        if sender == self._name:  # our own news was delivered when it was committed
            self._has_heard.set()
        else:
            self._deliver(decode(text))

    async def _keep_ending_stuck(self) -> None:
        """End the connections of stopped nodes that the server does not end by itself."""
        has_failed = False
        while True:
            await asyncio.sleep(self._limits.idle)
            try:
                async with self._acquire(self._unsynced) as connection:
                    ended = await connection.fetch(self._limits.end_stuck)
            except StoreUnavailable as error:
                if not has_failed:  # once per outage: the other users of the database log it too
                    log.warning("cannot look for connections of stopped nodes: %s", error.message)
                has_failed = True
            else:
                has_failed = False
                if ended:
                    log.warning("connections of stopped nodes ended", extra={"count": len(ended)})

    async def _keep_listening(self) -> None:
        """Keep one connection listening; after a lost one, open another and have every subscriber look again."""
        is_away = False
        while True:
            try:
                connection = await self._connect(command_timeout=self._limits.answer)
                try:
                    lost = asyncio.Event()
                    connection.add_termination_listener(lambda _, lost=lost: lost.set())
                    await connection.add_listener(_CHANNEL, self._on_notification)
                    self._is_listening.set()
                    self._deliver([LookAgain()])
                    is_away = False
                    await lost.wait()
                finally:
                    connection.terminate()  # without waiting: the store may be closing
                log.info("listening connection lost")
            except (*LOST, asyncpg.PostgresError) as error:
                if not is_away:  # twice a second would be too much
                    log.warning("cannot listen to the database", extra={"problem": f"{type(error).__name__}: {error}"})
                is_away = True
            await asyncio.sleep(_LISTEN_AGAIN_SECONDS)


def _is_news(record: logging.LogRecord) -> bool:
    """Filter out the pool's failed reconnects with their tracebacks: the next user of the pool logs the reason."""
    return not str(record.msg).startswith("Failed to restore")


@contextlib.asynccontextmanager
async def _snapshot(connection: "asyncpg.Connection[Any]") -> AsyncGenerator[None]:
    """Read everything in the block as it was at one moment."""
    await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        yield
    except BaseException as error:
        await _roll_back(connection, error)
        raise
    await connection.execute("COMMIT")


async def _roll_back(connection: "asyncpg.Connection[Any]", error: BaseException) -> None:
    if _hangs_up(error):  # the connection is closed
        return
    with contextlib.suppress(*LOST):  # then there is nothing to roll back, and the first error says more
        await connection.execute("ROLLBACK", timeout=_ROLLBACK_SECONDS)


def _terminate(connection: "asyncpg.Connection[Any]") -> None:
    with contextlib.suppress(asyncpg.InterfaceError):  # the pool has noticed already that it is lost
        connection.terminate()


def _hangs_up(error: BaseException) -> bool:
    return isinstance(error, _HANGS_UP) or isinstance(error.__cause__, _HANGS_UP)


async def _race(write: Callable[[], Awaitable[T]]) -> T:
    """Run work again that lost a race."""
    for attempt in range(1, _TRIES):
        with contextlib.suppress(*_RACES):
            return await write()
        await asyncio.sleep(0.002 * attempt)
    try:
        return await write()
    except _RACES as error:
        raise BrokenReference(str(error)) from error


async def _reconnecting(act: Callable[[], Awaitable[T]], *, is_repeatable: bool) -> T:
    """Retry on another connection when one is lost, unless the change may have been made and must not be repeated."""
    for seconds in _RECONNECT_AFTER:
        try:
            return await act()
        except ConnectionLost as error:
            if error.is_in_doubt and not is_repeatable:
                raise
        await asyncio.sleep(seconds)
    return await act()


class PostgresStatements:
    dialect = "postgres"

    def __init__(self, connection: "asyncpg.Connection[Any]", seconds: float | None = None) -> None:
        self.connection = connection
        self._seconds = seconds  # timeout of each; None: the connection's own
        self._queries = queries.for_postgres()
        self.news: list[News] = []

    async def fetch(self, name: str, params: Params) -> Sequence[Row]:
        query = self._queries[name]
        return await self.connection.fetch(query.sql, *query.in_order(params), timeout=self._seconds)

    async def fetch_many(self, name: str, params: Sequence[Params]) -> Sequence[Row]:
        query = self._queries[name]
        return await self.fetch_rows(name, [query.in_order(each) for each in params])

    async def write_each(self, name: str, rows: Sequence[Values]) -> set[str]:
        return {row["id"] for row in await self.fetch_rows(name, rows)}

    async def fetch_rows(self, name: str, rows: Sequence[Values]) -> Sequence[Row]:
        if not rows:
            return []
        query = self._queries[name]
        # A missing key is NULL for the server, and half of the columns are.
        objects = [
            {name: value for name, value in zip(query.names, row, strict=True) if value is not None} for row in rows
        ]
        return await self.connection.fetch(query.sql, orjson.dumps(objects).decode(), timeout=self._seconds)


class PostgresSide:
    def __init__(self, connection: "asyncpg.Connection[Any]") -> None:
        self.connection = connection

    async def fetch(self, name: str, params: Params) -> Sequence[Row]:
        with errors_named():
            return await PostgresStatements(self.connection).fetch(name, params)

    async def close(self) -> None:
        await self.connection.close(timeout=2)
