"""Every statement uses an index: its cost does not grow with the number of rows."""

import re

import apsw
import pytest

from wakeful.core.types import Run, Wake
from wakeful.store import rows as queries
from wakeful.store.drivers.database import Statements
from wakeful.store.drivers.postgres import PostgresDatabase
from wakeful.store.migrate import load_migrations, migrate

GROWING = ("wakes", "runs", "messages", "sessions", "events", "decisions", "notifications", "outgoing")
# Looks at everything on purpose: seldom, and in the reader.
MAY_SCAN = {"orphaned_wakes", "wakes_planned_ahead", "waiting_work", "old_skipped_runs", "applied_migrations"} | {
    "table_sizes",
    "texts_of_agents",
    "runs_of_agents",
    "drop_tool_of_sessions",  # once, at an upgrade
    "drop_tool_of_wakes",
    "session_configs_with",
    "zones_of_wakes",  # at the first start
}


@pytest.fixture(scope="module")
def connection() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE migrations (number BIGINT PRIMARY KEY, name TEXT, applied_at BIGINT)")
    for migration in load_migrations("sqlite"):
        connection.execute(migration.script)
    return connection


@pytest.mark.parametrize("name", sorted(set(queries.for_sqlite()) - MAY_SCAN))
def test_sqlite_walks_through_no_growing_table(connection, name):
    query = queries.for_sqlite()[name]
    sql = query.sql
    aliases = {alias: table for table, alias in re.findall(rf"\b({'|'.join(GROWING)})(?:\s+AS)?\s+([a-z])\b", sql)} | {
        table: table for table in GROWING
    }
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", [None] * len(query.names))]
    scanned = [step for step in steps if (found := re.match(r"SCAN (\w+)", step)) and found[1] in aliases]
    # A partial index contains only live or running rows, so a scan of it is short.
    assert [step for step in scanned if not re.search(r"USING (COVERING )?INDEX \w+", step)] == []
    assert [step for step in scanned if re.search(r"INDEX (wakes_of_session|runs_of_\w+|wakes_due)\b", step)] == []


async def plan_of(statements: Statements, name: str) -> str:
    """Return PostgreSQL's plan of a query with its parameters, as text."""
    query, connection = queries.for_postgres()[name], statements.connection
    texts = {"owner", "directory_id", "node", "mcp_servers", "user_id", "agent_id", "session_id", "status"} | {
        "after_id",
        "before_id",
        "title",
        "booked",
    }
    kinds = ["TEXT" if parameter in texts else "BIGINT" for parameter in query.names]
    if "json_populate_recordset" in query.sql:
        kinds = ["JSON"]
    await connection.execute(f"PREPARE plan_{name} ({', '.join(kinds)}) AS {query.sql}")
    values = ["'[]'" if kind == "JSON" else "'1'" for kind in kinds]
    rows = await connection.fetch(f"EXPLAIN EXECUTE plan_{name} ({', '.join(values)})")
    return "\n".join(row[0] for row in rows)


@pytest.mark.parametrize(
    "name",
    [
        "due_wakes",
        "claim_runs",
        "finish_runs",
        "release_runs",
        "move_wakes",
        "mark_wakes_finished",
        "add_runs",
        "add_wakes",
    ],
)
async def test_postgres_keeps_a_plan_from_an_empty_table_that_fits_a_full_one(postgres_url, name):
    database = PostgresDatabase(postgres_url)
    await database.open()
    await migrate(database, load_migrations("postgres"), now=0)
    steps = await database.write(lambda statements: plan_of(statements, name))
    await database.close()
    assert "Seq Scan" not in steps
    assert "Join Filter" not in steps  # every row compared with every other
    assert "Sort" not in steps


LIVE = {
    "add_wakes": "wakes_live_of_session",
    "live_wakes_of_session": "wakes_live_of_session",
    "live_wakes_of_user": "wakes_live_of_user",
    "count_live_wakes": "wakes_live_of_user",
    "sessions_of_user": "wakes_live_of_user",
}


@pytest.mark.parametrize("name", LIVE)
def test_sqlite_finds_what_is_still_to_run_without_all_that_has(connection, name):
    query = queries.for_sqlite()[name]
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query.sql}", [None] * len(query.names))]
    assert [step for step in steps if f"INDEX {LIVE[name]} " in step], steps


async def test_postgres_finds_what_is_still_to_run_without_all_that_has(postgres_url):
    database = PostgresDatabase(postgres_url)
    await database.open()
    await migrate(database, load_migrations("postgres"), now=0)

    async def plans(statements: Statements) -> dict[str, str]:
        return {name: await plan_of(statements, name) for name in LIVE}

    found = await database.write(plans)
    await database.close()
    assert {name: index in found[name] for name, index in LIVE.items()} == dict.fromkeys(LIVE, True), found


def test_every_column_of_a_wake_and_a_run_is_written_when_it_is_added():
    for name, kind, renamed in (("add_wakes", Wake, {"every": "interval_seconds"}), ("add_runs", Run, {})):
        columns = set(queries.for_postgres()[name].names)
        assert {renamed.get(field, field) for field in kind.__dataclass_fields__} <= columns
