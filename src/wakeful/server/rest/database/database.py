"""Routes for an agent's database as a whole: state, schema, changelog, snapshots and key."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import AwareDatetime, Field

from wakeful.domain.errors import Invalid
from wakeful.server.rest.database.ask import Administering, Ask, Reading, Writing
from wakeful.server.rest.database.shapes import Cell, TableName
from wakeful.server.rest.database.views import Render, ViewShape
from wakeful.server.rest.shapes import Done, Id, PathId, RequestBody, Shape, Sparse
from wakeful.server.routes import DoorRoute
from wakeful.service.agents.database import By

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
    """What there is. The two sizes are null while the database is locked, for then nobody can look inside."""

    state: Literal["none", "open", "locked"]
    is_on: bool  # whether the agent has the toolset; without it the file stays, and people still read it
    in_flight: int  # writes under way
    used_bytes: int | None
    quota_bytes: int | None
    tables: list[TableBrief]
    views: list[ViewBrief]


class ColumnShape(Shape):
    name: str
    type: str  # as SQLite calls it
    required: bool
    primary_key: bool
    default: str | None  # as it stands in SQL
    system: bool  # kept by the host


class IndexShape(Shape):
    name: str
    unique: bool
    columns: list[str | None]  # null: an expression


class SystemTableShape(Shape):
    name: str
    columns: list[ColumnShape]
    indexes: list[IndexShape]


class TableShape(SystemTableShape):
    purpose: str
    rows: int  # live ones
    deleted_rows: int


class DatabaseStorageShape(Shape):
    used_bytes: int
    quota_bytes: int


class SchemaShape(Shape):
    """Tables, views and room; the host's own tables only if they were asked for."""

    tables: list[TableShape]
    views: list[ViewShape]
    storage: DatabaseStorageShape
    system_tables: list[SystemTableShape]


class ChangeShape(Shape):
    """One entry of the changelog. Of a row that was updated, before and after hold only what is different."""

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
    """Entries, the newest first; fewer than asked for if they are large. `next` goes on with `before`."""

    changes: list[ChangeShape]
    next: int | None = None


class Verified(Shape):
    intact: bool
    broken_at: int | None  # the first entry that is not as it was written; 1 if another whole chain is there
    is_cut_off: bool  # entries at the end are missing that this server has written


class SnapshotShape(Shape):
    name: str
    at: AwareDatetime
    bytes: int
    kept_until: AwareDatetime | None  # null: it goes when five later ones are there


class Snapshots(Shape):
    snapshots: list[SnapshotShape]


class TableToRecover(RequestBody):
    """Without `new_name` the table gets its own name back."""

    table: TableName
    new_name: TableName | None = None


class Recovered(Shape):
    table: str
    recovered: int  # rows, deleted ones too
    snapshot: str


class TakenBack(Shape):
    statements: int
    tables: list[str]
    snapshot: str | None  # the file as it was before


class LeftShape(Sparse):
    """Something that was not undone, and why."""

    table: str | None = None
    row_id: int | None = None
    why: str


class Undone(Shape):
    run_id: str
    undone: int  # rows put back
    left: list[LeftShape]  # the first of them
    left_count: int


class Confirmation(RequestBody):
    confirm: Annotated[str, Field(max_length=1_000, description="The agent's name, as a sign that it is meant.")]


class DatabaseKey(Shape):
    """What another SQLCipher program needs to open the file."""

    path: str  # of the file, on the server's machine; with -wal and -shm beside it while the server runs
    key: str  # 64 hexadecimal digits, used as they are: no passphrase, nothing is derived from it
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
    """Show whether an agent has a database, how full it is, and what is in it."""
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
        tables=found.get("tables", []),
        views=found.get("views", []),
    )


@router.get("/agents/{agent_id}/db/schema")
async def get_schema(
    ask: Reading,
    agent_id: PathId,
    system: Annotated[bool, Query(description="With the host's own tables.")] = False,
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
    """Show what changed, row by row, the newest first: of a run, of a table, of a row, or all of it."""
    which = {"run_id": run_id, "table": table, "row_id": row_id}
    found = await ask(agent_id, "changelog", **which, before=before, limit=limit)
    changes = found["changes"]
    return Changes(changes=changes, next=changes[-1]["id"] if found["is_more"] else None)


@router.get("/agents/{agent_id}/db/verify")
async def verify(ask: Reading, agent_id: PathId) -> Verified:
    """Say whether the changelog is as it was written."""
    return await ask(agent_id, "verify")


@router.post("/agents/{agent_id}/db/changelog/{change_id}/take-back")
async def take_back_migration(ask: Administering, agent_id: PathId, change_id: ChangeId) -> TakenBack:
    """Take a migration back with the statements its agent wrote for that. The file is copied first."""
    return await ask(agent_id, "take_back_migration", change_id=change_id)


@router.get("/agents/{agent_id}/db/snapshots")
async def list_snapshots(ask: Reading, agent_id: PathId) -> Snapshots:
    """List the copies of an agent's database that were made before migrations, the latest first."""
    return Snapshots(snapshots=await ask(agent_id, "snapshots"))


@router.post("/agents/{agent_id}/db/snapshots/{snapshot}/recover")
async def recover_table(
    ask: Administering, agent_id: PathId, snapshot: SnapshotName, asked: TableToRecover
) -> Recovered:
    """Copy a table of a snapshot into the database, with its row ids. The name must be free."""
    return await ask(agent_id, "recover", snapshot=snapshot, **asked.model_dump())


@router.post("/runs/{run_id}/undo-data")
async def undo_data(ask: Writing, run_id: PathId) -> Undone:
    """Put the rows that a run wrote back to what they were; those that others changed since are left, and told."""
    return Undone.model_validate(await ask.data.undo_run(run_id, ask.caller.user.id, ask.door))


@router.post("/agents/{agent_id}/db/rotate-key")
async def rotate_key(ask: Administering, agent_id: PathId) -> Done:
    """Encrypt an agent's database, and its snapshots, with a new key."""
    await ask.data.files.rotate_key(await ask.by(agent_id))
    return Done()


@router.post("/agents/{agent_id}/db/key")
async def show_key(ask: Administering, agent_id: PathId, asked: Confirmation, response: Response) -> DatabaseKey:
    """Show the key of a database, for an owner of this server and their own agent. It is recorded, with a notice."""
    by = await _confirmed(ask, agent_id, asked, "No key was shown. Send the agent's name to see it.")
    path, key = await ask.data.show_key(by, ask.caller)
    response.headers["Cache-Control"] = "no-store"
    return DatabaseKey(path=path, key=key.hex(), pragma=f"PRAGMA key = \"x'{key.hex()}'\";")


@router.delete("/agents/{agent_id}/db")
async def erase_database(ask: Administering, agent_id: PathId, asked: Confirmation) -> Done:
    """Erase an agent's database for good: its key is destroyed, so that no copy can be read either."""
    not_done = "Nothing was erased. Send the agent's name to erase its database for good."
    await ask.data.files.erase((await _confirmed(ask, agent_id, asked, not_done)).agent)
    return Done()


async def _confirmed(ask: Ask, agent_id: str, asked: Confirmation, not_done: str) -> By:
    by = await ask.by(agent_id)
    if asked.confirm != by.agent.name:
        raise NotConfirmed(asked.confirm, by.agent.name, not_done)
    return by
