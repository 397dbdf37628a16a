"""Random SQL statements, generated from the parts that attacks are made of."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from databases import Database, Refused, fingerprints
from fixtures.stores import IS_LONG

pytestmark = pytest.mark.security

TOMBSTONE = "TOMBSTONE-NOBODY-MAY-SEE"

names = st.sampled_from(
    [
        *("tasks", "main.tasks", "temp.tasks", '"tasks"', "[tasks]", "t", "_changelog", "main._changelog", "_views"),
        *("_tables", "_meta", "sqlite_schema", "sqlite_temp_schema", "pragma_table_list", "pragma_database_list"),
        *("dbstat", "json_each('[1,2]')", "sqlite_sequence"),
    ]
)
columns = st.sampled_from(
    [
        "*",
        "title",
        "id",
        "rowid",
        "_deleted_at",
        "count(*)",
        "hash",
        "sql",
        "name",
        "max(title)",
        "1",
        "NULL",
        "t.title",
    ]
)
functions = st.sampled_from(
    [
        *("abs(1)", "load_extension('x')", "sqlite3mc_config('cipher')", "sqlite3mc_codec_data('main')"),
        *("readfile('/etc/passwd')", "randomblob(9)", "group_concat(title)", "zeroblob(9999999)"),
    ]
)
literals = st.sampled_from(["1", "'x'", "NULL", "x'00'", "-1", "'1999'", f"'{'y' * 50}'"])
sources = st.deferred(
    lambda: st.one_of(
        names,
        st.builds("{} AS {}".format, names, st.sampled_from(["t", "tasks", "_changelog"])),
        st.builds("({}) AS {}".format, selects, st.sampled_from(["t", "tasks"])),
        st.builds("{} JOIN {}".format, names, names),
    )
)
values = st.deferred(lambda: st.one_of(columns, functions, literals, st.builds("({})".format, selects)))
selects = st.deferred(
    lambda: st.one_of(
        st.builds("SELECT {} FROM {}".format, values, sources),
        st.builds("SELECT {} FROM {} WHERE {} IN ({})".format, columns, names, columns, selects),
        st.builds("SELECT {} FROM {} UNION ALL SELECT {} FROM {}".format, values, names, values, names),
        st.builds("WITH tasks AS ({}) SELECT {} FROM tasks".format, selects, columns),
        st.builds("WITH t AS ({}) {}".format, selects, selects),
        st.builds("SELECT {}".format, values),
    )
)
writes = st.one_of(
    st.builds("INSERT INTO {} (title) {}".format, names, selects),
    st.builds("INSERT OR REPLACE INTO {} (id, title) VALUES (1, {})".format, names, values),
    st.builds(
        "INSERT INTO tasks (id, title) VALUES (1, {}) ON CONFLICT DO UPDATE SET {} = {}".format, values, columns, values
    ),
    st.builds("UPDATE {} SET {} = {}".format, names, columns, values),
    st.builds("UPDATE tasks SET title = {} FROM {} RETURNING {}".format, values, sources, values),
    st.builds("DELETE FROM {} WHERE {}".format, names, values),
    st.builds("WITH t AS ({}) INSERT INTO tasks (title) SELECT {} FROM t RETURNING *".format, selects, columns),
)
schema = st.one_of(
    st.builds("DROP TABLE {}".format, names),
    st.builds("ALTER TABLE {} RENAME TO {}".format, names, names),
    st.builds("ALTER TABLE {} DROP COLUMN {}".format, names, columns),
    st.builds("CREATE TABLE {} (a DEFAULT ({}))".format, names, values),
    st.builds("CREATE TABLE more AS {}".format, selects),
    st.builds("CREATE TRIGGER x AFTER INSERT ON {} BEGIN {}; END".format, names, writes),
    st.builds("CREATE VIEW x AS {}".format, selects),
    st.builds("CREATE INDEX x ON {} ({})".format, names, values),
    st.builds("PRAGMA {} = {}".format, st.sampled_from(["writable_schema", "rekey", "key", "journal_mode"]), literals),
    st.builds("ATTACH {} AS x".format, literals),
)
statements = st.one_of(
    selects,
    writes,
    schema,
    st.builds("{}; {}".format, selects, writes),
    st.builds("EXPLAIN {}".format, st.one_of(selects, writes)),
    st.builds("/* {} */ {}".format, writes, selects),
)
tools = st.sampled_from(["query", "execute", "migrate", "define_view", "export"])
ARGUMENTS = {
    "query": lambda sql: {"sql": sql},
    "execute": lambda sql: {"sql": sql},
    "migrate": lambda sql: {"up_sql": sql, "down_sql": "", "purpose": "x"},
    "define_view": lambda sql: {
        "name": "v",
        "sql": sql,
        "description": "",
        "parameters": [],
        "render": "table",
        "pinned": None,
    },
    "export": lambda sql: {"sql": sql, "format": "json"},
}


@example([("execute", "UPDATE tasks SET title = 'x'"), ("execute", "INSERT INTO tasks (title) VALUES ('x')")])
@example([("execute", "INSERT OR REPLACE INTO tasks (id, title) VALUES (1, 'x')")])
@given(st.lists(st.tuples(tools, statements), min_size=1, max_size=12))
@settings(max_examples=2_000 if IS_LONG else 60, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_is_asked_nothing_hidden_is_shown_and_every_change_is_told(attempts):
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "db.sqlite").with_tasks()
        database.ask("insert", table="tasks", rows=[{"title": "a"}, {"title": TOMBSTONE}])
        database.ask("delete", table="tasks", where={"id": 2})
        try:
            for tool, sql in attempts:
                attempt(database, tool, sql)
            assert database.ask("verify") == {"intact": True, "broken_at": None, "is_cut_off": False}
            assert set(fingerprints(Path(folder))) - {"db.sqlite-wal", "db.sqlite-shm"} <= {
                "db.sqlite",
                *(name for name in fingerprints(Path(folder)) if name.startswith("snapshots/")),
            }
        finally:
            database.close()


def attempt(database: Database, tool: str, sql: str) -> None:
    before = rows_of(database)
    told = len(database.changes())
    answer, refusal = None, None
    try:
        answer = database.ask(tool, **ARGUMENTS[tool](sql))
    except Refused as refused:
        refusal = refused
    if refusal is not None:
        assert refusal.kind != "broken", (tool, sql, refusal)
        assert rows_of(database) == before, (tool, sql)
        assert len(database.changes()) == told, (tool, sql)
        return
    copied = any(TOMBSTONE in row for row in live(database))  # db_execute sees tombstones, and may copy one
    if tool in ("query", "export") and not copied:
        assert TOMBSTONE not in str(answer), (tool, sql)
    after = rows_of(database)
    if tool not in ("execute", "migrate"):
        assert after == before, (tool, sql)
    entries = database.changes()[told:]
    named = {(entry["table_name"], entry["row_id"]) for entry in entries}
    named |= {
        (entry["table_name"], entry["detail"]["moved_to"]) for entry in entries if entry["row_id"] and entry["detail"]
    }
    for table in before.keys() & after.keys() if tool == "execute" else ():
        old, new = before[table], after[table]
        touched = {row_id for row_id in old.keys() | new.keys() if old.get(row_id) != new.get(row_id)}
        assert {(table, row_id) for row_id in touched} <= named, (tool, sql)
        assert len(new) >= len(old), (tool, sql)  # nothing is ever deleted for good


def rows_of(database: Database) -> dict[str, dict[int, object]]:
    found = {}
    for table in database.ask("names")["tables"]:
        rows = database.ask("rows", table=table, show="all", limit=5000)["rows"]
        found[table] = {row[0]: row[1:] for row in rows}
    return found


def live(database: Database) -> list[str]:
    tables = database.ask("names")["tables"]
    return [str(row) for table in tables for row in database.ask("rows", table=table, limit=5000)["rows"]]
