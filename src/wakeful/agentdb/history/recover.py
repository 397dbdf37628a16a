"""The operation `recover`: copy a table from a snapshot into the database."""

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Any

from wakeful.agentdb.database import SYSTEM_COLUMNS, Writer, no_such_table, quoted, row_id_of
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.files import files
from wakeful.agentdb.files.files import Raw
from wakeful.agentdb.files.open_database import OpenDatabase
from wakeful.agentdb.history import snapshots
from wakeful.agentdb.operation import name_of, operation
from wakeful.agentdb.process.guard import is_reserved
from wakeful.agentdb.tables import schema, schema_checks

_ROWS_AT_ONCE = 1_000


@operation(
    "recover",
    "write",
    scope="admin",
    is_long=True,
    creates_file=True,
    table_arguments=("new_name", "table"),
    command="recover",
)
def recover(db: OpenDatabase, snapshot: str, table: str, new_name: str | None = None) -> dict[str, Any]:
    """Copy a table of a snapshot into the database with its row ids, under its own name or another."""
    writer = db.writer
    name = new_name or table
    schema.check_name(name, "table")
    if name.lower() in {each.lower() for each in writer.connection.tables()}:
        raise Refusal("conflict", f"The table {name!r} exists. Give the recovered one another name.", field="new_name")
    copy = next((each for each in snapshots.of(db.path) if each.name == snapshot), None)
    if copy is None:
        raise Refusal("not_found", f"There is no snapshot {snapshot!r}. See {name_of('snapshots')}.", field="snapshot")
    with closing(files.open_copy(copy, db.key)) as source:
        before = schema_checks.texts(writer.connection)
        _create(writer, source, table, name)
        count = _copy_rows(writer, source, table, name)
        schema_checks.check_changed(writer.connection, before)
    schema.log_schema(writer, name, {"recovered": table, "snapshot": snapshot, "rows": count})
    return {"table": name, "recovered": count, "snapshot": snapshot}


def _create(writer: Writer, source: Raw, table: str, name: str) -> None:
    tables = [each for (each,) in source.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    if table not in tables or is_reserved(table):
        raise no_such_table(table, [each for each in tables if not is_reserved(each)])
    [(sql,)] = source.execute("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)).fetchall()
    schema.run(writer, sql if name == table else schema_checks.with_name(sql, table, name))
    writer.forget_columns()
    for column in writer.columns(name):
        if column not in SYSTEM_COLUMNS:
            schema.check_name(column, "column")
    purpose = source.execute("SELECT purpose FROM _tables WHERE name = ?", (table,)).get or ""
    writer.raw.execute("INSERT OR REPLACE INTO _tables VALUES (?, ?)", (name, purpose))


def _copy_rows(writer: Writer, source: Raw, table: str, name: str) -> int:
    columns = writer.columns(name)
    id_name = row_id_of(columns)
    named = ", ".join([id_name, *map(quoted, columns)])
    places = ", ".join("?" * (len(columns) + 1))
    rows: Iterator[tuple[Any, ...]] = source.execute(f"SELECT {named} FROM main.{quoted(table)} ORDER BY {id_name}")
    count = 0
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        writer.raw.executemany(f"INSERT INTO main.{quoted(name)} ({named}) VALUES ({places})", some)
        count += len(some)
        writer.flush("import")
    return count
