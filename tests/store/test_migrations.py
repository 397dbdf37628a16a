"""The schema goes forward step by step, and never further than this version knows."""

import asyncio
import json
import stat
from hashlib import sha256

import pytest

from harness import NOON
from wakeful.config.settings import Settings
from wakeful.core import ids
from wakeful.core.errors import StoreUnavailable
from wakeful.core.types import User
from wakeful.datadir.device_key import database_of
from wakeful.datadir.files import STORE_FILE
from wakeful.store.errors import StoreIsNewer
from wakeful.store.migrate import Migration, load_migrations, migrate
from wakeful.store.rows import to_micros
from wakeful.store.store import Store

pytestmark = pytest.mark.both_stores

NOW = to_micros(NOON)
ADA = User(id=ids.new_id(), name="Ada", role="owner", created_at=NOON)


@pytest.fixture
def settings(request, backend_settings):
    if "database_url" in backend_settings:  # here it must have no tables yet
        backend_settings = backend_settings | {"database_url": request.getfixturevalue("postgres_url")}
    return Settings.model_validate(backend_settings)


@pytest.fixture
async def database(settings):
    """An open database with nothing in it."""
    database = database_of(settings)
    await database.open()
    yield database
    await database.close()


@pytest.fixture
def known(database) -> list[Migration]:
    return load_migrations(database.dialect)


def step(number: int, script: str) -> Migration:
    return Migration(number=number, name=f"step_{number}", script=script)


def next_steps(known: list[Migration]) -> list[Migration]:
    """Migrations of a later version: the second depends on the first."""
    last = known[-1].number
    return [
        step(last + 1, "CREATE TABLE hats (id TEXT PRIMARY KEY); INSERT INTO hats VALUES ('bowler')"),
        step(last + 2, "ALTER TABLE hats ADD COLUMN colour TEXT; UPDATE hats SET colour = 'black'"),
    ]


async def rows(database, query: str) -> list[tuple]:
    """Ask the database itself."""
    if database.dialect == "postgres":
        return [tuple(row) for row in await database.read(lambda statements: statements.connection.fetch(query))]
    connection = database.connect()
    try:
        return [tuple(row) for row in connection.execute(query)]
    finally:
        connection.close()


async def numbers(database) -> list[int]:
    return [number for (number,) in await rows(database, "SELECT number FROM migrations ORDER BY number")]


async def tables(database) -> set[str]:
    catalogue = {
        "sqlite": "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')",
        "postgres": "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'",
    }
    return {name for (name,) in await rows(database, catalogue[database.dialect])}


# ── Forward ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_new_store_gets_every_table_the_engine_knows(database, known):
    assert await migrate(database, known, NOW) == known
    assert await tables(database) >= {
        "users", "agents", "sessions", "messages", "wakes", "runs", "events", "decisions", "pauses",
        "notifications", "session_recalls",
    }  # fmt: skip


async def test_what_was_applied_is_recorded_with_its_time(database, known):
    await migrate(database, known, NOW)
    recorded = await rows(database, "SELECT number, name, applied_at FROM migrations ORDER BY number")
    assert recorded == [(each.number, each.name, NOW) for each in known]


async def test_each_migration_has_a_number_of_its_own(known):
    numbers = [each.number for each in known]
    assert numbers == sorted(set(numbers))


async def test_nothing_is_applied_twice(database, known):
    await migrate(database, known, NOW)
    assert await migrate(database, known, NOW + 1) == []
    assert await rows(database, "SELECT DISTINCT applied_at FROM migrations") == [(NOW,)]


async def test_later_steps_are_applied_in_their_order(database, known):
    await migrate(database, known, NOW)
    later = next_steps(known)
    assert await migrate(database, [*known, *later], NOW + 1) == later
    assert await rows(database, "SELECT * FROM hats") == [("bowler", "black")]
    assert await numbers(database) == [each.number for each in [*known, *later]]


async def test_a_run_of_a_hook_and_what_it_booked_is_marked_with_the_hook(database, known):
    await migrate(database, [each for each in known if each.number < 40], NOW)
    for number, (door, name) in enumerate([("hook", 'de "ploys"'), ("hook", None), ("mcp", "laptop")]):
        written = "NULL" if name is None else f"'{name}'"
        await database.run_script(
            "INSERT INTO runs (id, agent_id, user_id, trigger, scheduled_by, nominal_at, covers, priority, turn, "
            "status, queued_at, fence, attempt, is_resuming, door, token_name) VALUES "
            f"('{number}', 'a', 'u', 'wake', 'system', 0, 1, 'normal', 0, 'success', 0, 1, 1, 0, '{door}', {written})"
        )
    await database.run_script(
        "INSERT INTO users (id, name, role, created_at) VALUES ('u', 'Ada', 'owner', 0);"
        "INSERT INTO agents (id, user_id, name, timezone, self_scheduling, bounds, run_limit_seconds, created_at, "
        "updated_at) VALUES ('a', 'u', 'Gardener', 'UTC', 1, '{}', 60, 0, 0);"
    )
    for booked_by in ("0", "2"):
        await database.run_script(
            "INSERT INTO wakes (id, kind, agent_id, user_id, call_type, timezone, nominal_at, attempt_at, is_missed, "
            "comment, instructions, priority, on_miss, scheduled_by, booked_by_run, ephemeral, status, deferrals, "
            "failures, runs_started, version, created_at, updated_at) VALUES "
            f"('{booked_by}', 'session', 'a', 'u', 'once', 'UTC', 0, 0, 0, '', 'Go.', 'normal', 'skip', 'agent', "
            f"'{booked_by}', 0, 'pending', 0, 0, 1, 1, 0, 0)"
        )
    await migrate(database, known, NOW)
    wakes = await rows(database, "SELECT outside_sources FROM wakes ORDER BY id")
    assert [json.loads(sources) for (sources,) in wakes] == [['hook:de "ploys"'], []]
    marked = [
        json.loads(sources) for (sources,) in await rows(database, "SELECT outside_sources FROM runs ORDER BY id")
    ]
    assert marked == [['hook:de "ploys"'], [], []]


async def test_a_step_that_fails_leaves_nothing_of_itself_and_can_be_tried_again(database, known):
    await migrate(database, known, NOW)
    good, _ = next_steps(known)
    bad = step(good.number + 1, "CREATE TABLE gloves (id TEXT); INSERT INTO nowhere VALUES (1)")
    with pytest.raises(Exception, match="nowhere"):
        await migrate(database, [*known, good, bad], NOW)
    assert "hats" in await tables(database)
    assert "gloves" not in await tables(database)
    assert (await numbers(database))[-1] == good.number

    corrected = step(bad.number, "CREATE TABLE gloves (id TEXT)")
    assert await migrate(database, [*known, good, corrected], NOW) == [corrected]
    assert "gloves" in await tables(database)


async def test_nodes_that_start_at_once_apply_each_step_once(postgres_url, tmp_path):
    settings = {"data_dir": tmp_path, "config_dir": tmp_path, "database_url": postgres_url}
    stores = [Store(database_of(Settings.model_validate(settings))) for _ in range(5)]
    applied = await asyncio.gather(*[store.open(NOON) for store in stores])
    try:
        known = load_migrations("postgres")
        assert sorted(len(each) for each in applied) == [0, 0, 0, 0, len(known)]
        assert await numbers(stores[0].database) == [each.number for each in known]
    finally:
        await asyncio.gather(*[store.close() for store in stores])


# ── Newer than we know ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_newer_store_is_refused_by_its_numbers_and_not_touched(database, known, settings):
    later = next_steps(known)
    await migrate(database, [*known, *later], NOW)
    await Store(database).write(lambda tx: tx.agents.add_user(ADA))
    await database.close()
    before = digest(settings)

    store = Store(database)
    with pytest.raises(StoreIsNewer) as refused:
        await store.open(NOON)
    assert f"schema {later[-1].number}" in str(refused.value)
    assert f"knows {known[-1].number}" in str(refused.value)
    assert digest(settings) == before

    await database.open()
    assert await rows(database, "SELECT * FROM hats") == [("bowler", "black")]
    assert await numbers(database) == [each.number for each in [*known, *later]]
    assert await store.read(lambda tx: tx.agents.user(ADA.id)) == ADA


async def test_a_refused_store_is_free_for_the_version_that_knows_it(database, known):
    later = next_steps(known)
    await migrate(database, [*known, *later], NOW)
    await database.close()
    with pytest.raises(StoreIsNewer):
        await Store(database).open(NOON)
    await database.open()
    assert await migrate(database, [*known, *later], NOW) == []


def digest(settings: Settings) -> str | None:
    """Return a hash of the embedded store's file; None on PostgreSQL."""
    file = settings.data_dir / STORE_FILE
    return sha256(file.read_bytes()).hexdigest() if file.exists() else None


# ── The copy before ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def embedded(tmp_path):
    return Settings(data_dir=tmp_path / "data", config_dir=tmp_path / "config")


def copies(settings: Settings) -> list:
    return sorted((settings.data_dir / "backups").glob("*"))


async def test_a_new_store_is_not_copied(embedded):
    store = Store(database_of(embedded))
    await store.open(NOON)
    await store.close()
    assert copies(embedded) == []


async def test_a_store_with_data_is_copied_before_it_is_changed(embedded):
    database = database_of(embedded)
    store = Store(database)
    await store.open(NOON)
    await store.write(lambda tx: tx.agents.add_user(ADA))
    known = load_migrations("sqlite")
    await migrate(database, [*known, *next_steps(known)], NOW)
    await database.close()

    [copy] = copies(embedded)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    assert copy.read_bytes()[:15] != b"SQLite format 3"  # as encrypted as the store

    # Put back, it is the store as it was: an older version opens it and finds everything.
    for file in embedded.data_dir.glob(f"{STORE_FILE}*"):
        file.unlink()
    copy.rename(embedded.data_dir / STORE_FILE)
    assert await store.open(NOON) == []
    try:
        assert await store.read(lambda tx: tx.agents.user(ADA.id)) == ADA
        assert "hats" not in await tables(database)
    finally:
        await store.close()


async def test_a_copy_that_cannot_be_made_stops_the_change(embedded):
    database = database_of(embedded)
    store = Store(database)
    await store.open(NOON)
    (embedded.data_dir / "backups").write_text("in the way")
    known = load_migrations("sqlite")
    with pytest.raises(StoreUnavailable, match="backups"):
        await migrate(database, [*known, *next_steps(known)], NOW)
    assert await numbers(database) == [each.number for each in known]
    await store.close()
