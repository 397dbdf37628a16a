"""Declarations of operations: what error texts call them exists, and the one private name of apsw works."""

import apsw
import pytest

from databases import Database, Refused
from wakeful.agentdb.operations import OPERATIONS
from wakeful.cli.main import load
from wakeful.database import rest as database_rest
from wakeful.database import rest_rows


def test_every_route_and_command_that_an_error_may_name_exists():
    routers = (database_rest.router, rest_rows.router, database_rest.router, rest_rows.router)
    routes = {f"{method} {each.path}" for router in routers for each in router.routes for method in each.methods}
    named = load("db").commands
    for operation in OPERATIONS.values():
        if operation.path is not None:
            method, path = operation.path.split(" ")
            assert f"{method} /agents/{{agent_id}}/db{path}" in routes
        assert operation.command is None or operation.command in named


@pytest.mark.parametrize(
    ("door", "name"),
    [
        ("tool", "db_alter_table"),
        ("route", "POST /agents/{agent_id}/db/tables/{table}/columns"),
        ("command", "`wakeful db alter`"),
    ],
)
def test_an_error_names_an_operation_as_its_reader_calls_it(tasks: Database, door: str, name: str):
    with pytest.raises(Refused) as refused:
        tasks.ask("create_table", door=door, name="tasks", purpose="x", columns=[{"name": "a", "type": "text"}])
    assert str(refused.value) == f"The table 'tasks' exists. Use {name} to add columns."


def test_apsw_prepares_a_statement_without_values_for_its_parameters():
    """Without `_null_bindings`, a statement with parameters could not be checked before it is run: neither saved views
    nor the message about missing parameters would work. apsw.ext.query_info is public, but takes 0.1 s to import."""
    connection = apsw.Connection(":memory:")
    seen = []
    cursor = connection.cursor()
    cursor.exec_trace = lambda cursor, sql, _: bool(seen.append(cursor.bindings_names))
    with pytest.raises(apsw.ExecTraceAbort):
        cursor.execute("SELECT ?, :name", apsw._null_bindings)  # noqa: SLF001
    assert seen == [(None, "name")]
