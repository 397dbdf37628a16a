"""Checks of new and changed tables, before they are committed.

SQLite itself checks them: a table is created again, empty, in a database in memory.
"""
# pyright: reportUnknownMemberType=false

import math
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

import apsw

from wakeful.agentdb.database import SYSTEM_COLUMNS, GuardedConnection, quoted
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.files import files
from wakeful.agentdb.files.files import Raw
from wakeful.agentdb.process.guard import SqlGuard, is_reserved

_HOSTS_OWN = {("TEXT", 0, None), ("TEXT", 1, "''")}  # type, NOT NULL and DEFAULT as the host writes them

Texts = Mapping[tuple[str, str], str]  # of tables and indexes, by table and name


def texts(connection: GuardedConnection) -> Texts:
    """Return the schema as SQLite stores it."""
    found = connection.raw.execute("SELECT tbl_name, name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL")
    return {(table, name): sql for table, name, sql in found if not is_reserved(table)}


def check_changed(connection: GuardedConnection, before: Texts) -> None:
    """Refuse changed tables that use the host's columns or tables, or have a bad default."""
    now = texts(connection)
    changed = {table for (table, name), sql in now.items() if before.get((table, name)) != sql}
    for table in sorted(changed):
        indexes = [sql for key, sql in now.items() if key[0] == table and key[1] != table and before.get(key) != sql]
        _check_host_columns(connection.raw, table, now[table, table], indexes)
        _check_foreign_keys(connection.raw, table)
        check_defaults(connection.raw, table)


def _check_host_columns(raw: Raw, table: str, sql: str, indexes: Iterable[str]) -> None:
    """Refuse uses of the host's columns: SQLite can drop a column only if no key, index or CHECK names it."""
    found = raw.execute(
        'SELECT name, upper(type), "notnull", dflt_value FROM pragma_table_xinfo(?, ?) WHERE NOT pk AND NOT hidden',
        (table, "main"),
    )
    plain = {name for name, *shape in found if tuple(shape) in _HOSTS_OWN}
    for column in SYSTEM_COLUMNS:
        if column not in plain:
            raise _managed_by_host(table, column)
    with closing(_empty_database()) as clone:
        for text in (sql, *indexes):
            clone.execute(text)
        for column in SYSTEM_COLUMNS:
            try:
                clone.execute(f"ALTER TABLE {quoted(table)} DROP COLUMN {column}")
            except apsw.SQLError:
                raise _managed_by_host(table, column) from None


def _managed_by_host(table: str, column: str) -> Refusal:
    return Refusal(
        "refused",
        f"The column {column!r} of {table!r} is managed by the host: no CHECK, DEFAULT, NOT NULL, key or index may use "
        "it. Nothing was changed.",
        field="up_sql",
    )


def _check_foreign_keys(raw: Raw, table: str) -> None:
    for parent, column in raw.execute('SELECT "table", "to" FROM pragma_foreign_key_list(?, ?)', (table, "main")):
        if is_reserved(parent) or (column or "").startswith("_"):
            raise Refusal(
                "refused",
                f"A foreign key of {table!r} refers to {parent!r} ({column}), which is managed by the host. "
                "Nothing was changed.",
                field="up_sql",
            )


def check_defaults(raw: Raw, table: str) -> None:
    """Refuse a default that a row of the table could not have, or that could not be read."""
    [(is_strict,)] = raw.execute("SELECT strict FROM pragma_table_list(?) WHERE schema = 'main'", (table,)).fetchall()
    for column, kind, default in raw.execute(
        "SELECT name, type, dflt_value FROM pragma_table_info(?, ?)", (table, "main")
    ).fetchall():
        if default is not None and (problem := _try_default(kind, default, is_strict=bool(is_strict))):
            raise Refusal(
                "invalid", f"The default of {column!r} in {table!r} cannot be stored: {problem}.", field="columns"
            )


def _try_default(kind: str, default: str, *, is_strict: bool) -> str | None:
    """Insert a default into a table in memory; return what is wrong with it, or None."""
    strict = "STRICT" if is_strict else ""
    with closing(_empty_database()) as clone:
        try:
            # The new line ends a comment in the expression.
            clone.execute(f"CREATE TABLE tried (a {kind} DEFAULT ({default}\n)) {strict}")
            clone.execute("INSERT INTO tried DEFAULT VALUES")
            [(value,)] = clone.execute("SELECT a FROM tried").fetchall()
        except apsw.Error as error:
            return str(error)
        except UnicodeDecodeError:
            return "it is not UTF-8"
    return "it is infinite" if isinstance(value, float) and not math.isfinite(value) else None


def with_name(sql: str, table: str, name: str) -> str:
    """Return the statement that creates a table, with another name for it."""
    with closing(_empty_database()) as clone:
        clone.execute(sql)
        clone.execute(f"ALTER TABLE {quoted(table)} RENAME TO {quoted(name)}")
        return clone.execute("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,)).get


def _empty_database() -> Any:
    clone = apsw.Connection(":memory:")
    clone.authorizer = SqlGuard()  # the host may do everything but attach other files
    clone.limit(apsw.SQLITE_LIMIT_LENGTH, files.MAX_VALUE)
    return clone
