"""Operations that create tables and add columns, and descriptions of tables."""

# pyright: reportUnknownMemberType=false
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from itertools import count
from typing import Any

import apsw
import orjson

from wakeful.agentdb import deadline, file
from wakeful.agentdb.changelog import from_json
from wakeful.agentdb.connection import ROW_ID_NAMES, SYSTEM_COLUMNS, GuardedConnection, OpenDatabase, Writer, quoted
from wakeful.agentdb.errors import STORAGE, ColumnType, Refusal
from wakeful.agentdb.file import Raw
from wakeful.agentdb.guard import SqlGuard, is_reserved, is_table_function
from wakeful.agentdb.operation import name_of, operation

MAX_TABLES = 100
MAX_COLUMNS = 100
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
# A column's declared type is a comment in the table's own SQL, `"done" /* boolean */ INTEGER`: SQLite keeps it when the
# table or the column is renamed, and it is in every copy of the table.
_DECLARED = re.compile(r'("(?:[^"]|"")*"|\w+)\s*/\*\s*(\w+)\s*\*/\s*\w')


def describe(connection: GuardedConnection, *, with_counts: bool = True) -> list[dict[str, Any]]:
    """Return the agent's tables with their columns, indexes and row counts."""
    purposes = dict(connection.raw.execute("SELECT name, purpose FROM _tables").fetchall())
    return [_describe(connection, name, purposes.get(name, ""), with_counts) for name in connection.tables()]


def system_tables(connection: GuardedConnection) -> list[dict[str, Any]]:
    """Return the host's tables."""
    names = connection.raw.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
    return [_describe(connection, name, "", with_counts=False) for (name,) in names if name.startswith("_")]


def _describe(connection: GuardedConnection, table: str, purpose: str, with_counts: bool) -> dict[str, Any]:
    raw = connection.raw
    sql = raw.execute("SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?", (table,)).get
    comments = {name if name[0] == '"' else quoted(name): word for name, word in _DECLARED.findall(sql)}
    columns = [
        {
            "name": name,
            "type": kind,
            "declared": _declared(kind, comments.get(quoted(name))),
            "required": bool(required),
            "primary_key": bool(key),
            "default": default,
            "system": name in SYSTEM_COLUMNS,
        }
        for name, kind, required, default, key in raw.execute(
            'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?, ?)', (table, "main")
        )
    ]
    indexes = [
        {
            "name": name,
            "unique": bool(unique),
            "columns": [
                column for (column,) in raw.execute("SELECT name FROM pragma_index_info(?, ?)", (name, "main"))
            ],
        }
        for name, unique in raw.execute(
            'SELECT name, "unique" FROM pragma_index_list(?, ?)', (table, "main")
        ).fetchall()
    ]
    described = {"name": table, "purpose": purpose, "columns": columns, "indexes": indexes}
    if with_counts and not is_reserved(table):
        [(total, live)] = raw.execute(
            f"SELECT count(*), count(*) FILTER (WHERE _deleted_at IS NULL) FROM main.{quoted(table)}"
        ).fetchall()
        described |= {"rows": live, "deleted_rows": total - live}
    return described


def _declared(kind: str, comment: str | None) -> ColumnType | None:
    """Return the declared type of a column, from the comment if that fits what SQLite stores; None if it is another."""
    known: dict[str, ColumnType] = {each: each for each in STORAGE}
    found = known.get(comment or "")
    return found if found and STORAGE[found] == kind.upper() else known.get(kind.lower())


@operation("create_table", "write", creates_file=True, table_arguments=("name",), path="POST /tables", command="create")
def create_table(
    db: OpenDatabase,
    name: str,
    purpose: str,
    columns: Sequence[Mapping[str, Any]],
    indexes: Sequence[Sequence[str]] = (),
) -> dict[str, Any]:
    """Create a table. Without a primary key it gets `id`; the host's three columns are always added."""
    writer = db.writer
    check_name(name, "table")
    tables = writer.connection.tables()
    if name.lower() in {table.lower() for table in tables}:
        raise Refusal(
            "conflict", f"The table {name!r} exists. Use {name_of('alter_table')} to add columns.", field="name"
        )
    refuse_view_name(writer, name)
    if len(tables) >= MAX_TABLES:
        raise Refusal("limit", f"A database must have at most {MAX_TABLES} tables, and this one has as many.")
    if not purpose.strip():
        raise Refusal("invalid", "'purpose' must say in a sentence what the table is for.", field="purpose")
    _check_columns(columns, ())
    keys = [column["name"] for column in columns if column.get("primary_key")]
    written = [] if keys else ['"id" INTEGER PRIMARY KEY']
    written += [_column(column, keys) for column in columns]
    written += ["_created_at TEXT NOT NULL DEFAULT ''", "_updated_at TEXT NOT NULL DEFAULT ''", "_deleted_at TEXT"]
    if len(keys) > 1:
        written.append(f"PRIMARY KEY ({', '.join(quoted(key) for key in keys)})")
    sql = f"CREATE TABLE main.{quoted(name)} ({', '.join(written)}) STRICT"
    run(writer, sql)
    check_defaults(writer.raw, name)
    writer.forget_columns()
    names = writer.columns(name)
    for number, index in enumerate(indexes):
        _index(writer, name, index, names, number)
    writer.raw.execute("INSERT INTO _tables VALUES (?, ?)", (name, purpose.strip()))
    log_schema(writer, name, {"created": name, "purpose": purpose.strip(), "sql": sql})
    return {"table": name, "columns": names}


def infer(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Infer the columns of rows from a file. A column `id` of whole numbers becomes the primary key."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: list[dict[str, Any]] = []
    for name in deadline.checked(names):
        values = [row[name] for row in rows if row.get(name) is not None]
        kind = next((kind for kind, fits in _FITS.items() if values and all(map(fits, values))), "text")
        columns.append({"name": name, "type": kind, "primary_key": name == "id" and kind == "integer"})
    return columns


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and bool(re.fullmatch(r"-?(0|[1-9]\d{0,17})", value)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or (
        isinstance(value, str) and bool(re.fullmatch(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?", value))
    )


_FITS = {"integer": _is_whole, "real": _is_number}


@operation("alter_table", "write", path="POST /tables/{table}/columns", command="alter")
def alter_table(db: OpenDatabase, table: str, add_columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Append columns to a table."""
    writer = db.writer
    _check_columns(add_columns, writer.need_table(table))
    for column in add_columns:
        name = column["name"]
        if column.get("primary_key") or column.get("unique"):
            raise Refusal(
                "invalid", f"The new column {name!r} cannot be a key. Use {name_of('migrate')}.", field="columns"
            )
        if column.get("required") and column.get("default") is None:
            raise Refusal("invalid", f"The new column {name!r} is required, so it needs a default.", field="columns")
        run(writer, f"ALTER TABLE main.{quoted(table)} ADD COLUMN {_column(column, ())}")
    check_defaults(writer.raw, table)
    writer.forget_columns()
    log_schema(writer, table, {"altered": table, "added": [column["name"] for column in add_columns]})
    return {"table": table, "columns": writer.columns(table)}


def log_schema(writer: Writer, table: str | None, what: Mapping[str, Any]) -> None:
    """Add a changelog entry about the schema."""
    writer.changelog.add(writer.who, [("schema", table, None, None, None, orjson.dumps(what).decode())])


def refuse_view_name(writer: Writer, table: str) -> None:
    """Refuse a table with the name of a saved view: a statement could mean either."""
    if writer.raw.execute("SELECT 1 FROM _views WHERE lower(name) = lower(?)", (table,)).fetchone():
        raise Refusal(
            "conflict",
            f"A view has the name {table!r}. Choose another name, or drop the view with {name_of('drop_view')} first.",
            field="name",
        )


def check_name(name: str, what: str) -> None:
    """Refuse a name that would need quotes, or that the host or SQLite uses."""
    if what == "column" and name.lower() in ROW_ID_NAMES:
        raise Refusal(
            "invalid",
            f"A column must not be named {name!r}, SQLite's name for the row id. Use another name, such as "
            f"{free_names([name])[name]!r}.",
            field="columns",
        )
    if what == "table" and is_table_function(name):
        raise Refusal("invalid", f"{name[:80]!r} is a table-valued function of SQLite. Use another name.", field="name")
    if not _NAME.fullmatch(name) or is_reserved(name):
        raise Refusal(
            "invalid",
            f"The name of a {what} must be 1 to 63 letters, digits and _, beginning with a letter; got {name[:80]!r}.",
            field="name" if what != "column" else "columns",
        )


def free_names(columns: Collection[str]) -> dict[str, str]:
    """Return new names for columns that would hide the row id: `rowid_2`, or the next that is free."""
    taken = {name.lower() for name in columns}
    renamed: dict[str, str] = {}
    for name in columns:
        if name.lower() in ROW_ID_NAMES:
            plain = name.strip("_")
            renamed[name] = next(new for number in count(2) if (new := f"{plain}_{number}").lower() not in taken)
            taken.add(renamed[name].lower())
    return renamed


def run(writer: Writer, sql: str) -> None:
    """Run a schema statement of the host, restricted like a model's."""
    with writer.connection.under("migrate"):
        writer.raw.execute(sql, can_cache=False)


def _check_columns(columns: Sequence[Mapping[str, Any]], existing: Sequence[str]) -> None:
    count = len(columns) + len(existing)
    if not columns or count > MAX_COLUMNS:
        raise Refusal("invalid", f"A table must have 1 to {MAX_COLUMNS} columns, got {count}.", field="columns")
    seen = {name.lower() for name in existing}
    for column in columns:
        check_name(column["name"], "column")
        if column["name"].lower() in seen:
            raise Refusal("conflict", f"The column {column['name']!r} is there twice.", field="columns")
        seen.add(column["name"].lower())


def _column(column: Mapping[str, Any], keys: Sequence[str]) -> str:
    kind: ColumnType = column["type"]
    storage = STORAGE[kind]
    parts = [quoted(column["name"]), storage if storage == kind.upper() else f"/* {kind} */ {storage}"]
    if column.get("required") or column["name"] in keys[1:]:
        parts.append("NOT NULL")
    if keys == [column["name"]]:
        parts.append("PRIMARY KEY")
    if column.get("unique"):
        parts.append("UNIQUE")
    if column.get("default") is not None:
        parts.append(f"DEFAULT {_literal(from_json(column['default']))}")
    return " ".join(parts)


def _literal(value: Any) -> str:
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str) and "\x00" not in value:
        return "'" + value.replace("'", "''") + "'"
    raise Refusal("invalid", f"A default must be a number, true, false or a text, got {value!r}.", field="columns")


def _index(writer: Writer, table: str, columns: Sequence[str], names: Sequence[str], number: int) -> None:
    for column in columns:
        if column not in names:
            raise Refusal("invalid", f"There is no column {column!r} to index.", field="indexes")
    written = ", ".join(quoted(column) for column in columns)
    run(writer, f"CREATE INDEX main.{quoted(f'{table}_index_{number + 1}')} ON {quoted(table)} ({written})")


# Checks of new and changed tables, before they are committed.
#
# SQLite itself checks them: a table is created again, empty, in a database in memory.


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
    clone.limit(apsw.SQLITE_LIMIT_LENGTH, file.MAX_VALUE)
    return clone
