"""Files of earlier versions: columns that hide SQLite's row id get another name when such a file is first opened."""
# pyright: reportUnknownMemberType=false

import re
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from wakeful.agentdb.database import ROW_ID_NAMES, GuardedConnection, Reader, Writer, quoted
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.files.files import Raw
from wakeful.agentdb.files.open_database import Opened, Request
from wakeful.agentdb.history import snapshots
from wakeful.agentdb.process.guard import is_reserved
from wakeful.agentdb.tables import schema, views

_SPARE = 4 * 1024 * 1024  # bytes over the quota: a full file is upgraded too

Renamed = Mapping[str, Mapping[str, str]]  # by table, old names of columns to new ones


def upgrade(opened: Opened, request: Request) -> dict[str, Any]:
    """Rename columns that hide the row id, after a snapshot. Row ids stay, so the changelog still names the rows."""
    snapshots.forget_expired(Path(opened.path), request.at)
    with opened.reader.looking() as connection:
        renamed = _new_names(connection)
    if not renamed:
        return {"renamed": {}, "views": [], "snapshot": None}
    # A connection of its own: one that has prepared a view before is not asked about its columns again.
    with closing(GuardedConnection(opened.path, opened.key)) as connection:
        used_by = _views_that_read(Reader(connection), renamed)
    writer = opened.writer
    writer.raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    with _schema_writable(writer.raw), writer.writing(request.who, request.quota + _SPARE, reserve=0):
        if _new_names(writer.connection) != renamed:  # another worker was first
            return {"renamed": {}, "views": [], "snapshot": None}
        snapshot = snapshots.take(Path(opened.path), request.at).name
        _rename(writer, renamed)
        for table, names in renamed.items():
            # An undo looks for this key to find the present name of a column in an older entry.
            schema.note(writer, request.who, table, {"renamed_columns": names, "snapshot": snapshot})
    return {"renamed": renamed, "views": used_by, "snapshot": snapshot}


def _new_names(connection: GuardedConnection) -> Renamed:
    """Return the columns that hide the row id, and what each will be called, by table."""
    renamed: dict[str, dict[str, str]] = {}
    for table in connection.tables():
        columns = connection.columns(table)
        taken = {name.lower() for name in columns}
        for name in columns:
            if name.lower() in ROW_ID_NAMES:
                new = renamed.setdefault(table, {})[name] = schema.free_name(name, taken)
                taken.add(new.lower())
    return renamed


@contextmanager
def _schema_writable(raw: Raw) -> Generator[None]:
    """Let the host write the text of the schema.

    SQLite has no ALTER TABLE for this: it refuses to rename a column called like a row id. Its documentation has this
    way for changes that leave what is on the disk alone.
    """
    raw.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    raw.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1)
    try:
        yield
    finally:
        raw.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0)
        raw.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)


def _rename(writer: Writer, renamed: Renamed) -> None:
    """Write the new names into the schema, and see that nothing else about it has changed."""
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
    """Return what SQLite understands of a table, by the names that its columns will have."""
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
    """Put new names of columns into the text of a table or an index of it, also where it refers to other tables."""
    own = _by_name(renamed, table)
    names: Mapping[str, str] = {}  # those in force: none before the first bracket, where the table itself is named
    parent: str | None = None
    depth = awaited = 0  # brackets that are open; how many were when REFERENCES … ( was met
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
    # What follows the last bracket of an index is its WHERE, which names columns too: `names` is still in force there.
    return "".join(written)


def _by_name(renamed: Renamed, table: str) -> dict[str, str]:
    """Return the new names of a table's columns by the old ones in small letters, as SQLite compares them."""
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
    """Return the saved views that use one of the columns; SQLite reports the columns when it prepares a statement.

    Not all of them fail afterwards: `SELECT rowid` then finds the row id itself, which is worse.
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
    # A view that fails already is not made worse. Without the views that hide deleted rows, which name every column.
    with suppress(apsw.Error, Refusal), reader.reading(include_deleted=True) as connection:
        connection.prepare_only(sql)
    return read
