"""What commands print: text that cannot control the terminal, tables, JSON, times, and the message of a failure."""

import json
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Any, NamedTuple, NoReturn, TextIO, cast
from unicodedata import category, east_asian_width
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

# Fits tables into a terminal.


NOTHING = "–"
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-.*")
_SHORT_ID = 13  # characters: the time at which it was made, to the millisecond
_MIN_CUT = 8  # a last column of fewer characters is not cut


class Cell(NamedTuple):
    """A text and its colour."""

    text: str
    colour: str | None = None


Line = Sequence[Cell]


def fit(lines: Sequence[Line], columns: int) -> Sequence[Line]:
    """Make a table, whose first line are its headers, narrow enough for a terminal, as far as that is possible.

    Columns without any value are left out, then ids are shortened to beginnings that still differ, then the last
    column is cut.
    """
    for narrow in (_drop_empty, _shorten_ids):
        if _total(lines) <= columns:
            return lines
        lines = narrow(lines)
    free = columns - _total([line[:-1] for line in lines]) - 2
    if free < _MIN_CUT:
        return lines
    return [[*line[:-1], _cut(line[-1], free)] for line in lines]


def widths_of(lines: Sequence[Line]) -> list[int]:
    """Return the width of each column."""
    return [max(width_of(line[number].text) for line in lines) for number in range(len(lines[0]))]


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(0 if category(each) == "Mn" else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def _total(lines: Sequence[Line]) -> int:
    widths = widths_of(lines)
    return sum(widths) + 2 * (len(widths) - 1)


def _drop_empty(lines: Sequence[Line]) -> Sequence[Line]:
    kept = [number for number in range(len(lines[0])) if any(line[number].text != NOTHING for line in lines[1:])]
    return [[line[number] for number in kept] for line in lines]


def _shorten_ids(lines: Sequence[Line]) -> Sequence[Line]:
    lengths = [_shortest([line[number].text for line in lines[1:]]) for number in range(len(lines[0]))]
    return [
        [
            cell._replace(text=cell.text[:length]) if length and _ID.match(cell.text) else cell
            for cell, length in zip(line, lengths, strict=True)
        ]
        for line in lines
    ]


def _shortest(texts: Sequence[str]) -> int | None:
    """Return how much of the ids in a column is needed to tell them apart; None if there are none."""
    ids = {text for text in texts if _ID.match(text)}
    if not ids:
        return None
    return next(size for size in range(_SHORT_ID, 37) if len({each[:size] for each in ids}) == len(ids))


def _cut(cell: Cell, width: int) -> Cell:
    """Return a cell that takes at most this number of columns."""
    if width_of(cell.text) <= width:
        return cell
    text = cell.text
    while width_of(text) > width - 1:
        text = text[:-1]
    return Cell(f"{text}…", cell.colour)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Limit = Annotated[int, typer.Option(help="How many at most.", min=1, max=200)]
PageOption = Annotated[str | None, typer.Option(help="The next page, as the end of a list names it.")]
_zone: ContextVar[tzinfo | None] = ContextVar("zone", default=None)  # None: this machine's


def _set_zone(name: str | None) -> str | None:
    """Show times in a zone from now on."""
    if name is None:
        return None
    try:
        _zone.set(ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        fail(f"--zone must be an IANA zone such as Europe/Berlin, got {name!r}.", WRONG)
    return name


OutputZone = Annotated[
    str | None,
    typer.Option(
        "--zone",
        help="Show times in this IANA zone, such as Europe/Berlin; without it, in this machine's.",
        callback=_set_zone,
    ),
]

REFUSED, WRONG, NOT_REACHED = 1, 2, 3  # exit codes: the server refused, wrong usage, no server


def harmless(text: str) -> str:
    """Escape control characters, so that a text by a model cannot control the terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def printable(text: str) -> str:
    """Escape control characters except line breaks and tabs, so that a text by a model cannot control the terminal."""
    return "\n".join(map(harmless, text.replace("\r\n", "\n").expandtabs(4).split("\n")))


def printable_json(text: str) -> str:
    """Escape the control characters that JSON may contain, as JSON does, so that it has the same value."""
    return "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text)


def echo(text: str, *, err: bool = False, nl: bool = True, escape: Callable[[str], str] = printable) -> None:
    """Print a text, escaped on a terminal and unchanged elsewhere."""
    is_terminal = (sys.stderr if err else sys.stdout).isatty()
    typer.echo(escape(text) if is_terminal else text, err=err, nl=nl)  # noqa: TID251  (it is escaped)


def print_note(words: str) -> None:
    """Print a note on standard error, apart from the result."""
    typer.secho(printable(words), fg=typer.colors.YELLOW if has_colour(sys.stderr) else None, err=True)


def has_colour(stream: TextIO) -> bool:
    """Return whether a stream shows colours: a terminal, and nobody asked for none."""
    return stream.isatty() and "NO_COLOR" not in os.environ


def show_json(value: Any, indent: int | None = 2) -> None:
    echo(json.dumps(value, indent=indent, ensure_ascii=False), escape=printable_json)


def show_done(result: Any, text: str, as_json: bool) -> None:
    """Print the result of a command: a sentence, or the server's response as JSON."""
    show_json(result) if as_json else echo(text)


def show_list(
    found: Mapping[str, Any] | list[Any],
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    *,
    empty: str,
    as_json: bool,
) -> None:
    """Print a list of the server as JSON, or its rows as a table and how to get the next page."""
    if as_json:
        show_json(found)
        return
    show_table(rows, columns, empty=empty)
    if isinstance(found, Mapping) and found.get("next"):
        print_note(f"There are more: --page {found['next']}")


def show_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, empty: str) -> None:
    """Print rows as a table, or a hint if there are none. On a terminal it is made to fit; elsewhere ids stay whole."""
    if not rows:
        echo(empty)
        return
    lines = [
        [Cell(column.replace("_", " "), "bold") for column in columns],
        *([_cell(column, row.get(column)) for column in columns] for row in rows),
    ]
    _print_table(fit(lines, shutil.get_terminal_size().columns) if sys.stdout.isatty() else lines)


def show_found(found: Mapping[str, Any]) -> None:
    """Print rows of an agent's database unchanged, one per line."""
    headers = [Cell(harmless(column), "bold") for column in found["columns"]]
    _print_table([headers, *([*map(_value, row)] for row in found["rows"])])
    if found["truncated"]:
        echo("Not all rows are shown.")


def show_one(value: Mapping[str, Any]) -> None:
    """Print the fields of an object, one per line, without empty ones."""
    width = max(map(len, value), default=0)
    for name, each in value.items():
        if each not in (None, "", [], {}):
            head = _paint(Cell(f"{harmless(name):<{width}}  ", "bold"))
            typer.echo(head + _paint(_cell(name, each)))  # noqa: TID251  (cells are harmless)


def call_lines(asked: Mapping[str, Any]) -> list[str]:
    """Return a call that needs approval: the server's sentence about it, and every argument in full."""
    sentence = asked.get("sentence") or f"The agent wants to call {asked['tool']}"
    # A server before 0.2.1 does not say how its arguments are shown.
    shown = asked.get("shown") or [{"name": "arguments", "start": json.dumps(asked["args"], ensure_ascii=False)}]
    texts = (f"{each['name']}: {each['start']}{each.get('middle', '')}{each.get('end', '')}" for each in shown)
    return [harmless(sentence), *(f"  {printable(text)}".replace("\n", "\n    ") for text in texts)]


def describe_deletion(result: Mapping[str, Any], text: str) -> str:
    """Return that an agent or a user was deleted, and whether the server is still cancelling wakes."""
    if left := result["wakes_left"]:
        text += f" {left:,} more wakes are being cancelled in the background; none of them fires."
    return text


def show_time(text: str, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return an instant in the zone that was asked for, else in this machine's, to the second."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return harmless(text)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(_zone.get()).strftime(form)


def show_time_and_zone(text: str) -> str:
    """Return an instant for a sentence, with the name of its zone."""
    return show_time(text, "%Y-%m-%d %H:%M:%S %Z")


_INSTANT = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def in_local_time(text: str) -> str:
    """Return a sentence of the server with its instants in the zone that was asked for, else in this machine's."""
    return _INSTANT.sub(lambda found: show_time(found[0]), text)


def in_words(code: str | None) -> str | None:
    """Return a code of the server as words: did_nothing as 'did nothing'."""
    return code and code.replace("_", " ")


class Failed(typer.BadParameter):
    """The reason why a command cannot go on; unless it is caught, the command ends with its message and exit code.

    It is a BadParameter because typer prints these by their `show`, which is all that is used of it.
    """

    def __init__(self, message: str, code: int = REFUSED) -> None:
        super().__init__(message)
        self.exit_code = code

    def show(self, file: Any = None) -> None:
        colour = None if "NO_COLOR" in os.environ else typer.colors.RED
        typer.secho(printable(self.message), fg=colour, err=True, file=file)


class Refused(Failed):
    """The server refused a request; `reason` is the code of its error, such as `session_busy`."""

    def __init__(self, message: str, reason: str | None) -> None:
        super().__init__(message)
        self.reason = reason


def fail(message: str, code: int = REFUSED) -> NoReturn:
    """End the command with a message for people."""
    raise Failed(message, code)


_PATIENCE = 1.0  # seconds without a line
_CLEAR = "\r\x1b[K"


@contextmanager
def progress(what: str) -> Generator[None]:
    """Show what the block waits for, and for how long; the line is erased at the end."""
    if not sys.stderr.isatty():
        yield
        return
    is_over = threading.Event()
    ticking = threading.Thread(target=_tick, args=(what, is_over), daemon=True)
    ticking.start()
    try:
        yield
    finally:
        is_over.set()
        ticking.join()


def _tick(what: str, is_over: threading.Event) -> None:
    began = time.monotonic()
    while not is_over.wait(_PATIENCE):
        sys.stderr.write(f"{_CLEAR}{what}… {time.monotonic() - began:.0f} s")
        sys.stderr.flush()
    if time.monotonic() - began >= _PATIENCE:
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()


_COLOURS = {
    "success": "green",
    "fired": "green",
    "running": "cyan",
    "pending": "blue",
    "queued": "blue",
    "failed": "red",
    "interrupted": "red",
    "skipped": "yellow",
    "cancelled": "yellow",
    "stopped": "yellow",
}


def _cell(column: str, value: Any) -> Cell:
    if value is None:
        return Cell(NOTHING, "dim")
    if column == "status":
        return Cell(harmless(str(value)), _COLOURS.get(str(value)))
    if (column in ("at", "until") or column.endswith("_at")) and isinstance(value, str):
        return Cell(show_time(value))
    if isinstance(value, list) and all(isinstance(each, str) for each in cast("list[Any]", value)):
        return Cell(harmless(", ".join(cast("list[str]", value))))
    if isinstance(value, dict | list):
        return Cell(harmless(json.dumps(value, ensure_ascii=False)))
    return Cell(harmless(str(value)))


def _value(value: Any) -> Cell:
    if value is None:
        return Cell(NOTHING, "dim")
    return Cell(harmless(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))


def _print_table(lines: Sequence[Sequence[Cell]]) -> None:
    """Print columns side by side."""
    widths = widths_of(lines)
    for line in lines:
        padded = zip(line, widths, strict=True)
        shown = [_paint(cell) + " " * (width - width_of(cell.text)) for cell, width in padded]
        typer.echo("  ".join(shown).rstrip())  # noqa: TID251  (cells are harmless)


def _paint(cell: Cell) -> str:
    if cell.colour is None or not cell.text or not has_colour(sys.stdout):
        return cell.text
    if cell.colour in ("bold", "dim"):
        return typer.style(cell.text, **{cell.colour: True})
    return typer.style(cell.text, fg=cell.colour)
