"""Statements a model wrote: one that reads, and one that writes."""
# pyright: reportUnknownMemberType=false

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import orjson

from wakeful.agentdb.database import Reader, Statement, Writer
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.history.changelog import Change, Who, blob_as_json, from_json
from wakeful.agentdb.process import deadline

USUAL_ROWS = 1_000
MOST_ROWS = 5_000
MOST_BYTES = 80_000  # of the rows as JSON
MOST_VALUES_AT_ONCE = 64  # that are read before they are measured

Params = Mapping[str, Any] | Sequence[Any] | None


def query(
    reader: Reader, sql: str, params: Params, *, limit: int, include_deleted: bool, most_bytes: int = MOST_BYTES
) -> dict[str, Any]:
    """Run one statement that only reads."""
    with reader.reading(include_deleted=include_deleted) as connection:
        statement = connection.prepare_only(sql)
        need_reading(statement)
        # Closed in any case: one that is left half-read would hold on to an old state of the database.
        with closing(connection.run(statement, bindings(statement, params))) as cursor:
            return take(statement.columns, cursor, limit, most_bytes, reader.taken)


def check(reader: Reader, sql: str) -> Statement:
    """Let SQLite say whether a statement could be run to read, without running it."""
    with reader.reading() as connection:
        statement = connection.prepare_only(sql)
        need_reading(statement)
        return statement


def take(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    limit: int,
    most_bytes: int,
    wanted: list[Sequence[Any]] | None = None,
) -> dict[str, Any]:
    """Take rows up to a number and a size, and write them as JSON; a few are measured at a time, and none read ahead.

    To measure each row alone takes longer than to read it. A value has a megabyte at most, so a few are bounded too;
    the first row is measured alone, since rows are mostly alike.
    With `wanted` rows are freed later, when the answer is sent: a thousand take a while.
    """
    limit = max(1, min(limit, MOST_ROWS))
    wanted = [] if wanted is None else wanted
    rows = iter(rows)
    step, most_step = 1, max(1, MOST_VALUES_AT_ONCE // max(1, len(columns)))
    written: list[bytes] = []
    count, left, is_truncated = 0, most_bytes - 2, False
    while not is_truncated and (batch := list(islice(rows, min(step, limit + 1 - count)))):
        deadline.check()
        fitting = batch[: limit - count]
        text = orjson.dumps(fitting, default=blob_as_json)
        if len(text) - 1 > left:
            fitting = _fitting(fitting, left)
            text = orjson.dumps(fitting, default=blob_as_json)
        is_truncated = len(fitting) < len(batch)
        if fitting:
            wanted += fitting
            written.append(text[1:-1])
            count += len(fitting)
            left -= len(text) - 1
        step = min(4 * step, most_step)
    return {
        "columns": columns,
        "rows": orjson.Fragment(b"[" + b",".join(written) + b"]"),
        "row_count": count,
        "truncated": is_truncated,
    }


def _fitting(rows: Sequence[Sequence[Any]], most_bytes: int) -> list[Sequence[Any]]:
    for number, row in enumerate(rows):
        most_bytes -= len(orjson.dumps(row, default=blob_as_json)) + 1
        if most_bytes < 0:
            return list(rows[:number])
    return list(rows)


def execute(writer: Writer, who: Who, sql: str, params: Params) -> dict[str, Any]:
    """Run one statement that writes, and let the host's times stand in what it wrote."""
    with writer.connection.under("execute"):
        statement = writer.connection.prepare_only(sql)
        if statement.is_readonly:
            raise Refusal("refused", "This statement only reads. Use db_query for it.", field="sql")
        cursor = writer.connection.run(statement, bindings(statement, params))
        returned = take(statement.columns, cursor, USUAL_ROWS, MOST_BYTES)
        # What RETURNING has more than that is not wanted; all rows were written before the first came.
        for _ in deadline.checked(cursor):
            pass
    changes = writer.capture.changes
    _leave_deleted(writer, changes)
    with writer.unnoted():
        writer.capture.changes = writer.stamp(who, changes)
    return {"changed": len(changes), **(returned if statement.columns else {})}


def _leave_deleted(writer: Writer, changes: Sequence[Change]) -> None:
    """Refuse to change what is deleted, as the typed tools leave it alone: it comes back as it was, or not at all."""
    touched = [
        change.table
        for change in changes
        if change.old is not None and change.old[writer.columns(change.table).index("_deleted_at")] is not None
    ]
    if touched:
        raise Refusal(
            "refused",
            f"This would change {len(touched)} deleted rows of {touched[0]!r}. Nothing was changed. Add "
            "'WHERE _deleted_at IS NULL' (or 'AND …'), or bring them back with db_restore or db_upsert first.",
            field="sql",
        )


def bindings(statement: Statement, params: Params) -> dict[str, Any] | list[Any] | None:
    """Fit the given values to the parameters of a statement, or say what is missing."""
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
    """Refuse what writes, or returns nothing."""
    if not statement.is_readonly or not statement.columns:
        raise Refusal(
            "refused", "Only SELECT is allowed here. Use db_insert, db_update or db_execute to write.", field="sql"
        )
