"""Change of the device key: what the old one encrypted is re-encrypted, and a crash in the middle loses nothing."""

import asyncio

import asyncpg
import pytest

from harness import NOON
from small_disk import fill, small_disk
from wakeful.agentdb.errors import DatabaseLocked
from wakeful.app.building import build
from wakeful.config.settings import Settings
from wakeful.core import device_key as core_device_key
from wakeful.core.errors import Conflict, NotFound, Unavailable, WakefulError
from wakeful.core.types import User
from wakeful.database.files import By
from wakeful.datadir import device_key as datadir_device_key
from wakeful.datadir.device_key import rotate_device_key, show_recovery_key

pytestmark = pytest.mark.both_stores

COLUMNS = [{"name": "title", "type": "text"}]


@pytest.fixture
async def settings(backend_settings):
    """A server that has run: two agents with a database each, of which one has lost its key."""
    settings = Settings.model_validate(backend_settings)
    node = build(settings)
    async with node.opened():
        user = await node.agents.add_user(User(id="ada", name="Ada", role="owner", created_at=NOON))
        for name in ("Kept", "Lost"):
            agent = await node.agents.make(user, name, {"toolsets": ("database",)})
            await node.services.data.run(By(agent=agent), "create_table", name="tasks", purpose="x", columns=COLUMNS)
            await node.services.data.run(By(agent=agent), "insert", table="tasks", rows=[{"title": name}])
            if name == "Lost":
                await lose_key(settings, agent.id)
    return settings


async def lose_key(settings, agent_id):
    if settings.database_url is None:
        (settings.data_dir / "agents" / agent_id / "db.key").write_text("nonsense")
        return
    connection = await asyncpg.connect(settings.database_url.get_secret_value())
    await connection.execute("UPDATE homes SET database_key = 'nonsense' WHERE agent_id = $1", agent_id)
    await connection.close()


async def titles(settings):
    """Start the server, and read what its agents keep."""
    node = build(settings)
    found = {}
    async with node.opened():
        for agent in await node.agents.of_user("ada"):
            try:
                rows = await node.services.data.run(By(agent=agent), "query", sql="SELECT title FROM tasks")
                found[agent.name] = rows["rows"]
            except DatabaseLocked:
                found[agent.name] = "locked"
    return found


async def test_everything_is_carried_over(settings):
    before = show_recovery_key(settings)
    text, locked = await asyncio.to_thread(rotate_device_key, settings)
    assert show_recovery_key(settings) == text != before
    assert len(locked) == 1
    assert await titles(settings) == {"Kept": [["Kept"]], "Lost": "locked"}
    [old] = settings.config_dir.glob("device.key.*.old")
    assert core_device_key.to_recovery_key(bytes.fromhex(old.read_text())) == before


@pytest.mark.parametrize("step", ["change_key", "end_rotation"])
async def test_a_rotation_that_was_cut_off_is_finished(settings, monkeypatch, step):
    place = datadir_device_key if step == "change_key" else core_device_key
    with monkeypatch.context() as broken:

        def die(*_):
            raise KeyboardInterrupt

        broken.setattr(place, step, die)
        if step == "change_key" and settings.database_url is not None:
            broken.setattr(core_device_key, "end_rotation", die)  # on PostgreSQL there is no store to encrypt
        with pytest.raises(KeyboardInterrupt):
            await asyncio.to_thread(rotate_device_key, settings)
    with pytest.raises(Unavailable, match="wakeful key rotate"):
        build(settings)
    text, _ = await asyncio.to_thread(rotate_device_key, settings)
    assert show_recovery_key(settings) == text
    assert await titles(settings) == {"Kept": [["Kept"]], "Lost": "locked"}


async def test_it_is_refused_while_a_server_runs_or_the_key_is_not_ours(settings, backend_settings, tmp_path):
    if settings.database_url is None:
        async with build(settings).opened():
            with pytest.raises(Unavailable, match=r"wakeful\.lock|in use|another"):
                await asyncio.to_thread(rotate_device_key, settings)
    with pytest.raises(Conflict, match="WAKEFUL_DEVICE_KEY"):
        await asyncio.to_thread(rotate_device_key, settings.model_copy(update={"device_key": "00" * 32}))
    with pytest.raises(NotFound, match="no device key"):
        await asyncio.to_thread(rotate_device_key, settings.model_copy(update={"config_dir": tmp_path / "none"}))


def refusal_of(settings):
    """Return the text alone: the error's traceback would keep the store open."""
    try:
        rotate_device_key(settings)
    except WakefulError as error:
        return error.message


@pytest.mark.parametrize("full", ["config", "data"])
async def test_a_full_disk_is_not_taken_for_a_directory_that_cannot_be_written(tmp_path, full):
    with small_disk("20m") as disk:
        folders = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", f"{full}_dir": disk / full}
        settings = Settings.model_validate(folders)
        async with build(settings).opened():
            pass
        fill(disk / "ballast")
        message = await asyncio.to_thread(refusal_of, settings)
        assert "space" in message.rpartition("Free")[2]
        assert "writable" not in message
        (disk / "ballast").unlink()
        assert await asyncio.to_thread(rotate_device_key, settings)
        async with build(settings).opened():
            pass
