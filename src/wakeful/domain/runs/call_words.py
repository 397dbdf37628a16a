"""Tool calls in words, for people who approve them. What a model wrote is quoted and shortened."""

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, cast

_MAX_VALUE = 120  # characters of one quoted value
_MAX_GIVEN = 3  # arguments of a call without a text of its own
_PLACE = re.compile(r"\{(\w+)\}|\[(\w+)\]")

Args = Mapping[str, Any]

# {name}: an argument, quoted. [name]: how much an argument holds. A call without one of them is described in general.
_APPEND = "append [content] to {path}"
TEXTS: Mapping[str, str] = {
    "write_file": "write {path} ([content])",
    "read_file": "read the file {path}",
    "list_files": "list its files",
    "search_files": "search its files for {pattern}",
    "fetch_url": "fetch {url}",
    "run_command": "run the command {command}",
    "notify": "notify you: {title}",
    "spawn_agent": "give {agent} the task {task}",
    "switch_profile": "hand this session over to {profile}",
    "read_skill": "read its skill {name}",
    "write_skill": "write its skill {name} ([body])",
    "schedule_recall": "schedule a run in this session: {additional_context_message}",
    "manage_recall": "{action} the scheduled run of this session",
    "scheduler": "use its scheduler: {op}",
    "schedule_next_run": "schedule its next run: {instructions}",
    "finish_step": "tick off a step of its plan",
    "cancel_next_run": "cancel its next run",
    "db_schema": "look at the tables of its database",
    "db_create_table": "create the table {name}",
    "db_alter_table": "add columns to the table {table}",
    "db_migrate": "change the schema of its database: {purpose}",
    "db_insert": "insert [rows] into {table}",
    "db_upsert": "insert or update [rows] in {table}",
    "db_update": "change rows of {table}",
    "db_delete": "delete rows of {table}",
    "db_restore": "restore deleted rows of {table}",
    "db_query": "query its database: {sql}",
    "db_execute": "change its database with SQL: {sql}",
    "db_define_view": "save the view {name}",
    "db_run_view": "run the view {name}",
    "db_list_views": "list its views",
    "db_drop_view": "delete the view {name}",
    "db_import": "import {path} into {table}",
    "db_export": "write data to the file {path}",
}


def describe_call(agent: str, tool: str, args: Args) -> str:
    """Return a sentence that says what an agent wants to do."""
    template = _APPEND if tool == "write_file" and args.get("append") is True else TEXTS.get(tool)
    return f"{show_visibly(agent)} wants to {_fill(template, args) or _in_general(tool, args)}"


def show_visibly(text: str) -> str:
    """Return a text on one line, shortened, with hidden characters and quotation marks escaped."""
    shown = "".join(_escape(each) for each in text[: _MAX_VALUE + 1])
    return shown if len(shown) <= _MAX_VALUE else f"{shown[:_MAX_VALUE].rstrip()}…"


def _fill(template: str | None, args: Args) -> str | None:
    """Return a template with its arguments; None if there is none, or an argument is missing or of another type."""
    if template is None:
        return None
    words = [(_quoted(args.get(name)) if name else _amount(args.get(held))) for name, held in _PLACE.findall(template)]
    if None in words:
        return None
    left = iter(words)
    return _PLACE.sub(lambda _: str(next(left)), template)


def _quoted(value: object) -> str | None:
    return f"“{show_visibly(value)}”" if isinstance(value, str) and value else None


def _amount(value: object) -> str | None:
    if isinstance(value, str):
        return _count(len(value.encode(errors="replace")), "byte")
    return _count(len(cast("list[Any]", value)), "row") if isinstance(value, list) else None


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _in_general(tool: str, args: Args) -> str:
    given = ", ".join(f"{show_visibly(name)} “{show_visibly(str(args[name]))}”" for name in islice(args, _MAX_GIVEN))
    more = ", …" if len(args) > _MAX_GIVEN else ""
    return f"call {show_visibly(tool)}{f' with {given}{more}' if given else ''}"


def _escape(character: str) -> str:
    if character in "“”":
        return '"'
    return character if character.isprintable() else character.encode("unicode_escape").decode()
