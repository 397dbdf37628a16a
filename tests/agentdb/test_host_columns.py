"""Migrations and the host's own columns: forbidden and allowed changes."""

import pytest

from databases import KEY, Refused
from wakeful.agentdb import file

HOST = ("_created_at", "_updated_at", "_deleted_at")


def migrate(database, up_sql):
    return database.ask("migrate", purpose="test", up_sql=up_sql, down_sql="")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("CREATE TABLE x (a, _deleted_at TEXT DEFAULT 'x')", "Leave it out"),
        ("CREATE TABLE x (a, _Created_At TEXT)", "Leave it out"),
        ("ALTER TABLE tasks ADD COLUMN x TEXT CHECK (_deleted_at IS NULL)", "no CHECK"),
        ("ALTER TABLE tasks ALTER COLUMN _deleted_at SET NOT NULL", "not allowed"),
        ("CREATE UNIQUE INDEX i ON tasks (_updated_at, id)", "'_updated_at' of 'tasks' is managed by the host"),
        ("CREATE INDEX i ON tasks (title) WHERE _deleted_at IS NULL", "of 'tasks' is managed by the host"),
        ("CREATE TABLE x (a REFERENCES tasks (_deleted_at))", "refers to 'tasks' (_deleted_at)"),
        ("CREATE TABLE x (a REFERENCES _views (name))", "refers to '_views'"),
        ("INSERT INTO tasks (title, _created_at) VALUES ('x', '1999')", "Leave them out"),
        ("CREATE TABLE x (a); INSERT INTO x SELECT title, _created_at, _updated_at, 'x' FROM tasks", "Leave them out"),
        ("INSERT INTO tasks (title, _created_at, _updated_at) SELECT title, _created_at, _updated_at FROM tasks",
         "Leave them out"),
        ("CREATE TABLE x (a); INSERT INTO x SELECT a.title, a._created_at, a._updated_at, NULL FROM tasks a, tasks b",
         "Leave them out"),
        ("CREATE TABLE x (a); INSERT INTO x SELECT title, _created_at, _updated_at, NULL FROM tasks;"
         "INSERT INTO x SELECT 'made up', _created_at, _updated_at, NULL FROM tasks", "Leave them out"),
    ],
)  # fmt: skip
def test_the_hosts_columns_are_neither_defined_nor_forged(tasks, sql, words):
    before = tasks.ask("rows", table="tasks"), tasks.ask("schema")
    with pytest.raises(Refused) as refused:
        migrate(tasks, sql)
    assert words in refused.value.values["message"]
    assert (tasks.ask("rows", table="tasks"), tasks.ask("schema")) == before


def test_rows_a_migration_inserts_get_the_time_of_the_migration(tasks):
    tasks.at = "2026-03-09T12:00:00+00:00"
    migrate(tasks, "INSERT INTO tasks (title) VALUES ('new'); CREATE TABLE x (a); INSERT INTO x (a) VALUES (1)")
    for table in ("tasks WHERE title = 'new'", "x"):
        assert tasks.query(f"SELECT {', '.join(HOST)} FROM {table}") == [[tasks.at, tasks.at, None]]


def test_two_tables_can_be_merged_with_their_times(tasks):
    migrate(tasks, "CREATE TABLE more (title TEXT)")
    tasks.at = "2026-03-09T12:00:00+00:00"
    tasks.ask("insert", table="more", rows=[{"title": "a"}, {"title": "b"}])
    tasks.ask("delete", table="more", where={"title": "b"})
    migrate(
        tasks,
        f"INSERT INTO tasks (title, {', '.join(HOST)}) SELECT title, {', '.join(HOST)} FROM more; DROP TABLE more",
    )
    assert tasks.query("SELECT title, _created_at FROM tasks WHERE id > 3") == [["a", tasks.at]]
    assert tasks.ask("rows", table="tasks", show="deleted")["total"] == 1


def test_a_table_with_an_index_of_its_own_can_still_be_altered(tasks):
    tasks.ask("create_table", name="x", purpose="x", columns=[{"name": "a", "type": "text"}], indexes=[["_created_at"]])
    migrate(tasks, "ALTER TABLE x ADD COLUMN b TEXT DEFAULT 'it''s -- fine' CHECK (b <> ''); CREATE INDEX i ON x (b)")
    tasks.ask("insert", table="x", rows=[{"a": "1"}])
    assert tasks.query("SELECT b FROM x") == [["it's -- fine"]]


@pytest.mark.parametrize(
    "column",
    [
        {"name": "a", "type": "integer", "default": "abc"},
        {"name": "a", "type": "integer", "default": 2**63},
        {"name": "a", "type": "blob", "default": "text"},
        {"name": "a", "type": "real", "default": {"x": 1}},
        {"name": "a", "type": "boolean", "default": [1]},
    ],
)
def test_a_default_must_fit_its_column(tasks, column):
    for op, args in {
        "create_table": {"name": "x", "purpose": "x", "columns": [column], "indexes": []},
        "alter_table": {"table": "tasks", "add_columns": [column]},
    }.items():
        with pytest.raises(Refused) as refused:
            tasks.ask(op, **args)
        assert refused.value.kind == "invalid"
    assert tasks.query("SELECT count(*) FROM tasks") == [[3]]


@pytest.mark.parametrize(
    ("kind", "default", "kept"),
    [("text", 5, "5"), ("json", {"a": [1]}, '{"a":[1]}'), ("real", 2, 2.0), ("boolean", True, 1), ("date", "x", "x")],
)
def test_a_default_that_fits_is_kept(tasks, kind, default, kept):
    tasks.ask("alter_table", table="tasks", add_columns=[{"name": "a", "type": kind, "default": default}])
    tasks.ask("delete", table="tasks", where={"id": 1})
    assert tasks.query("SELECT DISTINCT a FROM tasks") == [[kept]]


def test_a_purge_leaves_deleted_rows_that_live_ones_refer_to(database):
    for action in ("CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION DEFERRABLE INITIALLY DEFERRED"):
        name = action.split(" DEF")[0].replace(" ", "_").lower()
        migrate(
            database,
            f"CREATE TABLE p_{name} (id INTEGER PRIMARY KEY);"
            f"CREATE TABLE c_{name} (id INTEGER PRIMARY KEY, p REFERENCES p_{name} (id) ON DELETE {action});"
            f"INSERT INTO p_{name} (id) VALUES (1), (2); INSERT INTO c_{name} (p) VALUES (1)",
        )
        database.ask("delete", table=f"p_{name}", row_ids=[1, 2])
    before = {table: database.ask("rows", table=table, show="all")["rows"] for table in database.ask("names")["tables"]}
    database.at = "2026-06-01T12:00:00+00:00"
    assert database.ask("purge", actor="system", run=None)["purged"] == 5
    for table, rows in before.items():
        now = database.ask("rows", table=table, show="all")["rows"]
        assert now == (rows if table.startswith("c_") else rows[:1]), table
    assert database.ask("verify")["intact"]


def test_a_table_of_an_old_file_named_like_a_function_hides_its_deleted_rows(tasks):
    tasks.close()
    connection = file.connect(str(tasks.path), KEY)
    connection.execute("ALTER TABLE tasks RENAME TO json_each")
    connection.close()
    tasks.ask("delete", table="json_each", where={"id": 2})
    for sql in ("SELECT id FROM json_each", "SELECT id FROM json_each WHERE _deleted_at IS NULL"):
        assert tasks.query(sql) == [[1], [3]]
    assert tasks.query("SELECT count(*) FROM json_each") == [[2]]
    for sql in ("SELECT id FROM main.json_each", "SELECT count(*) FROM main.json_each"):
        with pytest.raises(Refused):
            tasks.query(sql)
    tasks.ask("execute", sql="UPDATE json_each SET title = 'x' WHERE id = 1")
