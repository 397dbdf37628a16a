"""Snapshots that hold the last copy of rows."""

from datetime import datetime, timedelta

import pytest

from databases import AT, Database, Refused
from wakeful.agentdb.errors import to_error


def migrate(database, up_sql):
    return database.ask("migrate", purpose="test", up_sql=up_sql, down_sql="")


def move(database, days=0, hours=0):
    """Go to a time after the beginning."""
    database.at = (datetime.fromisoformat(AT) + timedelta(days=days, hours=hours)).isoformat()


def rows_in(database, snapshot, table="tasks"):
    copy = Database(database.path.parent / "snapshots" / snapshot)
    try:
        return copy.ask("rows", table=table)["total"]
    finally:
        copy.close()


def kept(database):
    return sorted(path.name for path in (database.path.parent / "snapshots").glob("*-kept.sqlite"))


def test_a_dropped_table_can_be_got_back_after_many_migrations(tasks):
    name = migrate(tasks, "DROP TABLE tasks")["snapshot"]
    for number in range(8):
        move(tasks, days=1, hours=number)
        migrate(tasks, f"CREATE TABLE t{number} (a)")
    assert rows_in(tasks, name) == 3
    assert tasks.changes()[3 + 1]["detail"]["snapshot"] == name  # by which a person finds it
    move(tasks, days=29)
    migrate(tasks, "CREATE TABLE x (a)")
    assert kept(tasks) == [name]
    move(tasks, days=30)
    migrate(tasks, "CREATE TABLE y (a)")
    assert kept(tasks) == []


@pytest.mark.parametrize("sql", ["DROP TABLE tasks", "ALTER TABLE tasks DROP COLUMN title"])
def test_what_is_dropped_is_in_a_kept_snapshot(tasks, sql):
    if "COLUMN" in sql:
        migrate(tasks, "CREATE TABLE other (a)")
    assert kept(tasks) == []
    name = migrate(tasks, sql)["snapshot"]
    assert kept(tasks) == [name]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE x (a); DROP TABLE x",
        "ALTER TABLE tasks DROP COLUMN hours",
        "CREATE INDEX i ON tasks (title); DROP INDEX i",
        "ALTER TABLE tasks RENAME TO things",
    ],
)
def test_nothing_is_kept_where_nothing_is_lost(tasks, sql):
    migrate(tasks, sql)
    assert kept(tasks) == []


def test_a_second_drop_within_the_hour_is_refused_unless_the_first_copy_has_it(tasks):
    migrate(tasks, "CREATE TABLE a (x); CREATE TABLE b (x); INSERT INTO a (x) VALUES (1); INSERT INTO b (x) VALUES (1)")
    migrate(tasks, "DROP TABLE tasks")
    assert migrate(tasks, "DROP TABLE a")["statements"] == 1  # it is in the copy already
    tasks.ask("insert", table="b", rows=[{"x": 2}])
    with pytest.raises(Refused) as refused:
        migrate(tasks, "DROP TABLE b")
    assert refused.value.kind == "limit"
    assert refused.value.values["free_at"] == "2026-03-02T13:00:00+00:00"
    assert tasks.query("SELECT x FROM b") == [[1], [2]]
    # Nor by another name, or column by column.
    for sql in ("ALTER TABLE b RENAME TO a; DROP TABLE a", "ALTER TABLE b ADD COLUMN y; ALTER TABLE b DROP COLUMN x"):
        with pytest.raises(Refused, match="space again"):
            migrate(tasks, sql)
    move(tasks, hours=1)
    assert rows_in(tasks, migrate(tasks, "DROP TABLE b")["snapshot"], "b") == 2
    assert len(kept(tasks)) == 2


def test_a_row_that_was_changed_since_the_copy_is_not_in_it(tasks):
    migrate(tasks, "CREATE TABLE a (x); INSERT INTO a (x) VALUES (1), (2); ALTER TABLE tasks DROP COLUMN state")
    tasks.ask("update", table="a", set={"x": 3}, row_ids=[2])
    with pytest.raises(Refused, match="space again"):
        migrate(tasks, "DROP TABLE a")


def test_kept_copies_have_five_times_the_quota(tasks):
    tasks.quota = 32 * 4096

    def drop():
        for number in range(100):
            move(tasks, hours=number)
            migrate(tasks, "CREATE TABLE x (a); INSERT INTO x (a) VALUES (1)")
            migrate(tasks, "DROP TABLE x")

    with pytest.raises(Refused, match="space again") as refused:
        drop()
    assert refused.value.values["free_at"] == "2026-04-01T12:00:00+00:00"  # 30 days after the first
    assert "space again at 2026-04-01 12:00:00 (UTC);" in to_error(refused.value.values, "UTC", tasks.at).message
    assert 5 < len(kept(tasks)) < 20
    size = sum((tasks.path.parent / "snapshots" / name).stat().st_size for name in kept(tasks))
    assert size <= 5 * tasks.quota
    move(tasks, days=30)
    migrate(tasks, "DROP TABLE x")


def test_a_migration_that_fails_leaves_no_copy(tasks):
    with pytest.raises(Refused):
        migrate(tasks, "DROP TABLE tasks; SELECT nonsense")
    assert list((tasks.path.parent / "snapshots").iterdir()) == []
    migrate(tasks, "DROP TABLE tasks")


def test_kept_copies_get_a_new_key_with_the_file(tasks):
    name = migrate(tasks, "DROP TABLE tasks")["snapshot"]
    key = bytes(reversed(range(32)))
    tasks.ask("rekey", new_key=key.hex(), actor="system", run=None)
    tasks.close()
    copy = Database(tasks.path.parent / "snapshots" / name, key=key)
    assert copy.query("SELECT count(*) FROM tasks") == [[3]]
    copy.close()


def recover(database, snapshot, table="tasks", new_name=None):
    return database.ask("recover", snapshot=snapshot, table=table, new_name=new_name, actor="user", run=None)


def test_a_dropped_table_comes_back_as_it_was(tasks):
    tasks.ask("delete", table="tasks", where={"id": 2})
    before = tasks.ask("rows", table="tasks", show="all"), tasks.ask("schema")["tables"]
    name = migrate(tasks, "DROP TABLE tasks")["snapshot"]
    assert [each["name"] for each in tasks.ask("snapshots")] == [name]
    move(tasks, days=3)
    assert recover(tasks, name) == {"table": "tasks", "recovered": 3, "snapshot": name}
    assert (tasks.ask("rows", table="tasks", show="all"), tasks.ask("schema")["tables"]) == before
    noted = tasks.changes()[-4:]
    assert [(change["op"], change["row_id"]) for change in noted] == [
        ("import", 1), ("import", 2), ("import", 3), ("schema", None)
    ]  # fmt: skip
    assert tasks.ask("verify")["intact"]


def test_a_table_comes_back_under_another_name(tasks):
    migrate(tasks, "CREATE INDEX by_title ON tasks (title)")
    name = migrate(tasks, "ALTER TABLE tasks DROP COLUMN hours; ALTER TABLE tasks DROP COLUMN state")["snapshot"]
    with pytest.raises(Refused, match="exists"):
        recover(tasks, name)
    assert recover(tasks, name, new_name="old_tasks")["recovered"] == 3
    assert tasks.query("SELECT id, title, state FROM old_tasks")[0] == [1, "Task 1", "open"]


@pytest.mark.parametrize(
    ("snapshot", "table", "words"),
    [
        (None, "nope", "There is no table 'nope'. There are: tasks."),
        (None, "_changelog", "'_changelog'"),
        ("../db.sqlite", "tasks", "no snapshot"),
        ("nope.sqlite", "tasks", "no snapshot"),
    ],
)
def test_only_what_a_snapshot_has_is_recovered(tasks, snapshot, table, words):
    name = migrate(tasks, "DROP TABLE tasks")["snapshot"]
    with pytest.raises(Refused) as refused:
        recover(tasks, snapshot or name, table)
    assert words in refused.value.values["message"]
    assert tasks.ask("schema")["tables"] == []
