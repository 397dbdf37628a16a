"""Routes for rows of an agent's database: list, edit, export and import."""

import re
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field

from wakeful.server.rest.database.ask import Ask, Reading, Writing
from wakeful.server.rest.database.shapes import (
    MAX_IDS,
    FileFormat,
    Found,
    Json,
    PathTable,
    PathView,
    Show,
    TableName,
    read_object,
    read_objects,
    renamed,
)
from wakeful.server.rest.shapes import PathId, RequestBody, Shape, Text
from wakeful.server.routes import DoorRoute, takes_large_bodies

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


class Rows(Found):
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


class Deleted(Shape):
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
async def delete_rows(ask: Writing, agent_id: PathId, table: PathTable, asked: ChosenRows) -> Deleted:
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
