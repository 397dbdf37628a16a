"""A store on PostgreSQL is backed up before its schema is migrated, or is not migrated."""

import asyncio

import pytest

from upgrade.moved_data import rows_in_postgres
from upgrade.old_data import copy_old_data
from wakeful.app.building import build
from wakeful.backup.restore_plan import RestoreOptions
from wakeful.backup.restoring import restore_backup
from wakeful.backup.service import MigrationNotBackedUp
from wakeful.config.settings import Settings


@pytest.fixture
def old(tmp_path, postgres_url):
    (tmp_path / "old").mkdir()
    return copy_old_data("postgres", tmp_path / "old", postgres_url)


def open_node(settings, **options):
    async def work():
        async with build(Settings.model_validate(settings), **options).opened():
            pass

    asyncio.run(work())


def test_the_copy_needs_only_the_device_key_and_has_what_was_there(old, swept_postgres_url, tmp_path):
    before = rows_in_postgres(old.settings["database_url"])
    open_node(old.settings)
    [copy] = (tmp_path / "old" / "data" / "backups").iterdir()
    assert copy.name.startswith("wakeful-before-migration-schema")
    empty = Settings.model_validate(old.settings | {"database_url": swept_postgres_url, "data_dir": tmp_path / "new"})
    result = restore_backup(empty, copy, RestoreOptions(find_keys=lambda _: []))
    assert result.plan.head.store == "postgres"
    after = rows_in_postgres(swept_postgres_url)
    assert [row[-1] for row in after["messages"]] == [row[-1] for row in before["messages"]]
    assert len(after["wakes"]) == len(before["wakes"])
    open_node(old.settings)  # nothing to migrate any more
    assert len(list(copy.parent.iterdir())) == 1


def test_without_room_for_it_nothing_is_migrated_unless_that_is_wanted(old, tmp_path):
    before = rows_in_postgres(old.settings["database_url"])
    (tmp_path / "old" / "data" / "backups").write_text("in the way")
    with pytest.raises(MigrationNotBackedUp, match=r"Nothing was migrated.*--no-backup"):
        open_node(old.settings)
    assert rows_in_postgres(old.settings["database_url"]) == before
    open_node(old.settings, is_backed_up=False)
    assert "scheduled_backups" in rows_in_postgres(old.settings["database_url"])
