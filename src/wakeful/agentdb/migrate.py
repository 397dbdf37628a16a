"""Migrations an agent wrote: several statements, all or none, after a snapshot."""
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any

from wakeful.agentdb import schema
from wakeful.agentdb.changelog import Change, Who
from wakeful.agentdb.database import SYSTEM_COLUMNS, Writer, quoted
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.guard import is_reserved

MOST_STATEMENTS = 100


def migrate(writer: Writer, who: Who, up_sql: str, down_sql: str, purpose: str, snapshot: str | None) -> dict[str, Any]:
    """Run the statements of a migration, and see to it that every table has the host's columns afterwards."""
    ours = _reserved(writer)
    done = 0
    rest = up_sql
    while (taken := _run_first(writer, who, rest)) is not None:
        rest = taken
        done += 1
        if done > MOST_STATEMENTS:
            raise Refusal("limit", f"A migration has at most {MOST_STATEMENTS} statements.", field="up_sql")
    if not done:
        raise Refusal("invalid", "There is no statement in it.", field="up_sql")
    if _reserved(writer) != ours:
        raise Refusal("refused", "Names that begin with _ belong to the host. Nothing was changed.", field="up_sql")
    tables = writer.connection.tables()
    _check_tables(writer, tables)
    if len(tables) > schema.MOST_TABLES:
        raise Refusal("limit", f"There may be at most {schema.MOST_TABLES} tables. Nothing was changed.")
    writer.raw.execute(
        "DELETE FROM _tables WHERE name NOT IN (SELECT name FROM main.sqlite_schema WHERE type = 'table')"
    )
    for table in tables:
        writer.raw.execute("INSERT OR IGNORE INTO _tables VALUES (?, ?)", (table, purpose))
    what = {"migrated": purpose, "up_sql": up_sql, "down_sql": down_sql, "snapshot": snapshot}
    schema.note(writer, who, None, what)
    return {"statements": done, "tables": tables, "snapshot": snapshot}


def _run_first(writer: Writer, who: Who, sql: str) -> str | None:
    """Run the first statement of a text and return the rest; None if there was none."""
    connection, guard = writer.connection, writer.connection.guard
    if not sql.strip():
        return None
    before = {table: writer.columns(table) for table in connection.tables()}
    with connection.under("migrate"):
        statement = connection.prepare(sql)
        if statement is None:
            return None
        if statement.parameters:
            raise Refusal("invalid", "A migration has no parameters; write the values into it.", field="up_sql")
        altered = guard.altered
        for _ in connection.run(statement):
            pass
    _log_rows(writer, who)
    writer.forget_columns()
    if altered is not None and (left := writer.columns(altered)):
        lost = [name for name in SYSTEM_COLUMNS if name in before[altered] and name not in left]
        if lost:
            raise Refusal("refused", f"The column {lost[0]!r} of {altered!r} is kept by the host.", field="up_sql")
    for table in connection.tables():
        if table not in before:
            schema.refuse_view_name(writer, table)
            _complete(writer, table)
    return statement.rest


def _log_rows(writer: Writer, who: Who) -> None:
    """Log what a statement wrote while its tables still have the columns it wrote."""
    changes = writer.capture.changes
    with writer.unnoted():
        writer.capture.changes = _stamp(writer, who, changes)
        writer.flush(who, "execute")


def _stamp(writer: Writer, who: Who, changes: Sequence[Change]) -> list[Change]:
    """Put the host's times in. A row copied from another table keeps the ones it came with, tombstones above all."""
    copied = [change for change in changes if change.old is None and _has_times(writer, change)]
    stamped = writer.stamp(who, [change for change in changes if change not in copied])
    return [*copied, *stamped]


def _has_times(writer: Writer, change: Change) -> bool:
    assert change.new is not None
    names = writer.columns(change.table)
    return all(change.new[names.index(name)] is not None for name in ("_created_at", "_updated_at"))


def _complete(writer: Writer, table: str) -> None:
    """Give a new table the host's columns."""
    there = writer.columns(table)
    for name in SYSTEM_COLUMNS:
        if name not in there:
            writer.raw.execute(f"ALTER TABLE main.{quoted(table)} ADD COLUMN {name} TEXT")
    writer.forget_columns()


def _check_tables(writer: Writer, tables: Sequence[str]) -> None:
    for name, kind, is_without_rowid in writer.raw.execute(
        "SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main'"
    ).fetchall():
        if name not in tables:
            continue
        schema.check_name(name, "table")
        if kind != "table" or is_without_rowid:
            raise Refusal("refused", f"{name!r} is WITHOUT ROWID or virtual, which is not allowed.", field="up_sql")
        for column, hidden in writer.raw.execute("SELECT name, hidden FROM pragma_table_xinfo(?)", (name,)).fetchall():
            if hidden:
                raise Refusal(
                    "refused", f"{name!r} has a generated column, {column!r}, which is not allowed.", field="up_sql"
                )
            if column not in SYSTEM_COLUMNS:
                schema.check_name(column, "column")


def _reserved(writer: Writer) -> list[tuple[Any, ...]]:
    """Return everything that belongs to the host, to see that it is as it was."""
    found = writer.raw.execute(
        "SELECT type, name, tbl_name, sql FROM main.sqlite_schema ORDER BY type, name"
    ).fetchall()
    kept = ("sqlite_sequence", "sqlite_autoindex_")
    return [row for row in found if not str(row[1]).startswith(kept) and (is_reserved(row[1]) or is_reserved(row[2]))]
