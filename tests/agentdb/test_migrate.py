"""Migrations an agent wrote."""

import pytest

from databases import Database, Refused


def migrate(database, up_sql, down_sql="", **more):
    return database.ask("migrate", purpose="test", up_sql=up_sql, down_sql=down_sql, **more)


def refusal(database, up_sql):
    with pytest.raises(Refused) as refused:
        migrate(database, up_sql)
    return refused.value.values["message"]


def test_new_tables_get_the_hosts_columns_and_rows_keep_theirs(tasks):
    tasks.ask("delete", table="tasks", where={"id": 2})
    tasks.at = "2026-03-09T12:00:00+00:00"
    migrate(
        tasks,
        "CREATE TABLE new_tasks (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT UNIQUE, done INTEGER DEFAULT 0);"
        "INSERT INTO new_tasks (id, title, _created_at, _updated_at, _deleted_at)"
        " SELECT id, title, _created_at, _updated_at, _deleted_at FROM tasks;"
        "DROP TABLE tasks; ALTER TABLE new_tasks RENAME TO tasks; CREATE INDEX by_done ON tasks (done)",
    )
    assert tasks.query("SELECT id, title FROM tasks") == [[1, "Task 1"], [3, "Task 3"]]
    assert tasks.query("SELECT _created_at FROM tasks WHERE id = 1") == [["2026-03-02T12:00:00+00:00"]]
    tasks.ask("insert", table="tasks", rows=[{"title": "Task 4"}])
    assert tasks.query("SELECT id, _created_at FROM tasks WHERE title = 'Task 4'") == [[4, tasks.at]]


def test_all_statements_or_none(tasks):
    before = tasks.ask("schema")["tables"]
    assert "There is no table" in refusal(
        tasks, "CREATE TABLE a (b); UPDATE tasks SET hours = 9; INSERT INTO nope VALUES (1)"
    )
    assert tasks.ask("schema")["tables"] == before
    assert tasks.query("SELECT hours FROM tasks") == [[None]] * 3
    assert tasks.ask("verify")["intact"]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("ALTER TABLE tasks DROP COLUMN _deleted_at", "not allowed"),
        ("ALTER TABLE tasks RENAME COLUMN _deleted_at TO gone", "managed by the host"),
        ("ALTER TABLE tasks RENAME TO _tasks2", "belong to the host"),
        ("ALTER TABLE _changelog RENAME TO x", "belongs to the host"),
        ("ALTER TABLE _changelog ADD COLUMN x", "belongs to the host"),
        ("DROP TABLE _changelog", "belongs to the host"),
        ("CREATE TABLE _x (a)", "belongs to the host"),
        ("CREATE INDEX i ON _changelog (at)", "belongs to the host"),
        ("DROP INDEX _changelog_by_run", "belongs to the host"),
        ("CREATE TRIGGER t AFTER INSERT ON tasks BEGIN SELECT 1; END", "CREATE TRIGGER is not allowed"),
        ("CREATE VIEW v AS SELECT * FROM tasks", "CREATE VIEW is not allowed"),
        ("CREATE TEMP TABLE x (a)", "CREATE TEMP TABLE is not allowed"),
        ("CREATE VIRTUAL TABLE x USING fts5(a)", "CREATE VIRTUAL TABLE is not allowed"),
        ("CREATE TABLE x AS SELECT * FROM tasks", "AS SELECT is not allowed"),
        ("CREATE TABLE x (a PRIMARY KEY) WITHOUT ROWID", "WITHOUT ROWID"),
        ("CREATE TABLE x (a, b AS (a + 1))", "generated column"),
        ("CREATE TABLE x (a DEFAULT (sqlite3mc_version()))", "not allowed"),
        ("DELETE FROM tasks", "Use db_delete"),
        ("DROP TABLE nope", "There is no table"),
        ("PRAGMA writable_schema = 1", "PRAGMA is not allowed"),
        ("BEGIN", "not allowed"),
        ("COMMIT", "not allowed"),
        ("ROLLBACK", "not allowed"),
        (
            "CREATE TABLE x (id INTEGER PRIMARY KEY AUTOINCREMENT); UPDATE sqlite_sequence SET seq = 9",
            "belongs to the host",
        ),
        ("DELETE FROM sqlite_master", "may not be modified"),
        ("UPDATE sqlite_master SET sql = ''", "may not be modified"),
        ("EXPLAIN SELECT 1", "EXPLAIN"),
        ("SELECT ?", "must not have parameters"),
        ("", "no statement"),
        ("CREATE TABLE x (_secret)", "The name of a column must be"),
        ("INSERT OR REPLACE INTO tasks (id, title) VALUES (1, 'x')", "for good"),
    ],
)
def test_what_a_migration_may_not_do(tasks, sql, words):
    before = tasks.ask("schema", with_system=True)
    assert words in refusal(tasks, sql)
    assert tasks.ask("schema", with_system=True) == before
    assert tasks.ask("verify")["intact"]


def test_a_snapshot_is_made_first_and_can_be_opened(tasks):
    name = migrate(tasks, "DROP TABLE tasks")["snapshot"]
    assert tasks.ask("schema")["tables"] == []
    snapshot = Database(tasks.path.parent / "snapshots" / name)
    assert snapshot.query("SELECT count(*) FROM tasks") == [[3]]
    snapshot.close()


def test_only_the_latest_snapshots_are_kept_and_failures_leave_none(tasks):
    for number in range(8):
        tasks.at = f"2026-03-02T12:00:0{number}+00:00"
        migrate(tasks, f"CREATE TABLE t{number} (a)")
    refusal(tasks, "CREATE TABLE t1 (a)")
    assert len(list((tasks.path.parent / "snapshots").iterdir())) == 5


def test_a_person_takes_a_migration_back(tasks):
    migrate(tasks, "ALTER TABLE tasks ADD COLUMN note TEXT", "ALTER TABLE tasks DROP COLUMN note")
    number = tasks.changes()[-1]["id"]
    assert "note" in tasks.ask("rows", table="tasks")["columns"]
    tasks.ask("take_back_migration", change_id=number, actor="user", run=None)
    assert "note" not in tasks.ask("rows", table="tasks")["columns"]
    with pytest.raises(Refused, match="not a migration"):
        tasks.ask("take_back_migration", change_id=1, actor="user", run=None)


@pytest.mark.parametrize("name", ["_x", "sqlite_x", "a b", "1a", "x" * 64, 'a"b', "", "tasks"])
def test_a_table_needs_a_plain_name_of_its_own(tasks, name):
    with pytest.raises(Refused) as refused:
        tasks.ask("create_table", name=name, purpose="x", columns=[{"name": "a", "type": "text"}], indexes=[])
    assert refused.value.values["field"] == "name"


def test_keys_and_defaults_as_asked(database):
    database.ask(
        "create_table",
        name="prices",
        purpose="What things cost.",
        columns=[
            {"name": "shop", "type": "text", "primary_key": True},
            {"name": "item", "type": "text", "primary_key": True},
            {"name": "price", "type": "real", "default": 1.5},
            {"name": "note", "type": "text", "default": "it's"},
        ],
        indexes=[["price"]],
    )
    database.ask("insert", table="prices", rows=[{"shop": "a", "item": "b"}])
    assert database.query("SELECT price, note FROM prices") == [[1.5, "it's"]]
    with pytest.raises(Refused, match="UNIQUE"):
        database.ask("insert", table="prices", rows=[{"shop": "a", "item": "b"}])
    [table] = database.ask("schema")["tables"]
    assert [column["name"] for column in table["columns"] if column["primary_key"]] == ["shop", "item"]
    assert ["price"] in [index["columns"] for index in table["indexes"]]
    assert table["purpose"] == "What things cost."
