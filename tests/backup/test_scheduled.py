"""Scheduled backups: when, by which node, how many are kept, and what happens when one fails."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from backup_place import IDENTITY, restore
from harness import Harness
from wakeful.backup.service import find_old, is_due
from wakeful.config.recipients import parse_every
from wakeful.config.settings import Settings
from wakeful.core.identity import Identity
from wakeful.core.records import BackupState

pytestmark = pytest.mark.both_stores

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder


@pytest.fixture
async def node(backend_settings, folder):
    async with Harness(backend_settings | planned(folder)).opened() as harness:
        yield harness


def planned(folder):
    return {"backup_dir": folder, "backup_recipients": [IDENTITY.recipient], "backup_every": "6h", "backup_keep": 2}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


async def state_of(node):
    return await node.node.services.scheduled_backups.state()


async def notices_of(node):
    found = await node.node.store.read(lambda tx: tx.notices.of_user(node.user.id))
    return [notice for notice in found if notice.code == "backup_failed"]


async def test_a_backup_is_made_when_due_and_the_newest_are_kept(node, folder, backend_settings, tmp_path, request):
    (folder / "wakeful-of-mine.age").touch()
    look = node.node.services.scheduled_backups.look
    for _ in range(3):
        await look()
        await look()  # not due again
        node.clock.advance(timedelta(hours=6))
    assert len(names(folder)) == 3
    assert "wakeful-of-mine.age" in names(folder)
    state = await state_of(node)
    assert (state.file, state.is_failing, state.is_running) == (names(folder)[-2], False, False)
    assert state.size == (folder / state.file).stat().st_size
    if "database_url" not in backend_settings:
        settings = Settings.model_validate(backend_settings | {"data_dir": tmp_path / "elsewhere"})
        result = await asyncio.to_thread(restore, settings, folder / state.file)
        assert result.plan.head.store == "embedded"


async def test_a_failure_is_told_once_a_day_and_tried_again(node, folder):
    look, metrics = node.node.services.scheduled_backups.look, node.node.services.metrics
    folder.rmdir()
    await look()
    state = await state_of(node)
    assert state.is_failing
    assert "does not exist" in state.error
    node.clock.advance(9 * MINUTE)
    await look()
    assert (await state_of(node)).failed_at == state.failed_at
    node.clock.advance(2 * MINUTE)
    await look()
    assert (await state_of(node)).failed_at > state.failed_at
    [notice] = await notices_of(node)
    assert "backup_dir" in notice.body
    owner = Identity(user=node.user, scope="read", token_id="t")
    text = (await metrics.text(owner, is_ready=True, is_draining=False)).decode()
    assert "wakeful_backup_failing 1.0" in text
    assert 'wakeful_backups_total{outcome="failed"} 2.0' in text
    folder.mkdir()
    node.clock.advance(11 * MINUTE)
    await look()
    assert not (await state_of(node)).is_failing
    assert len(names(folder)) == 1
    assert "wakeful_backup_failing 0.0" in (await metrics.text(owner, is_ready=True, is_draining=False)).decode()


async def test_of_two_nodes_one_makes_it(swept_postgres_url, tmp_path, folder):
    settings = {"config_dir": tmp_path / "config", "database_url": swept_postgres_url, "data_dir": tmp_path / "a"}
    harness = Harness(settings | planned(folder))
    other = harness.another_node(data_dir=tmp_path / "b", node_name="b")
    async with harness.node.opened(), other.opened():
        await asyncio.gather(*[each.services.scheduled_backups.look() for each in (harness.node, other)])
    assert len(names(folder)) == 1


async def test_a_server_that_stops_meanwhile_leaves_no_file(node, folder):
    making = asyncio.create_task(node.node.services.scheduled_backups.look())
    while not names(folder):
        await asyncio.sleep(0)
        if making.done():
            break
    making.cancel()
    await asyncio.wait([making])
    assert [name for name in names(folder) if name.endswith(".partial")] == []


@pytest.mark.parametrize(
    ("state", "now", "due"),
    [
        pytest.param(BackupState(), NOON, True, id="never"),
        pytest.param(BackupState(started_at=NOON, finished_at=NOON), NOON + DAY - MINUTE, False, id="done"),
        pytest.param(BackupState(started_at=NOON, finished_at=NOON), NOON + DAY, True, id="a day later"),
        pytest.param(BackupState(started_at=NOON, finished_at=NOON), NOON - DAY, True, id="the clock was set back"),
        pytest.param(BackupState(started_at=NOON, failed_at=NOON), NOON + 9 * MINUTE, False, id="failed"),
        pytest.param(BackupState(started_at=NOON, failed_at=NOON), NOON + 10 * MINUTE, True, id="tried again"),
        pytest.param(
            BackupState(started_at=NOON, renewed_at=NOON + DAY),
            NOON + DAY + MINUTE,
            False,
            id="it takes more than a day",
        ),
        pytest.param(BackupState(started_at=NOON, renewed_at=NOON), NOON + 5 * MINUTE, True, id="its node is dead"),
    ],
)
def test_it_is_due(state, now, due):
    assert is_due(state, DAY, now) is due


def test_only_backups_of_the_schedule_are_old():
    mine = [f"wakeful-2026-01-0{day}T030000Z.age" for day in range(1, 5)]
    assert find_old([*reversed(mine), "wakeful-mine.age", "a"], 3) == mine[:1]
    assert find_old(mine, 7) == []


@pytest.mark.parametrize("text", ["", "1", "14m", "91d", "1w", "-1d", "1 d"])
def test_other_intervals_are_refused(text):
    with pytest.raises(ValueError, match="not an interval"):
        parse_every(text)


def test_without_recipients_the_settings_are_refused(tmp_path):
    with pytest.raises(ValidationError, match="wakeful backup key"):
        Settings(data_dir=tmp_path / "data", backup_dir=tmp_path)
    with pytest.raises(ValidationError, match="age recipient"):
        Settings(data_dir=tmp_path / "data", backup_recipients=["ssh-ed25519 AAAA"])
