"""Migrations: several statements, all or none, after a snapshot."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from wakeful.agentdb import history, schema
from wakeful.agentdb.changelog import Change
from wakeful.agentdb.connection import SYSTEM_COLUMNS, OpenDatabase, Writer, quoted
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.guard import is_reserved
from wakeful.agentdb.history import MigrationSnapshot
from wakeful.agentdb.operation import operation

MAX_STATEMENTS = 100

Times = tuple[str | None, ...]  # of a row, in the order of SYSTEM_COLUMNS
Copied = Counter[tuple[str, Times]]  # number of rows copied into a table, by their times


@operation(
    "migrate",
    "write",
    scope="admin",
    is_long=True,
    creates_file=True,
    copies_file=True,
    logged_as="schema",
    agent_actor="migration",
    path="POST /migrate",
    command="migrate",
)
def migrate(db: OpenDatabase, purpose: str, up_sql: str, down_sql: str) -> dict[str, Any]:
    """Run the statements of a migration after a snapshot, which also keeps the rows that it drops."""
    is_new = not db.writer.connection.tables()
    copy = None if is_new else MigrationSnapshot(db.path, db.key, db.who.at, db.quota)
    try:
        done = _migrate(db.writer, purpose, up_sql, down_sql, copy)
    except BaseException:
        if copy is not None:
            copy.discard()
        raise
    history.delete_old(db.path)
    history.delete_expired(db.path, db.who.at)
    return done


@operation(
    "take_back_migration", "write", scope="admin", is_long=True, copies_file=True, logged_as="schema", command="revert"
)
def take_back_migration(db: OpenDatabase, change_id: int) -> dict[str, Any]:
    """Run the down_sql of a migration, given by its number in the changelog."""
    query = "SELECT detail FROM _changelog WHERE id = ? AND op = 'schema'"
    detail: str | None = db.writer.raw.execute(query, (change_id,)).get
    values: dict[str, Any] = orjson.loads(detail) if detail else {}
    if not values.get("down_sql"):
        raise Refusal("not_found", f"Change {change_id} is not a migration with a down_sql.", field="change_id")
    return migrate(db, f"Took back change {change_id}.", values["down_sql"], values["up_sql"])


def _migrate(
    writer: Writer, purpose: str, up_sql: str, down_sql: str, copy: MigrationSnapshot | None
) -> dict[str, Any]:
    reserved = _reserved(writer)
    before = schema.texts(writer.connection)
    copied: Copied = Counter()
    done = 0
    rest = up_sql
    while (taken := _run_first(writer, rest, copied, copy)) is not None:
        rest = taken
        done += 1
        if done > MAX_STATEMENTS:
            raise Refusal("limit", f"A migration must have at most {MAX_STATEMENTS} statements.", field="up_sql")
    if not done:
        raise Refusal("invalid", "'up_sql' has no statement.", field="up_sql")
    if _reserved(writer) != reserved:
        raise Refusal("refused", "Names that begin with _ belong to the host. Nothing was changed.", field="up_sql")
    tables = writer.connection.tables()
    _check_tables(writer, tables)
    schema.check_changed(writer.connection, before)
    if len(tables) > schema.MAX_TABLES:
        raise Refusal("limit", f"A database must have at most {schema.MAX_TABLES} tables. Nothing was changed.")
    writer.raw.execute(
        "DELETE FROM _tables WHERE name NOT IN (SELECT name FROM main.sqlite_schema WHERE type = 'table')"
    )
    for table in tables:
        writer.raw.execute("INSERT OR IGNORE INTO _tables VALUES (?, ?)", (table, purpose))
    snapshot = None if copy is None else copy.name
    what = {"migrated": purpose, "up_sql": up_sql, "down_sql": down_sql, "snapshot": snapshot}
    schema.log_schema(writer, None, what)
    return {"statements": done, "tables": tables, "snapshot": snapshot}


def _run_first(writer: Writer, sql: str, copied: Copied, copy: MigrationSnapshot | None) -> str | None:
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
            raise Refusal("invalid", "A migration must not have parameters. Write the values into it.", field="up_sql")
        altered, created, lost = guard.altered, frozenset(guard.created), tuple(guard.lost)
    for table, column in lost:
        if copy is not None and _has_values(writer, table, column):
            copy.keep_rows(connection, table)
    with connection.under("migrate"):
        for _ in connection.run(statement):
            pass
    _log_rows(writer, copied)
    writer.forget_columns()
    if altered is not None and (left := writer.columns(altered)):
        lost = [name for name in SYSTEM_COLUMNS if name in before[altered] and name not in left]
        if lost:
            raise Refusal("refused", f"The column {lost[0]!r} of {altered!r} is managed by the host.", field="up_sql")
    for table in connection.tables():
        if table not in before:
            schema.refuse_view_name(writer, table)
            if table in created:
                _complete(writer, table)
    return statement.rest


def _has_values(writer: Writer, table: str, column: str | None) -> bool:
    condition = "true" if column is None else f"{quoted(column)} IS NOT NULL"
    sql = f"SELECT EXISTS (SELECT 1 FROM main.{quoted(table)} WHERE {condition})"
    return bool(writer.raw.execute(sql).get)


def _log_rows(writer: Writer, copied: Copied) -> None:
    """Log the rows of a statement while their tables still have the same columns."""
    changes = writer.capture.changes
    with writer.unnoted():
        writer.capture.changes = _stamp(writer, changes, copied)
        writer.flush("execute")


def _stamp(writer: Writer, changes: Sequence[Change], copied: Copied) -> list[Change]:
    """Set the host's timestamps. A row copied from another table keeps its own, so a deleted one stays deleted."""
    with_times = [change for change in changes if change.old is None and any(_times(writer, change))]
    _check_copies(writer, with_times, copied)
    kept = {id(change) for change in with_times}
    return [*with_times, *writer.stamp([change for change in changes if id(change) not in kept])]


def _times(writer: Writer, change: Change) -> Times:
    assert change.new is not None
    names = writer.columns(change.table)
    return tuple(change.new[names.index(name)] or None for name in SYSTEM_COLUMNS)


def _check_copies(writer: Writer, changes: Sequence[Change], copied: Copied) -> None:
    """Refuse invented timestamps: another table must have as many rows with exactly the same three."""
    if not changes:
        return
    copied.update((change.table, _times(writer, change)) for change in changes)
    there = {table: _times_in(writer, table) for table in writer.connection.tables()}
    for table, times in {(change.table, _times(writer, change)) for change in changes}:
        available = max((counted[times] for other, counted in there.items() if other != table), default=0)
        if copied[table, times] > available:
            raise Refusal(
                "refused",
                f"This sets {', '.join(SYSTEM_COLUMNS)} of {table!r}, which are managed by the host. Leave them out. "
                "Only rows that are copied from another table keep its values, all three. Nothing was changed.",
                field="up_sql",
            )


def _times_in(writer: Writer, table: str) -> Counter[Times]:
    named = ", ".join(f"nullif({name}, '')" for name in SYSTEM_COLUMNS)
    found = writer.raw.execute(f"SELECT count(*), {named} FROM main.{quoted(table)} GROUP BY 2, 3, 4")
    return Counter({tuple(times): count for count, *times in found})


def _complete(writer: Writer, table: str) -> None:
    """Add the host's columns to a new table; its statement must not define them."""
    for (name,) in writer.raw.execute("SELECT name FROM pragma_table_xinfo(?, 'main')", (table,)).fetchall():
        if name.lower() in SYSTEM_COLUMNS:
            raise Refusal(
                "refused",
                f"The column {name!r} of {table!r} is managed by the host, which adds it to every table. Leave it out.",
                field="up_sql",
            )
    for name in SYSTEM_COLUMNS:
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
                raise Refusal("refused", f"{column!r} of {name!r} must not be a generated column.", field="up_sql")
            if column not in SYSTEM_COLUMNS:
                schema.check_name(column, "column")


def _reserved(writer: Writer) -> list[tuple[Any, ...]]:
    """Return the schema of everything that belongs to the host, for comparison."""
    found = writer.raw.execute(
        "SELECT type, name, tbl_name, sql FROM main.sqlite_schema ORDER BY type, name"
    ).fetchall()
    kept = ("sqlite_sequence", "sqlite_autoindex_")
    return [row for row in found if not str(row[1]).startswith(kept) and (is_reserved(row[1]) or is_reserved(row[2]))]
