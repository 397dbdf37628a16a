"""A start on a data directory that has been used: with its store and its key, or not at all."""

import asyncio
import os
import shutil
import stat
from pathlib import Path

import asyncpg
import pytest

from wakeful.app.building import build
from wakeful.app.http import welcome
from wakeful.config.settings import Settings
from wakeful.core.device_key import fingerprint, load_device_key
from wakeful.database.files import By
from wakeful.datadir import set_aside as setting_aside
from wakeful.datadir.device_key import rotate_device_key, show_recovery_key
from wakeful.datadir.lost_data import DeviceKeyMissing, StoreLeftBehind, StoreMissing
from wakeful.datadir.set_aside import CannotSetAside, StoreHasContent, find_earlier, set_aside
from wakeful.homes import directories
from wakeful.store.drivers.sqlite import SqliteDatabase
from wakeful.store.errors import StoreInUse

pytestmark = pytest.mark.both_stores

COLUMNS = [{"name": "title", "type": "text"}]


async def start(settings: Settings) -> str | None:
    """Start as far as a server does before it listens, and return the recovery key that it shows."""
    node = build(settings)
    async with node.opened():
        await welcome(node)
        await asyncio.to_thread(node.note_started)
    return node.recovery_key


async def work(settings: Settings) -> None:
    """Give the first agent a database."""
    node = build(settings)
    async with node.opened():
        await welcome(node)
        [agent] = await node.agents.of_user((await node.store.read(lambda tx: tx.accounts.users()))[0].id)
        await node.services.data.run(By(agent=agent), "create_table", name="tasks", purpose="x", columns=COLUMNS)


@pytest.fixture
def settings(backend_settings):
    return Settings.model_validate(backend_settings)


@pytest.fixture
def embedded(tmp_path):
    return Settings.model_validate({"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"})


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name not in ("wakeful.lock", "wakeful.sqlite-shm")
    }


# ── The store ───────────────────────────────────────────────────────────────────────────────────────────────────────

CUTS = {
    "missing": lambda file: file.unlink(),
    "0 bytes": lambda file: os.truncate(file, 0),
}


@pytest.mark.parametrize("cut", CUTS)
async def test_a_store_that_is_gone_after_a_successful_start_is_missed(embedded, cut):
    await start(embedded)
    CUTS[cut](embedded.data_dir / "wakeful.sqlite")
    before = contents(embedded.data_dir)
    with pytest.raises(StoreMissing, match=rf"wakeful\.sqlite' is .*{cut}.*ran here first on.*serve --new") as refused:
        await start(embedded)
    assert str(embedded.data_dir) in refused.value.message
    assert contents(embedded.data_dir) == before


@pytest.mark.parametrize("cut", CUTS)
async def test_a_journal_beside_no_store_is_kept(embedded, cut, tmp_path):
    node = build(embedded)
    async with node.opened():
        await welcome(node)
        shutil.copytree(embedded.data_dir, tmp_path / "crashed")
    crashed = embedded.model_copy(update={"data_dir": tmp_path / "crashed"})
    (crashed.data_dir / "directory.json").unlink()
    CUTS[cut](crashed.data_dir / "wakeful.sqlite")
    before = contents(crashed.data_dir)
    with pytest.raises(StoreMissing, match=r"journal wakeful\.sqlite-wal"):
        await start(crashed)
    assert contents(crashed.data_dir) == before


async def test_a_store_whose_content_was_all_in_the_journal_is_missed(embedded):
    await start(embedded)
    store = embedded.data_dir / "wakeful.sqlite"
    store.unlink()
    SqliteDatabase(store, load_device_key(embedded.config_dir)).connect().close()  # its first page and no tables
    before = contents(embedded.data_dir)
    with pytest.raises(StoreMissing, match="without content"):
        await start(embedded)
    after = contents(embedded.data_dir)
    assert {name: after[name] for name in before} == before


async def test_agents_files_are_enough_to_miss_the_store(embedded):
    """Data of 0.1 has no mark."""
    await work(embedded)
    (embedded.data_dir / "directory.json").unlink()
    await lose_store(embedded)
    with pytest.raises(StoreMissing, match="files of 1 agent in agents/"):
        await start(embedded)


async def lose_store(settings: Settings) -> None:
    if settings.database_url is None:
        for file in settings.data_dir.glob("wakeful.sqlite*"):
            file.unlink()
        return
    connection = await asyncpg.connect(settings.database_url.get_secret_value())
    await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    await connection.close()


async def test_a_successful_start_is_enough_to_miss_the_store(settings):
    await start(settings)
    await lose_store(settings)
    with pytest.raises(StoreMissing, match="ran here first on"):
        await start(settings)


async def test_a_first_start_that_was_cut_off_goes_on(settings):
    build(settings)  # the key alone
    await start(settings)
    await lose_store(settings)
    (settings.data_dir / "directory.json").unlink()
    node = build(settings)
    async with node.opened():  # the schema, and no owner yet
        pass
    (settings.data_dir / "wakeful.sqlite").touch()
    await start(settings)


async def test_a_store_that_was_on_postgresql_is_named(tmp_path, postgres_url):
    places = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"}
    await start(Settings.model_validate(places | {"database_url": postgres_url}))
    with pytest.raises(StoreMissing, match=r"The store was on PostgreSQL: set WAKEFUL_DATABASE_URL"):
        await start(Settings.model_validate(places))


# ── The device key ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_no_device_key_is_made_beside_data(settings):
    await work(settings)
    await start(settings)
    key = settings.config_dir / "device.key"
    written, known = show_recovery_key(settings), fingerprint(load_device_key(settings.config_dir))
    kept = key.read_bytes()
    key.unlink()
    with pytest.raises(DeviceKeyMissing, match=rf"{known}.*device\.key.*wakeful key restore") as refused:
        await start(settings)
    assert str(settings.config_dir) in refused.value.message
    assert list(settings.config_dir.glob("*device.key*")) == []
    assert written not in refused.value.message
    key.write_bytes(kept)
    await start(settings)


async def test_a_store_alone_is_enough_to_miss_the_device_key(embedded):
    async with build(embedded).opened():
        pass
    (embedded.config_dir / "device.key").unlink()
    with pytest.raises(DeviceKeyMissing, match=r"the store wakeful\.sqlite"):
        build(embedded)


async def test_a_device_key_that_a_person_gave_up_is_made_anew_on_postgresql(tmp_path, postgres_url):
    settings = Settings.model_validate(
        {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "database_url": postgres_url}
    )
    await work(settings)
    await start(settings)
    (settings.config_dir / "device.key").unlink()
    with pytest.raises(DeviceKeyMissing, match=r'set "device_key" to null'):
        build(settings)
    file = settings.data_dir / "directory.json"
    found = directories.find_directory(settings.data_dir)
    assert found is not None
    file.write_text(f'{{"id": "{found.id}", "device_key": null, "started_at": "{found.started_at}"}}')
    assert await start(settings) is not None


async def test_the_fingerprint_follows_a_rotation(embedded):
    await start(embedded)
    await asyncio.to_thread(rotate_device_key, embedded)
    await start(embedded)
    found = directories.find_directory(embedded.data_dir)
    assert found is not None
    assert found.key_fingerprint == fingerprint(load_device_key(embedded.config_dir))
    assert found.started_at is not None


async def test_the_key_of_a_lost_store_is_not_rotated(embedded, tmp_path):
    """It would open what is put back later no more, and the journal would be gone."""
    node = build(embedded)
    async with node.opened():
        await welcome(node)
        shutil.copytree(embedded.data_dir, tmp_path / "crashed")
    crashed = embedded.model_copy(update={"data_dir": tmp_path / "crashed"})
    os.truncate(crashed.data_dir / "wakeful.sqlite", 0)
    before = contents(crashed.data_dir) | contents(crashed.config_dir)
    with pytest.raises(StoreMissing, match="journal"):
        await asyncio.to_thread(rotate_device_key, crashed)
    assert contents(crashed.data_dir) | contents(crashed.config_dir) == before


def test_a_key_file_is_whole_or_not_there(tmp_path, monkeypatch):
    """A start that is killed while it writes the key leaves none."""

    def die(_handle):
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(os, "fsync", die)
        with pytest.raises(KeyboardInterrupt):
            load_device_key(tmp_path)
    assert not (tmp_path / "device.key").exists()
    assert len(load_device_key(tmp_path)) == 32


# ── The recovery key ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_recovery_key_is_shown_until_a_start_has_succeeded(settings):
    node = build(settings)
    assert node.recovery_key == show_recovery_key(settings)
    async with build(settings).opened():  # as `wakeful migrate`, or a start that fails after this
        pass
    assert await start(settings) == node.recovery_key
    assert await start(settings) is None


async def test_a_key_from_the_settings_is_never_shown(settings):
    assert await start(settings.model_copy(update={"device_key": Settings(device_key="5e" * 32).device_key})) is None


# ── A new start ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_left_is_moved_aside_and_nothing_is_deleted(settings):
    await work(settings)
    await start(settings)
    (settings.data_dir / "something of mine").write_text("Not Wakeful's.")
    before = contents(settings.data_dir)
    await lose_store(settings)
    earlier = await asyncio.to_thread(find_earlier, settings)
    assert earlier is not None
    # On PostgreSQL agents' files are in it.
    assert ("agents/ (1 entry)" in earlier.describe()) == (settings.database_url is None)
    folder = await asyncio.to_thread(set_aside, settings, earlier)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    moved = contents(folder)
    left = ("wakeful.sqlite", "something", "caches/")
    kept = {name: data for name, data in before.items() if not name.startswith(left)}
    assert moved == kept
    assert (settings.data_dir / "something of mine").exists()
    await start(settings)
    with pytest.raises(StoreHasContent, match="Leave --new out"):
        await asyncio.to_thread(find_earlier, settings)


async def test_an_embedded_store_is_moved_aside_for_postgresql(tmp_path, postgres_url):
    places = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"}
    await start(Settings.model_validate(places))
    shared = Settings.model_validate(places | {"database_url": postgres_url})
    with pytest.raises(StoreLeftBehind, match="serve --new"):
        await start(shared)
    store = (tmp_path / "data" / "wakeful.sqlite").read_bytes()
    earlier = await asyncio.to_thread(find_earlier, shared)
    assert earlier is not None
    folder = await asyncio.to_thread(set_aside, shared, earlier)
    assert (folder / "wakeful.sqlite").read_bytes() == store
    await start(shared)


async def test_a_store_that_can_be_used_is_not_moved_aside(settings):
    await start(settings)
    before = contents(settings.data_dir)
    with pytest.raises(StoreHasContent, match="nothing was changed"):
        await asyncio.to_thread(find_earlier, settings)
    assert contents(settings.data_dir) == before


async def test_a_store_that_no_key_opens_is_moved_aside(embedded):
    await start(embedded)
    (embedded.config_dir / "device.key").unlink()
    earlier = await asyncio.to_thread(find_earlier, embedded)
    assert earlier is not None
    assert "device key" in earlier.why
    await asyncio.to_thread(set_aside, embedded, earlier)
    assert await start(embedded) is not None


async def test_a_directory_in_use_is_not_moved_aside(embedded):
    async with build(embedded).opened():
        with pytest.raises(StoreInUse):
            await asyncio.to_thread(find_earlier, embedded)


async def test_a_damaged_device_key_moves_nothing(embedded):
    await start(embedded)
    (embedded.config_dir / "device.key").write_text("")
    before = contents(embedded.data_dir)
    with pytest.raises(Exception, match="wakeful key restore"):
        await asyncio.to_thread(find_earlier, embedded)
    assert contents(embedded.data_dir) == before


async def test_a_folder_on_another_file_system_is_named_before_anything_is_moved(embedded, monkeypatch):
    await work(embedded)
    await lose_store(embedded)
    agents = embedded.data_dir / "agents"
    monkeypatch.setattr(Path, "is_mount", lambda path: path == agents)  # to mount one needs rights
    with pytest.raises(CannotSetAside, match=r"agents' is on another file system.*Nothing was changed"):
        await asyncio.to_thread(find_earlier, embedded)
    assert list(embedded.data_dir.glob("set-aside-*")) == []


@pytest.mark.parametrize("moved", [1, 5])
async def test_a_move_that_was_cut_off_is_refused_again_and_finished(embedded, monkeypatch, moved):
    await work(embedded)
    await start(embedded)
    os.truncate(embedded.data_dir / "wakeful.sqlite", 0)
    kept = contents(embedded.data_dir / "agents")
    earlier = await asyncio.to_thread(find_earlier, embedded)
    assert earlier is not None
    left = moved

    def die(_folder):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(setting_aside, "sync_folder", die)
        with pytest.raises(KeyboardInterrupt):
            await asyncio.to_thread(set_aside, embedded, earlier)
    with pytest.raises(StoreMissing, match="serve --new"):
        await start(embedded)
    rest = await asyncio.to_thread(find_earlier, embedded)
    assert rest is not None
    await asyncio.to_thread(set_aside, embedded, rest)
    await start(embedded)
    assert [contents(folder) for folder in embedded.data_dir.glob("set-aside-*/agents")] == [kept]
