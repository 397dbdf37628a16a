"""Every changed row is in the changelog, whether an agent or a person changed it, and a later edit shows."""

import pytest
import sqlcipher3

from databases import KEY, Refused


def told(database, **which):
    return [(change["op"], change["table_name"], change["row_id"]) for change in database.changes(**which)]


def test_every_tool_is_logged_with_actor_and_run(tasks):
    tasks.ask("update", table="tasks", set={"state": "done"}, where={"id": 1}, run="run-2")
    tasks.ask("delete", table="tasks", where={"id": 2}, actor="user", run=None)
    tasks.ask("restore", table="tasks", where={"id": 2}, actor="user", run=None)
    tasks.ask("upsert", table="tasks", rows=[{"title": "Task 3", "hours": 3}], conflict_columns=["title"])
    tasks.ask("execute", sql="UPDATE tasks SET hours = 5 WHERE id > ?", params=[1])
    assert told(tasks) == [
        ("schema", "tasks", None),
        *(("insert", "tasks", number) for number in (1, 2, 3)),
        ("update", "tasks", 1),
        ("soft_delete", "tasks", 2),
        ("restore", "tasks", 2),
        ("update", "tasks", 3),
        ("execute", None, None),
        ("execute", "tasks", 2),
        ("execute", "tasks", 3),
    ]
    update, deletion = tasks.changes()[4:6]
    assert (update["actor"], update["run_id"], update["at"]) == ("agent", "run-2", tasks.at)
    assert (update["before"]["state"], update["after"]["state"]) == ("open", "done")
    assert (deletion["actor"], deletion["run_id"], deletion["after"]["_deleted_at"]) == ("user", None, tasks.at)
    assert told(tasks, run_id="run-2") == [("update", "tasks", 1)]
    assert told(tasks, table="tasks", row_id=2)[-1] == ("execute", "tasks", 2)


def test_what_a_statement_writes_carries_the_hosts_times_in_the_table_and_in_the_log(tasks):
    tasks.ask("execute", sql="INSERT INTO tasks (title, _created_at, _deleted_at) VALUES ('x', '1999', '1999')")
    [row] = tasks.query("SELECT _created_at, _updated_at, _deleted_at FROM tasks WHERE title = 'x'")
    assert row == [tasks.at, tasks.at, None]
    after = tasks.changes()[-1]["after"]
    assert (after["_created_at"], after["_deleted_at"]) == (tasks.at, None)


def test_a_migration_logs_the_rows_it_writes_under_the_columns_they_had(tasks):
    tasks.ask(
        "migrate",
        purpose="split",
        up_sql="UPDATE tasks SET hours = 1 WHERE id = 1; ALTER TABLE tasks RENAME COLUMN hours TO spent;"
        " CREATE TABLE notes (text); INSERT INTO notes (text) SELECT title FROM tasks WHERE id < 3",
        down_sql="",
    )
    changes = tasks.changes()[4:]
    assert [(each["op"], each["table_name"], each["row_id"]) for each in changes] == [
        ("execute", "tasks", 1),
        ("execute", "notes", 1),
        ("execute", "notes", 2),
        ("schema", None, None),
    ]
    assert changes[0]["after"]["hours"] == 1
    assert changes[1]["after"]["_created_at"] == tasks.at
    assert tasks.ask("verify") == {"intact": True, "broken_at": None, "is_cut_off": False}


def test_what_fails_is_not_logged(tasks):
    before = tasks.changes()
    with pytest.raises(Refused):
        tasks.ask("insert", table="tasks", rows=[{"title": "x"}, {"title": None}])
    with pytest.raises(Refused):
        tasks.ask("execute", sql="UPDATE tasks SET title = NULL")
    assert tasks.changes() == before


@pytest.mark.parametrize(
    ("edit", "broken_at"),
    [
        ("UPDATE _changelog SET actor = 'user' WHERE id = 2", 2),
        ("UPDATE _changelog SET after = replace(after, 'Task 1', 'Task X') WHERE id = 2", 2),
        ("DELETE FROM _changelog WHERE id = 2", 2),
        ("UPDATE _changelog SET at = '1999' WHERE id = 4", 4),
        ("UPDATE _changelog SET hash = x'00' WHERE id = 3", 3),
    ],
)
def test_a_later_edit_shows(tasks, edit, broken_at):
    assert tasks.ask("verify")["intact"]
    tasks.close()
    forger = sqlcipher3.connect(tasks.path)
    forger.execute(f"PRAGMA key = \"x'{KEY.hex()}'\"")
    forger.execute(edit)
    forger.commit()
    forger.close()
    assert tasks.ask("verify") == {"intact": False, "broken_at": broken_at, "is_cut_off": False}


def test_an_end_that_was_cut_off_shows_to_who_knows_how_far_it_reached(tasks):
    head = tasks.answer("insert", table="tasks", rows=[{"title": "last"}])
    known = [head["last_change"], head["last_hash"]]
    assert tasks.ask("verify", known=known)["intact"]
    tasks.ask("insert", table="tasks", rows=[{"title": "later still"}])
    assert tasks.ask("verify", known=known)["intact"]
    connection = next(iter(tasks.worker.databases.values())).writer.raw
    connection.execute("DELETE FROM _changelog WHERE id > 3")
    assert tasks.ask("verify")["intact"]  # by itself a shorter chain is whole
    assert tasks.ask("verify", known=known) == {"intact": False, "broken_at": 4, "is_cut_off": True}
    tasks.ask("insert", table="tasks", rows=[{"title": "forged"}] * 3)  # as long again, and not the same
    assert tasks.ask("verify", known=known) == {"intact": False, "broken_at": 1, "is_cut_off": False}


def test_a_page_of_very_large_rows_has_fewer_of_them(tasks):
    tasks.quota = 64 * 1024 * 1024
    tasks.ask("insert", table="tasks", rows=[{"title": "x" * 900_000}] * 10)
    page = tasks.ask("changelog", limit=200)
    assert (len(page["changes"]), page["is_more"]) == (2, True)
    seen = [change["row_id"] for change in tasks.changes()]
    assert seen == [None, *range(1, 14)]


def test_one_call_changes_only_so_many_rows(tasks):
    numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 30000)"
    with pytest.raises(Refused, match="at most 20,000 rows") as refused:
        tasks.ask("execute", sql=f"{numbers} INSERT INTO tasks (title) SELECT x FROM n")
    assert refused.value.kind == "limit"
    assert tasks.query("SELECT count(*) FROM tasks") == [[3]]
