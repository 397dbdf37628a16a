"""An agent's own database: tables it designs itself, rows, queries, views and files."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import Field

from wakeful.domain.errors import Invalid, WakefulError
from wakeful.service.agents.database import AgentData, By, error_kind, is_retryable
from wakeful.service.agents.workspace import FileTooLarge, Workspace, WorkspaceLimits
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolResult

MOST_FILE = 10 * 1024 * 1024

Table = Annotated[str, Field(description="The name of a table; db_schema lists them.")]
Row = dict[str, Any]
Where = Annotated[
    dict[str, Any],
    Field(
        description='Which rows, all conditions together: {"id": 3}, {"state": ["open", "late"]}, {"done_at": null}, '
        '{"price": {"gte": 10, "lt": 20}}, {"title": {"like": "%milk%"}}. Operators: eq, ne, gt, gte, lt, lte, like, '
        "in, not_in, between, is_null."
    ),
]
Params = Annotated[
    dict[str, Any] | list[Any] | None,
    Field(description="Values for the parameters of the statement: an object for :names, a list for ?."),
]
FileKind = Annotated[
    Literal["csv", "json", "jsonl"] | None, Field(description="Without it, the ending of the file's name decides.")
]


class Column(Arguments):
    name: str = Field(description="Letters, digits and _, beginning with a letter.")
    type: Literal["text", "integer", "real", "boolean", "date", "datetime", "json", "blob"]
    required: bool = Field(False, description="May not be null.")
    unique: bool = False
    primary_key: bool = Field(False, description="Without any, the table gets an integer `id`.")
    default: str | int | float | bool | None = None


class ViewParameter(Arguments):
    name: str = Field(description="As in the statement, without the colon.")
    description: str = ""
    required: bool = Field(True, description="Without it, `default` is taken when the view is run.")
    default: str | int | float | bool | None = None


class DbSchema(Arguments):
    pass


class DbCreateTable(Arguments):
    name: str
    purpose: str = Field(description="One sentence: what the table is for. You will read it in later runs.")
    columns: list[Column]
    indexes: list[list[str]] = Field(default_factory=list, description="Lists of columns to index.")


class DbAlterTable(Arguments):
    table: Table
    add_columns: list[Column]


class DbMigrate(Arguments):
    purpose: str = Field(description="Why the schema changes.")
    up_sql: str = Field(
        description="Statements, separated by ;. Name the columns in INSERT: new tables also get _created_at, "
        "_updated_at and _deleted_at, which you do not define. DROP works about once an hour: a copy is kept each time."
    )
    down_sql: str = Field(description="Statements that take it back. Only a person can run them.")


class DbInsert(Arguments):
    table: Table
    rows: list[Row] = Field(description='Objects of columns and values, such as [{"title": "Buy milk"}].')


class DbUpsert(Arguments):
    table: Table
    rows: list[Row]
    conflict_columns: list[str] = Field(description='The columns by which a row is the same, such as ["url"].')


class DbUpdate(Arguments):
    table: Table
    set: dict[str, Any] = Field(description="Columns and their new values.")
    where: Where


class DbDelete(Arguments):
    table: Table
    where: Where


class DbRestore(Arguments):
    table: Table
    where: Where


class DbQuery(Arguments):
    sql: str = Field(description="One SELECT. Name tables plainly, without a schema.")
    params: Params = None
    limit: int | None = Field(None, ge=1, le=5000, description="Most rows; 1000 without it.")
    include_deleted: bool = Field(False, description="Show rows deleted with db_delete too.")


class DbExecute(Arguments):
    sql: str = Field(description="One INSERT or UPDATE that the typed tools cannot express.")
    params: Params = None


class DbDefineView(Arguments):
    name: str
    sql: str = Field(description="One SELECT; parameters as :name. Soft-deleted rows are left out.")
    description: str = ""
    parameters: list[ViewParameter] = Field(default_factory=list[ViewParameter])
    render: Literal["table", "bar", "line", "pie", "number"] = Field(
        "table", description="How it is drawn. For bar, line and pie: first column the label, second the value."
    )
    pinned: bool | None = Field(None, description="Show it on your home page.")


class DbRunView(Arguments):
    name: str
    params: dict[str, Any] | None = None
    limit: int | None = Field(None, ge=1, le=5000)


class DbListViews(Arguments):
    pass


class DbDropView(Arguments):
    name: str


class DbImport(Arguments):
    path: str = Field(description="A file in your workspace.")
    table: str
    format: FileKind = None
    create: bool = Field(True, description="Make the table if there is none, with columns guessed from the file.")


class DbExport(Arguments):
    path: str = Field(description="The file in your workspace to write.")
    table: str | None = Field(None, description="A whole table; or give sql.")
    sql: str | None = Field(None, description="One SELECT whose rows are written.")
    params: Params = None
    format: FileKind = None
    include_deleted: bool = Field(False, description="With table: deleted rows too.")


A = TypeVar("A", bound=Arguments)
Does = Callable[[By, A], Awaitable[Any]]


def database_tools(data: AgentData, workspace_bytes: int) -> list[Tool]:
    """Make the tools of the toolset `database`."""

    async def take_in(context: ToolContext, asked: DbImport) -> ToolResult:
        kind = _kind(asked.path, asked.format)
        workspace = Workspace(context.workspace)
        found = await asyncio.to_thread(workspace.read, asked.path, offset=0, limit=MOST_FILE)
        if found.size > MOST_FILE:
            raise FileTooLarge(asked.path, found.size, MOST_FILE)
        try:
            text = found.data.decode()
        except UnicodeDecodeError as error:
            raise Invalid(f"{asked.path!r} is not UTF-8 text ({error}).", field="path") from None
        done = await data.import_text(_by(context), asked.table, text, kind, create=asked.create, source=asked.path)
        return _tell(done)

    async def give_out(context: ToolContext, asked: DbExport) -> ToolResult:
        if (asked.table is None) == (asked.sql is None):
            raise Invalid("Give exactly one of 'table' and 'sql'.", field="table")
        kind = _kind(asked.path, asked.format)
        written = await data.export_file(
            _by(context),
            kind,
            table=asked.table,
            show="all" if asked.include_deleted else "active",
            sql=asked.sql,
            params=asked.params,
        )
        limits = WorkspaceLimits(bytes=workspace_bytes, file_bytes=4 * MOST_FILE, files=10_000)
        size = await asyncio.to_thread(
            Workspace(context.workspace).write, asked.path, written, append=False, limits=limits
        )
        return _tell({"path": asked.path, "format": kind, "bytes": size})

    def made(name: str, arguments: type[A], description: str, does: Does[A], *, is_repeatable: bool = False) -> Tool:
        async def act(context: ToolContext, asked: A) -> ToolResult:
            return _tell(await does(_by(context), asked))

        return _tool(name, arguments, description, act, is_repeatable=is_repeatable)

    return [
        made(
            "db_schema",
            DbSchema,
            "Show your own database: tables with purpose, columns, indexes and row counts, saved views, and the room "
            "left. It is empty until you make a table. Look here before you design or query.",
            lambda by, _: data.schema(by),
            is_repeatable=True,
        ),
        made(
            "db_create_table",
            DbCreateTable,
            "Make a table in your own database, where you keep what you need in later runs. The host adds _created_at, "
            "_updated_at and _deleted_at.",
            lambda by, asked: data.create_table(
                by, asked.name, asked.purpose, [column.model_dump() for column in asked.columns], asked.indexes
            ),
        ),
        made(
            "db_alter_table",
            DbAlterTable,
            "Add columns to a table. For any other change of the schema use db_migrate.",
            lambda by, asked: data.alter_table(by, asked.table, [each.model_dump() for each in asked.add_columns]),
        ),
        made(
            "db_migrate",
            DbMigrate,
            "Change the schema with SQL: CREATE, ALTER, DROP TABLE, CREATE and DROP INDEX, INSERT, UPDATE. All "
            "statements or none are kept, and a snapshot is made first. Triggers, views, virtual tables and DELETE are "
            "not allowed.",
            lambda by, asked: data.migrate(by, asked.purpose, asked.up_sql, asked.down_sql),
        ),
        made(
            "db_insert",
            DbInsert,
            "Insert rows, all or none.",
            lambda by, asked: data.insert(by, asked.table, asked.rows),
        ),
        made(
            "db_upsert",
            DbUpsert,
            "Insert rows, or update those that have the same values in conflict_columns. One that was deleted comes "
            "back. Says of each row whether it was inserted, updated or revived.",
            lambda by, asked: data.upsert(by, asked.table, asked.rows, asked.conflict_columns),
            is_repeatable=True,
        ),
        made(
            "db_update",
            DbUpdate,
            "Change the rows that meet a condition. Deleted rows are not touched.",
            lambda by, asked: data.update(by, asked.table, asked.set, asked.where),
        ),
        made(
            "db_delete",
            DbDelete,
            "Delete the rows that meet a condition. They are hidden, and db_restore brings them back, as long as the "
            "database is not full and needs their room.",
            lambda by, asked: data.delete(by, asked.table, asked.where),
        ),
        made(
            "db_restore",
            DbRestore,
            "Bring back rows that were deleted and meet a condition.",
            lambda by, asked: data.restore(by, asked.table, asked.where),
        ),
        made(
            "db_query",
            DbQuery,
            "Run one SELECT (SQLite). Deleted rows are left out unless you ask for them. The answer has columns, rows, "
            "and truncated if there were more.",
            lambda by, asked: data.query_as_json(
                by, asked.sql, asked.params, limit=asked.limit, include_deleted=asked.include_deleted
            ),
            is_repeatable=True,
        ),
        made(
            "db_execute",
            DbExecute,
            "Run one INSERT or UPDATE as SQL, when db_insert, db_upsert and db_update cannot say it. What it reads "
            "has deleted rows in it, and to change those is refused: say WHERE _deleted_at IS NULL. DELETE, DDL and "
            "PRAGMA are refused.",
            lambda by, asked: data.execute(by, asked.sql, asked.params),
        ),
        made(
            "db_define_view",
            DbDefineView,
            "Save a SELECT under a name, for later runs, your user's page, and the context_views of schedule_next_run. "
            "A view of that name is replaced.",
            lambda by, asked: data.define_view(
                by,
                asked.name,
                asked.sql,
                description=asked.description,
                parameters=[_parameter(each) for each in asked.parameters],
                render=asked.render,
                is_pinned=asked.pinned,
            ),
        ),
        made(
            "db_run_view",
            DbRunView,
            "Run a saved view.",
            lambda by, asked: data.run_view(by, asked.name, asked.params, limit=asked.limit),
            is_repeatable=True,
        ),
        made(
            "db_list_views",
            DbListViews,
            "List the saved views.",
            lambda by, _: data.list_views(by),
            is_repeatable=True,
        ),
        made(
            "db_drop_view",
            DbDropView,
            "Forget a saved view. Its data stays.",
            lambda by, asked: data.drop_view(by, asked.name),
        ),
        _tool(
            "db_import",
            DbImport,
            "Insert the rows of a CSV, JSON or JSONL file of your workspace, all or none.",
            take_in,
        ),
        _tool(
            "db_export",
            DbExport,
            "Write a table, or the rows of a SELECT, to a CSV, JSON or JSONL file of your workspace.",
            give_out,
            makes_files=True,
            is_repeatable=True,
        ),
    ]


def _tool(
    name: str,
    arguments: type[A],
    description: str,
    act: Callable[[ToolContext, A], Awaitable[ToolResult]],
    *,
    is_repeatable: bool = False,
    makes_files: bool = False,
) -> Tool:
    return Tool(
        name=name,
        toolset="database",
        description=description,
        arguments=arguments,
        act=act,
        tell_error=_tell_error,
        is_repeatable=is_repeatable,
        makes_files=makes_files,
    )


def _by(context: ToolContext) -> By:
    return By(agent=context.agent, actor="agent", run_id=context.run.id)


def _tell(result: Any) -> ToolResult:
    written = orjson.Fragment(result) if isinstance(result, bytes) else result
    return ToolResult(text=orjson.dumps({"ok": True, "result": written}).decode())


def _tell_error(error: WakefulError) -> ToolResult:
    """Word a refusal so that a model can mend its call in one try."""
    said: dict[str, Any] = {
        "ok": False,
        "kind": error_kind(error),
        "message": error.message,
        "retryable": is_retryable(error),
    }
    said |= {name: value for name in ("field", "hint") if (value := getattr(error, name)) is not None}
    return ToolResult(text=orjson.dumps(said).decode(), success=False, metadata={"code": error.code, **said})


def _parameter(asked: ViewParameter) -> dict[str, Any]:
    kept: dict[str, Any] = {"name": asked.name, "description": asked.description}
    return kept if asked.required and asked.default is None else {**kept, "default": asked.default}


def _kind(path: str, asked: str | None) -> str:
    kind = asked or PurePosixPath(path).suffix.lower().removeprefix(".")
    if kind not in ("csv", "json", "jsonl"):
        raise Invalid(f"{path!r} does not end in .csv, .json or .jsonl. Rename it, or give 'format'.", field="format")
    return kind
