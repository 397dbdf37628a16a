"""The toolset `database`: an agent's own tables, rows, queries, views and files."""

import asyncio
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, model_serializer

from wakeful.agentdb.errors import ColumnType, is_retryable, kind_of
from wakeful.core.errors import Invalid, WakefulError
from wakeful.database.files import By
from wakeful.database.service import AgentData
from wakeful.homes.workspace import MAX_WORKSPACE, FileTooLarge, Workspace, WorkspaceLimits
from wakeful.toolbox.registry import Act, Arguments, Tool, ToolContext, ToolDeps, ToolResult

MAX_FILE = 10 * 1024 * 1024  # bytes

Table = Annotated[str, Field(description="The name of a table; db_schema lists them.")]
Row = dict[str, Any]
Where = Annotated[
    dict[str, Any],
    Field(
        description='Conditions, all of which must hold: {"id": 3}, {"state": ["open", "late"]}, {"done_at": null}, '
        '{"price": {"gte": 10, "lt": 20}}, {"title": {"like": "%milk%"}}. Operators: eq, ne, gt, gte, lt, lte, like, '
        "in, not_in, between, is_null."
    ),
]
Params = Annotated[
    dict[str, Any] | list[Any] | None,
    Field(description="Values for the parameters of the statement: an object for :names, a list for ?."),
]
FileKind = Annotated[Literal["csv", "json", "jsonl"] | None, Field(description="Default: by the file's extension.")]


class Column(Arguments):
    name: str = Field(description="Letters, digits and _, starting with a letter.")
    type: ColumnType
    required: bool = Field(False, description="Must not be null.")
    unique: bool = False
    primary_key: bool = Field(False, description="If no column is one, the table gets an integer `id`.")
    default: str | int | float | bool | None = None


class ViewParameter(Arguments):
    name: str = Field(description="As in the statement, without the colon.")
    description: str = ""
    required: bool = Field(True, description="If false, `default` is used when the view is run without it.")
    default: str | int | float | bool | None = None

    @model_serializer
    def _as_stored(self) -> dict[str, Any]:
        """Return it as it is stored: only an optional parameter has a default."""
        stored: dict[str, Any] = {"name": self.name, "description": self.description}
        return stored if self.required and self.default is None else {**stored, "default": self.default}


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
    down_sql: str = Field(description="Statements that revert it. Only a person can run them.")


class DbInsert(Arguments):
    table: Table
    rows: list[Row] = Field(description='Objects of columns and values, such as [{"title": "Buy milk"}].')


class DbUpsert(Arguments):
    table: Table
    rows: list[Row]
    conflict_columns: list[str] = Field(description='The columns that identify a row, such as ["url"].')


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
    sql: str = Field(description="One SELECT. Name tables without a schema.")
    params: Params = None
    limit: int | None = Field(None, ge=1, le=5000, description="Maximum number of rows; default 1000.")
    include_deleted: bool = Field(False, description="Include rows deleted with db_delete.")


class DbExecute(Arguments):
    sql: str = Field(description="One INSERT or UPDATE that the typed tools cannot express.")
    params: Params = None


class DbDefineView(Arguments):
    name: str
    sql: str = Field(description="One SELECT; parameters as :name. Soft-deleted rows are left out.")
    description: str = ""
    parameters: list[ViewParameter] = Field(default_factory=list[ViewParameter])
    render: Literal["table", "bar", "line", "pie", "number"] = Field(
        "table", description="How it is shown. For bar, line and pie: first column the label, second the value."
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
    create: bool = Field(True, description="Create the table if there is none, with columns inferred from the file.")


class DbExport(Arguments):
    path: str = Field(description="The file in your workspace to write.")
    table: str | None = Field(None, description="A whole table; or give `sql`.")
    sql: str | None = Field(None, description="One SELECT whose rows are written.")
    params: Params = None
    format: FileKind = None
    include_deleted: bool = Field(False, description="With `table`: include deleted rows.")


# The tools of operations, which have the same arguments, except those that read or write a file.
_OPERATIONS: tuple[tuple[str, type[Arguments], str], ...] = (
    (
        "schema",
        DbSchema,
        "Show your own database: tables with purpose, columns, indexes and row counts, saved views, and the space "
        "left. It is empty until you create a table. Call this before you design or query.",
    ),
    (
        "create_table",
        DbCreateTable,
        "Create a table in your own database, for what you need in later runs. The host adds _created_at, "
        "_updated_at and _deleted_at.",
    ),
    (
        "alter_table",
        DbAlterTable,
        "Add columns to a table. For any other change of the schema use db_migrate.",
    ),
    (
        "migrate",
        DbMigrate,
        "Change the schema with SQL: CREATE, ALTER, DROP TABLE, CREATE and DROP INDEX, INSERT, UPDATE. All "
        "statements or none are kept, and a snapshot is made first. Triggers, views, virtual tables and DELETE are "
        "not allowed.",
    ),
    ("insert", DbInsert, "Insert rows, all or none."),
    (
        "upsert",
        DbUpsert,
        "Insert rows, or update those that have the same values in conflict_columns. A deleted one is restored. The "
        "answer says of each row whether it was inserted, updated or revived.",
    ),
    ("update", DbUpdate, "Change the rows that match a condition. Deleted rows are not changed."),
    (
        "delete",
        DbDelete,
        "Delete the rows that match a condition. They are hidden, and db_restore brings them back, unless the "
        "database was full and has reclaimed their space.",
    ),
    ("restore", DbRestore, "Restore deleted rows that match a condition."),
    (
        "query",
        DbQuery,
        "Run one SELECT (SQLite). Deleted rows are left out unless you set include_deleted. The answer has columns, "
        "rows, and truncated if there were more.",
    ),
    (
        "execute",
        DbExecute,
        "Run one INSERT or UPDATE as SQL, when db_insert, db_upsert and db_update cannot express it. It also sees "
        "deleted rows, and changing those is refused: add WHERE _deleted_at IS NULL. DELETE, DDL and PRAGMA are "
        "refused.",
    ),
    (
        "define_view",
        DbDefineView,
        "Save a SELECT under a name, for later runs, your user's page, and the context_views of schedule_next_run. "
        "A view of that name is replaced.",
    ),
    ("run_view", DbRunView, "Run a saved view."),
    ("list_views", DbListViews, "List the saved views."),
    ("drop_view", DbDropView, "Delete a saved view. Its data stays."),
    ("import", DbImport, "Insert the rows of a CSV, JSON or JSONL file of your workspace, all or none."),
    (
        "export",
        DbExport,
        "Write a table, or the rows of a SELECT, to a CSV, JSON or JSONL file of your workspace.",
    ),
)
_REPEATABLE = ("schema", "upsert", "query", "run_view", "list_views", "export")


def make_tools(deps: ToolDeps) -> list[Tool]:
    return database_tools(deps[AgentData], MAX_WORKSPACE)


def database_tools(data: AgentData, workspace_bytes: int) -> list[Tool]:
    """Return the tools of the toolset `database`."""

    def declared(op: str) -> Act[Arguments]:
        async def act(context: ToolContext, asked: Arguments) -> ToolResult:
            if op == "query":  # its result may be long, so it is passed on without parsing it
                return _to_result(await data.run_unparsed(_by(context), op, **asked.model_dump()))
            result, last_change = await data.run_numbered(_by(context), op, **asked.model_dump())
            return _to_result(result, last_change)

        return act

    async def import_file(context: ToolContext, asked: DbImport) -> ToolResult:
        kind = _kind(asked.path, asked.format)
        found = await asyncio.to_thread(Workspace(context.workspace).read, asked.path, offset=0, limit=MAX_FILE)
        if found.size > MAX_FILE:
            raise FileTooLarge(asked.path, found.size, MAX_FILE)
        try:
            text = found.data.decode()
        except UnicodeDecodeError as error:
            raise Invalid(f"{asked.path!r} must be UTF-8 text ({error}).", field="path") from None
        args = {"table": asked.table, "text": text, "format": kind, "create": asked.create, "source": asked.path}
        return _to_result(await data.run(_by(context), "import", **args))

    async def export_file(context: ToolContext, asked: DbExport) -> ToolResult:
        if (asked.table is None) == (asked.sql is None):
            raise Invalid("Give exactly one of 'table' and 'sql'.", field="table")
        args = asked.model_dump(include={"table", "sql", "params"})
        kind, show = _kind(asked.path, asked.format), "all" if asked.include_deleted else "active"
        written = await data.run_unparsed(_by(context), "export", format=kind, show=show, **args)
        limits = WorkspaceLimits(bytes=workspace_bytes, file_bytes=4 * MAX_FILE, files=10_000)
        size = await asyncio.to_thread(
            Workspace(context.workspace).write, asked.path, written, append=False, limits=limits
        )
        return _to_result({"path": asked.path, "format": kind, "bytes": size})

    files: dict[str, Act[Any]] = {"import": import_file, "export": export_file}
    return [_tool(op, arguments, text, files.get(op) or declared(op)) for op, arguments, text in _OPERATIONS]


def _tool(op: str, arguments: type[Arguments], description: str, act: Act[Any]) -> Tool:
    return Tool(
        name=f"db_{op}",
        toolset="database",
        description=description,
        arguments=arguments,
        act=act,
        explain=_explain,
        is_repeatable=op in _REPEATABLE,
        is_all_or_nothing=True,
        makes_files=op == "export",
    )


def _by(context: ToolContext) -> By:
    return By(agent=context.agent, actor="agent", run_id=context.run.id)


def _to_result(result: Any, last_change: int | None = None) -> ToolResult:
    written = orjson.Fragment(result) if isinstance(result, bytes) else result
    metadata = {} if last_change is None else {"last_change": last_change}  # where the page finds what it changed
    return ToolResult(text=orjson.dumps({"ok": True, "result": written}).decode(), metadata=metadata)


def _explain(error: WakefulError) -> ToolResult:
    """Describe a refusal so that a model can correct its call at once."""
    body: dict[str, Any] = {
        "ok": False,
        "kind": kind_of(error),
        "message": error.message,
        "retryable": is_retryable(error),
    }
    body |= {name: value for name in ("field", "hint") if (value := getattr(error, name)) is not None}
    return ToolResult(text=orjson.dumps(body).decode(), success=False, metadata={"code": error.code, **body})


def _kind(path: str, asked: str | None) -> str:
    kind = asked or PurePosixPath(path).suffix.lower().removeprefix(".")
    if kind not in ("csv", "json", "jsonl"):
        raise Invalid(f"{path!r} must end in .csv, .json or .jsonl. Rename it, or give 'format'.", field="format")
    return kind
