"""Saved views: a SELECT with a name, named parameters, and a hint how to draw it."""
# pyright: reportUnknownMemberType=false

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from wakeful.agentdb.database import GuardedConnection, Reader, Writer
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.history.changelog import Who
from wakeful.agentdb.tables import query
from wakeful.agentdb.tables.schema import check_name, note

RENDERS = ("table", "bar", "line", "pie", "number")
MOST_VIEWS = 200

_COLUMNS = ("name", "sql", "description", "parameters", "render", "is_pinned", "created_at", "updated_at")


def listed(connection: GuardedConnection) -> list[dict[str, Any]]:
    """Return all saved views."""
    return [_read(row) for row in connection.raw.execute(f"SELECT {', '.join(_COLUMNS)} FROM _views ORDER BY name")]


def find(connection: GuardedConnection, name: str) -> dict[str, Any]:
    row = connection.raw.execute(f"SELECT {', '.join(_COLUMNS)} FROM _views WHERE name = ?", (name,)).fetchone()
    if row is None:
        names = [name for (name,) in connection.raw.execute("SELECT name FROM _views ORDER BY name")]
        there_are = f"There are: {', '.join(names)}." if names else "There is none yet: make one with db_define_view."
        raise Refusal("not_found", f"There is no view {name!r}. {there_are}", field="name")
    return _read(row)


def define(
    writer: Writer,
    reader: Reader,
    who: Who,
    *,
    name: str,
    sql: str,
    description: str,
    parameters: Sequence[Mapping[str, Any]],
    render: str,
    is_pinned: bool | None,
) -> dict[str, Any]:
    """Save a view under a name, in place of the one that had it."""
    check_name(name, "view")
    if name.lower() in {table.lower() for table in writer.connection.tables()}:
        raise Refusal(
            "conflict", f"There is a table {name!r}, and a view cannot have its name. Choose another one.", field="name"
        )
    _check_parameters(query.check(reader, sql).parameters, parameters)
    old = writer.raw.execute("SELECT created_at, is_pinned FROM _views WHERE name = ?", (name,)).fetchone()
    [(count,)] = writer.raw.execute("SELECT count(*) FROM _views").fetchall()
    if old is None and count >= MOST_VIEWS:
        raise Refusal("limit", f"There are {MOST_VIEWS} views, and that is the most. Drop one with db_drop_view.")
    pinned = bool(old[1]) if is_pinned is None and old else bool(is_pinned)
    row = (
        name,
        sql,
        description,
        orjson.dumps([dict(each) for each in parameters]).decode(),
        render,
        int(pinned),
        old[0] if old else who.at,
        who.at,
    )
    writer.raw.execute(f"INSERT OR REPLACE INTO _views ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * 8)})", row)
    note(writer, who, None, {"view": name, "sql": sql, "render": render})
    return {"view": name, "outcome": "replaced" if old else "created", "pinned": pinned}


def pin(writer: Writer, who: Who, name: str, is_pinned: bool) -> dict[str, Any]:
    """Show a view on the agent's home, or no longer."""
    find(writer.connection, name)
    writer.raw.execute("UPDATE _views SET is_pinned = ? WHERE name = ?", (int(is_pinned), name))
    note(writer, who, None, {"view": name, "pinned": is_pinned})
    return {"view": name, "pinned": is_pinned}


def drop(writer: Writer, who: Who, name: str) -> dict[str, Any]:
    """Forget a view."""
    found = find(writer.connection, name)
    writer.raw.execute("DELETE FROM _views WHERE name = ?", (name,))
    note(writer, who, None, {"dropped_view": name, "sql": found["sql"]})
    return {"view": name, "dropped": True}


def run(reader: Reader, name: str, arguments: Mapping[str, Any], limit: int, most_bytes: int) -> dict[str, Any]:
    """Run a saved view."""
    with reader.looking() as connection:
        view = find(connection, name)
        last = connection.raw.execute("SELECT at FROM _changelog ORDER BY id DESC LIMIT 1").fetchone()
        changed_at = last[0] if last else None
    values = {each["name"]: each["default"] for each in view["parameters"] if "default" in each}
    known = [each["name"] for each in view["parameters"]]
    for argument in arguments:
        if argument not in known:
            takes = f"It takes: {', '.join(known)}." if known else "It takes none."
            raise Refusal("invalid", f"The view {name!r} has no parameter {argument!r}. {takes}", field="params")
    values |= arguments
    missing = [each for each in known if each not in values]
    if missing:
        raise Refusal("invalid", f"The view {name!r} needs: {', '.join(missing)}.", field="params")
    found = query.query(reader, view["sql"], values, limit=limit, include_deleted=False, most_bytes=most_bytes)
    return {"view": name, "render": view["render"], "changed_at": changed_at, **found}


def _check_parameters(used: Sequence[str | None], declared: Sequence[Mapping[str, Any]]) -> None:
    if any(name is None for name in used):
        raise Refusal("invalid", "A view's parameters have names: write :name instead of '?'.", field="sql")
    names = [each["name"] for each in declared]
    if len(set(names)) != len(names):
        raise Refusal("invalid", f"A parameter is declared twice: {', '.join(names)}.", field="parameters")
    missing, extra = (
        sorted({str(name) for name in used} - set(names)),
        sorted(set(names) - {str(name) for name in used}),
    )
    if missing:
        raise Refusal(
            "invalid", f"'parameters' lacks what the statement uses: {', '.join(missing)}.", field="parameters"
        )
    if extra:
        raise Refusal("invalid", f"The statement does not use the parameters: {', '.join(extra)}.", field="parameters")


def _read(row: Sequence[Any]) -> dict[str, Any]:
    view: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    view["parameters"] = orjson.loads(view["parameters"])
    view["pinned"] = bool(view.pop("is_pinned"))
    view["required_parameters"] = [each["name"] for each in view["parameters"] if "default" not in each]
    return view
