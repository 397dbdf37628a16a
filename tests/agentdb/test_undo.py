"""Undoing the changes of one run."""

import pytest


def state(database):
    rows = database.query(
        "SELECT id, title, state, _deleted_at IS NOT NULL FROM tasks ORDER BY id", include_deleted=True
    )
    return [tuple(row) for row in rows]


BEFORE = [(1, "Task 1", "open", 0), (2, "Task 2", "open", 0), (3, "Task 3", "open", 0)]


def test_updates_deletions_and_insertions_are_taken_back(tasks):
    tasks.ask("update", table="tasks", set={"state": "a"}, where={"id": 1}, run="bad")
    tasks.ask("update", table="tasks", set={"state": "b"}, where={"id": 1}, run="bad")
    tasks.ask("delete", table="tasks", where={"id": 2}, run="bad")
    tasks.ask("execute", sql="UPDATE tasks SET title = 'x' WHERE id = 3", run="bad")
    tasks.ask("insert", table="tasks", rows=[{"title": "new"}], run="bad")
    done = tasks.ask("undo", run_id="bad", actor="user", run=None)
    assert (done["undone"], done["left"]) == (4, [])
    assert state(tasks) == [*BEFORE, (4, "new", "open", 1)]
    assert [change["op"] for change in tasks.changes()[-5:]] == ["undo"] * 5
    assert tasks.changes()[-5]["detail"] == {"undoes": "bad"}
    assert tasks.ask("verify")["intact"]


def test_a_row_that_others_changed_since_is_reported_and_left(tasks):
    tasks.ask("update", table="tasks", set={"state": "a"}, where={"id": [1, 2]}, run="bad")
    tasks.ask("update", table="tasks", set={"state": "mine"}, where={"id": 1}, actor="user", run=None)
    done = tasks.ask("undo", run_id="bad", actor="user", run=None)
    assert done["undone"] == 1
    assert done["left"] == [{"table": "tasks", "row_id": 1, "why": f"it was changed since, at {tasks.at}, by the user"}]
    assert [row[2] for row in state(tasks)] == ["mine", "open", "open"]


def test_what_others_wrote_between_two_writes_of_the_run_is_not_lost(tasks):
    tasks.ask("update", table="tasks", set={"state": "a"}, where={"id": 1}, run="bad")
    tasks.ask("update", table="tasks", set={"title": "mine"}, where={"id": 1}, actor="user", run=None)
    tasks.ask("update", table="tasks", set={"state": "b"}, where={"id": 1}, run="bad")
    assert tasks.ask("undo", run_id="bad", actor="user", run=None)["undone"] == 0
    assert state(tasks)[0] == (1, "mine", "b", 0)


def test_undoing_twice_changes_nothing_more(tasks):
    tasks.ask("update", table="tasks", set={"state": "a"}, where={"id": 1}, run="bad")
    tasks.ask("undo", run_id="bad", actor="user", run=None)
    again = tasks.ask("undo", run_id="bad", actor="user", run=None)
    assert (again["undone"], again["left"][0]["why"]) == (0, f"it was undone already, at {tasks.at}")
    assert state(tasks) == BEFORE


@pytest.mark.parametrize("run", ["unknown", "run-0"])
def test_a_run_that_wrote_nothing_has_nothing_to_undo(tasks, run):
    assert tasks.ask("undo", run_id=run, actor="user", run=None) == {
        "run_id": run,
        "undone": 0,
        "left": [],
        "left_count": 0,
    }


def test_what_cannot_be_put_back_is_reported(tasks):
    tasks.ask("update", table="tasks", set={"id": 9}, where={"id": 1}, run="bad")
    tasks.ask("update", table="tasks", set={"state": "a"}, where={"id": 2}, run="bad")
    tasks.ask("migrate", purpose="x", up_sql="ALTER TABLE tasks DROP COLUMN state", down_sql="", run="bad")
    done = tasks.ask("undo", run_id="bad", actor="user", run=None)
    assert {each["why"] for each in done["left"]} == {
        "its key was changed",
        "the table has lost a column since",
        "changes of the schema and of views are not undone",
    }


def test_a_row_in_the_way_is_reported(database):
    columns = [{"name": "url", "type": "text", "unique": True}]
    database.ask("create_table", name="pages", purpose="x", columns=columns, indexes=[])
    database.ask("insert", table="pages", rows=[{"url": "a"}])
    database.ask("update", table="pages", set={"url": "b"}, where={"id": 1}, run="bad")
    database.ask("insert", table="pages", rows=[{"url": "a"}], actor="user", run=None)
    [left] = database.ask("undo", run_id="bad", actor="user", run=None)["left"]
    assert "another row is in its way" in left["why"]
    assert database.query("SELECT url FROM pages ORDER BY id") == [["b"], ["a"]]
