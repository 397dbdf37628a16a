"""The tables of an embedded store, read in an order that does not change between two attempts."""
# apsw's types name collections.abc.Buffer, which Python 3.11 does not have, so its methods count as partly unknown.
# pyright: reportUnknownMemberType=false

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import apsw

# Not copied: the schema's own record; the search index, which is built again; and what is about nodes.
LEFT_OUT = frozenset(
    {
        "migrations",
        "store_sequence",
        "search_texts",
        "search_progress",
        "nodes",
        "directories",
        "agent_directories",
        "store_moves",
    }
)
_INDEX = "search_terms"  # a virtual table and the tables that SQLite keeps for it
_NUL, _REPLACEMENT = "\x00", "\ufffd"  # PostgreSQL stores no NUL in a text

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of the store."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]  # columns that tell rows apart; all of them if there is no primary key
    needs: frozenset[str]  # tables that its rows refer to
    rows: int


def find_tables(connection: apsw.Connection) -> list[Table]:
    """Return the tables to copy, each after those that it refers to."""
    found = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name"
    names = [str(name) for (name,) in cast("list[tuple[str]]", connection.execute(found).fetchall())]
    return _in_order([_read(connection, name) for name in names if _is_copied(name)])


def read_rows(connection: apsw.Connection, table: Table, after: int) -> Iterator[tuple[int, Values]]:
    """Yield the rows behind a rowid, each with its own."""
    columns = ", ".join(table.columns)
    rows = connection.execute(f"SELECT rowid, {columns} FROM {table.name} WHERE rowid > ? ORDER BY rowid", (after,))
    for row_id, *values in cast("Iterator[tuple[Any, ...]]", rows):
        yield row_id, _storable(values)


def read_sorted(connection: apsw.Connection, table: Table) -> Iterator[Values]:
    """Yield the rows in the order of their key."""
    columns, key = ", ".join(table.columns), ", ".join(table.key)
    for values in cast("Iterator[Values]", connection.execute(f"SELECT {columns} FROM {table.name} ORDER BY {key}")):
        yield _storable(values)


def _is_copied(name: str) -> bool:
    return name not in LEFT_OUT and name != _INDEX and not name.startswith(f"{_INDEX}_")


def _read(connection: apsw.Connection, name: str) -> Table:
    info = cast("list[tuple[Any, ...]]", connection.execute(f"PRAGMA table_info({name})").fetchall())
    columns = tuple(str(row[1]) for row in info)
    key = tuple(str(row[1]) for row in sorted(info, key=lambda row: row[5]) if row[5])
    references = cast("list[tuple[Any, ...]]", connection.execute(f"PRAGMA foreign_key_list({name})").fetchall())
    count = cast("int", connection.execute(f"SELECT COUNT(*) FROM {name}").get)
    needs = frozenset(str(row[2]) for row in references)
    return Table(name=name, columns=columns, key=key or columns, needs=needs, rows=count)


def _in_order(tables: list[Table]) -> list[Table]:
    ordered: list[Table] = []
    while len(ordered) < len(tables):
        done = {table.name for table in ordered}
        ordered += [table for table in tables if table.name not in done and table.needs <= done]
    return ordered


def _storable(values: Any) -> Values:
    return tuple(
        value.replace(_NUL, _REPLACEMENT) if isinstance(value, str) and _NUL in value else value for value in values
    )
