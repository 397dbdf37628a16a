"""Descriptions of tables: the types of columns as they were declared."""

import pytest

from wakeful.agentdb.errors import STORAGE

COLUMNS = [{"name": f"a_{kind}", "type": kind} for kind in STORAGE]
DECLARED = {f"a_{kind}": kind for kind in STORAGE}


@pytest.fixture
def typed(database):
    """A database with a table that has a column of each type."""
    database.ask("create_table", name="typed", purpose="x", columns=COLUMNS, indexes=[])
    return database


def declared(database, table="typed"):
    [found] = [each for each in database.ask("schema")["tables"] if each["name"] == table]
    return {column["name"]: column["declared"] for column in found["columns"] if not column["system"]}


def migrate(database, sql):
    database.ask("migrate", purpose="x", up_sql=sql, down_sql="")


def test_each_column_has_the_type_it_was_declared_with(typed):
    assert declared(typed) == {"id": "integer"} | DECLARED


def test_an_added_column_has_the_type_it_was_declared_with(tasks):
    added = [{"name": "paid", "type": "boolean", "default": False}, {"name": "more", "type": "json"}]
    tasks.ask("alter_table", table="tasks", add_columns=added)
    found = declared(tasks, "tasks")
    assert (found["paid"], found["more"]) == ("boolean", "json")


def test_renaming_a_table_and_a_column_keeps_the_declared_types(typed):
    migrate(
        typed,
        "ALTER TABLE typed RENAME COLUMN a_date TO day; ALTER TABLE typed DROP COLUMN a_text;"
        "ALTER TABLE typed RENAME TO other",
    )
    found = declared(typed, "other")
    assert (found["day"], found["a_boolean"], "a_text" in found) == ("date", "boolean", False)


def test_a_recovered_table_has_its_declared_types(typed):
    typed.ask("insert", table="typed", rows=[{"a_boolean": True}])
    migrate(typed, "DROP TABLE typed")
    [snapshot] = typed.ask("snapshots")
    typed.ask("recover", snapshot=snapshot["name"], table="typed", new_name="again")
    assert declared(typed, "again") == {"id": "integer"} | DECLARED


def test_a_migration_declares_a_type_by_its_name_or_in_a_comment(database):
    migrate(
        database,
        "CREATE TABLE plain (a BOOLEAN, b date, c VARCHAR(20), d);"
        "CREATE TABLE strict (a /* boolean */ INTEGER, b /*json*/ TEXT, c /* json */ INTEGER, d /* what */ TEXT)"
        " STRICT",
    )
    assert declared(database, "plain") == {"a": "boolean", "b": "date", "c": None, "d": None}
    # A comment that does not fit what SQLite stores does not count.
    assert declared(database, "strict") == {"a": "boolean", "b": "json", "c": "integer", "d": "text"}
