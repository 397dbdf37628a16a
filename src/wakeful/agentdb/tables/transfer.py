"""Rows as files: CSV, JSON and JSON lines, in and out."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.history.changelog import blob_as_json
from wakeful.agentdb.process import deadline

FORMATS = ("csv", "json", "jsonl")
MOST_IMPORTED = 20_000
MOST_BYTES = 10 * 1024 * 1024

# A spreadsheet passes over spaces and invisible characters, and some read full-width and small signs as plain ones.
# An apostrophe that is already there gets another, so that an import can tell the two apart.
_FORMULA = re.compile(
    r"'*(?:[\t\r\n]|[\s\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*"
    r"[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212])"
)

csv.field_size_limit(1_000_000)


def write(kind: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write rows as a text of one of the formats."""
    rows = bounded(rows)
    if kind == "csv":
        return _write_csv(columns, rows)
    objects = (dict(zip(columns, row, strict=True)) for row in rows)
    if kind == "jsonl":
        return "".join(orjson.dumps(each, default=blob_as_json).decode() + "\n" for each in objects)
    return orjson.dumps(list(objects), default=blob_as_json, option=orjson.OPT_INDENT_2).decode() + "\n"


def bounded(rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Pass rows on, but not more than a file may have."""
    size = 0
    for row in deadline.checked(rows):
        size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
        if size > MOST_BYTES:
            raise Refusal(
                "limit", f"A file may have {MOST_BYTES // 1024**2} MB, and this has more. Export less at a time."
            )
        yield row


def read(kind: str, text: str) -> list[dict[str, Any]]:
    """Read a text of one of the formats."""
    rows = list(deadline.checked(_READERS[kind](text.removeprefix("\ufeff"))))
    if not rows:
        raise Refusal("invalid", "The file has no rows.", field="path")
    if len(rows) > MOST_IMPORTED:
        raise Refusal("limit", f"The file has {len(rows):,} rows; {MOST_IMPORTED:,} is the most at once.", field="path")
    return rows


def _write_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([_safe(name) for name in columns])
    for row in rows:
        writer.writerow([_safe(value) for value in row])
    return text.getvalue()


def _safe(value: Any) -> Any:
    """Keep a spreadsheet from taking a text for a formula; a number stays a number."""
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
            raise Refusal("invalid", "The first line of a CSV file names each column once.", field="path")
        for line in lines:
            if not line:
                continue
            if len(line) != len(names):
                raise Refusal(
                    "invalid",
                    f"Line {lines.line_num} has {len(line)} fields, and the first line {len(names)}.",
                    field="path",
                )
            yield dict(zip(names, map(_value, line), strict=True))
    except csv.Error as error:
        raise Refusal("invalid", f"Line {lines.line_num} is not CSV: {error}.", field="path") from None


def _value(text: str) -> Any:
    """Read a field: empty is NULL, and what `_safe` put before a formula is taken away."""
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
        raise Refusal("invalid", "The file is not a JSON list of objects.", field="path")
    for number, each in enumerate(whole, 1):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        yield _object(each, f"Entry {number}")


def _load(text: str, where: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Refusal("invalid", f"{where} is not JSON: {error}.", field="path") from None


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise Refusal("invalid", f"{where} is not a JSON object.", field="path")
    return dict(value)  # pyright: ignore[reportUnknownArgumentType]


_READERS = {"csv": _read_csv, "json": _read_json, "jsonl": _read_jsonl}
