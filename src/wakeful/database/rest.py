"""Routes for an agent's database as a whole: state, schema, changelog, snapshots and key."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import AwareDatetime, Field

from wakeful.agentdb.errors import ColumnType
from wakeful.core.errors import Invalid
from wakeful.database.files import By
from wakeful.database.rest_rows import (
    Administering,
    Ask,
    Cell,
    PathTable,
    Reading,
    Render,
    TableName,
    ViewShape,
    Writing,
)
from wakeful.http.routes import DoorRoute
from wakeful.http.shapes import Done, Id, PathId, RequestBody, Shape, Sparse, Text

router = APIRouter(route_class=DoorRoute, tags=["agents' databases"])

SnapshotName = Annotated[str, Path(max_length=100)]
ChangeId = Annotated[int, Path(ge=1, le=2**62)]
RowId = Annotated[int, Query(ge=-(2**63), lt=2**63)]
Actor = Literal["agent", "user", "migration", "system"]
Op = Literal["schema", "insert", "update", "soft_delete", "restore", "execute", "import", "undo", "purge"]


class TableBrief(Shape):
    name: str
    purpose: str
    rows: int
    deleted_rows: int


class ViewBrief(Shape):
    name: str
    render: Render
    pinned: bool


class DatabaseShape(Shape):
    """State and content of a database. The two sizes are null while it is locked, because it cannot be read then."""

    state: Literal["none", "open", "locked"]
    is_on: bool  # whether the agent has the toolset; without it, the file stays and people can still read it
    in_flight: int  # writes in progress
    used_bytes: int | None
    quota_bytes: int | None
    default_quota_bytes: int  # of agents without their own; only an owner of the server may set more
    tables: list[TableBrief]
    views: list[ViewBrief]


class ColumnShape(Shape):
    name: str
    type: str  # as in SQLite
    declared: ColumnType | None  # null: SQL gave it a type that is none of these
    required: bool
    primary_key: bool
    default: str | None  # as SQL
    system: bool  # maintained by the server


class TableIndexShape(Shape):
    name: str
    unique: bool
    columns: list[str | None]  # null: an expression


class SystemTableShape(Shape):
    name: str
    columns: list[ColumnShape]
    indexes: list[TableIndexShape]


class TableShape(SystemTableShape):
    purpose: str
    rows: int  # live ones
    deleted_rows: int


class DatabaseStorageShape(Shape):
    used_bytes: int
    quota_bytes: int


class SchemaShape(Shape):
    """Tables, views and size; the system tables only if requested."""

    tables: list[TableShape]
    views: list[ViewShape]
    storage: DatabaseStorageShape
    system_tables: list[SystemTableShape]


class ChangeShape(Shape):
    """One entry of the changelog. For an update, `before` and `after` have only the changed columns."""

    id: int
    at: AwareDatetime
    actor: Actor
    run_id: str | None
    op: Op
    table_name: str | None
    row_id: int | None
    before: dict[str, Cell] | None
    after: dict[str, Cell] | None
    detail: dict[str, Any] | None


class Changes(Sparse):
    """Entries, the newest first; fewer than requested if they are large. Pass `next` as `before` to continue."""

    changes: list[ChangeShape]
    next: int | None = None


class Verified(Shape):
    intact: bool
    broken_at: int | None  # the first entry that was tampered with; 1 if the whole chain was replaced
    is_cut_off: bool  # entries that this server has written are missing at the end


class SnapshotShape(Shape):
    name: str
    at: AwareDatetime
    bytes: int
    kept_until: AwareDatetime | None  # null: until there are five later ones


class Snapshots(Shape):
    snapshots: list[SnapshotShape]


class TableToRecover(RequestBody):
    """Without `new_name`, the table keeps its name."""

    table: TableName
    new_name: TableName | None = None


class Recovered(Shape):
    table: str
    recovered: int  # rows, including deleted ones
    snapshot: str


class TakenBack(Shape):
    statements: int
    tables: list[str]
    snapshot: str | None  # of the file before it


class LeftShape(Sparse):
    """A change that was not undone, and why."""

    table: str | None = None
    row_id: int | None = None
    why: str


class Undone(Shape):
    run_id: str
    undone: int  # rows
    left: list[LeftShape]  # the first of them
    left_count: int


class Confirmation(RequestBody):
    confirm: Annotated[str, Field(max_length=1_000, description="The agent's name, to confirm.")]


class DatabaseKey(Shape):
    """The key of the file, for other SQLCipher programs."""

    path: str  # on the server's machine; while it runs, there are also -wal and -shm files
    key: str  # 64 hexadecimal digits: the raw key, not a passphrase
    pragma: str  # the first statement after opening the file
    cipher: Literal["SQLCipher 4"] = "SQLCipher 4"  # its defaults: 4096-byte pages, HMAC-SHA512


class NotConfirmed(Invalid):
    code = "not_confirmed"

    def __init__(self, given: str, name: str, consequence: str) -> None:
        super().__init__(
            f"'confirm' must be the agent's name, {name!r}; got {given[:100]!r}. {consequence}", field="confirm"
        )


@router.get("/agents/{agent_id}/db")
async def get_database(ask: Reading, agent_id: PathId) -> DatabaseShape:
    """Show the state, size, tables and views of an agent's database."""
    by, files = await ask.by(agent_id), ask.data.files
    state = await files.state(by.agent)
    found: dict[str, Any] = {} if state == "locked" else await ask.data.run(by, "schema")
    storage = found.get("storage", {})
    return DatabaseShape(
        state=state,
        is_on="database" in by.agent.toolsets,
        in_flight=files.in_flight(agent_id),
        used_bytes=0 if state == "none" else storage.get("used_bytes"),
        quota_bytes=storage.get("quota_bytes"),
        default_quota_bytes=files.default_quota,
        tables=found.get("tables", []),
        views=found.get("views", []),
    )


@router.get("/agents/{agent_id}/db/schema")
async def get_schema(
    ask: Reading,
    agent_id: PathId,
    system: Annotated[bool, Query(description="Include the system tables.")] = False,
) -> SchemaShape:
    """Show tables with their columns and indexes, and views."""
    return SchemaShape.model_validate({"system_tables": [], **await ask(agent_id, "schema", with_system=system)})


@router.get("/agents/{agent_id}/db/changelog")
async def get_changelog(
    ask: Reading,
    agent_id: PathId,
    run_id: Id | None = None,
    table: TableName | None = None,
    row_id: RowId | None = None,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="The `next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
) -> Changes:
    """List changes, row by row, the newest first: of a run, a table, a row, or all."""
    which = {"run_id": run_id, "table": table, "row_id": row_id}
    found = await ask(agent_id, "changelog", **which, before=before, limit=limit)
    changes = found["changes"]
    return Changes(changes=changes, next=changes[-1]["id"] if found["is_more"] else None)


@router.get("/agents/{agent_id}/db/verify")
async def verify(ask: Reading, agent_id: PathId) -> Verified:
    """Check that nobody tampered with the changelog."""
    return await ask(agent_id, "verify")


@router.post("/agents/{agent_id}/db/changelog/{change_id}/take-back")
async def take_back_migration(ask: Administering, agent_id: PathId, change_id: ChangeId) -> TakenBack:
    """Revert a migration with its own down statements, after a snapshot."""
    return await ask(agent_id, "take_back_migration", change_id=change_id)


@router.get("/agents/{agent_id}/db/snapshots")
async def list_snapshots(ask: Reading, agent_id: PathId) -> Snapshots:
    """List the snapshots that were made before migrations, the latest first."""
    return Snapshots(snapshots=await ask(agent_id, "snapshots"))


@router.post("/agents/{agent_id}/db/snapshots/{snapshot}/recover")
async def recover_table(
    ask: Administering, agent_id: PathId, snapshot: SnapshotName, asked: TableToRecover
) -> Recovered:
    """Copy a table of a snapshot into the database, with its row ids. The name must be free."""
    return await ask(agent_id, "recover", snapshot=snapshot, **asked.model_dump())


@router.post("/runs/{run_id}/undo-data")
async def undo_data(ask: Writing, run_id: PathId) -> Undone:
    """Undo a run's changes of rows, except of rows that were changed again since; the response lists those."""
    return Undone.model_validate(await ask.data.undo_run(run_id, ask.caller.user.id, ask.door))


@router.post("/agents/{agent_id}/db/rotate-key")
async def rotate_key(ask: Administering, agent_id: PathId) -> Done:
    """Encrypt an agent's database, and its snapshots, with a new key."""
    await ask.data.files.rotate_key(await ask.by(agent_id))
    return Done()


@router.post("/agents/{agent_id}/db/key")
async def show_key(ask: Administering, agent_id: PathId, asked: Confirmation, response: Response) -> DatabaseKey:
    """Show the key of a database, to an owner of this server for their own agent. It is recorded and notified."""
    by = await _confirmed(ask, agent_id, asked, "No key was shown. Send the agent's name to see it.")
    path, key = await ask.data.show_key(by, ask.caller)
    response.headers["Cache-Control"] = "no-store"
    return DatabaseKey(path=path, key=key.hex(), pragma=f"PRAGMA key = \"x'{key.hex()}'\";")


@router.delete("/agents/{agent_id}/db")
async def erase_database(ask: Administering, agent_id: PathId, asked: Confirmation) -> Done:
    """Erase an agent's database permanently: its key is destroyed, so that copies become unreadable too."""
    not_done = "Nothing was erased. Send the agent's name to erase its database permanently."
    await ask.data.files.erase((await _confirmed(ask, agent_id, asked, not_done)).agent)
    return Done()


async def _confirmed(ask: Ask, agent_id: str, asked: Confirmation, not_done: str) -> By:
    by = await ask.by(agent_id)
    if asked.confirm != by.agent.name:
        raise NotConfirmed(asked.confirm, by.agent.name, not_done)
    return by


# Routes for tables of an agent's database, migrations, and statements that write.


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
