"""The id and the device key of a data directory, and stores that were left behind."""

import asyncio
import json
import sqlite3

import asyncpg
import pytest

from harness import Harness
from wakeful.app.building import build
from wakeful.config.settings import Settings
from wakeful.core.device_key import load_device_key, to_recovery_key
from wakeful.core.errors import Conflict, Unavailable
from wakeful.database.files import By
from wakeful.datadir.device_key import restore_device_key, rotate_device_key

pytestmark = pytest.mark.both_stores

COLUMNS = [{"name": "title", "type": "text"}]


@pytest.fixture
async def harness(tmp_path, swept_postgres_url):
    """A world whose node is on PostgreSQL."""
    settings = {"data_dir": tmp_path / "here", "config_dir": tmp_path / "config", "database_url": swept_postgres_url}
    async with Harness(settings).opened() as harness:
        yield harness


async def make_table(node, agent):
    return await node.services.data.run(By(agent=agent), "create_table", name="tasks", purpose="x", columns=COLUMNS)


# ── The id of a directory ───────────────────────────────────────────────────────────────────────────────────────────


async def test_a_data_directory_has_one_id_for_ever(backend_settings):
    found = set()
    for _ in range(2):
        node = build(Settings.model_validate(backend_settings))
        async with node.opened():
            found.add(node.services.directories.id)
    file = backend_settings["data_dir"] / "directory.json"
    assert found == {json.loads(file.read_text())["id"]}
    assert file.stat().st_mode & 0o777 == 0o600


async def test_two_nodes_that_start_at_once_have_one_id(tmp_path, swept_postgres_url):
    settings = {"data_dir": tmp_path, "config_dir": tmp_path / "config", "database_url": swept_postgres_url}
    nodes = [build(Settings.model_validate(settings)) for _ in range(4)]

    async def enter(node):
        async with node.opened():
            return node.services.directories.id

    assert len(set(await asyncio.gather(*map(enter, nodes)))) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agents", "caches", "config", "directory.json"]


async def test_an_id_that_cannot_be_read_is_named(backend_settings):
    backend_settings["data_dir"].mkdir()
    (backend_settings["data_dir"] / "directory.json").write_text("nonsense")
    with pytest.raises(Unavailable, match=r"directory\.json.*Restore it"):
        async with build(Settings.model_validate(backend_settings)).opened():
            pass


# ── Device keys ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def start(settings):
    async with build(settings).opened():
        pass


@pytest.fixture
async def settings(harness):
    """The settings of a node that has a database."""
    await make_table(harness.node, await harness.add_agent(toolsets=("database",)))
    return harness.node.settings


async def test_a_node_with_another_device_key_does_not_start_on_the_same_directory(settings, tmp_path):
    other = settings.model_copy(update={"config_dir": tmp_path / "other-config"})
    with pytest.raises(Unavailable, match=r"device key.*wakeful key restore"):
        await start(other)
    await asyncio.to_thread(restore_device_key, other, to_recovery_key(load_device_key(settings.config_dir)))
    await start(other)
    assert load_device_key(other.config_dir).hex() not in (settings.data_dir / "directory.json").read_text()


async def test_a_lost_file_is_no_way_past_the_comparison(settings, tmp_path):
    file = settings.data_dir / "directory.json"
    file.write_text(json.dumps({"id": json.loads(file.read_text())["id"]}))
    with pytest.raises(Unavailable, match="wakeful key restore"):
        await start(settings.model_copy(update={"config_dir": tmp_path / "other-config"}))
    await start(settings)


async def test_a_rotation_keeps_the_comparison_in_step(settings):
    await asyncio.to_thread(rotate_device_key, settings)
    await start(settings)
    [old] = settings.config_dir.glob("device.key.*.old")
    (settings.config_dir / "device.key").unlink()
    old.rename(settings.config_dir / "device.key")
    with pytest.raises(Unavailable, match="wakeful key restore"):
        await start(settings)


async def test_a_running_node_with_the_old_key_is_noticed(harness, settings):
    await harness.node.services.directories.arrive()
    await asyncio.to_thread(rotate_device_key, settings)
    with pytest.raises(Unavailable, match="running node"):
        async with harness.another_node().opened():
            pass
    await harness.node.services.directories.leave()
    async with harness.another_node().opened():
        pass


async def test_a_lost_key_can_be_given_up_and_put_back(settings, tmp_path):
    right = to_recovery_key(load_device_key(settings.config_dir))
    lost = settings.model_copy(update={"config_dir": tmp_path / "new-config"})
    file = settings.data_dir / "directory.json"
    file.write_text(json.dumps({"id": json.loads(file.read_text())["id"], "device_key": None}))
    await start(lost)
    with pytest.raises(Unavailable, match="wakeful key restore"):
        await start(settings)
    with pytest.raises(Conflict, match="opens none"):
        await asyncio.to_thread(restore_device_key, lost, to_recovery_key(bytes(32)))
    await asyncio.to_thread(restore_device_key, lost, right)
    await start(lost)
    await start(settings)


# ── A store that was left behind ────────────────────────────────────────────────────────────────────────────────────


async def test_an_empty_postgresql_beside_a_full_embedded_store_is_refused(tmp_path, postgres_url):
    embedded = Settings.model_validate({"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"})
    await start(embedded)
    shared = Settings.model_validate(
        {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "database_url": postgres_url}
    )
    with pytest.raises(Unavailable, match=r"wakeful\.sqlite.*WAKEFUL_DATABASE_URL.*serve --new"):
        await start(shared)
    connection = await asyncpg.connect(postgres_url)
    assert await connection.fetchval("SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'") == 0
    await connection.close()
    await start(embedded)
    (tmp_path / "data" / "wakeful.sqlite").rename(tmp_path / "old.sqlite")
    await start(shared)


async def test_a_postgresql_with_agents_in_it_starts_beside_any_store(harness, tmp_path):
    sqlite3.connect(tmp_path / "here" / "wakeful.sqlite").execute("CREATE TABLE t (x)").connection.close()
    async with harness.another_node().opened():
        pass


async def test_tables_without_agents_are_as_empty_as_none(tmp_path, swept_postgres_url):
    settings = {"data_dir": tmp_path, "config_dir": tmp_path / "config", "database_url": swept_postgres_url}
    await start(Settings.model_validate(settings))
    (tmp_path / "wakeful.sqlite").write_bytes(b"content")
    with pytest.raises(Unavailable, match="is empty"):
        await start(Settings.model_validate(settings))
