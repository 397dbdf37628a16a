"""The operation `undo`: revert the rows that a run wrote, except those changed since."""

from typing import Any

import apsw
import orjson

from wakeful.agentdb.database import Writer, quoted, row_id_of
from wakeful.agentdb.files.open_database import OpenDatabase
from wakeful.agentdb.history.changelog import from_json
from wakeful.agentdb.operation import operation
from wakeful.agentdb.process import deadline

_MAX_LISTED = 200


@operation(
    "undo",
    "write",
    is_long=True,
    uses_reserve=True,
    keeps_host_values=True,
    logged_as="undo",
    logged_arguments={"undoes": "run_id"},
    command="undo",
)
def undo_run(db: OpenDatabase, run_id: str) -> dict[str, Any]:
    """Restore rows to their values before a run. Rows that it inserted are soft-deleted."""
    writer = db.writer
    rows: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    others: list[dict[str, Any]] = []
    for entry in writer.raw.execute(
        "SELECT id, op, table_name, row_id, before, after, detail FROM _changelog WHERE run_id = ? ORDER BY id",
        (run_id,),
    ).fetchall():
        _, op, table, row_id, *_ = entry
        if row_id is not None:
            rows.setdefault((table, row_id), []).append(entry)
        elif op == "schema":
            others.append({"table": table, "why": "changes of the schema and of views are not undone"})
    undone = 0
    for (table, row_id), entries in deadline.checked(rows.items()):
        problem = _undo_row(writer, run_id, table, row_id, entries)
        if problem is None:
            undone += 1
        else:
            others.append({"table": table, "row_id": row_id, "why": problem})
    return {"run_id": run_id, "undone": undone, "left": others[:_MAX_LISTED], "left_count": len(others)}


def _undo_row(writer: Writer, run_id: str, table: str, row_id: int, entries: list[tuple[Any, ...]]) -> str | None:
    """Undo the changes of a run to one row; return why it cannot be done, else None."""
    problem = _changed_since(writer, run_id, table, row_id, entries[0][0])
    if problem is not None:
        return problem
    if any(detail is not None for *_, detail in entries):
        return "its key was changed"
    if any(after is None for *_, after, _ in entries):
        return "its earlier values are no longer kept"
    before = entries[0][4]
    names = writer.columns(table)
    if not names:
        return "the table is gone"
    chosen = f"{row_id_of(names)} = ?"
    now = writer.raw.execute(f"SELECT * FROM main.{quoted(table)} WHERE {chosen}", (row_id,)).fetchone()
    if now is None:
        return "the row is gone"
    if before is None:
        put = {"_deleted_at": writer.who.at}
    else:
        # An entry has the old values of changed columns, so the first entry with a column has the value before the run.
        put = {
            _renamed(writer, table, entry[0]).get(str(name), str(name)): from_json(value)
            for entry in reversed(entries)
            for name, value in orjson.loads(entry[4]).items()
        }
        if not put.keys() <= set(names):
            return "the table has lost a column since"
    written = ", ".join(f"{quoted(name)} = ?" for name in put)
    try:
        with writer.raw:  # a savepoint
            writer.raw.execute(f"UPDATE main.{quoted(table)} SET {written} WHERE {chosen}", (*put.values(), row_id))
    except apsw.ConstraintError as error:
        return f"another row is in its way ({error})"
    return None


def _renamed(writer: Writer, table: str, number: int) -> dict[str, str]:
    """Return the new names of columns that the host has renamed since an entry."""
    found = writer.raw.execute(
        "SELECT detail FROM _changelog WHERE op = 'schema' AND table_name = ? AND id > ?"
        " AND detail LIKE '{\"renamed_columns\"%'",
        (table, number),
    ).fetchall()
    return {old: new for (detail,) in found for old, new in orjson.loads(detail)["renamed_columns"].items()}


def _changed_since(writer: Writer, run_id: str, table: str, row_id: int, first: int) -> str | None:
    since = writer.raw.execute(
        "SELECT at, actor, run_id, op FROM _changelog WHERE table_name = ? AND row_id = ? AND id > ?"
        " AND run_id IS NOT ? ORDER BY id DESC LIMIT 1",
        (table, row_id, first, run_id),
    ).fetchone()
    if since is None:
        return None
    at, actor, other, op = since
    if op == "undo":
        return f"it was undone already, at {at}"
    by = f"run {other}" if other else f"the {actor}"
    return f"it was changed since, at {at}, by {by}"
