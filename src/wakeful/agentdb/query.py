"""Operations that run one SQL statement of a model: `query` reads, `execute` writes."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from difflib import get_close_matches
from itertools import islice
from typing import Any, cast

import orjson

from wakeful.agentdb import deadline, file, schema
from wakeful.agentdb.changelog import Change, blob_as_json, from_json
from wakeful.agentdb.connection import (
    GuardedConnection,
    OpenDatabase,
    Reader,
    Statement,
    Writer,
    no_such_table,
    quoted,
    row_id_of,
)
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.guard import is_reserved
from wakeful.agentdb.operation import name_of, operation
from wakeful.agentdb.schema import check_name, log_schema

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
            return take_rows(statement.columns, cursor, limit or DEFAULT_ROWS, max_bytes, reader.sent_rows)


def check_statement(reader: Reader, sql: str) -> Statement:
    """Prepare a statement that only reads, without running it."""
    with reader.reading() as connection:
        statement = connection.prepare_only(sql)
        need_reading(statement)
        return statement


def take_rows(
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
        returned = take_rows(statement.columns, cursor, DEFAULT_ROWS, MAX_BYTES)
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


# Conditions as JSON, turned into SQL with parameters.


_COMPARE = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "like": "LIKE"}
OPERATORS = (*_COMPARE, "ne", "in", "not_in", "between", "is_null")
MAX_LISTED = 500


def to_sql(where: Mapping[str, Any], columns: Sequence[str]) -> tuple[str, list[Any]]:
    """Return SQL for a condition, and its values. An empty one is refused: it would match every row."""
    if not where:
        raise Refusal(
            "invalid",
            '\'where\' must say which rows, for example {"id": 3} or {"done": false}; for every row on purpose use '
            '{"_created_at": {"is_null": false}}.',
            field="where",
        )
    parts: list[str] = []
    values: list[Any] = []
    for column, wanted in where.items():
        need_column(column, columns, field="where")
        for part, bound in _conditions(column, wanted):
            parts.append(part)
            values += bound
    return " AND ".join(parts), values


def all_to_sql(conditions: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> tuple[str, list[Any]]:
    """Return SQL that is true where all of the conditions are, also without any, and its values."""
    written = [to_sql(each, columns) for each in conditions]
    sql = " AND ".join(sql for sql, _ in written)
    return sql or "true", [value for _, values in written for value in values]


def need_column(name: str, columns: Sequence[str], *, field: str) -> None:
    """Refuse the name of a column that does not exist."""
    if name in columns:
        return
    nearest = get_close_matches(name, columns, n=1)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    raise Refusal("invalid", f"There is no column {name!r}.{hint} There are: {', '.join(columns)}.", field=field)


def _conditions(column: str, wanted: Any) -> list[tuple[str, list[Any]]]:
    name = quoted(column)
    if isinstance(wanted, list):
        return [_listed(name, cast("list[Any]", wanted), "IN")]
    if not isinstance(wanted, dict):
        return [(f"{name} IS NULL", [])] if wanted is None else [(f"{name} = ?", [from_json(wanted)])]
    if not wanted:
        raise Refusal("invalid", f"{column!r} in 'where' must have one of: {', '.join(OPERATORS)}.", field="where")
    operators = cast("dict[str, Any]", wanted)
    return [_compare(column, name, operator, value) for operator, value in operators.items()]


def _compare(column: str, name: str, operator: str, value: Any) -> tuple[str, list[Any]]:
    if operator in _COMPARE:
        if value is None:
            raise Refusal("invalid", f"{operator!r} on {column!r} needs a value; for NULL use is_null.", field="where")
        return f"{name} {_COMPARE[operator]} ?", [from_json(value)]
    match operator, value:
        case "ne", _:
            return f"{name} IS NOT ?", [from_json(value)]
        case "in" | "not_in", [*values]:
            return _listed(name, values, "IN" if operator == "in" else "NOT IN")
        case "between", [low, high]:
            return f"{name} BETWEEN ? AND ?", [from_json(low), from_json(high)]
        case "is_null", bool():
            return f"{name} IS {'' if value else 'NOT '}NULL", []
        case _:
            raise Refusal(
                "invalid",
                f"{operator!r} on {column!r} cannot be used like that. There are: {', '.join(OPERATORS)}; in and "
                "not_in take a list, between a list of two, is_null true or false.",
                field="where",
            )


def _listed(name: str, values: list[Any], word: str) -> tuple[str, list[Any]]:
    if not 1 <= len(values) <= MAX_LISTED:
        raise Refusal("invalid", f"A list must have 1 to {MAX_LISTED} values, got {len(values)}.", field="where")
    return f"{name} {word} ({', '.join('?' * len(values))})", [from_json(value) for value in values]


# Operations on saved views: a SELECT with a name, named parameters and a chart type.


MAX_VIEWS = 200

_COLUMNS = ("name", "sql", "description", "parameters", "render", "is_pinned", "created_at", "updated_at")


def listed_views(connection: GuardedConnection) -> list[dict[str, Any]]:
    """Return all saved views."""
    return [_read(row) for row in connection.raw.execute(f"SELECT {', '.join(_COLUMNS)} FROM _views ORDER BY name")]


def find_view(connection: GuardedConnection, name: str) -> dict[str, Any]:
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
        return listed_views(connection)


@operation("define_view", "write", creates_file=True, path="PUT /views/{view}", command="save-view")
def define_view(
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
    _check_parameters(check_statement(db.reader, sql).parameters, parameters)
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
def pin_view(db: OpenDatabase, name: str, pinned: bool) -> dict[str, Any]:
    """Pin a view to the agent's home, or unpin it."""
    find_view(db.writer.connection, name)
    db.writer.raw.execute("UPDATE _views SET is_pinned = ? WHERE name = ?", (int(pinned), name))
    log_schema(db.writer, None, {"view": name, "pinned": pinned})
    return {"view": name, "pinned": pinned}


@operation("drop_view", "write", uses_reserve=True, path="DELETE /views/{view}", command="drop-view")
def drop_view(db: OpenDatabase, name: str) -> dict[str, Any]:
    """Delete a view."""
    found = find_view(db.writer.connection, name)
    db.writer.raw.execute("DELETE FROM _views WHERE name = ?", (name,))
    log_schema(db.writer, None, {"dropped_view": name, "sql": found["sql"]})
    return {"view": name, "dropped": True}


@operation("run_view", path="POST /views/{view}/run", command="view")
def run_view(
    db: OpenDatabase,
    name: str,
    params: Mapping[str, Any] | None = None,
    limit: int | None = None,
    max_bytes: int = MAX_BYTES,
) -> dict[str, Any]:
    """Run a saved view."""
    with db.reader.looking() as connection:
        view = find_view(connection, name)
        changed_at = connection.raw.execute("SELECT at FROM _changelog ORDER BY id DESC LIMIT 1").get
    values = values_of(view, params or {})
    found = query(db, view["sql"], values, limit, max_bytes=max_bytes)
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


# Operations that show a database: its schema, and tables a page at a time.


MAX_PAGE_BYTES = 2_000_000
_SHOW = {"active": "_deleted_at IS NULL", "deleted": "_deleted_at IS NOT NULL", "all": "true"}


@operation("schema", path="GET /schema", command="schema")
def show_schema(db: OpenDatabase, with_counts: bool = True, with_system: bool = False) -> dict[str, Any]:
    """Return tables, views and the space used."""
    with db.reader.looking() as connection:
        found: dict[str, Any] = {
            "tables": schema.describe(connection, with_counts=with_counts),
            "views": listed_views(connection),
            "storage": {"used_bytes": file.used_bytes(connection.raw), "quota_bytes": db.quota},
        }
        if with_system:
            found["system_tables"] = schema.system_tables(connection)
    return found


@operation("names")
def table_names(db: OpenDatabase) -> dict[str, Any]:
    """Return the names of tables, and those of views with their required parameters."""
    with db.reader.looking() as connection:
        required = {view["name"]: view["required_parameters"] for view in listed_views(connection)}
        return {"tables": connection.tables(), "views": required}


@operation("rows", path="GET /tables/{table}/rows", command="rows")
def table_rows(
    db: OpenDatabase,
    table: str,
    show: str = "active",
    where: Sequence[Mapping[str, Any]] = (),
    sort: str | None = None,
    descending: bool = False,
    limit: int = 100,
    offset: int = 0,
) -> dict[str, Any]:
    """Return a page of the rows that meet all conditions, each with its row id first, and the number of all of them."""
    with db.reader.looking() as connection:
        columns = _need_table(connection, table)
        chosen, values = all_to_sql(where, columns)
        if sort is not None:
            need_column(sort, columns, field="sort")
        id_name = row_id_of(columns)
        order = f"{quoted(sort)} {'DESC' if descending else 'ASC'}, {id_name}" if sort else id_name
        source = f"FROM main.{quoted(table)} WHERE {_SHOW[show]} AND {chosen}"
        [(total,)] = connection.raw.execute(f"SELECT count(*) {source}", values).fetchall()
        page = f"SELECT {id_name}, {', '.join(map(quoted, columns))} {source} ORDER BY {order} LIMIT ? OFFSET ?"
        with closing(connection.raw.execute(page, (*values, limit, offset))) as cursor:
            return {"table": table, "total": total, **take_rows(("_row_id", *columns), cursor, limit, MAX_PAGE_BYTES)}


def all_rows(connection: GuardedConnection, table: str, show: str) -> tuple[list[str], Any]:
    """Return the columns of a table, and a cursor over all its rows."""
    columns = _need_table(connection, table)
    return columns, connection.raw.execute(
        f"SELECT {', '.join(map(quoted, columns))} FROM main.{quoted(table)} WHERE {_SHOW[show]}"
        f" ORDER BY {row_id_of(columns)}"
    )


def _need_table(connection: GuardedConnection, table: str) -> list[str]:
    columns = [] if is_reserved(table) else connection.columns(table)
    if not columns:
        raise no_such_table(table, connection.tables())
    return columns
