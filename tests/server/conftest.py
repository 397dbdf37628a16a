"""Fixtures of most tests here; a file with another server defines its own."""

import pytest

from asgi_client import CHOSEN, opened_doors
from harness import Harness
from live_server import running_server


@pytest.fixture
def settings(tmp_path):
    """A server on SQLite, for tests that do not depend on the store."""
    return {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "store_encryption": False}


@pytest.fixture
async def server(backend_settings):
    async with running_server(backend_settings) as server:
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
    harness = Harness({"data_dir": tmp_path, "config_dir": tmp_path, "store_encryption": False, "token": CHOSEN})
    async with opened_doors(harness) as doors:
        yield doors
