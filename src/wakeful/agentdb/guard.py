"""The authorizer: an allow-list that SQLite asks about every table, column and function of a statement.

It never looks at the text of a statement. Whatever is not on a list is denied, new features of SQLite included.
"""

from collections.abc import Collection
from contextlib import closing
from functools import cache
from typing import Any, Literal

import apsw

from wakeful.agentdb.operation import name_of

Profile = Literal["host", "query", "execute", "migrate"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = _words(
    """
    -> ->> abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling changes char coalesce concat concat_ws cos cosh
    count cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor
    format glob group_concat hex if ifnull iif instr json json_array json_array_length json_error_position json_extract
    json_group_array json_group_object json_insert json_object json_patch json_pretty json_quote json_remove
    json_replace json_set json_type json_valid julianday lag last_value lead length like likelihood likely ln log log10
    log2 lower ltrim max median min mod nth_value ntile nullif octet_length percent_rank percentile percentile_cont
    percentile_disc pi pow power printf quote radians random randomblob rank replace round row_number rtrim sign sin
    sinh sqrt strftime string_agg substr substring sum tan tanh time timediff total trim trunc typeof unhex unicode
    unistr unixepoch unlikely upper zeroblob
    """
)
# Functions that ALTER TABLE calls; a statement cannot name them.
_INSIDE_ALTER = _words(
    """
    sqlite_rename_column sqlite_rename_table sqlite_rename_test sqlite_rename_quotefix sqlite_drop_column
    sqlite_add_constraint sqlite_drop_constraint sqlite_find_constraint sqlite_fail
    """
)
_TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
# Virtual tables that exist without being created: SQLite registers some on first use, and other builds have more.
_MODULES = _words(
    """
    bytecode carray completion csv dbstat fsdir fts3tokenize fts4aux fts5vocab generate_series json_each json_tree
    jsonb_each jsonb_tree tables_used unionvtab
    """
)
_SCHEMA_TABLES = frozenset({"sqlite_master", "sqlite_temp_master", "sqlite_sequence"})
_CHECKS_OF_ALTER = frozenset({"quick_check", "pragma_quick_check"})

OK, DENY = apsw.SQLITE_OK, apsw.SQLITE_DENY


def is_reserved(name: str) -> bool:
    """Return whether a name belongs to the host or to SQLite."""
    return name.startswith("_") or name.lower().startswith("sqlite_")


@cache
def _modules() -> frozenset[str]:
    """Return the names of the virtual tables of this SQLite."""
    connection: Any = apsw.Connection(":memory:")
    with closing(connection):
        return _MODULES | {str(name).lower() for (name,) in connection.execute("SELECT name FROM pragma_module_list")}


def is_table_function(name: str) -> bool:
    """Return whether a name means a table-valued function or a virtual table when no table has it."""
    name = name.lower()
    return name.startswith("pragma_") or name in _modules()


class SqlGuard:
    """The authorizer of one connection. The host sets the profile before it runs a statement."""

    def __init__(self) -> None:
        self.profile: Profile = "host"
        self.doors: Collection[str] = ()  # randomly named views through which a query may read tables
        self.views: Collection[str] = ()  # those, and the views over them, which have the tables' names
        self.tables: Collection[str] = ()  # the agent's; a file of 0.1 may have one that is named like a function
        self.hides = True  # a query must read through `doors`, which hide soft-deleted rows
        self.reason: str | None = None  # of the last denial, for the error
        self.created: set[str] = set()  # tables that the statement creates
        self.altered: str | None = None  # the table that it alters
        self.dropped: set[str] = set()
        self.lost: list[tuple[str, str | None]] = []  # tables and columns that it drops

    def begin_statement(self) -> None:
        self.reason = None
        self.created.clear()
        self.dropped.clear()
        self.lost.clear()
        self.altered = None

    def __call__(
        self, action: int, first: str | None, second: str | None, database: str | None, via: str | None
    ) -> int:
        if self.profile == "host":
            return DENY if action in (apsw.SQLITE_ATTACH, apsw.SQLITE_DETACH) else OK
        if self._allows(action, first or "", second or "", database, via):
            return OK
        if self.reason is None:
            self.reason = _explain(action, first or "", second or "", self.profile)
        return DENY

    def _allows(self, action: int, first: str, second: str, database: str | None, via: str | None) -> bool:
        if action in (apsw.SQLITE_SELECT, apsw.SQLITE_RECURSIVE):
            # The rows of CREATE TABLE … AS SELECT would be in no changelog: the preupdate hook is not called.
            return not self.created
        if action == apsw.SQLITE_FUNCTION:
            name = second.lower()
            return name in FUNCTIONS or (self.altered is not None and name in _INSIDE_ALTER)
        if action == apsw.SQLITE_READ:
            return self._may_read(first, second, database, via)
        if self.profile == "query":
            return False
        if action == apsw.SQLITE_INSERT:
            return self._may_write(first, database)
        if action == apsw.SQLITE_UPDATE:
            return self._may_write(first, database) and (first in _SCHEMA_TABLES or not second.startswith("_"))
        return self.profile == "migrate" and self._may_change_schema(action, first, second, database)

    def _may_read(self, table: str, column: str, database: str | None, via: str | None) -> bool:
        if table in _SCHEMA_TABLES:
            # SQLite reads its schema to change it. ALTER and DROP cannot contain a SELECT of the model.
            return self._is_inside() or (bool(self.created) and column == "ROWID")
        if table == "pragma_quick_check":
            return self.altered is not None
        if database == "temp":
            return self.profile == "query" and table in self.views
        if database is None and not column:
            # No column is read, as in count(*). SQLite then reports a WITH clause, a view, a table and a virtual table
            # alike, by the name in the statement.
            return table in self.views or (not is_reserved(table) and self._may_call(table))
        if is_reserved(table) or database != "main":
            return False
        if table not in self.tables and is_table_function(table):
            return self._may_call(table)
        return self.profile != "query" or not self.hides or via in self.doors

    def _may_call(self, name: str) -> bool:
        """Return whether a name is an allowed table-valued function, or none at all."""
        return name.lower() in _TABLE_FUNCTIONS or name in self.tables or not is_table_function(name)

    def _is_inside(self) -> bool:
        """Return whether SQLite is changing its schema, in a statement that cannot contain a SELECT of the model."""
        return self.altered is not None or bool(self.dropped)

    def _may_write(self, table: str, database: str | None) -> bool:
        if table == "sqlite_sequence":
            return self._is_inside()
        if table in _SCHEMA_TABLES:  # defensive mode refuses statements that name them
            return self.profile == "migrate"
        return database == "main" and not is_reserved(table)

    def _may_change_schema(self, action: int, first: str, second: str, database: str | None) -> bool:
        match action:
            case apsw.SQLITE_CREATE_TABLE if database == "main" and (not is_reserved(first) or first in _SCHEMA_TABLES):
                self.created.add(first)
                return True
            case apsw.SQLITE_CREATE_INDEX if database == "main" and not is_reserved(second):
                return not first.startswith("_")
            case apsw.SQLITE_DROP_INDEX if database == "main" and not is_reserved(first) and not is_reserved(second):
                self.dropped.add(first)
                return True
            case apsw.SQLITE_DROP_TABLE if database == "main" and not is_reserved(first):
                self.dropped.add(first)
                self.lost.append((first, None))
                return True
            # Here the table is the second argument, and the database argument is a column that is dropped.
            case apsw.SQLITE_ALTER_TABLE if first == "main" and not is_reserved(second):
                self.altered = second
                self.lost += [(second, database)] if database is not None else []
                return database is None or not database.startswith("_")
            case apsw.SQLITE_DELETE:  # DROP TABLE deletes its rows and, before SQLite reports its name, its schema
                return first in self.dropped or self._may_write(first, "")
            case apsw.SQLITE_REINDEX:  # CREATE INDEX fills the new index
                return True
            case apsw.SQLITE_PRAGMA:
                return self.altered is not None and first in _CHECKS_OF_ALTER
            case _:
                return False


_VERBS = {  # where apsw's name of the action is not that of the statement
    apsw.SQLITE_TRANSACTION: "BEGIN, COMMIT and ROLLBACK",
    apsw.SQLITE_CREATE_TEMP_TRIGGER: "CREATE TRIGGER",
    apsw.SQLITE_CREATE_VTABLE: "CREATE VIRTUAL TABLE",
    apsw.SQLITE_CREATE_TEMP_VIEW: "CREATE VIEW",
}
_SCHEMA_VERBS = ("CREATE", "DROP", "ALTER")


def _explain(action: int, first: str, second: str, profile: Profile) -> str:
    """Return what was denied, and what to use instead."""
    table = second if action == apsw.SQLITE_ALTER_TABLE else first
    if action == apsw.SQLITE_SELECT:
        return "CREATE TABLE … AS SELECT is not allowed. Create the table first, then INSERT INTO … SELECT."
    if action == apsw.SQLITE_FUNCTION:
        return f"The function {second!r} is not allowed here."
    if action == apsw.SQLITE_DELETE and not is_reserved(table):
        return f"DELETE is not allowed: rows are never deleted for good. Use {name_of('delete')}, which can be undone."
    if table in _SCHEMA_TABLES and action != apsw.SQLITE_READ and profile != "migrate":
        return f"The schema cannot be changed here. Use {_schema_operations()}."
    if is_reserved(table) or (action == apsw.SQLITE_CREATE_INDEX and is_reserved(second)):
        return f"{table!r} belongs to the host. Use {name_of('schema')} to see the tables, columns and views."
    if action == apsw.SQLITE_READ and is_table_function(table) and table not in _TABLE_FUNCTIONS:
        return f"The virtual table {table!r} is not allowed here."
    if action == apsw.SQLITE_READ:
        return f"{table!r} cannot be read like that. Name tables plainly, without a schema such as 'main.' before them."
    if action == apsw.SQLITE_UPDATE and second.startswith("_"):
        marks = f"{name_of('delete')} and {name_of('restore')}"
        return f"The column {second!r} is managed by the host. Leave it out; {marks} set '_deleted_at'."
    verb = _VERBS.get(action) or str(apsw.mapping_authorizer_function[action])[7:].replace("_", " ")
    if profile == "query":
        writing = f"{name_of('insert')}, {name_of('update')} or {name_of('execute')}"
        return f"{verb} is not allowed: {name_of('query')} only reads. Use {writing} to write."
    if verb.startswith(_SCHEMA_VERBS) and profile == "execute":
        return f"{verb} is not allowed in {name_of('execute')}. Use {_schema_operations()}."
    return f"{verb} is not allowed in an agent's database."


def _schema_operations() -> str:
    return f"{name_of('create_table')}, {name_of('alter_table')} or {name_of('migrate')}"
