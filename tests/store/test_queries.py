"""One SQL text, read by two databases."""

import pytest

from wakeful.store import rows


def test_both_databases_know_the_same_queries():
    assert rows.for_sqlite().keys() <= rows.for_postgres().keys()
    # On one node agents' files are not in the store, and SQLite has one writer at a time.
    others = rows.for_postgres().keys() - rows.for_sqlite().keys()
    assert {name for name in others if "home" not in name} == {"lock_token", "live_nodes"}


@pytest.mark.parametrize(
    "name",
    [name for name, each in rows.for_postgres().items() if "json_pop" in each.sql and name in rows.for_sqlite()],
)
def test_a_row_has_one_order_for_both_databases(name):
    assert rows.for_sqlite()[name].names == rows.for_postgres()[name].names


def test_parameters_are_numbered_once_per_name_for_postgres():
    query = rows.for_postgres()["claim_outgoing"]
    assert sorted(query.names) == ["kind", "latest", "left_behind", "most", "now"]
    assert "$5" in query.sql
    assert "$6" not in query.sql
    assert ":" not in query.sql


def test_a_clause_for_postgres_alone_is_not_shown_to_sqlite():
    assert "SKIP LOCKED" not in rows.for_sqlite()["due_wakes"].sql
    assert "FOR UPDATE OF w SKIP LOCKED" in rows.for_postgres()["due_wakes"].sql


def test_rows_become_one_row_for_sqlite_and_all_of_them_for_postgres():
    one = rows.for_sqlite()["begin_wakes"]
    assert f"wakes.id = ?{one.names.index('id') + 1}" in one.sql
    query = rows.for_postgres()["begin_wakes"]
    assert "json_populate_recordset" in query.sql
    assert set(query.names) == {"id", "updated_at"}


def test_rows_that_are_added_as_they_are_become_values_for_sqlite():
    sql = rows.for_sqlite()["add_runs"].sql
    assert "VALUES (" in sql
    assert "SELECT" not in sql
    assert "RETURNING" not in sql


@pytest.mark.parametrize("name", sorted(rows.for_sqlite()))
def test_no_query_keeps_a_mark_of_ours(name):
    for sql in (rows.for_sqlite()[name].sql, rows.for_postgres()[name].sql):
        assert "/*" not in sql
        assert "rows(" not in sql
        assert "--" not in sql
