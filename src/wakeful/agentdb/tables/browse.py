"""Rows as people look at them: live, deleted or all, filtered, sorted, a page at a time."""
# pyright: reportUnknownMemberType=false

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from wakeful.agentdb.database import GuardedConnection, no_such_table, quoted, row_id_of
from wakeful.agentdb.process.guard import is_reserved
from wakeful.agentdb.tables import query, where

MOST_BYTES = 2_000_000
_SHOW = {"active": "_deleted_at IS NULL", "deleted": "_deleted_at IS NOT NULL", "all": "true"}


def rows(
    connection: GuardedConnection,
    table: str,
    *,
    show: str = "active",
    condition: Mapping[str, Any] | None = None,
    sort: str | None = None,
    descending: bool = False,
    limit: int = 100,
    offset: int = 0,
) -> dict[str, Any]:
    """Return a page of rows, each with its row id first, and how many there are."""
    columns = need_table(connection, table)
    chosen, values = where.to_sql(condition, columns) if condition else ("true", [])
    if sort is not None:
        where.need_column(sort, columns, field="sort")
    id_name = row_id_of(columns)
    order = f"{quoted(sort)} {'DESC' if descending else 'ASC'}, {id_name}" if sort else id_name
    source = f"FROM main.{quoted(table)} WHERE {_SHOW[show]} AND {chosen}"
    [(total,)] = connection.raw.execute(f"SELECT count(*) {source}", values).fetchall()
    named = ", ".join(quoted(name) for name in columns)
    page = f"SELECT {id_name}, {named} {source} ORDER BY {order} LIMIT ? OFFSET ?"
    with closing(connection.raw.execute(page, (*values, limit, offset))) as cursor:
        return {"table": table, "total": total, **query.take(("_row_id", *columns), cursor, limit, MOST_BYTES)}


def whole(connection: GuardedConnection, table: str, show: str) -> tuple[list[str], Any]:
    """Return all rows of a table, for a file."""
    columns = need_table(connection, table)
    named = ", ".join(quoted(name) for name in columns)
    return columns, connection.raw.execute(
        f"SELECT {named} FROM main.{quoted(table)} WHERE {_SHOW[show]} ORDER BY {row_id_of(columns)}"
    )


def need_table(connection: GuardedConnection, table: str) -> list[str]:
    columns = [] if is_reserved(table) else connection.columns(table)
    if not columns:
        raise no_such_table(table, connection.tables())
    return columns
