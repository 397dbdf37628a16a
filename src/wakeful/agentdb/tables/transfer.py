"""Rows as CSV, JSON and JSON lines: the operation `export`, and reading a file to import."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, cast

import orjson

from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.files.open_database import OpenDatabase
from wakeful.agentdb.history.changelog import blob_as_json
from wakeful.agentdb.operation import operation
from wakeful.agentdb.process import deadline
from wakeful.agentdb.tables import browse, query, views

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
    params: query.Params = None,
) -> bytes:
    """Write a table, or the rows of a statement or a saved view, as a file."""
    if view is not None:
        with db.reader.looking() as connection:
            found = views.find(connection, view)
        sql, params = found["sql"], views.values_of(found, cast("Mapping[str, Any]", params or {})) or None
    if table is not None:
        with db.reader.looking() as connection:
            columns, found = browse.all_rows(connection, table, show)
            with closing(found):
                text = write(format, columns, found)
    else:
        with db.reader.reading() as connection:
            statement = connection.prepare_only(sql or "")
            query.need_reading(statement)
            with closing(connection.run(statement, query.bindings(statement, params))) as found:
                text = write(format, statement.columns, found)
    if len(written := text.encode()) > MAX_EXPORTED:
        raise Refusal(
            "limit",
            f"The file must have at most {MAX_EXPORTED:,} bytes; as {format} it would have {len(written):,}. "
            "Export less at a time.",
        )
    return written


def write(kind: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
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


def read(kind: str, text: str) -> list[dict[str, Any]]:
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
