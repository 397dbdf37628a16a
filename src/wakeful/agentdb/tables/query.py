"""Operations that run one SQL statement of a model: `query` reads, `execute` writes."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import orjson

from wakeful.agentdb.database import Reader, Statement, Writer
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.files.open_database import OpenDatabase
from wakeful.agentdb.history.changelog import Change, blob_as_json, from_json
from wakeful.agentdb.operation import name_of, operation
from wakeful.agentdb.process import deadline

DEFAULT_ROWS = 1_000
MAX_ROWS = 5_000
MAX_BYTES = 80_000  # of the rows as JSON
MAX_VALUES_AT_ONCE = 64  # read before their size is measured

Params = Mapping[str, Any] | Sequence[Any] | None


@operation("query", path="POST /query", command="query")
def query(
    db: OpenDatabase,
    sql: str,
    params: Params = None,
    limit: int | None = None,
    include_deleted: bool = False,
    max_bytes: int = MAX_BYTES,
) -> dict[str, Any]:
    """Run one statement that only reads."""
    reader = db.reader
    with reader.reading(include_deleted=include_deleted) as connection:
        statement = connection.prepare_only(sql)
        need_reading(statement)
        # A half-read cursor would keep an old snapshot of the database open.
        with closing(connection.run(statement, bindings(statement, params))) as cursor:
            return take(statement.columns, cursor, limit or DEFAULT_ROWS, max_bytes, reader.sent_rows)


def check(reader: Reader, sql: str) -> Statement:
    """Prepare a statement that only reads, without running it."""
    with reader.reading() as connection:
        statement = connection.prepare_only(sql)
        need_reading(statement)
        return statement


def take(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    limit: int,
    max_bytes: int,
    sent_rows: list[Sequence[Any]] | None = None,
) -> dict[str, Any]:
    """Read rows up to a number and a size, and write them as JSON in batches, without reading ahead.

    Measuring each row alone takes longer than reading it. A value has a megabyte at most, so a batch of a few values is
    bounded too; the first row is a batch of its own, since rows are mostly alike.
    Rows are appended to `sent_rows` to be freed after the answer was sent: freeing a thousand takes a while.
    """
    limit = max(1, min(limit, MAX_ROWS))
    sent_rows = [] if sent_rows is None else sent_rows
    rows = iter(rows)
    step, max_step = 1, max(1, MAX_VALUES_AT_ONCE // max(1, len(columns)))
    written: list[bytes] = []
    count, left, is_truncated = 0, max_bytes - 2, False
    while not is_truncated and (batch := list(islice(rows, min(step, limit + 1 - count)))):
        deadline.check()
        fitting = batch[: limit - count]
        text = orjson.dumps(fitting, default=blob_as_json)
        if len(text) - 1 > left:
            fitting = _fitting(fitting, left)
            text = orjson.dumps(fitting, default=blob_as_json)
        is_truncated = len(fitting) < len(batch)
        if fitting:
            sent_rows += fitting
            written.append(text[1:-1])
            count += len(fitting)
            left -= len(text) - 1
        step = min(4 * step, max_step)
    return {
        "columns": columns,
        "rows": orjson.Fragment(b"[" + b",".join(written) + b"]"),
        "row_count": count,
        "truncated": is_truncated,
    }


def _fitting(rows: Sequence[Sequence[Any]], max_bytes: int) -> list[Sequence[Any]]:
    for number, row in enumerate(rows):
        max_bytes -= len(orjson.dumps(row, default=blob_as_json)) + 1
        if max_bytes < 0:
            return list(rows[:number])
    return list(rows)


@operation(
    "execute", "write", logged_as="execute", logged_arguments={"sql": "sql"}, path="POST /execute", command="execute"
)
def execute(db: OpenDatabase, sql: str, params: Params = None) -> dict[str, Any]:
    """Run one statement that writes, and set the host's timestamps in the rows it wrote."""
    writer = db.writer
    with writer.connection.under("execute"):
        statement = writer.connection.prepare_only(sql)
        if statement.is_readonly:
            raise Refusal("refused", f"This statement only reads. Use {name_of('query')} for it.", field="sql")
        cursor = writer.connection.run(statement, bindings(statement, params))
        returned = take(statement.columns, cursor, DEFAULT_ROWS, MAX_BYTES)
        # SQLite has written all rows before RETURNING gives the first; the rest of them is only read.
        for _ in deadline.checked(cursor):
            pass
    changes = writer.capture.changes
    _refuse_deleted(writer, changes)
    with writer.unnoted():
        writer.capture.changes = writer.stamp(changes)
    return {"changed": len(changes), **(returned if statement.columns else {})}


def _refuse_deleted(writer: Writer, changes: Sequence[Change]) -> None:
    """Refuse changes of soft-deleted rows, which the other operations do not change either."""
    touched = [
        change.table
        for change in changes
        if change.old is not None and change.old[writer.columns(change.table).index("_deleted_at")] is not None
    ]
    if touched:
        raise Refusal(
            "refused",
            f"This would change {len(touched)} deleted rows of {touched[0]!r}. Nothing was changed. Add "
            f"'WHERE _deleted_at IS NULL' (or 'AND …'), or restore them with {name_of('restore')} or "
            f"{name_of('upsert')} first.",
            field="sql",
        )


def bindings(statement: Statement, params: Params) -> dict[str, Any] | list[Any] | None:
    """Match the given values to the parameters of a statement."""
    named = [name for name in statement.parameters if name is not None]
    if not statement.parameters:
        if params:
            raise Refusal("invalid", "The statement has no parameters, but 'params' has values.", field="params")
        return None
    if isinstance(params, Mapping):
        if len(named) != len(statement.parameters):
            raise Refusal("invalid", "The statement has '?'; give 'params' as a list, or use :names.", field="params")
        _compare_names(set(named), set(params))
        return {name: from_json(value) for name, value in params.items()}
    given = list(params or ())
    if named and not given:
        raise Refusal("invalid", f"'params' lacks: {', '.join(sorted(set(named)))}.", field="params")
    if len(given) != len(statement.parameters):
        raise Refusal(
            "invalid",
            f"The statement has {len(statement.parameters)} parameters, and 'params' {len(given)} values.",
            field="params",
        )
    return [from_json(value) for value in given]


def _compare_names(wanted: set[str], given: set[str]) -> None:
    if wanted != given:
        missing, extra = sorted(wanted - given), sorted(given - wanted)
        said = [f"lacks: {', '.join(missing)}"] if missing else []
        said += [f"has what the statement does not use: {', '.join(extra)}"] if extra else []
        raise Refusal("invalid", f"'params' {' and '.join(said)}.", field="params")


def need_reading(statement: Statement) -> None:
    """Refuse a statement that writes, or returns nothing."""
    if not statement.is_readonly or not statement.columns:
        raise only_select()


def only_select() -> Refusal:
    writing = f"{name_of('insert')}, {name_of('update')} or {name_of('execute')}"
    return Refusal("refused", f"Only SELECT is allowed here. Use {writing} to write.", field="sql")
