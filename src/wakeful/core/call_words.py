"""Tool calls as people see them before they approve: a sentence, and every argument. Nothing in them is hidden."""

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, cast

from wakeful.core.labels import plain_name

_END = 60  # characters of the beginning and of the end of a long value in the sentence
_MAX_GIVEN = 3  # arguments in the sentence of a call without a text of its own
# Of a long argument, its beginning and its end: so little that the question fits on the screen of a phone.
_START_SHOWN, _END_SHOWN = 240, 160  # characters
_START_LINES, _END_LINES = 8, 5
_MAX_INDENT = 16  # blanks at the beginning of a line that are shown as they are
_MAX_BREAKS = 2  # line breaks in a row
_MAX_MARKS = 3  # combining marks on one letter; more of them cover other text
_PLACE = re.compile(r"\{([\w|]+)\}|\[(\w+)\]")
_UNUSUAL = re.compile(r"[^ -~]+|\A +| +\Z| {2,}")
_QUOTATION_MARKS = str.maketrans(dict.fromkeys("“”„‟❝❞〝〞＂", '"'))
# Blank or invisible, though Python counts them as printable: fillers, variation selectors, blanks of scripts.
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\U0001107f\U00013441\U00013442\U00016fe4\U0001d159"
).union(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))

Args = Mapping[str, Any]

# {name}: an argument, quoted; {a|b}: the first of them that is given. [name]: how much an argument holds. A call
# without one of them is described in general. A text says what the call does, never the model's reason for it.
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
    "schedule_recall": "schedule a run in this session ({call_type}): {additional_context_message}",
    "manage_recall": "manage scheduled runs: {action}",
    "scheduler": "use its scheduler: {op}",
    "schedule_next_run": "schedule its next run: {instructions}",
    "finish_step": "tick off step {step} of its plan",
    "cancel_next_run": "cancel its next run",
    "db_schema": "look at the tables of its database",
    "db_create_table": "create the table {name} with the columns {columns}",
    "db_alter_table": "add columns to the table {table}: {add_columns}",
    "db_migrate": "change the schema of its database with SQL: {up_sql}",
    "db_insert": "insert [rows] into {table}",
    "db_upsert": "insert or update [rows] in {table}",
    "db_update": "set {set} in rows of {table} where {where}",
    "db_delete": "delete rows of {table} where {where}",
    "db_restore": "restore deleted rows of {table} where {where}",
    "db_query": "query its database: {sql}",
    "db_execute": "change its database with SQL: {sql}",
    "db_define_view": "save the view {name} of {sql}",
    "db_run_view": "run the view {name}",
    "db_list_views": "list its views",
    "db_drop_view": "delete the view {name}",
    "db_import": "import {path} into {table}",
    "db_export": "write the rows of {sql|table} to the file {path}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownArgument:
    """An argument as it is shown, with blanks and invisible characters written out; a long one in three parts."""

    name: str
    start: str  # all of it, unless there is a middle
    middle: str  # shown on request; until then, its length
    end: str


def describe_call(agent: str, tool: str, args: Args, server: str | None = None, request: str | None = None) -> str:
    """Return a sentence that says what an agent wants to do.

    `server` is the MCP server that the tool is from; `request` says it, if it depends on more than the arguments.
    """
    if request is not None:
        return f"{_shorten(agent)} {request}"
    if server is not None:
        own_name = plain_name(tool).removeprefix(f"{server}_")
        what = _in_general(f"the tool {_quote(own_name)} of the MCP server {_quote(server)}", args)
    else:
        template = _APPEND if tool == "write_file" and args.get("append") is True else TEXTS.get(tool)
        what = _fill(template, args) or _in_general(_shorten(tool), args)
    return f"{_shorten(agent)} wants to {what}"


def show_arguments(args: Args) -> tuple[ShownArgument, ...]:
    """Return all arguments of a call, with line breaks in their values."""
    return tuple(_show(_shorten(name), _reveal(_as_text(value), on_lines=True)) for name, value in args.items())


def _show(name: str, text: str) -> ShownArgument:
    start = "".join(text[:_START_SHOWN].splitlines(keepends=True)[:_START_LINES])
    end = "".join(text[-_END_SHOWN:].splitlines(keepends=True)[-_END_LINES:])
    if len(start) + len(end) >= len(text):
        return ShownArgument(name=name, start=text or '""', middle="", end="")
    return ShownArgument(name=name, start=start, middle=text[len(start) : -len(end)], end=end)


def _fill(template: str | None, args: Args) -> str | None:
    """Return a template with its arguments; None if there is none, or an argument is missing or empty."""
    if template is None:
        return None
    words = [_given(names, args) if names else _amount(args.get(held)) for names, held in _PLACE.findall(template)]
    if None in words:
        return None
    left = iter(words)
    return _PLACE.sub(lambda _: str(next(left)), template)


def _given(names: str, args: Args) -> str | None:
    return next((_quote(args[name]) for name in names.split("|") if args.get(name) not in (None, "")), None)


def _quote(value: object) -> str:
    return f"“{_shorten(_as_text(value))}”"


def _amount(value: object) -> str | None:
    if isinstance(value, str):
        return _count(len(value.encode(errors="replace")), "byte")
    return _count(len(cast("list[Any]", value)), "row") if isinstance(value, list) else None


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _in_general(tool: str, args: Args) -> str:
    given = ", ".join(f"{_shorten(name)} {_quote(args[name])}" for name in islice(args, _MAX_GIVEN))
    more = f" and {_count(len(args) - _MAX_GIVEN, 'more argument')}" if len(args) > _MAX_GIVEN else ""
    return f"call {tool}{f' with {given}{more}' if given else ''}"


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shorten(text: str) -> str:
    """Return a text on one line that cannot end a quotation; of a long one, its two ends and the number between."""
    shown = _reveal(text, on_lines=False).translate(_QUOTATION_MARKS)
    between = len(shown) - 2 * _END
    return shown if between <= 0 else f"{shown[:_END]} … {_count(between, 'character')} … {shown[-_END:]}"


def _reveal(text: str, *, on_lines: bool) -> str:
    """Return a text in which blanks and invisible characters are written out, and counted if they are repeated."""
    return _UNUSUAL.sub(lambda found: _write_out(found, on_lines=on_lines), text)


def _write_out(found: re.Match[str], *, on_lines: bool) -> str:
    before = found.string[found.start() - 1 : found.start()]
    if found[0][0] == " ":
        is_indent = on_lines and before == "\n" and len(found[0]) <= _MAX_INDENT
        return found[0] if is_indent else _repeat("␣", len(found[0]))
    shown: list[str] = []
    marks_left = _MAX_MARKS if before.isalpha() else 0
    for character, group in groupby(found[0]):
        times = len(list(group))
        is_break = on_lines and character == "\n"
        is_mark = unicodedata.category(character).startswith("M")
        is_hidden = not character.isprintable() or character in _BLANK or (is_mark and times > marks_left)
        if is_hidden and not (is_break and times <= _MAX_BREAKS):
            shown.append(_repeat(character.encode("unicode_escape").decode(), times) + ("\n" if is_break else ""))
        else:
            shown.append(character * times)
        if is_mark:
            marks_left -= times
        else:
            marks_left = _MAX_MARKS if character.isalpha() and not is_hidden else 0
    return "".join(shown)


def _repeat(shown: str, times: int) -> str:
    return shown if times == 1 else f"{shown}×{times}"
