"""Routes for rows, views and queries of an agent's database."""

import re
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal, cast

import orjson
from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import AwareDatetime, Field

from wakeful.agentdb.operation import Door
from wakeful.core.errors import Invalid, WakefulError
from wakeful.core.identity import Identity
from wakeful.core.types import Scope
from wakeful.database.files import By
from wakeful.database.service import AgentData
from wakeful.http.auth import require
from wakeful.http.routes import DoorRoute, takes_large_bodies
from wakeful.http.services import Need
from wakeful.http.shapes import Done, PathId, RequestBody, Shape, Text

# Types that several routes of an agent's database use.


MAX_ROWS = 5_000
MAX_IDS = 900

# A table's name can have any characters but control characters; a view's needs no quotes in SQL.
TableName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
PathTable = Annotated[str, Path(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
PathView = Annotated[str, Path(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$")]
Show = Literal["active", "deleted", "all"]
FileFormat = Literal["csv", "json", "jsonl"]
Limit = Annotated[int, Field(ge=1, le=MAX_ROWS)]
Json = Annotated[str, Field(max_length=4_000)]  # in a query string, which uvicorn limits to 64 kB


class Blob(Shape):
    base64: str


Cell = str | int | float | Blob | None


class FoundRows(Shape):
    """Rows as lists, in the order of the columns; `truncated` if some were left out because of their number or size."""

    columns: list[str]
    rows: list[list[Cell]]
    row_count: int
    truncated: bool


class NotAnObject(Invalid):
    code = "not_an_object"

    def __init__(self, name: str, text: str) -> None:
        shown = text if len(text) <= 100 else text[:100] + "…"
        super().__init__(f'{name!r} must be a JSON object, such as {{"id": 3}}; got {shown!r}.', field=name)


def read_object(name: str, text: str | None) -> Mapping[str, Any] | None:
    """Parse a JSON object from a query string."""
    if text is None:
        return None
    return _need_object(name, _parse(name, text), text)


def _parse(name: str, text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise NotAnObject(name, text) from None


def _need_object(name: str, value: Any, text: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise NotAnObject(name, text)
    return cast("dict[str, Any]", value)


def read_objects(name: str, text: str | None) -> list[Mapping[str, Any]]:
    """Parse a JSON object, or a list of them, from a query string. Empty ones are left out."""
    if text is None:
        return []
    value = _parse(name, text)
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [_need_object(name, each, text) for each in values if each != {}]


@contextmanager
def renamed(**names: str) -> Generator[None]:
    """Give errors the field names of this route where the operation has other argument names."""
    try:
        yield
    except WakefulError as error:
        error.field = names.get(error.field or "", error.field)
        raise


# Run operations on an agent's database for the caller of a route.


class Ask:
    """Runs operations for one request. Errors name commands for the page and the command line, routes for others."""

    def __init__(self, data: AgentData, caller: Identity) -> None:
        self.door: Door = "command" if caller.door in ("page", "cli") else "route"
        self.data = data
        self.caller = caller

    async def __call__(self, agent_id: str, op: str, /, **args: Any) -> Any:
        """Run an operation and return its result, which FastAPI validates against the route's return type."""
        return await self.data.run_for(self.caller, self.door, agent_id, op, **args)

    async def by(self, agent_id: str) -> By:
        """Return the caller as the author of an operation."""
        return await self.data.person(agent_id, self.caller.user.id, self.door)


def _asking(scope: Scope) -> Callable[..., Awaitable[Ask]]:
    async def ask(caller: Annotated[Identity, Depends(require(scope))], data: Need[AgentData]) -> Ask:
        return Ask(data, caller)

    ask.scope = scope  # pyright: ignore[reportFunctionMemberAccess]  (the route checks it before it reads the body)
    return ask


Reading = Annotated[Ask, Depends(_asking("read"))]
Writing = Annotated[Ask, Depends(_asking("chat"))]
Administering = Annotated[Ask, Depends(_asking("admin"))]


# Routes for rows of an agent's database: list, edit, export and import.


router = APIRouter(route_class=DoorRoute, tags=["agents' databases"])

RowIds = Annotated[list[Annotated[int, Field(ge=-(2**63), lt=2**63)]], Field(min_length=1, max_length=MAX_IDS)]
Values = dict[str, Any]
Format = Annotated[FileFormat, Query(alias="format")]
MEDIA_TYPES: dict[FileFormat, str] = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/jsonl",
}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
            "application/jsonl": {"schema": {"type": "string"}},
        },
    }
}
_MAX_FILE = 10 * 1024 * 1024


class Rows(FoundRows):
    """A page of a table. The first column, `_row_id`, identifies a row in edits; `total` is the number of all rows."""

    table: str
    total: int


class NewRows(RequestBody):
    rows: Annotated[list[Values], Field(min_length=1, max_length=1_000)]


class RowsToMatch(NewRows):
    conflict_columns: Annotated[list[TableName], Field(min_length=1, max_length=50)]  # that identify a row


class RowsChange(RequestBody):
    row_ids: RowIds
    changes: Annotated[Values, Field(min_length=1)]


class ChosenRows(RequestBody):
    row_ids: RowIds


class Added(Shape):
    inserted: int
    row_ids: list[int]


class Matched(Shape):
    """The result for each row; a deleted row is revived."""

    inserted: int
    updated: int
    revived: int
    outcomes: list[Literal["inserted", "updated", "revived"]]
    row_ids: list[int]


class Updated(Shape):
    updated: int
    row_ids: list[int]


class DeletedRows(Shape):
    deleted: int
    row_ids: list[int]


class Restored(Shape):
    restored: int
    row_ids: list[int]


class NewImport(RequestBody):
    """A file as text. Without `create`, the table must exist."""

    table: TableName
    format: FileFormat = "csv"
    text: Annotated[str, Field(min_length=1, max_length=_MAX_FILE)]
    create: bool = True
    source: Annotated[Text, Field(max_length=200)] = ""  # the name of the file, for the changelog


class Imported(Shape):
    table: str
    imported: int
    created_table: bool
    ignored_columns: list[str]  # those that the server sets itself
    renamed_columns: dict[str, str]  # those that would hide SQLite's row id: rowid to rowid_2


@router.get("/agents/{agent_id}/db/tables/{table}/rows")
async def list_rows(
    ask: Reading,
    agent_id: PathId,
    table: PathTable,
    show: Show = "active",
    where: Annotated[
        Json | None,
        Query(description='A condition, as a JSON object: {"done": false}; or a list of them, which must all be met.'),
    ] = None,
    sort: Annotated[TableName | None, Query(description="A column; without it, the order of insertion.")] = None,
    desc: bool = False,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    offset: Annotated[int, Query(ge=0, le=2**40)] = 0,
) -> Rows:
    """List rows of a table: live, deleted, or all."""
    page = {"sort": sort, "descending": desc, "limit": limit, "offset": offset}
    return await ask(agent_id, "rows", table=table, show=show, where=read_objects("where", where), **page)


@router.post("/agents/{agent_id}/db/tables/{table}/rows", status_code=201)
async def add_rows(ask: Writing, agent_id: PathId, table: PathTable, asked: NewRows) -> Added:
    """Add rows, all or none."""
    return await ask(agent_id, "insert", table=table, rows=asked.rows)


@router.post("/agents/{agent_id}/db/tables/{table}/rows/upsert")
async def upsert_rows(ask: Writing, agent_id: PathId, table: PathTable, asked: RowsToMatch) -> Matched:
    """Add rows, or change those with the same values in the conflict columns, all or none."""
    return await ask(agent_id, "upsert", table=table, **asked.model_dump())


@router.patch("/agents/{agent_id}/db/tables/{table}/rows")
async def change_rows(ask: Writing, agent_id: PathId, table: PathTable, asked: RowsChange) -> Updated:
    """Change live rows, all or none."""
    with renamed(set="changes"):
        return await ask(agent_id, "update", table=table, set=asked.changes, row_ids=asked.row_ids)


@router.post("/agents/{agent_id}/db/tables/{table}/rows/delete")
async def delete_rows(ask: Writing, agent_id: PathId, table: PathTable, asked: ChosenRows) -> DeletedRows:
    """Soft-delete rows: they can be restored."""
    return await ask(agent_id, "delete", table=table, row_ids=asked.row_ids)


@router.post("/agents/{agent_id}/db/tables/{table}/rows/restore")
async def restore_rows(ask: Writing, agent_id: PathId, table: PathTable, asked: ChosenRows) -> Restored:
    """Restore soft-deleted rows."""
    return await ask(agent_id, "restore", table=table, row_ids=asked.row_ids)


@router.get("/agents/{agent_id}/db/tables/{table}/export", response_class=Response, responses=_FILE)
async def export_table(
    ask: Reading, agent_id: PathId, table: PathTable, kind: Format = "csv", show: Show = "active"
) -> Response:
    """Export a table as CSV, JSON or JSON lines. Text in CSV is escaped, so that spreadsheets run no formula."""
    return await _file(ask, agent_id, table, kind, table=table, show=show)


@router.get("/agents/{agent_id}/db/views/{view}/export", response_class=Response, responses=_FILE)
async def export_view(
    ask: Reading,
    agent_id: PathId,
    view: PathView,
    kind: Format = "csv",
    params: Annotated[Json | None, Query(description="Values for its parameters, as a JSON object.")] = None,
) -> Response:
    """Export the result of a view as CSV, JSON or JSON lines."""
    return await _file(ask, agent_id, view, kind, view=view, params=read_object("params", params))


@router.post("/agents/{agent_id}/db/import")
@takes_large_bodies
async def import_rows(ask: Writing, agent_id: PathId, asked: NewImport) -> Imported:
    """Import the rows of a file, all or none, into an existing or a new table."""
    with renamed(path="text", name="table", columns="text"):
        return await ask(agent_id, "import", **asked.model_dump())


async def _file(ask: Ask, agent_id: str, name: str, kind: FileFormat, **args: Any) -> Response:
    data = await ask.data.run_unparsed(await ask.by(agent_id), "export", format=kind, **args)
    fit = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)
    headers = {"Content-Disposition": f'attachment; filename="{fit}.{kind}"'}
    return Response(data, media_type=MEDIA_TYPES[kind], headers=headers)


# Routes for saved views of an agent's database, and for queries.


Render = Literal["table", "bar", "line", "pie", "number"]
Default = str | int | float | bool | None
Params = dict[str, Any] | list[Any] | None  # an object for :names, a list for ?


class ParameterShape(Shape):
    name: str
    description: str = ""
    default: Default = None  # see `required_parameters` for those without one


class ViewShape(Shape):
    """A saved SELECT."""

    name: str
    sql: str
    description: str
    parameters: list[ParameterShape]
    required_parameters: list[str]
    render: Render
    pinned: bool
    created_at: AwareDatetime
    updated_at: AwareDatetime


class Views(Shape):
    views: list[ViewShape]


class NewParameter(RequestBody):
    """A parameter with a default, even null, can be left out when the view is run."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")]
    description: Annotated[Text, Field(max_length=500)] = ""
    default: Default = None


class NewView(RequestBody):
    sql: Text
    description: Annotated[Text, Field(max_length=2_000)] = ""
    parameters: Annotated[Sequence[NewParameter], Field(max_length=50)] = ()
    render: Render = "table"
    pinned: bool | None = None  # null: unchanged


class ViewSaved(Shape):
    view: str
    outcome: Literal["created", "replaced"]
    pinned: bool


class Pin(RequestBody):
    pinned: bool


class ViewArguments(RequestBody):
    params: dict[str, Any] | None = None
    limit: Limit = 1_000


class StatementBody(RequestBody):
    sql: Text
    params: Params = None
    limit: Limit = 1_000
    include_deleted: bool = False


class ViewFound(FoundRows):
    view: str
    render: Render
    changed_at: AwareDatetime | None  # when the database was last changed


@router.post("/agents/{agent_id}/db/query")
async def run_query(ask: Reading, agent_id: PathId, asked: StatementBody) -> FoundRows:
    """Run one SELECT."""
    return await ask(agent_id, "query", **asked.model_dump())


@router.get("/agents/{agent_id}/db/views")
async def list_views(ask: Reading, agent_id: PathId) -> Views:
    """List saved views."""
    return Views(views=await ask(agent_id, "list_views"))


@router.put("/agents/{agent_id}/db/views/{view}")
async def define_view(ask: Writing, agent_id: PathId, view: PathView, asked: NewView) -> ViewSaved:
    """Create or replace a view."""
    return await ask(agent_id, "define_view", name=view, **asked.model_dump(exclude_unset=True))


@router.delete("/agents/{agent_id}/db/views/{view}")
async def drop_view(ask: Writing, agent_id: PathId, view: PathView) -> Done:
    """Delete a view; the changelog keeps its definition."""
    await ask(agent_id, "drop_view", name=view)
    return Done()


@router.put("/agents/{agent_id}/db/views/{view}/pin")
async def pin_view(ask: Writing, agent_id: PathId, view: PathView, asked: Pin) -> Done:
    """Pin a view to the agent's home page, or unpin it."""
    await ask(agent_id, "pin_view", name=view, pinned=asked.pinned)
    return Done()


@router.post("/agents/{agent_id}/db/views/{view}/run")
async def run_view(ask: Reading, agent_id: PathId, view: PathView, asked: ViewArguments) -> ViewFound:
    """Run a saved view."""
    return await ask(agent_id, "run_view", name=view, **asked.model_dump())
