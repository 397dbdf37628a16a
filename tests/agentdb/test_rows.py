"""Rows, written by name and value."""

import pytest

from databases import Refused

LATER = "2026-03-03T12:00:00+00:00"


def titles(database, **args):
    return [title for (title,) in database.query("SELECT title FROM tasks ORDER BY id", **args)]


def refusal(database, op, **args):
    with pytest.raises(Refused) as refused:
        database.ask(op, **args)
    return refused.value.values


def test_rows_get_the_hosts_times_and_ids(tasks):
    [row] = tasks.query("SELECT id, title, state, _created_at, _updated_at, _deleted_at FROM tasks WHERE id = 1")
    assert row == [1, "Task 1", "open", tasks.at, tasks.at, None]


def test_an_update_refreshes_only_the_time_of_updating(tasks):
    tasks.at = LATER
    assert tasks.ask("update", table="tasks", set={"state": "done"}, where={"id": 2}) == {
        "table": "tasks",
        "updated": 1,
        "row_ids": [2],
    }
    rows = tasks.query("SELECT state, _created_at != _updated_at FROM tasks ORDER BY id")
    assert rows == [["open", 0], ["done", 1], ["open", 0]]


def test_a_deleted_row_is_hidden_and_comes_back(tasks):
    assert tasks.ask("delete", table="tasks", where={"id": 1})["deleted"] == 1
    assert titles(tasks) == ["Task 2", "Task 3"]
    assert titles(tasks, include_deleted=True) == ["Task 1", "Task 2", "Task 3"]
    assert tasks.ask("delete", table="tasks", where={"id": 1})["deleted"] == 0
    assert tasks.ask("restore", table="tasks", where={"id": 1})["restored"] == 1
    assert titles(tasks) == ["Task 1", "Task 2", "Task 3"]


def test_updates_leave_deleted_rows_alone(tasks):
    tasks.ask("delete", table="tasks", where={"id": 1})
    assert tasks.ask("update", table="tasks", set={"state": "x"}, where={"id": [1, 2]})["row_ids"] == [2]


def test_upsert_says_what_became_of_each_row(tasks):
    tasks.ask("delete", table="tasks", where={"id": 2})
    rows = [{"title": "Task 1", "hours": 1}, {"title": "Task 2", "hours": 2}, {"title": "Task 9", "hours": 9}]
    done = tasks.ask("upsert", table="tasks", rows=rows, conflict_columns=["title"])
    assert done["outcomes"] == ["updated", "revived", "inserted"]
    assert tasks.query("SELECT title, hours FROM tasks ORDER BY id") == [
        ["Task 1", 1.0],
        ["Task 2", 2.0],
        ["Task 3", None],
        ["Task 9", 9.0],
    ]


def test_upsert_refuses_a_key_that_fits_several_rows(tasks):
    refused = refusal(
        tasks, "upsert", table="tasks", rows=[{"state": "open", "title": "x"}], conflict_columns=["state"]
    )
    assert refused["kind"] == "conflict"
    assert titles(tasks) == ["Task 1", "Task 2", "Task 3"]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({"id": 2}, [2]),
        ({"hours": None}, [3]),
        ({"id": [1, 3]}, [1, 3]),
        ({"hours": {"gt": 1}}, [2]),
        ({"hours": {"gte": 1, "lt": 2}}, [1]),
        ({"title": {"like": "%2"}}, [2]),
        ({"id": {"ne": 2}}, [1, 3]),
        ({"id": {"not_in": [1, 2]}}, [3]),
        ({"id": {"between": [2, 3]}}, [2, 3]),
        ({"hours": {"is_null": False}}, [1, 2]),
        ({"state": "open", "id": 3}, [3]),
    ],
)
def test_conditions(tasks, where, ids):
    for number in (1, 2):
        tasks.ask("update", table="tasks", set={"hours": number}, where={"id": number})
    assert tasks.ask("delete", table="tasks", where=where)["row_ids"] == ids


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({}, "every row"),
        ({"titel": 1}, "Did you mean 'title'"),
        ({"id": {}}, "must have one of: eq"),
        ({"id": {"near": 1}}, "There are: eq"),
        ({"id": {"between": 3}}, "a list of two"),
        ({"id": []}, "1 to 500"),
        ({"hours": {"gt": None}}, "is_null"),
        ({'id" = 1 OR 1=1 --': 1}, "There is no column"),
    ],
)
def test_a_condition_that_says_nothing_is_refused(tasks, where, words):
    refused = refusal(tasks, "delete", table="tasks", where=where)
    assert words in refused["message"]
    assert refused["field"] == "where"
    assert len(titles(tasks)) == 3


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "'rows' must have at least one row"),
        ([{"titel": "x"}], "Did you mean 'title'"),
        ([{"title": "x", "_deleted_at": None}], "managed by the host"),
        ([{"title": "x"}, {"state": "y"}], "NOT NULL"),
        ([{"title": "x", "hours": "many"}], "cannot store TEXT value in REAL column"),
        ([{"title": "x" * 1_000_001}], "too long"),
        ([{"title": "x", "hours": 2**63}], "at most 64 bits"),
        ([{"title": {"base64": "?"}}], "not base64"),
    ],
)
def test_rows_that_do_not_fit_are_refused_all_together(tasks, rows, words):
    assert words in refusal(tasks, "insert", table="tasks", rows=rows)["message"]
    assert len(titles(tasks, include_deleted=True)) == 3


@pytest.mark.parametrize("table", ["nope", "_changelog", "sqlite_schema", "", 'tasks"; DROP TABLE tasks; --'])
def test_only_the_agents_own_tables_can_be_named(tasks, table):
    for op, args in (
        ("insert", {"rows": [{"title": "x"}]}),
        ("update", {"set": {"title": "x"}, "where": {"id": 1}}),
        ("delete", {"where": {"id": 1}}),
        ("rows", {}),
    ):
        refused = refusal(tasks, op, table=table, **args)
        assert (refused["kind"], refused["field"]) == ("not_found", "table")
        assert "tasks" in refused["message"]


def test_values_of_every_kind_come_back(tasks):
    tasks.ask(
        "create_table",
        name="things",
        purpose="x",
        columns=[
            {"name": "flag", "type": "boolean"},
            {"name": "data", "type": "json"},
            {"name": "raw", "type": "blob"},
            {"name": "big", "type": "integer"},
        ],
        indexes=[["flag", "big"]],
    )
    row = {"flag": True, "data": {"a": [1]}, "raw": {"base64": "AP8="}, "big": -(2**63)}
    tasks.ask("insert", table="things", rows=[row])
    assert tasks.query("SELECT flag, data, raw, big FROM things") == [[1, '{"a":[1]}', {"base64": "AP8="}, -(2**63)]]


def test_people_browse_deleted_rows_sorted_and_in_pages(tasks):
    tasks.ask("delete", table="tasks", where={"id": [1, 2]})
    page = tasks.ask("rows", table="tasks", show="deleted", sort="title", descending=True, limit=1)
    assert (page["total"], page["columns"][:3], page["rows"][0][:3]) == (
        2,
        ["_row_id", "id", "title"],
        [2, 2, "Task 2"],
    )
    assert tasks.ask("rows", table="tasks", show="all", limit=2, offset=2)["rows"][0][0] == 3
    assert tasks.ask("restore", table="tasks", row_ids=[1])["restored"] == 1
