"""What the demo model understands about its own database, a tool of the database a row."""

import json
import re
from typing import Any

from wakeful.runtime.models.demo.grammar import make_sentence

TYPES = ("text", "integer", "real", "boolean", "date", "datetime")
_TABLE = r"(?P<table>[a-z]\w{0,50})"
_WHERE = r"where (?P<where>\w+ ?=.+?)"
_PAIR = re.compile(r"(\w+) ?= ?(.+)")


def _pairs(text: str) -> dict[str, Any] | None:
    """Read "item=milk, price=2"; None if it is not that."""
    found = [_PAIR.fullmatch(part.strip()) for part in re.split(r",|\band\b", text)]
    if not all(found):
        return None
    return {pair[1]: _value(pair[2]) for pair in found if pair is not None}


def _value(text: str) -> Any:
    text = text.strip().strip("\"'“”")
    return json.loads(text) if re.fullmatch(r"-?\d{1,15}(\.\d{1,9})?|true|false|null", text) else text


def _columns(text: str) -> list[dict[str, Any]] | None:
    """Read "item, price real": names, each with a type or as a text."""
    words = [part.split() for part in re.split(r",|\band\b", text)]
    if not all(len(each) == 1 or (len(each) == 2 and each[1].lower() in TYPES) for each in words):
        return None
    return [{"name": each[0], "type": each[1].lower() if len(each) == 2 else "text"} for each in words]


def _create(said: re.Match[str]) -> dict[str, Any] | None:
    columns = _columns(said["columns"])
    purpose = f"What my user keeps in {said['table']}."
    return None if columns is None else {"name": said["table"], "purpose": purpose, "columns": columns}


def _alter(said: re.Match[str]) -> dict[str, Any] | None:
    columns = _columns(said["columns"])
    return None if columns is None else {"table": said["table"], "add_columns": columns}


def _rename(said: re.Match[str]) -> dict[str, Any]:
    table, old, new = said["table"], said["old"], said["new"]
    return {
        "purpose": f"{old} of {table} is called {new}.",
        "up_sql": f'ALTER TABLE "{table}" RENAME COLUMN "{old}" TO "{new}"',
        "down_sql": f'ALTER TABLE "{table}" RENAME COLUMN "{new}" TO "{old}"',
    }


def _insert(said: re.Match[str]) -> dict[str, Any] | None:
    row = _pairs(said["row"])
    return None if row is None else {"table": said["table"], "rows": [row]}


def _upsert(said: re.Match[str]) -> dict[str, Any] | None:
    row = _pairs(said["row"])
    return None if row is None else {"table": said["table"], "rows": [row], "conflict_columns": [said["key"]]}


def _update(said: re.Match[str]) -> dict[str, Any] | None:
    changes, where = _pairs(said["changes"]), _pairs(said["where"])
    return None if changes is None or where is None else {"table": said["table"], "set": changes, "where": where}


def _chosen(said: re.Match[str]) -> dict[str, Any] | None:
    where = _pairs(said["where"])
    return None if where is None else {"table": said["table"], "where": where}


DATABASE_SENTENCES = (
    make_sentence(
        "what is in your database",
        r"(?:what is in|show(?: me)?|describe) your database",
        "db_schema",
        "Describe your database with db_schema.",
    ),
    make_sentence(
        "make a table shopping with item, price real",
        rf"(?:make|create) a table {_TABLE} (?:with|of) (?P<columns>\w[\w ,]*?)",
        "db_create_table",
        "Make a table {table} of {columns} with db_create_table.",
        _create,
    ),
    make_sentence(
        "add the column shop to shopping",
        rf"add (?:a|the) columns? (?P<columns>\w[\w ,]*?) to {_TABLE}",
        "db_alter_table",
        "Add the column {columns} to {table} with db_alter_table.",
        _alter,
    ),
    make_sentence(
        "rename the column price of shopping to cost",
        rf"rename the column (?P<old>[a-z]\w*) of {_TABLE} to (?P<new>[a-z]\w*?)",
        "db_migrate",
        "Rename the column {old} of {table} to {new} with db_migrate.",
        _rename,
    ),
    make_sentence(
        "add or update item=milk, cost=3 in shopping by item",
        rf"add or update (?P<row>\w+ ?=.+?) in {_TABLE} by (?P<key>\w+?)",
        "db_upsert",
        "Add or update {row} in {table} by {key} with db_upsert.",
        _upsert,
    ),
    make_sentence(
        "add item=milk, cost=2 to shopping",
        rf"add (?P<row>\w+ ?=.+?) to {_TABLE}",
        "db_insert",
        "Add {row} to {table} with db_insert.",
        _insert,
    ),
    make_sentence(
        "change cost=4 in shopping where item=milk",
        rf"(?:change|set|update) (?P<changes>\w+ ?=.+?) in {_TABLE} {_WHERE}",
        "db_update",
        "Change {changes} in {table} where {where} with db_update.",
        _update,
    ),
    make_sentence(
        "delete from shopping where item=milk",
        rf"(?:delete|remove) from {_TABLE} {_WHERE}",
        "db_delete",
        "Delete from {table} where {where} with db_delete.",
        _chosen,
    ),
    make_sentence(
        "restore in shopping where item=milk",
        rf"(?:restore|bring back) in {_TABLE} {_WHERE}",
        "db_restore",
        "Restore in {table} where {where} with db_restore.",
        _chosen,
    ),
    make_sentence(
        "query SELECT item, cost FROM shopping",
        r"(?:query|ask your database:?) (?P<sql>(?:select|with)\b.+?)",
        "db_query",
        "Query {sql} with db_query.",
    ),
    make_sentence(
        "execute UPDATE shopping SET cost = cost + 1",
        r"(?:execute|run) (?P<sql>(?:insert|update)\b.+?)",
        "db_execute",
        "Execute {sql} with db_execute.",
    ),
    make_sentence(
        "save the view dear as SELECT item FROM shopping WHERE cost > 3",
        r"save (?:a|the) view (?P<name>[a-z]\w{0,50}) as (?P<sql>(?:select|with)\b.+?)",
        "db_define_view",
        "Save the view {name} as {sql} with db_define_view.",
    ),
    make_sentence(
        "list the views",
        r"(?:list|show)(?: me)?(?: all)?(?: the| your| my)? views",
        "db_list_views",
        "List the views with db_list_views.",
    ),
    make_sentence(
        "show the view dear",
        r"(?:show|run)(?: me)? the view (?P<name>[a-z]\w{0,50}?)",
        "db_run_view",
        "Run the view {name} with db_run_view.",
    ),
    make_sentence(
        "drop the view dear",
        r"(?:drop|forget) the view (?P<name>[a-z]\w{0,50}?)",
        "db_drop_view",
        "Drop the view {name} with db_drop_view.",
    ),
    make_sentence(
        "import shopping.csv into shopping",
        rf"import (?P<path>\S+) into {_TABLE}",
        "db_import",
        "Import {path} into {table} with db_import.",
    ),
    make_sentence(
        "export shopping to shopping.csv",
        rf"export {_TABLE} to (?P<path>\S+?)",
        "db_export",
        "Export {table} to {path} with db_export.",
    ),
)
