"""Operations on saved views: a SELECT with a name, named parameters and a chart type."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from wakeful.agentdb.database import GuardedConnection
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.files.open_database import OpenDatabase
from wakeful.agentdb.operation import name_of, operation
from wakeful.agentdb.tables import query
from wakeful.agentdb.tables.schema import check_name, log_schema

MAX_VIEWS = 200

_COLUMNS = ("name", "sql", "description", "parameters", "render", "is_pinned", "created_at", "updated_at")


def listed(connection: GuardedConnection) -> list[dict[str, Any]]:
    """Return all saved views."""
    return [_read(row) for row in connection.raw.execute(f"SELECT {', '.join(_COLUMNS)} FROM _views ORDER BY name")]


def find(connection: GuardedConnection, name: str) -> dict[str, Any]:
    row = connection.raw.execute(f"SELECT {', '.join(_COLUMNS)} FROM _views WHERE name = ?", (name,)).fetchone()
    if row is None:
        names = [name for (name,) in connection.raw.execute("SELECT name FROM _views ORDER BY name")]
        defines = name_of("define_view")
        existing = f"There are: {', '.join(names)}." if names else f"There is none yet; {defines} saves one."
        raise Refusal("not_found", f"There is no view {name!r}. {existing}", field="name")
    return _read(row)


@operation("list_views", path="GET /views", command="views")
def list_views(db: OpenDatabase) -> list[dict[str, Any]]:
    with db.reader.looking() as connection:
        return listed(connection)


@operation("define_view", "write", creates_file=True, path="PUT /views/{view}", command="save-view")
def define(
    db: OpenDatabase,
    name: str,
    sql: str,
    description: str = "",
    parameters: Sequence[Mapping[str, Any]] = (),
    render: str = "table",
    pinned: bool | None = None,
) -> dict[str, Any]:
    """Save a view, or replace the one of that name. A parameter with a `default` may be left out when it is run."""
    writer = db.writer
    check_name(name, "view")
    if name.lower() in {table.lower() for table in writer.connection.tables()}:
        raise Refusal("conflict", f"A table has the name {name!r}. Choose another name for the view.", field="name")
    _check_parameters(query.check(db.reader, sql).parameters, parameters)
    old = writer.raw.execute("SELECT created_at, is_pinned FROM _views WHERE name = ?", (name,)).fetchone()
    [(count,)] = writer.raw.execute("SELECT count(*) FROM _views").fetchall()
    if old is None and count >= MAX_VIEWS:
        raise Refusal("limit", f"A database must have at most {MAX_VIEWS} views. Use {name_of('drop_view')} first.")
    pinned = bool(old[1]) if pinned is None and old else bool(pinned)
    row = (
        name,
        sql,
        description,
        orjson.dumps([dict(each) for each in parameters]).decode(),
        render,
        int(pinned),
        old[0] if old else db.who.at,
        db.who.at,
    )
    writer.raw.execute(f"INSERT OR REPLACE INTO _views ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * 8)})", row)
    log_schema(writer, None, {"view": name, "sql": sql, "render": render})
    return {"view": name, "outcome": "replaced" if old else "created", "pinned": pinned}


@operation("pin_view", "write", path="PUT /views/{view}/pin", command="pin")
def pin(db: OpenDatabase, name: str, pinned: bool) -> dict[str, Any]:
    """Pin a view to the agent's home, or unpin it."""
    find(db.writer.connection, name)
    db.writer.raw.execute("UPDATE _views SET is_pinned = ? WHERE name = ?", (int(pinned), name))
    log_schema(db.writer, None, {"view": name, "pinned": pinned})
    return {"view": name, "pinned": pinned}


@operation("drop_view", "write", uses_reserve=True, path="DELETE /views/{view}", command="drop-view")
def drop(db: OpenDatabase, name: str) -> dict[str, Any]:
    """Delete a view."""
    found = find(db.writer.connection, name)
    db.writer.raw.execute("DELETE FROM _views WHERE name = ?", (name,))
    log_schema(db.writer, None, {"dropped_view": name, "sql": found["sql"]})
    return {"view": name, "dropped": True}


@operation("run_view", path="POST /views/{view}/run", command="view")
def run(
    db: OpenDatabase,
    name: str,
    params: Mapping[str, Any] | None = None,
    limit: int | None = None,
    max_bytes: int = query.MAX_BYTES,
) -> dict[str, Any]:
    """Run a saved view."""
    with db.reader.looking() as connection:
        view = find(connection, name)
        changed_at = connection.raw.execute("SELECT at FROM _changelog ORDER BY id DESC LIMIT 1").get
    values = values_of(view, params or {})
    found = query.query(db, view["sql"], values, limit, max_bytes=max_bytes)
    return {"view": name, "render": view["render"], "changed_at": changed_at, **found}


def values_of(view: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values for a view's parameters: those given, and defaults for the others."""
    values = {each["name"]: each["default"] for each in view["parameters"] if "default" in each}
    known = [each["name"] for each in view["parameters"]]
    for given in params:
        if given not in known:
            takes = f"It takes: {', '.join(known)}." if known else "It takes none."
            raise Refusal("invalid", f"The view {view['name']!r} has no parameter {given!r}. {takes}", field="params")
    values |= params
    missing = [each for each in known if each not in values]
    if missing:
        raise Refusal("invalid", f"The view {view['name']!r} needs: {', '.join(missing)}.", field="params")
    return values


def _check_parameters(used: Sequence[str | None], declared: Sequence[Mapping[str, Any]]) -> None:
    if any(name is None for name in used):
        raise Refusal("invalid", "A view's parameters must have names: write :name instead of '?'.", field="sql")
    names = [each["name"] for each in declared]
    if len(set(names)) != len(names):
        raise Refusal("invalid", f"A parameter is declared twice: {', '.join(names)}.", field="parameters")
    used_names = {str(name) for name in used}
    if missing := sorted(used_names - set(names)):
        raise Refusal("invalid", f"'parameters' must also declare: {', '.join(missing)}.", field="parameters")
    if extra := sorted(set(names) - used_names):
        raise Refusal("invalid", f"The statement does not use the parameters: {', '.join(extra)}.", field="parameters")


def _read(row: Sequence[Any]) -> dict[str, Any]:
    view: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    view["parameters"] = orjson.loads(view["parameters"])
    view["pinned"] = bool(view.pop("is_pinned"))
    view["required_parameters"] = [each["name"] for each in view["parameters"] if "default" not in each]
    return view
