"""Routes for tables of an agent's database, migrations, and statements that write."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from wakeful.domain.agents.column_types import ColumnType
from wakeful.server.rest.database.ask import Administering, Writing
from wakeful.server.rest.database.shapes import Cell, PathTable
from wakeful.server.rest.shapes import PathId, RequestBody, Shape, Sparse, Text
from wakeful.server.routes import DoorRoute

router = APIRouter(route_class=DoorRoute, tags=["agents' databases"])

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$")]
Sql = Annotated[Text, Field(max_length=100_000)]


class NewColumn(RequestBody):
    name: Name
    type: ColumnType = "text"
    required: bool = False
    unique: bool = False
    primary_key: bool = False  # if no column is one, the table gets an integer `id`
    default: str | int | float | bool | None = None


Columns = Annotated[list[NewColumn], Field(min_length=1, max_length=100)]


class NewTable(RequestBody):
    """A table; the server adds its own three columns."""

    name: Name
    purpose: Annotated[Text, Field(min_length=1, max_length=2_000)]
    columns: Columns
    indexes: Annotated[Sequence[Sequence[Name]], Field(max_length=20)] = ()


class NewColumns(RequestBody):
    columns: Columns


class TableChanged(Shape):
    table: str
    columns: list[str]


class NewMigration(RequestBody):
    """Statements, separated by `;`. They run in one transaction, after a snapshot."""

    purpose: Annotated[Text, Field(min_length=1, max_length=2_000)]
    up_sql: Sql
    down_sql: Sql = ""  # statements that revert it


class Migrated(Shape):
    statements: int
    tables: list[str]
    snapshot: str | None  # of the file before it; null if there was no table yet


class WritingStatement(RequestBody):
    sql: Sql
    params: dict[str, Any] | list[Any] | None = None


class Executed(Sparse):
    """The number of changed rows, and the rows of RETURNING."""

    changed: int
    columns: list[str] | None = None
    rows: list[list[Cell]] | None = None
    row_count: int | None = None
    truncated: bool | None = None


@router.post("/agents/{agent_id}/db/tables", status_code=201)
async def create_table(ask: Writing, agent_id: PathId, asked: NewTable) -> TableChanged:
    """Create a table."""
    return await ask(agent_id, "create_table", **asked.model_dump())


@router.post("/agents/{agent_id}/db/tables/{table}/columns")
async def add_columns(ask: Writing, agent_id: PathId, table: PathTable, asked: NewColumns) -> TableChanged:
    """Add columns to a table."""
    return await ask(agent_id, "alter_table", table=table, add_columns=asked.model_dump()["columns"])


@router.post("/agents/{agent_id}/db/migrate")
async def migrate(ask: Administering, agent_id: PathId, asked: NewMigration) -> Migrated:
    """Change the schema with SQL, in the sandbox of the agent's own migrations."""
    return await ask(agent_id, "migrate", **asked.model_dump())


@router.post("/agents/{agent_id}/db/execute")
async def execute(ask: Writing, agent_id: PathId, asked: WritingStatement) -> Executed:
    """Run one INSERT or UPDATE, in the sandbox of the agent's own SQL."""
    return await ask(agent_id, "execute", **asked.model_dump())
