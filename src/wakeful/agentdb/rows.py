"""Operations that write rows by column name and value."""

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from typing import Any, cast

import orjson

from wakeful.agentdb import deadline, schema
from wakeful.agentdb import query as browse
from wakeful.agentdb.changelog import PLAIN, blob_as_json, from_json
from wakeful.agentdb.connection import SYSTEM_COLUMNS, OpenDatabase, Writer, quoted, row_id_of
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.operation import name_of, operation
from wakeful.agentdb.query import need_column, to_sql

MAX_ROWS = 5_000
MAX_IDS = 900  # in an answer, and in a call

Values = Mapping[str, Any]


@operation("insert", "write", is_bounded=True, path="POST /tables/{table}/rows", command="add")
def insert(db: OpenDatabase, table: str, rows: Sequence[Values]) -> dict[str, Any]:
    """Insert rows, all or none."""
    writer = db.writer
    _check_rows(rows, writer.need_table(table))
    for names, group in groupby(rows, key=tuple):
        _insert(writer, table, names, group)
    return {"table": table, "inserted": len(rows), **_ids(writer)}


def _insert(writer: Writer, table: str, names: Sequence[str], rows: Any) -> None:
    written = ", ".join(quoted(name) for name in (*names, "_created_at", "_updated_at"))
    places = ", ".join("?" * (len(names) + 2))
    at = writer.who.at
    writer.raw.executemany(
        f"INSERT INTO main.{quoted(table)} ({written}) VALUES ({places})",
        ((*_to_sql(row.values()), at, at) for row in deadline.checked(rows)),
    )


def _to_sql(values: Collection[Any]) -> Iterable[Any]:
    """Return values as SQLite stores them; most rows need no conversion."""
    return values if PLAIN.issuperset(map(type, values)) else map(from_json, values)


@operation(
    "import",
    "write",
    is_long=True,
    creates_file=True,
    is_bounded=True,
    logged_as="import",
    logged_arguments={"table": "table", "source": "source"},
)
def import_rows(
    db: OpenDatabase,
    table: str,
    text: str,
    format: str,  # noqa: A002  (the argument's name at every door)
    create: bool = True,
    source: str = "",  # noqa: ARG001  (logged by the caller, see `logged_arguments`)
) -> dict[str, Any]:
    """Insert the rows of a file, all or none, without the host's columns, which the host sets itself."""
    writer = db.writer
    rows = read_rows(format, text)
    names = dict.fromkeys(name for row in rows for name in row)
    renamed = schema.free_names([name for name in names if name not in SYSTEM_COLUMNS])
    cleaned = [
        {renamed.get(name, name): value for name, value in row.items() if name not in SYSTEM_COLUMNS} for row in rows
    ]
    is_new = not writer.columns(table)
    if is_new and create:
        schema.create_table(db, table, "Imported from a file.", schema.infer(cleaned))
    columns = writer.need_table(table)
    for each in set(map(tuple, cleaned)):
        _check_names(each, columns, field="path")
    for each, group in groupby(cleaned, key=tuple):
        _insert(writer, table, each, group)
    return {
        "table": table,
        "imported": len(rows),
        "created_table": is_new,
        "ignored_columns": sorted(name for name in names if name in SYSTEM_COLUMNS),
        "renamed_columns": renamed,
    }


@operation("upsert", "write", path="POST /tables/{table}/rows/upsert", command="upsert")
def upsert(db: OpenDatabase, table: str, rows: Sequence[Values], conflict_columns: Sequence[str]) -> dict[str, Any]:
    """Insert rows, or update (and restore, if deleted) those with the same values in the conflict columns."""
    writer = db.writer
    columns = writer.need_table(table)
    _check_rows(rows, columns)
    if not conflict_columns:
        raise Refusal("invalid", "'conflict_columns' must name columns that identify a row.", field="conflict_columns")
    for key in conflict_columns:
        need_column(key, columns, field="conflict_columns")
    done: dict[str, int] = {"inserted": 0, "updated": 0, "revived": 0}
    outcomes: list[str] = []
    for number, row in enumerate(deadline.checked(rows)):
        outcome = _upsert(writer, table, row, conflict_columns, number)
        done[outcome] += 1
        outcomes.append(outcome)
    return {"table": table, **done, "outcomes": outcomes[:MAX_IDS], **_ids(writer)}


def _upsert(writer: Writer, table: str, row: Values, keys: Sequence[str], number: int) -> str:
    if missing := [key for key in keys if row.get(key) is None]:
        problem = f"Row {number} must have a value for {missing[0]!r}, one of the conflict_columns."
        raise Refusal("invalid", problem, field="rows")
    condition = " AND ".join(f"{quoted(key)} = ?" for key in keys)
    id_name = row_id_of(writer.columns(table))
    found = writer.raw.execute(
        f"SELECT {id_name}, _deleted_at FROM main.{quoted(table)} WHERE {condition}"
        " ORDER BY _deleted_at IS NOT NULL LIMIT 2",
        [from_json(row[key]) for key in keys],
    ).fetchall()
    if not found:
        _insert(writer, table, tuple(row), [row])
        return "inserted"
    if len(found) > 1 and found[1][1] is None:
        raise Refusal(
            "conflict",
            f"Several rows of {table!r} have the {', '.join(keys)} of row {number}. Nothing was changed. "
            f"Name more conflict_columns, or use {name_of('update')}.",
        )
    row_id, deleted_at = found[0]
    changes = [(quoted(name), from_json(value)) for name, value in row.items() if name not in keys]
    written = "".join(f"{name} = ?, " for name, _ in changes)
    writer.raw.execute(
        f"UPDATE main.{quoted(table)} SET {written}_updated_at = ?, _deleted_at = NULL WHERE {id_name} = ?",
        (*(value for _, value in changes), writer.who.at, row_id),
    )
    return "updated" if deleted_at is None else "revived"


@operation("update", "write", path="PATCH /tables/{table}/rows", command="edit")
def update(
    db: OpenDatabase,
    table: str,
    set: Values,  # noqa: A002  (the argument's name at every door)
    where: Values | None = None,
    row_ids: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Change live rows that match a condition, or have one of the row ids."""
    writer = db.writer
    columns = writer.need_table(table)
    if not set:
        raise Refusal("invalid", "'set' must name the columns to change and their new values.", field="set")
    _check_names(set, columns, field="set")
    chosen, values = _choose(where, row_ids, columns)
    written = "".join(f"{quoted(name)} = ?, " for name in set)
    writer.raw.execute(
        f"UPDATE main.{quoted(table)} SET {written}_updated_at = ? WHERE _deleted_at IS NULL AND {chosen}",
        (*map(from_json, set.values()), writer.who.at, *values),
    )
    return {"table": table, "updated": len(writer.capture.changes), **_ids(writer)}


@operation("delete", "write", uses_reserve=True, path="POST /tables/{table}/rows/delete", command="delete")
def delete(
    db: OpenDatabase, table: str, where: Values | None = None, row_ids: Sequence[int] | None = None
) -> dict[str, Any]:
    """Soft-delete live rows: they stay, and can be restored."""
    return {"table": table, "deleted": _mark(db.writer, table, where, row_ids, is_deleted=True), **_ids(db.writer)}


@operation("restore", "write", path="POST /tables/{table}/rows/restore", command="restore")
def restore(
    db: OpenDatabase, table: str, where: Values | None = None, row_ids: Sequence[int] | None = None
) -> dict[str, Any]:
    """Restore soft-deleted rows."""
    return {"table": table, "restored": _mark(db.writer, table, where, row_ids, is_deleted=False), **_ids(db.writer)}


def _mark(writer: Writer, table: str, where: Values | None, row_ids: Sequence[int] | None, *, is_deleted: bool) -> int:
    chosen, values = _choose(where, row_ids, writer.need_table(table))
    written = "_deleted_at = ?" if is_deleted else "_deleted_at = NULL, _updated_at = ?"
    which = f"_deleted_at IS {'' if is_deleted else 'NOT '}NULL AND {chosen}"
    writer.raw.execute(f"UPDATE main.{quoted(table)} SET {written} WHERE {which}", (writer.who.at, *values))
    return len(writer.capture.changes)


def _choose(where: Values | None, row_ids: Sequence[int] | None, columns: Sequence[str]) -> tuple[str, list[Any]]:
    """Return the SQL condition for rows that a model describes, or that a person selected by row id."""
    if row_ids is None:
        return to_sql(where or {}, columns)
    if not row_ids or len(row_ids) > MAX_IDS:
        raise Refusal("invalid", f"'row_ids' must have 1 to {MAX_IDS:,} ids, got {len(row_ids):,}.", field="row_ids")
    return f"{row_id_of(columns)} IN ({', '.join('?' * len(row_ids))})", list(row_ids)


def _check_rows(rows: Sequence[Values], columns: Sequence[str]) -> None:
    if not rows:
        raise Refusal("invalid", "'rows' must have at least one row, an object of columns and values.", field="rows")
    if len(rows) > MAX_ROWS:
        raise Refusal("limit", f"'rows' must have at most {MAX_ROWS:,} rows, got {len(rows):,}.", field="rows")
    for names in set(map(tuple, rows)):
        _check_names(names, columns, field="rows")


def _check_names(names: Any, columns: Sequence[str], *, field: str) -> None:
    for name in names:
        if name in SYSTEM_COLUMNS:
            raise Refusal("invalid", f"The column {name!r} is managed by the host. Leave it out.", field=field)
        need_column(name, columns, field=field)


def _ids(writer: Writer) -> dict[str, Any]:
    return {"row_ids": [change.moved_to for change in writer.capture.changes[:MAX_IDS]]}


# Rows as CSV, JSON and JSON lines: the operation `export`, and reading a file to import.


MAX_IMPORTED = 20_000  # rows
MAX_BYTES = 10 * 1024 * 1024  # of values
MAX_EXPORTED = 40 * 1024 * 1024  # bytes of a file; JSON repeats the column names in every row

# Spreadsheets skip spaces and invisible characters, and some read full-width and small signs as plain ones.
# An apostrophe that is already there gets another, so that an import can distinguish the two.
_FORMULA = re.compile(
    r"'*(?:[\t\r\n]|[\s\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*"
    r"[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212])"
)

csv.field_size_limit(1_000_000)


@operation("export", is_long=True, path="GET /tables/{table}/export", command="export")
def export(
    db: OpenDatabase,
    format: str,  # noqa: A002  (the argument's name at every door)
    table: str | None = None,
    show: str = "active",
    sql: str | None = None,
    view: str | None = None,
    params: browse.Params = None,
) -> bytes:
    """Write a table, or the rows of a statement or a saved view, as a file."""
    if view is not None:
        with db.reader.looking() as connection:
            found = browse.find_view(connection, view)
        sql, params = found["sql"], browse.values_of(found, cast("Mapping[str, Any]", params or {})) or None
    if table is not None:
        with db.reader.looking() as connection:
            columns, found = browse.all_rows(connection, table, show)
            with closing(found):
                text = write_rows(format, columns, found)
    else:
        with db.reader.reading() as connection:
            statement = connection.prepare_only(sql or "")
            browse.need_reading(statement)
            with closing(connection.run(statement, browse.bindings(statement, params))) as found:
                text = write_rows(format, statement.columns, found)
    if len(written := text.encode()) > MAX_EXPORTED:
        raise Refusal(
            "limit",
            f"The file must have at most {MAX_EXPORTED:,} bytes; as {format} it would have {len(written):,}. "
            "Export less at a time.",
        )
    return written


def write_rows(kind: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as text in one of the formats."""
    rows = _limited(rows)
    if kind == "csv":
        return _write_csv(columns, rows)
    objects = (dict(zip(columns, row, strict=True)) for row in rows)
    if kind == "jsonl":
        return "".join(orjson.dumps(each, default=blob_as_json).decode() + "\n" for each in objects)
    return orjson.dumps(list(objects), default=blob_as_json, option=orjson.OPT_INDENT_2).decode() + "\n"


def _limited(rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Yield rows up to the size limit of a file."""
    size = 0
    for row in deadline.checked(rows):
        size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
        if size > MAX_BYTES:
            raise Refusal("limit", f"A file must have at most {MAX_BYTES // 1024**2} MB. Export less at a time.")
        yield row


def read_rows(kind: str, text: str) -> list[dict[str, Any]]:
    """Return the rows of a file."""
    rows = list(deadline.checked(_READERS[kind](text.removeprefix("\ufeff"))))
    if not rows:
        raise Refusal("invalid", "The file has no rows.", field="path")
    if len(rows) > MAX_IMPORTED:
        raise Refusal("limit", f"The file must have at most {MAX_IMPORTED:,} rows, got {len(rows):,}.", field="path")
    return rows


def _write_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([_safe(name) for name in columns])
    for row in rows:
        writer.writerow([_safe(value) for value in row])
    return text.getvalue()


def _safe(value: Any) -> Any:
    """Keep a spreadsheet from reading a text as a formula; numbers stay numbers."""
    if isinstance(value, bytes):
        return orjson.dumps(blob_as_json(value)).decode()
    if isinstance(value, str) and _FORMULA.match(value):
        return f"'{value}"
    return value


def _read_csv(text: str) -> Iterator[dict[str, Any]]:
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = [name.strip() for name in next(lines, list[str]())]
        if not names or len(set(names)) != len(names) or not all(names):
            raise Refusal("invalid", "The first line of a CSV file must name each column, each once.", field="path")
        for line in lines:
            if not line:
                continue
            if len(line) != len(names):
                raise Refusal(
                    "invalid",
                    f"Line {lines.line_num} must have {len(names)} fields, as the first line has; got {len(line)}.",
                    field="path",
                )
            yield dict(zip(names, map(_value, line), strict=True))
    except csv.Error as error:
        raise Refusal("invalid", f"Line {lines.line_num} is not CSV: {error}.", field="path") from None


def _value(text: str) -> Any:
    """Read a field: empty is NULL, and the apostrophe that `_safe` added is removed."""
    if text == "":
        return None
    return text[1:] if text.startswith("'") and _FORMULA.match(text, 1) else text


def _read_jsonl(text: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield _object(_load(line, f"Line {number}"), f"Line {number}")


def _read_json(text: str) -> Iterator[dict[str, Any]]:
    whole = _load(text, "The file")
    if not isinstance(whole, list):
        raise Refusal("invalid", "The file must be a JSON list of objects.", field="path")
    for number, each in enumerate(cast("list[Any]", whole), 1):
        yield _object(each, f"Entry {number}")


def _load(text: str, where: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Refusal("invalid", f"{where} is not JSON: {error}.", field="path") from None


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise Refusal("invalid", f"{where} is not a JSON object.", field="path")
    return dict(cast("Mapping[str, Any]", value))


_READERS = {"csv": _read_csv, "json": _read_json, "jsonl": _read_jsonl}
