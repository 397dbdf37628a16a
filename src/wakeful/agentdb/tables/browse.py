"""Operations that show a database: its schema, and tables a page at a time."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from wakeful.agentdb.database import GuardedConnection, no_such_table, quoted, row_id_of
from wakeful.agentdb.files import quota
from wakeful.agentdb.files.open_database import OpenDatabase
from wakeful.agentdb.operation import operation
from wakeful.agentdb.process.guard import is_reserved
from wakeful.agentdb.tables import query, schema, views
from wakeful.agentdb.tables.where import all_to_sql, need_column

MAX_BYTES = 2_000_000
_SHOW = {"active": "_deleted_at IS NULL", "deleted": "_deleted_at IS NOT NULL", "all": "true"}


@operation("schema", path="GET /schema", command="schema")
def show_schema(db: OpenDatabase, with_counts: bool = True, with_system: bool = False) -> dict[str, Any]:
    """Return tables, views and the space used."""
    with db.reader.looking() as connection:
        found: dict[str, Any] = {
            "tables": schema.describe(connection, with_counts=with_counts),
            "views": views.listed(connection),
            "storage": {"used_bytes": quota.used_bytes(connection.raw), "quota_bytes": db.quota},
        }
        if with_system:
            found["system_tables"] = schema.system_tables(connection)
    return found


@operation("names")
def names(db: OpenDatabase) -> dict[str, Any]:
    """Return the names of tables, and those of views with their required parameters."""
    with db.reader.looking() as connection:
        required = {view["name"]: view["required_parameters"] for view in views.listed(connection)}
        return {"tables": connection.tables(), "views": required}


@operation("rows", path="GET /tables/{table}/rows", command="rows")
def rows(
    db: OpenDatabase,
    table: str,
    show: str = "active",
    where: Sequence[Mapping[str, Any]] = (),
    sort: str | None = None,
    descending: bool = False,
    limit: int = 100,
    offset: int = 0,
) -> dict[str, Any]:
    """Return a page of the rows that meet all conditions, each with its row id first, and the number of all of them."""
    with db.reader.looking() as connection:
        columns = _need_table(connection, table)
        chosen, values = all_to_sql(where, columns)
        if sort is not None:
            need_column(sort, columns, field="sort")
        id_name = row_id_of(columns)
        order = f"{quoted(sort)} {'DESC' if descending else 'ASC'}, {id_name}" if sort else id_name
        source = f"FROM main.{quoted(table)} WHERE {_SHOW[show]} AND {chosen}"
        [(total,)] = connection.raw.execute(f"SELECT count(*) {source}", values).fetchall()
        page = f"SELECT {id_name}, {', '.join(map(quoted, columns))} {source} ORDER BY {order} LIMIT ? OFFSET ?"
        with closing(connection.raw.execute(page, (*values, limit, offset))) as cursor:
            return {"table": table, "total": total, **query.take(("_row_id", *columns), cursor, limit, MAX_BYTES)}


def all_rows(connection: GuardedConnection, table: str, show: str) -> tuple[list[str], Any]:
    """Return the columns of a table, and a cursor over all its rows."""
    columns = _need_table(connection, table)
    return columns, connection.raw.execute(
        f"SELECT {', '.join(map(quoted, columns))} FROM main.{quoted(table)} WHERE {_SHOW[show]}"
        f" ORDER BY {row_id_of(columns)}"
    )


def _need_table(connection: GuardedConnection, table: str) -> list[str]:
    columns = [] if is_reserved(table) else connection.columns(table)
    if not columns:
        raise no_such_table(table, connection.tables())
    return columns
