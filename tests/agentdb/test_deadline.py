"""A request has its time for everything, not for SQLite's part alone."""

import pytest

from databases import Refused

LATE = -1.0  # the time is over before it begins; SQLite, which looks every 20,000 steps, would not notice


@pytest.mark.parametrize(
    ("op", "args"),
    [
        pytest.param("query", {"sql": "SELECT * FROM tasks"}, id="query"),
        pytest.param("rows", {"table": "tasks"}, id="rows"),
        pytest.param("export", {"table": "tasks", "format": "csv"}, id="export"),
        pytest.param("changelog", {}, id="changelog"),
        pytest.param("verify", {}, id="verify"),
        pytest.param("insert", {"table": "tasks", "rows": [{"title": "late"}]}, id="insert"),
        pytest.param(
            "upsert", {"table": "tasks", "rows": [{"title": "late"}], "conflict_columns": ["title"]}, id="upsert"
        ),
        pytest.param("update", {"table": "tasks", "set": {"title": "late"}, "where": {"id": 1}}, id="update"),
        pytest.param("delete", {"table": "tasks", "where": {"id": 1}}, id="delete"),
        pytest.param("execute", {"sql": "UPDATE tasks SET title = 'late'"}, id="execute"),
        pytest.param(
            "import", {"table": "tasks", "text": "title\nlate", "format": "csv", "create": False}, id="import"
        ),
        pytest.param("undo", {"run_id": "run-1"}, id="undo"),
    ],
)
def test_python_s_part_of_a_request_is_stopped_at_its_deadline(tasks, op, args):
    before = tasks.query("SELECT title, _deleted_at FROM tasks", include_deleted=True)
    entries = len(tasks.changes())
    with pytest.raises(Refused, match="took too long and was stopped") as refused:
        tasks.ask(op, seconds=LATE, **args)
    assert refused.value.kind == "timeout"
    assert tasks.query("SELECT title, _deleted_at FROM tasks", include_deleted=True) == before
    assert len(tasks.changes()) == entries


def test_an_import_with_much_to_parse_is_stopped_in_time(tasks):
    names = ",".join(f"c{number}" for number in range(90))
    text = "\n".join([names, *[",".join(["12345"] * 90)] * 15_000])  # 8 MB
    with pytest.raises(Refused, match="took too long"):
        tasks.ask("import", seconds=0.2, table="wide", text=text, format="csv", create=True)
    assert [table["name"] for table in tasks.ask("schema")["tables"]] == ["tasks"]
