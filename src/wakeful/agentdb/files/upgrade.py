"""The operation `upgrade`: rename columns that hide SQLite's row id, in files of earlier versions."""

import re
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

import apsw

from wakeful.agentdb.database import GuardedConnection, Reader, Writer, quoted
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.files.files import Raw
from wakeful.agentdb.files.open_database import OpenDatabase
from wakeful.agentdb.history import snapshots
from wakeful.agentdb.operation import operation
from wakeful.agentdb.process.guard import is_reserved
from wakeful.agentdb.tables import schema, views

_SPARE = 4 * 1024 * 1024  # bytes over the quota: a full file is upgraded too

Renamed = Mapping[str, Mapping[str, str]]  # by table, old names of columns to new ones


@operation("upgrade", "upkeep", is_long=True)
def upgrade(db: OpenDatabase) -> dict[str, Any]:
    """Rename columns that hide the row id, after a snapshot. Row ids stay, so changelog entries stay valid."""
    snapshots.delete_expired(db.path, db.who.at)
    with db.reader.looking() as connection:
        renamed = _new_names(connection)
    if not renamed:
        return {"renamed": {}, "views": [], "snapshot": None}
    # A new connection, because SQLite reports the columns of a view only when it prepares it first.
    with closing(GuardedConnection(str(db.path), db.key, is_cache=db.is_cache)) as connection:
        used_by = _views_that_read(Reader(connection), renamed)
    writer = db.writer
    writer.connection.empty_journal()
    with _schema_writable(writer.raw), writer.writing(db.who, db.quota + _SPARE, reserve=0):
        if _new_names(writer.connection) != renamed:  # another worker was first
            return {"renamed": {}, "views": [], "snapshot": None}
        snapshot = snapshots.take(db.path, db.who.at).name
        _rename(writer, renamed)
        for table, names in renamed.items():
            # `undo` searches for this key to find the new name of a column in an older entry.
            schema.log_schema(writer, table, {"renamed_columns": names, "snapshot": snapshot})
    return {"renamed": renamed, "views": used_by, "snapshot": snapshot}


def _new_names(connection: GuardedConnection) -> Renamed:
    """Return new names for the columns that hide the row id, by table."""
    renamed = {table: schema.free_names(connection.columns(table)) for table in connection.tables()}
    return {table: names for table, names in renamed.items() if names}


@contextmanager
def _schema_writable(raw: Raw) -> Generator[None]:
    """Allow writing sqlite_schema.

    ALTER TABLE refuses to rename a column that is named like a row id. SQLite documents this way for changes that do
    not affect the stored rows.
    """
    raw.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    raw.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1)
    try:
        yield
    finally:
        raw.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0)
        raw.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)


def _rename(writer: Writer, renamed: Renamed) -> None:
    """Write the new names into the schema, and check that nothing else has changed."""
    raw, connection = writer.raw, writer.connection
    tables = connection.tables()
    expected = {table: _shape(connection, table, renamed) for table in tables}
    for number, table, sql in raw.execute(
        "SELECT rowid, tbl_name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL"
    ).fetchall():
        if not is_reserved(table) and (new := rewrite(sql, table, renamed)) != sql:
            raw.execute("UPDATE main.sqlite_schema SET sql = ? WHERE rowid = ?", (new, number))
    [(version,)] = raw.execute("PRAGMA schema_version").fetchall()
    raw.execute(f"PRAGMA schema_version = {version + 1}")
    raw.execute("PRAGMA writable_schema = RESET")  # SQLite reads the schema again, and fails here if it is not sound
    writer.forget_columns()
    for table in tables:
        if _shape(connection, table, {}) != expected[table]:
            raise Refusal("unavailable", f"The columns of {table!r} that hide the row id could not be renamed.")


def _shape(connection: GuardedConnection, table: str, renamed: Renamed) -> list[Any]:
    """Return columns, indexes and foreign keys of a table as SQLite parses them, with the new names."""
    raw, own = connection.raw, renamed.get(table, {})
    columns = [
        (own.get(name, name), *rest)
        for name, *rest in raw.execute(
            'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)', (table,)
        ).fetchall()
    ]
    indexes = [
        (
            index,
            unique,
            [own.get(name, name) for (name,) in raw.execute("SELECT name FROM pragma_index_info(?)", (index,))],
        )
        for index, unique in raw.execute('SELECT name, "unique" FROM pragma_index_list(?)', (table,)).fetchall()
    ]
    keys = [
        (parent, own.get(child, child), renamed.get(parent, {}).get(column, column))
        for parent, child, column in raw.execute(
            'SELECT "table", "from", "to" FROM pragma_foreign_key_list(?)', (table,)
        ).fetchall()
    ]
    return [columns, indexes, keys]


_TOKENS = re.compile(
    r"""(?P<skipped>'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|\s+)"""
    r"""|(?P<name>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|[^\W\d][\w$]*)|(?P<other>\d[\w.]*|.)""",
    re.DOTALL,
)


def rewrite(sql: str, table: str, renamed: Renamed) -> str:
    """Replace column names in the SQL of a table or an index, including references to other tables."""
    own = _by_name(renamed, table)
    names: Mapping[str, str] = {}  # that apply here: none before the first bracket, where the table is named
    parent: str | None = None
    depth = awaited = 0  # open brackets; how many there were at REFERENCES … (
    written: list[str] = []
    for token in _TOKENS.finditer(sql):
        text = token[0]
        if token["name"]:
            name = _unquoted(text)
            if parent == "":
                parent = name
            elif text.lower() == "references":
                parent = ""
            else:
                parent = None
                text = quoted(names[name.lower()]) if name.lower() in names else text
        elif token["other"]:
            if text == "(":
                depth += 1
                if parent:
                    names, awaited = _by_name(renamed, parent), depth
                elif depth == 1:
                    names = own
            elif text == ")":
                if depth == awaited:
                    names, awaited = own, 0
                depth -= 1
            parent = None
        written.append(text)
    # An index may have a WHERE after its last bracket, which names columns too: `names` still applies there.
    return "".join(written)


def _by_name(renamed: Renamed, table: str) -> dict[str, str]:
    """Return the new names of a table's columns by the old ones in lower case."""
    return {
        old.lower(): new
        for name, names in renamed.items()
        if name.lower() == table.lower()
        for old, new in names.items()
    }


def _unquoted(name: str) -> str:
    if name[0] == "[":
        return name[1:-1]
    return name[1:-1].replace(name[0] * 2, name[0]) if name[0] in '"`' else name


def _views_that_read(reader: Reader, renamed: Renamed) -> list[str]:
    """Return the saved views that use one of the columns; SQLite reports them when it prepares a statement.

    Not all of these fail afterwards: `SELECT rowid` then returns the row id itself, which is worse.
    """
    wanted = {(table, column) for table, columns in renamed.items() for column in columns}
    with reader.looking() as connection:
        listed = views.listed(connection)
    return [view["name"] for view in listed if wanted & _columns_read(reader, view["sql"])]


def _columns_read(reader: Reader, sql: str) -> set[tuple[str, str]]:
    guard = reader.connection.guard
    read: set[tuple[str, str]] = set()

    def note(action: int, first: str | None, second: str | None, database: str | None, via: str | None) -> int:
        if action == apsw.SQLITE_READ:
            read.add((first or "", second or ""))
        return guard(action, first, second, database, via)

    reader.connection.raw.authorizer = note
    # Includes deleted rows, because the views that hide them use every column. A broken view stays broken.
    with suppress(apsw.Error, Refusal), reader.reading(include_deleted=True) as connection:
        connection.prepare_only(sql)
    return read
