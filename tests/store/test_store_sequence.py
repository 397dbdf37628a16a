"""The embedded store knows in a second place how far it has come, so a cut or missing journal shows."""

import asyncio
import os
import shutil

import orjson
import pytest

from harness import NOON, eventually
from wakeful.app.building import build
from wakeful.app.http import welcome
from wakeful.config.settings import Settings
from wakeful.core import ids
from wakeful.core.types import User
from wakeful.store.drivers import sqlite_thread


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(sqlite_thread, "SOON", 0.0)


@pytest.fixture
def settings(tmp_path):
    return Settings.model_validate({"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"})


def number_in(settings: Settings) -> int:
    file = settings.data_dir / sqlite_thread.SEQUENCE_FILE
    return orjson.loads(file.read_bytes())["number"] if file.exists() else 0


async def add_user(node) -> None:
    """Change something, and wait until it is noted."""
    before = number_in(node.settings)

    async def is_noted() -> bool:
        return number_in(node.settings) > before

    user = User(id=ids.new_id(), name="Grace", role="user", created_at=NOON)
    await node.store.write(lambda tx: tx.agents.add_user(user))
    await eventually(is_noted, 5)


async def fill(settings: Settings, into=None) -> Settings:
    """Work with a store, twice, so that most of it is in its file, and copy it in the middle of the work."""
    for number in range(2):
        node = build(settings)
        async with node.opened():
            await welcome(node)
            await add_user(node)
            if number and into is not None:
                for _ in range(20):
                    await add_user(node)
                await asyncio.sleep(0.5)  # until what came last is noted too
                shutil.copytree(settings.data_dir, into)
    return settings if into is None else settings.model_copy(update={"data_dir": into})


async def notices_of(settings: Settings) -> list[str]:
    node = build(settings)
    async with node.opened():
        await welcome(node)
        [owner] = [user for user in await node.store.read(lambda tx: tx.accounts.users()) if user.role == "owner"]
        found = await node.services.notices.of_user(owner.id)
    return [notice.body for notice in found if notice.code == "store_behind"]


CUTS = {
    "missing": lambda file: file.unlink(),
    "empty": lambda file: os.truncate(file, 0),
    "half": lambda file: os.truncate(file, file.stat().st_size // 2),
    "without its last commit": lambda file: os.truncate(file, file.stat().st_size - 100),
}


@pytest.mark.parametrize("cut", CUTS)
async def test_a_journal_that_was_cut_is_told_to_the_owner_once(settings, tmp_path, cut, caplog):
    crashed = await fill(settings, tmp_path / "crashed")
    CUTS[cut](crashed.data_dir / "wakeful.sqlite-wal")
    [body] = await notices_of(crashed)
    assert "wakeful.sqlite-wal" in body
    assert "between" in body
    assert "the store is older than it was" in caplog.text
    caplog.clear()
    assert await notices_of(crashed) == [body]
    assert "the store is older than it was" not in caplog.text


async def test_an_older_copy_in_its_place_is_told(settings, tmp_path):
    await fill(settings)
    shutil.copy(settings.data_dir / "wakeful.sqlite", tmp_path / "older")
    await fill(settings)
    shutil.copy(tmp_path / "older", settings.data_dir / "wakeful.sqlite")
    assert len(await notices_of(settings)) == 1


async def test_a_crash_or_a_graceful_stop_is_not_complained_about(settings, tmp_path):
    crashed = await fill(settings, tmp_path / "crashed")
    assert await notices_of(settings) == []
    assert await notices_of(crashed) == []


@pytest.mark.parametrize("content", [None, b"", b"{}", b'{"number": "x"', b"\x00\xff not JSON"])
async def test_a_file_that_is_missing_or_damaged_is_made_again(settings, content, caplog):
    await fill(settings)
    file = settings.data_dir / sqlite_thread.SEQUENCE_FILE
    before = number_in(settings)
    file.unlink() if content is None else file.write_bytes(content)
    assert await notices_of(settings) == []
    assert "is missing or damaged" in caplog.text
    assert number_in(settings) > before


async def test_a_file_that_lags_behind_is_no_loss(settings):
    """It is not synced, so a power cut may take the last numbers back."""
    await fill(settings)
    file = settings.data_dir / sqlite_thread.SEQUENCE_FILE
    before = file.read_bytes()
    await fill(settings)
    file.write_bytes(before)
    assert await notices_of(settings) == []


async def test_nothing_is_written_while_nothing_changes(settings):
    node = build(settings)
    async with node.opened():
        await welcome(node)
        await add_user(node)
        await asyncio.sleep(0.5)  # until everything is noted
        before = (settings.data_dir / "wakeful.sqlite-wal").read_bytes()
        for _ in range(5):
            await node.store.write(lambda tx: tx.accounts.hold_owners())
        assert (settings.data_dir / "wakeful.sqlite-wal").read_bytes() == before


async def test_an_unwritable_file_stops_nothing(settings, caplog):
    node = build(settings)
    (settings.data_dir / sqlite_thread.SEQUENCE_FILE).mkdir(parents=True)
    async with node.opened():
        await welcome(node)
    assert "was not noted" in caplog.text
    shutil.rmtree(settings.data_dir / sqlite_thread.SEQUENCE_FILE)
    assert await notices_of(settings) == []
