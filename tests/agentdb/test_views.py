"""Saved views."""

import pytest

from databases import TASKS, Refused

OPEN = {
    "name": "open_tasks",
    "sql": "SELECT title, hours FROM tasks WHERE state = :state AND id >= :least",
    "description": "What is open.",
    "parameters": [{"name": "state"}, {"name": "least", "default": 2}],
    "render": "bar",
    "pinned": None,
}


def test_a_view_runs_with_its_parameters_and_leaves_deleted_rows_out(tasks):
    assert tasks.ask("define_view", **OPEN) == {"view": "open_tasks", "outcome": "created", "pinned": False}
    tasks.ask("delete", table="tasks", where={"id": 3})
    shown = tasks.ask("run_view", name="open_tasks", params={"state": "open"})
    assert (shown["rows"], shown["render"], shown["changed_at"]) == ([["Task 2", None]], "bar", tasks.at)
    assert tasks.ask("run_view", name="open_tasks", params={"state": "open", "least": 1})["row_count"] == 2


def test_a_view_is_replaced_and_stays_pinned_until_it_is_unpinned(tasks):
    tasks.ask("define_view", **OPEN | {"pinned": True})
    assert tasks.ask("define_view", **OPEN) == {"view": "open_tasks", "outcome": "replaced", "pinned": True}
    tasks.ask("pin_view", name="open_tasks", pinned=False)
    [view] = tasks.ask("list_views")
    assert (view["pinned"], view["required_parameters"], view["render"]) == (False, ["state"], "bar")
    assert tasks.ask("drop_view", name="open_tasks")["dropped"]
    assert tasks.ask("list_views") == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "_x"}, "The name of a view must be"),
        ({"sql": "SELECT 1", "parameters": [{"name": "x"}]}, "does not use"),
        ({"sql": "SELECT :x", "parameters": []}, "must also declare: x"),
        ({"sql": "SELECT ?", "parameters": []}, "write :name"),
        ({"sql": "DELETE FROM tasks", "parameters": []}, "Only SELECT"),
        ({"sql": "SELECT 1; SELECT 2", "parameters": []}, "one statement"),
        ({"sql": "SELECT * FROM nope", "parameters": []}, "There is no table"),
        ({"sql": "SELECT * FROM _changelog", "parameters": []}, "belongs to the host"),
        ({"parameters": [{"name": "state"}, {"name": "state"}]}, "twice"),
    ],
)
def test_a_view_that_could_not_run_is_refused(tasks, changes, words):
    with pytest.raises(Refused) as refused:
        tasks.ask("define_view", **OPEN | changes)
    assert words in refused.value.values["message"]
    assert tasks.ask("list_views") == []


@pytest.mark.parametrize(
    ("params", "words"), [({}, "needs: state"), ({"state": "x", "nope": 1}, "has no parameter 'nope'")]
)
def test_a_view_says_what_it_needs(tasks, params, words):
    tasks.ask("define_view", **OPEN)
    with pytest.raises(Refused, match=words):
        tasks.ask("run_view", name="open_tasks", params=params)


def test_an_unknown_view_is_answered_with_those_there_are(tasks):
    with pytest.raises(Refused, match="db_define_view saves one"):
        tasks.ask("run_view", name="nope")
    tasks.ask("define_view", **OPEN)
    with pytest.raises(Refused, match="There are: open_tasks"):
        tasks.ask("drop_view", name="nope")


@pytest.mark.parametrize("name", ["tasks", "Tasks"])
def test_a_view_cannot_take_the_name_of_a_table(tasks, name):
    with pytest.raises(Refused, match="A table has the name") as refused:
        tasks.ask("define_view", **OPEN | {"name": name})
    assert (refused.value.kind, refused.value.values["field"]) == ("conflict", "name")
    assert tasks.ask("list_views") == []


@pytest.mark.parametrize(
    ("op", "args"),
    [
        pytest.param("create_table", TASKS | {"name": "Open_Tasks"}, id="create"),
        pytest.param("import", {"table": "open_tasks", "text": "a\n1", "format": "csv", "create": True}, id="import"),
        pytest.param(
            "migrate", {"purpose": "x", "up_sql": "CREATE TABLE open_tasks (a)", "down_sql": ""}, id="migrate"
        ),
        pytest.param(
            "migrate", {"purpose": "x", "up_sql": "ALTER TABLE tasks RENAME TO open_tasks", "down_sql": ""}, id="rename"
        ),
    ],
)
def test_a_table_cannot_take_the_name_of_a_view(tasks, op, args):
    tasks.ask("define_view", **OPEN)
    with pytest.raises(Refused, match="A view has the name") as refused:
        tasks.ask(op, **args)
    assert refused.value.kind == "conflict"
    assert [table["name"] for table in tasks.ask("schema")["tables"]] == ["tasks"]
    tasks.ask("drop_view", name="open_tasks")
    tasks.ask(op, **args)
