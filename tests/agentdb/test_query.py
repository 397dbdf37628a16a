"""SQL queries of a model: what they may read and do."""

import contextlib

import apsw
import orjson
import pytest

from databases import Refused


@pytest.fixture
def hidden(tasks):
    """Three tasks, of which the second is deleted."""
    tasks.ask("delete", table="tasks", where={"id": 2})
    return tasks


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT title FROM tasks",
        "SELECT t.title FROM tasks AS t",
        "SELECT title FROM (SELECT * FROM tasks)",
        "WITH x AS (SELECT * FROM tasks) SELECT title FROM x",
        "WITH tasks AS (SELECT * FROM tasks) SELECT title FROM tasks",
        "SELECT title FROM temp.tasks",
        "SELECT a.title FROM tasks a JOIN tasks b ON a.id = b.id",
        "SELECT title FROM tasks WHERE id IN (SELECT id FROM tasks)",
        "SELECT title FROM tasks UNION ALL SELECT title FROM tasks WHERE false",
        "SELECT title FROM tasks WHERE _deleted_at IS NULL OR _deleted_at IS NOT NULL",
        "SELECT title FROM tasks INDEXED BY sqlite_autoindex_tasks_1",
        "SELECT title FROM main.tasks",
        "WITH tasks AS (SELECT * FROM main.tasks) SELECT title FROM tasks",
        "WITH t AS (SELECT * FROM main.tasks), tasks AS (SELECT * FROM t) SELECT title FROM tasks",
        "SELECT (SELECT group_concat(title) FROM main.tasks) AS title",
        "SELECT title FROM tasks WHERE EXISTS (SELECT 1 FROM main.tasks WHERE title = 'Task 2')",
        'SELECT title FROM "main"."tasks"',
        "SELECT title FROM [main].[tasks] AS tasks",
        "WITH RECURSIVE r(title) AS (SELECT title FROM main.tasks UNION SELECT title FROM r) SELECT title FROM r",
        "SELECT max(title) OVER () AS title FROM main.tasks",
    ],
)
def test_a_deleted_row_is_never_seen(hidden, sql):
    try:
        rows = hidden.query(sql)
    except Refused as refused:
        assert refused.kind in ("refused", "invalid")  # noqa: PT017  (either of the two outcomes is right)
    else:
        assert sorted(rows) == [["Task 1"], ["Task 3"]]


@pytest.mark.parametrize("sql", ["SELECT count(*) FROM tasks", "SELECT count(*) FROM tasks, (SELECT 1)"])
def test_counting_leaves_deleted_rows_out_too(hidden, sql):
    assert hidden.query(sql) == [[2]]
    assert hidden.query(sql, include_deleted=True) == [[3]]
    assert hidden.query(sql) == [[2]]


def test_a_count_of_the_table_itself_is_refused(hidden):
    for sql in (
        "SELECT count(*) FROM main.tasks",
        "WITH tasks AS (SELECT * FROM main.tasks) SELECT count(*) FROM tasks",
    ):
        with pytest.raises(Refused, match="Name tables plainly"):
            hidden.query(sql)


def test_no_error_says_through_which_name_a_table_is_read(hidden):
    for sql in ("SELECT nope FROM tasks", "SELECT title FROM tasks, tasks", "SELECT * FROM tasks WHERE tasks.nope"):
        with pytest.raises(Refused) as refused:
            hidden.query(sql)
        door = next(iter(hidden.worker.databases.values())).reader.connection.guard.doors
        assert not any(name in refused.value.values["message"] for name in door)


def test_a_changed_schema_is_seen_by_the_next_query(tasks):
    assert tasks.query("SELECT count(*) FROM tasks") == [[3]]
    tasks.ask("alter_table", table="tasks", add_columns=[{"name": "note", "type": "text", "default": "-"}])
    tasks.ask("create_table", name="more", purpose="x", columns=[{"name": "a", "type": "text"}], indexes=[])
    assert tasks.query("SELECT note FROM tasks LIMIT 1") == [["-"]]
    assert tasks.query("SELECT * FROM more") == []


def test_rows_and_bytes_are_capped(tasks):
    numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 9000)"
    few = tasks.ask("query", sql=f"{numbers} SELECT x FROM n")
    assert (few["row_count"], few["truncated"]) == (1000, True)
    most = tasks.ask("query", sql=f"{numbers} SELECT x FROM n", limit=100_000)
    assert (most["row_count"], most["truncated"]) == (5000, True)
    wide = tasks.ask("query", sql=f"{numbers} SELECT printf('%.*c', 1000, 'x') FROM n", limit=5000)
    assert (wide["row_count"], wide["truncated"]) == (79, True)
    exact = tasks.ask("query", sql="SELECT id FROM tasks", limit=3)
    assert (exact["row_count"], exact["truncated"]) == (3, False)


@pytest.mark.parametrize(
    ("sql", "params", "rows"),
    [
        ("SELECT title FROM tasks WHERE id = ?", [2], [["Task 2"]]),
        ("SELECT title FROM tasks WHERE id = :id AND title = :title", {"id": 2, "title": "Task 2"}, [["Task 2"]]),
        ("SELECT title FROM tasks WHERE id = @id", {"id": 3}, [["Task 3"]]),
        ("SELECT :a || :a", {"a": "x"}, [["xx"]]),
        ("SELECT 'a;b -- c'", None, [["a;b -- c"]]),
        ("SELECT 1; -- and no more", None, [[1]]),
        ("/* before */ SELECT 1 ;", None, [[1]]),
        ("VALUES (1), (2)", None, [[1], [2]]),
    ],
)
def test_parameters_and_comments(tasks, sql, params, rows):
    assert tasks.query(sql, params=params) == rows


@pytest.mark.parametrize(
    ("sql", "params", "words"),
    [
        ("SELECT ?", None, "1 parameters, and 'params' 0"),
        ("SELECT ?", [1, 2], "1 parameters, and 'params' 2"),
        ("SELECT :a", None, "lacks: a"),
        ("SELECT :a", {"b": 1}, "lacks: a and has what the statement does not use: b"),
        ("SELECT ?", {"a": 1}, "as a list"),
        ("SELECT 1", [1], "no parameters"),
        ("", None, "no statement"),
        ("-- nothing", None, "no statement"),
        ("SELECT 1\x00", None, "NUL"),
        ("SELECT CAST(x'ff' AS TEXT)", None, "must be UTF-8"),
        ("SELECT nope", None, "no such column: nope"),
        ("SELEC 1", None, "syntax error"),
    ],
)
def test_what_cannot_be_run_is_explained(tasks, sql, params, words):
    with pytest.raises(Refused) as refused:
        tasks.query(sql, params=params)
    assert words in refused.value.values["message"]
    assert refused.value.kind in ("invalid", "not_found")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("DELETE FROM tasks", "Use db_delete"),
        ("DELETE FROM tasks WHERE id = 1 RETURNING *", "Use db_delete"),
        ("INSERT OR REPLACE INTO tasks (id, title) VALUES (1, 'x')", "for good"),
        ("UPDATE OR REPLACE tasks SET id = 1 WHERE id = 2", "for good"),
        ("UPDATE tasks SET _deleted_at = NULL", "managed by the host"),
        ("UPDATE tasks SET _created_at = ''", "managed by the host"),
        ("DROP TABLE tasks", "db_migrate"),
        ("COMMIT", "not allowed"),
        ("ROLLBACK", "not allowed"),
        ("CREATE TABLE x (a)", "db_create_table"),
        ("SELECT 1", "only reads"),
        ("UPDATE tasks SET hours = 1; UPDATE tasks SET hours = 2", "one statement"),
        ("INSERT INTO _changelog (id) VALUES (1)", "belongs to the host"),
        ("UPDATE tasks SET title = (SELECT sql FROM sqlite_schema)", "belongs to the host"),
        ("UPDATE tasks SET title = (SELECT hash FROM _changelog)", "belongs to the host"),
    ],
)
def test_execute_refuses_what_other_tools_or_nobody_may_do(tasks, sql, words):
    with pytest.raises(Refused) as refused:
        tasks.ask("execute", sql=sql)
    assert words in refused.value.values["message"]
    assert tasks.query("SELECT id, title, hours FROM tasks") == [
        [1, "Task 1", None],
        [2, "Task 2", None],
        [3, "Task 3", None],
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE tasks SET hours = 1",
        "UPDATE tasks AS t SET hours = 1 WHERE t._deleted_at IS NOT NULL RETURNING title",
        "WITH all_of_them AS (SELECT id FROM main.tasks) UPDATE main.tasks SET hours = 1 WHERE id IN all_of_them",
        "INSERT INTO tasks (id, title) VALUES (2, 'new') ON CONFLICT (id) DO UPDATE SET title = 'new'",
    ],
)
def test_execute_leaves_deleted_rows_alone(hidden, sql):
    with pytest.raises(Refused, match=r"1 deleted rows of 'tasks'.*db_restore") as refused:
        hidden.ask("execute", sql=sql)
    assert refused.value.kind == "refused"
    assert hidden.query("SELECT count(*) FROM tasks WHERE hours = 1", include_deleted=True) == [[0]]
    assert hidden.ask("execute", sql="UPDATE tasks SET hours = 1 WHERE _deleted_at IS NULL")["changed"] == 2


def test_execute_returns_what_returning_asks_for(tasks):
    done = tasks.ask("execute", sql="UPDATE tasks SET hours = id * 2 WHERE id > 1 RETURNING id, hours")
    assert (done["changed"], done["rows"]) == (2, [[2, 4.0], [3, 6.0]])


@pytest.mark.parametrize("op", ["query", "execute"])
def test_a_statement_of_the_hosts_own_is_refused_when_a_model_says_it(tasks, op):
    tasks.ask("schema")
    tasks.changes()
    opened = next(iter(tasks.worker.databases.values()))
    for text in ("COMMIT", "ROLLBACK", "BEGIN IMMEDIATE", "SELECT name, purpose FROM _tables", "PRAGMA page_count"):
        for connection in (opened.reader.connection, opened.writer.connection):
            for _ in range(2):  # so that apsw has it prepared
                with contextlib.suppress(apsw.Error):
                    connection.raw.execute(text).fetchall()
            if connection.raw.in_transaction:
                connection.raw.execute("ROLLBACK")
        with pytest.raises(Refused) as refused:
            tasks.ask(op, sql=text)
        assert refused.value.kind == "refused"


def test_a_statement_that_is_asked_again_sees_what_has_changed_since(tasks):
    sql = "SELECT * FROM tasks ORDER BY id"
    names = [row[1] for row in tasks.query(sql)]
    assert names == ["Task 1", "Task 2", "Task 3"]
    tasks.ask("delete", table="tasks", where={"id": 2})
    assert [row[1] for row in tasks.query(sql)] == ["Task 1", "Task 3"]
    assert [row[1] for row in tasks.query(sql, include_deleted=True)] == names
    assert [row[1] for row in tasks.query(sql)] == ["Task 1", "Task 3"]
    tasks.ask("alter_table", table="tasks", add_columns=[{"name": "place", "type": "text", "default": "home"}])
    assert tasks.query(sql)[0][-1] == "home"
    tasks.ask("migrate", purpose="x", up_sql="DROP TABLE tasks", down_sql="")
    with pytest.raises(Refused, match="no table 'tasks'"):
        tasks.query(sql)


def test_an_answer_is_cut_exactly_where_it_would_grow_too_large(tasks):
    """Whatever rows are read at a time: the next one is left out because it alone would be too much."""
    sql = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 400)"
        " SELECT x, substr(:text, 1, 1 + x * 7 % 900) FROM n"
    )
    found = tasks.ask("query", sql=sql, params={"text": "y" * 900})
    everything = [[x, "y" * (1 + x * 7 % 900)] for x in range(1, 401)]
    assert found["rows"] == everything[: found["row_count"]]
    assert found["truncated"]
    shown = orjson.dumps(everything[: found["row_count"]])
    one_more = orjson.dumps(everything[: found["row_count"] + 1])
    assert len(shown) <= 80_000 < len(one_more)


@pytest.mark.parametrize(("limit", "is_truncated"), [(1, True), (31, True), (32, True), (99, True), (100, False)])
def test_an_answer_has_as_many_rows_as_were_asked_for(tasks, limit, is_truncated):
    sql = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 100) SELECT x, x FROM n"
    found = tasks.ask("query", sql=sql, limit=limit)
    assert found["rows"] == [[x, x] for x in range(1, limit + 1)]
    assert (found["row_count"], found["truncated"]) == (limit, is_truncated)
