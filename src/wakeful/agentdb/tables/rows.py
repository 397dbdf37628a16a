"""Rows, written by name and value: insert, upsert, update, delete, restore."""
# pyright: reportUnknownMemberType=false

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from wakeful.agentdb.database import ROW_ID_NAMES, SYSTEM_COLUMNS, Writer, quoted, row_id_of
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.history.changelog import PLAIN, Who, from_json
from wakeful.agentdb.process import deadline
from wakeful.agentdb.tables import schema, where

MOST_ROWS = 5_000
MOST_IDS = 900  # told in an answer, and named in a call

Values = Mapping[str, Any]


def insert(writer: Writer, who: Who, table: str, rows: Sequence[Values]) -> dict[str, Any]:
    """Insert rows, all or none."""
    columns = writer.need_table(table)
    check_rows(rows, columns)
    for names, group in groupby(rows, key=tuple):
        _insert(writer, who, table, names, group)
    return {"table": table, "inserted": len(rows), **_ids(writer)}


def _insert(writer: Writer, who: Who, table: str, names: Sequence[str], rows: Any) -> None:
    written = ", ".join(quoted(name) for name in (*names, "_created_at", "_updated_at"))
    places = ", ".join("?" * (len(names) + 2))
    writer.raw.executemany(
        f"INSERT INTO main.{quoted(table)} ({written}) VALUES ({places})",
        ((*_kept(row.values()), who.at, who.at) for row in deadline.checked(rows)),
    )


def _kept(values: Collection[Any]) -> Iterable[Any]:
    """Return values as SQLite keeps them; most rows have only such."""
    return values if PLAIN.issuperset(map(type, values)) else map(from_json, values)


def take_in(
    writer: Writer, who: Who, table: str, rows: Sequence[dict[str, Any]], *, may_create: bool
) -> dict[str, Any]:
    """Insert rows of a file; the host's columns in it are left out, for it sets them itself."""
    ignored = sorted({name for row in rows for name in row if name in SYSTEM_COLUMNS})
    cleaned = [{name: value for name, value in row.items() if name not in SYSTEM_COLUMNS} for row in rows]
    renamed = _new_names(cleaned)
    if renamed:
        cleaned = [{renamed.get(name, name): value for name, value in row.items()} for row in cleaned]
    is_new = not writer.columns(table)
    if is_new and may_create:
        schema.create_table(writer, who, table, "Imported from a file.", schema.infer(cleaned), ())
    columns = writer.need_table(table)
    for names in set(map(tuple, cleaned)):
        _check_names(names, columns, field="path")
    for names, group in groupby(cleaned, key=tuple):
        _insert(writer, who, table, names, group)
    return {
        "table": table,
        "imported": len(rows),
        "created_table": is_new,
        "ignored_columns": ignored,
        "renamed_columns": renamed,
    }


def _new_names(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Find another name for each column of a file that would hide SQLite's row id."""
    names = dict.fromkeys(name for row in rows for name in row)
    taken = {name.lower() for name in names}
    renamed: dict[str, str] = {}
    for name in names:
        if name.lower() in ROW_ID_NAMES:
            renamed[name] = schema.free_name(name, taken)
            taken.add(renamed[name].lower())
    return renamed


def upsert(writer: Writer, who: Who, table: str, rows: Sequence[Values], keys: Sequence[str]) -> dict[str, Any]:
    """Update the row with the same keys, revive it if it was deleted, or insert it."""
    columns = writer.need_table(table)
    check_rows(rows, columns)
    if not keys:
        raise Refusal(
            "invalid", "'conflict_columns' is empty. Name what makes a row the same.", field="conflict_columns"
        )
    for key in keys:
        where.need_column(key, columns, field="conflict_columns")
    done: dict[str, int] = {"inserted": 0, "updated": 0, "revived": 0}
    outcomes: list[str] = []
    for number, row in enumerate(deadline.checked(rows)):
        outcome = _upsert(writer, who, table, row, keys, number)
        done[outcome] += 1
        outcomes.append(outcome)
    return {"table": table, **done, "outcomes": outcomes[:MOST_IDS], **_ids(writer)}


def _upsert(writer: Writer, who: Who, table: str, row: Values, keys: Sequence[str], number: int) -> str:
    missing = [key for key in keys if row.get(key) is None]
    if missing:
        raise Refusal(
            "invalid", f"Row {number} has no value for {missing[0]!r}, by which it would be found.", field="rows"
        )
    condition = " AND ".join(f"{quoted(key)} = ?" for key in keys)
    id_name = row_id_of(writer.columns(table))
    found = writer.raw.execute(
        f"SELECT {id_name}, _deleted_at FROM main.{quoted(table)} WHERE {condition}"
        " ORDER BY _deleted_at IS NOT NULL LIMIT 2",
        [from_json(row[key]) for key in keys],
    ).fetchall()
    if not found:
        _insert(writer, who, table, tuple(row), [row])
        return "inserted"
    if len(found) > 1 and found[1][1] is None:
        raise Refusal(
            "conflict",
            f"Several rows of {table!r} have the {', '.join(keys)} of row {number}. Nothing was changed. "
            "Name more conflict_columns, or use db_update.",
        )
    row_id, deleted_at = found[0]
    changes = [(quoted(name), from_json(value)) for name, value in row.items() if name not in keys]
    written = "".join(f"{name} = ?, " for name, _ in changes)
    writer.raw.execute(
        f"UPDATE main.{quoted(table)} SET {written}_updated_at = ?, _deleted_at = NULL WHERE {id_name} = ?",
        (*(value for _, value in changes), who.at, row_id),
    )
    return "updated" if deleted_at is None else "revived"


def update(
    writer: Writer,
    who: Who,
    table: str,
    changes: Values,
    condition: Values | None,
    row_ids: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Change live rows that meet a condition."""
    columns = writer.need_table(table)
    if not changes:
        raise Refusal("invalid", "'set' is empty. Say which columns get which value.", field="set")
    _check_names(changes, columns, field="set")
    chosen, values = choose(condition, row_ids, columns)
    written = "".join(f"{quoted(name)} = ?, " for name in changes)
    writer.raw.execute(
        f"UPDATE main.{quoted(table)} SET {written}_updated_at = ? WHERE _deleted_at IS NULL AND {chosen}",
        (*map(from_json, changes.values()), who.at, *values),
    )
    return {"table": table, "updated": len(writer.capture.changes), **_ids(writer)}


def delete(
    writer: Writer, who: Who, table: str, condition: Values | None, row_ids: Sequence[int] | None = None
) -> dict[str, Any]:
    """Mark live rows as deleted; they stay, and can be restored."""
    chosen, values = choose(condition, row_ids, writer.need_table(table))
    writer.raw.execute(
        f"UPDATE main.{quoted(table)} SET _deleted_at = ? WHERE _deleted_at IS NULL AND {chosen}", (who.at, *values)
    )
    return {"table": table, "deleted": len(writer.capture.changes), **_ids(writer)}


def restore(
    writer: Writer, who: Who, table: str, condition: Values | None, row_ids: Sequence[int] | None = None
) -> dict[str, Any]:
    """Bring deleted rows back."""
    chosen, values = choose(condition, row_ids, writer.need_table(table))
    writer.raw.execute(
        f"UPDATE main.{quoted(table)} SET _deleted_at = NULL, _updated_at = ?"
        f" WHERE _deleted_at IS NOT NULL AND {chosen}",
        (who.at, *values),
    )
    return {"table": table, "restored": len(writer.capture.changes), **_ids(writer)}


def choose(condition: Values | None, row_ids: Sequence[int] | None, columns: Sequence[str]) -> tuple[str, list[Any]]:
    """Return a condition for the rows a model describes, or for those a person ticked."""
    if row_ids is None:
        return where.to_sql(condition or {}, columns)
    if not row_ids or len(row_ids) > MOST_IDS:
        raise Refusal("invalid", f"'row_ids' has 1 to {MOST_IDS:,} of them, not {len(row_ids):,}.", field="row_ids")
    return f"{row_id_of(columns)} IN ({', '.join('?' * len(row_ids))})", list(row_ids)


def check_rows(rows: Sequence[Values], columns: Sequence[str]) -> None:
    if not rows:
        raise Refusal(
            "invalid", "'rows' is empty. Give at least one row, as an object of columns and values.", field="rows"
        )
    if len(rows) > MOST_ROWS:
        raise Refusal("limit", f"{len(rows):,} rows at once are too many; {MOST_ROWS:,} is the most.", field="rows")
    for names in set(map(tuple, rows)):
        _check_names(names, columns, field="rows")


def _check_names(names: Any, columns: Sequence[str], *, field: str) -> None:
    for name in names:
        if name in SYSTEM_COLUMNS:
            raise Refusal("invalid", f"The column {name!r} is kept by the host. Leave it out.", field=field)
        where.need_column(name, columns, field=field)


def _ids(writer: Writer) -> dict[str, Any]:
    return {"row_ids": [change.moved_to for change in writer.capture.changes[:MOST_IDS]]}
