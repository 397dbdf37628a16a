"""Fixtures of most tests here; a file with another server defines its own."""

import pytest

from asgi_client import CHOSEN, opened_doors
from harness import Harness, lay_out
from live_server import running_server


@pytest.fixture
def settings(tmp_path):
    """A server on SQLite, for tests that do not depend on the store."""
    return {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "store_encryption": False}


@pytest.fixture(scope="module")
async def shared_server(shared_settings):
    """One server for all tests of a file."""
    async with running_server(shared_settings) as server:
        yield server


@pytest.fixture(scope="module")
async def sqlite_server(tmp_path_factory):
    """The same for tests that do not depend on the store."""
    folder = tmp_path_factory.mktemp("shared")
    settings = {"data_dir": folder / "data", "config_dir": folder / "config", "store_encryption": False}
    async with running_server(settings) as server:
        yield server


@pytest.fixture
async def server(shared_server):
    """A server on each backend, with an owner and a first agent; other tests of the file share it as other owners."""
    async with shared_server.as_new_owner() as server:
        yield server


@pytest.fixture
async def session(server):
    return await server.session()


@pytest.fixture
async def client(server, session):
    async with server.watch(session) as client:
        yield client


@pytest.fixture
async def doors(tmp_path):
    """The gate and the accounts alone, with a manual clock."""
    settings = {"data_dir": tmp_path, "config_dir": tmp_path, "store_encryption": False, "token": CHOSEN}
    await lay_out(settings)
    async with opened_doors(Harness(settings)) as doors:
        yield doors
