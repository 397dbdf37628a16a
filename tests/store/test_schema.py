"""The schema of a store of 0.2.0 after an upgrade, and what keeps 0.3 from migrating it."""

from contextlib import asynccontextmanager
from dataclasses import replace

import asyncpg
import pytest

from upgrade.old_data import change, copy_old_data
from wakeful.config.settings import Settings
from wakeful.datadir.device_key import database_of
from wakeful.store.errors import FilesNotInHomes, OlderNodesRunning, StoreIsOlder
from wakeful.store.store import Store

pytestmark = pytest.mark.upgrade

IN_SQLITE = {
    "columns": 'SELECT m.name, c.name, c.type, c."notnull", c.dflt_value, c.pk, c.hidden '
    "FROM sqlite_schema m, pragma_table_xinfo(m.name) c WHERE m.type = 'table'",
    "references": 'SELECT m.name, f."table", f."from", f."to", f.on_update, f.on_delete '
    "FROM sqlite_schema m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table'",
    "indexes": 'SELECT m.name, i."unique", i.origin, (SELECT group_concat(name) FROM pragma_index_info(i.name)) '
    "FROM sqlite_schema m, pragma_index_list(m.name) i WHERE m.type = 'table'",
    "others": "SELECT type, name, sql FROM sqlite_schema WHERE type <> 'table' AND sql IS NOT NULL",
}
IN_POSTGRES = {
    "columns": "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, "
    "a.attstorage, pg_get_expr(d.adbin, d.adrelid) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
    "LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum "
    "WHERE c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped AND c.relnamespace = 'public'::regnamespace",
    "options": "SELECT relname, relkind, reloptions FROM pg_class WHERE relnamespace = 'public'::regnamespace",
    "constraints": "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint "
    "WHERE connamespace = 'public'::regnamespace",
    "indexes": "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "views": "SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'",
}


@pytest.fixture
def on_postgres(tmp_path, postgres_url):
    return copy_old_data("postgres", tmp_path, postgres_url)


@asynccontextmanager
async def opened(old):
    settings = Settings.model_validate(old.settings)
    store = Store(database_of(settings))
    await store.open(old.stopped_at)
    try:
        yield store
    finally:
        await store.close()


async def ask(old, sql):
    """Return rows of a store, each as a tuple of texts without line breaks."""
    settings = Settings.model_validate(old.settings)
    if settings.database_url is None:
        connection = database_of(settings).connect()
        rows = connection.execute(sql).fetchall()
        connection.close()
    else:
        connection = await asyncpg.connect(settings.database_url.get_secret_value())
        rows = await connection.fetch(sql)
        await connection.close()
    return [tuple(" ".join(str(value).split()) for value in row) for row in rows]


async def schema_of(old):
    queries = IN_POSTGRES if "database_url" in old.settings else IN_SQLITE
    return {name: sorted(await ask(old, sql)) for name, sql in queries.items()}


async def numbers(old):
    return [int(number) for (number,) in await ask(old, "SELECT number FROM migrations ORDER BY number")]


async def test_the_baseline_makes_the_same_schema_as_an_upgrade_from_0_2_0(old, tmp_path):
    url = old.settings.get("database_url")
    assert (await numbers(old))[-1] == (37 if url is None else 38)
    async with opened(old):
        pass
    upgraded = await schema_of(old)
    if url is not None:
        await change(old, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    new = replace(old, settings=old.settings | {"data_dir": tmp_path / "new"})
    async with opened(new):
        pass
    assert (await numbers(new))[0] == 38
    found = await schema_of(new)
    for name, rows in upgraded.items():
        assert found[name] == rows, name


async def test_a_store_from_before_0_2_is_refused_and_not_changed(old):
    await change(old, "DELETE FROM migrations WHERE number > 30")
    with pytest.raises(StoreIsOlder, match=r"Start 0\.2 once, then 0\.3"):
        async with opened(old):
            pass
    assert (await numbers(old))[-1] == 30


async def test_a_queued_run_waits_for_no_directory_any_more(old):
    await change(old, "UPDATE runs SET status = 'queued', reason = 'memory_elsewhere'")
    async with opened(old):
        pass
    assert set(await ask(old, "SELECT status, reason FROM runs")) == {("queued", "None")}


async def test_an_agent_whose_files_are_in_a_data_directory_alone_keeps_0_3_from_starting(on_postgres):
    await change(
        on_postgres,
        "INSERT INTO directories (id, place, seen_at) VALUES ('d', 'oak:/srv/wakeful', 0);"
        "INSERT INTO agents (id, user_id, name, self_scheduling, bounds, run_limit_seconds, created_at, updated_at) "
        "SELECT 'a', id, 'Gardener', 1, '{}', 60, 0, 0 FROM users LIMIT 1;"
        "INSERT INTO agent_directories VALUES ('a', 'd')",
    )
    before = await numbers(on_postgres)
    with pytest.raises(FilesNotInHomes, match=r"agent 'a' in 'oak:/srv/wakeful'.*Start 0\.2"):
        async with opened(on_postgres):
            pass
    assert await numbers(on_postgres) == before
    await change(on_postgres, "INSERT INTO homes (agent_id, fence, seq) VALUES ('a', 1, 1)")  # as 0.2 does
    async with opened(on_postgres):
        pass
    assert await ask(on_postgres, "SELECT to_regclass('agent_directories')") == [("None",)]


async def test_a_running_node_of_0_2_keeps_0_3_from_migrating(on_postgres):
    await change(
        on_postgres,
        "INSERT INTO directories (id, place, seen_at) VALUES ('d', 'oak:/srv/wakeful', 0);"
        "INSERT INTO nodes (owner, directory_id, key_fingerprint, name, version, seen_at) SELECT 'o', 'd', 'k', 'oak', "
        "'0.2.0', CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
    )
    before = await numbers(on_postgres)
    with pytest.raises(OlderNodesRunning, match=r"oak.*Stop all nodes"):
        async with opened(on_postgres):
            pass
    assert await numbers(on_postgres) == before
    await change(on_postgres, "UPDATE nodes SET seen_at = seen_at - 31000000 WHERE owner = 'o'")
    async with opened(on_postgres):
        pass
