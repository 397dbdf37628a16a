"""Two nodes on one PostgreSQL with separate disks and the same device key."""

import asyncpg
import pytest

from harness import Harness


@pytest.fixture
async def harness(tmp_path, swept_postgres_url):
    """A world whose own node is here."""
    settings = {"data_dir": tmp_path / "here", "config_dir": tmp_path / "config", "database_url": swept_postgres_url}
    async with Harness(settings).opened() as harness:
        yield harness


@pytest.fixture
async def there(harness, tmp_path):
    """A node on another disk."""
    node = harness.another_node(data_dir=tmp_path / "there")
    async with node.opened():
        yield node


@pytest.fixture
async def postgres(swept_postgres_url):
    connection = await asyncpg.connect(swept_postgres_url)
    yield connection
    await connection.close()
