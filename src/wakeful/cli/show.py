"""Output of the commands: tables on a terminal, JSON for programs."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple, cast
from unicodedata import category, east_asian_width

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
PageOption = Annotated[str | None, typer.Option(help="The next page, as the end of a list names it.")]

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


class Cell(NamedTuple):
    """A text and its colour."""

    text: str
    colour: str | None = None


def show_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def show_done(result: Any, text: str, as_json: bool) -> None:
    """Print the result of a command: a sentence, or the server's response as JSON."""
    show_json(result) if as_json else typer.echo(text)


def show_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, empty: str) -> None:
    """Print rows as a table, or a hint if there are none."""
    if not rows:
        typer.echo(empty)
        return
    headers = [column.replace("_", " ") for column in columns]
    _print_table(headers, [[_cell(column, row.get(column)) for column in columns] for row in rows])


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


def show_found(found: Mapping[str, Any]) -> None:
    """Print rows of an agent's database unchanged, one per line."""
    _print_table([*map(_harmless, found["columns"])], [[*map(_value, row)] for row in found["rows"]])
    if found["truncated"]:
        typer.echo("Not all rows are shown.")


def _print_table(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Print columns side by side. Lines are not cut on a narrow terminal, so that ids stay whole."""
    lines = [[Cell(header, "bold") for header in headers], *rows]
    widths = [max(_width(line[number].text) for line in lines) for number in range(len(headers))]
    for line in lines:
        padded = zip(line, widths, strict=True)
        shown = [_paint(cell) + " " * (width - _width(cell.text)) for cell, width in padded]
        typer.echo("  ".join(shown).rstrip())


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(0 if category(each) == "Mn" else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def _paint(cell: Cell) -> str:
    if cell.colour is None or not cell.text or "NO_COLOR" in os.environ or not sys.stdout.isatty():
        return cell.text
    if cell.colour in ("bold", "dim"):
        return typer.style(cell.text, **{cell.colour: True})
    return typer.style(cell.text, fg=cell.colour)


def in_words(code: str | None) -> str | None:
    """Return a code of the server as words: did_nothing as 'did nothing'."""
    return code and code.replace("_", " ")


def print_note(words: str) -> None:
    """Print a note on standard error, apart from the result."""
    typer.secho(words, fg=typer.colors.YELLOW, err=True)


def show_one(value: Mapping[str, Any]) -> None:
    """Print the fields of an object, one per line, without empty ones."""
    width = max(map(len, value), default=0)
    for name, each in value.items():
        if each not in (None, "", [], {}):
            typer.echo(_paint(Cell(f"{name:<{width}}  ", "bold")) + _paint(_cell(name, each)))


def _value(value: Any) -> Cell:
    if value is None:
        return Cell("–", "dim")
    return Cell(_harmless(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))


def _harmless(text: str) -> str:
    """Escape control characters, so that a text by a model cannot control the terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _cell(column: str, value: Any) -> Cell:
    if value is None:
        return Cell("–", "dim")
    if column == "status":
        return Cell(str(value), _COLOURS.get(str(value)))
    if (column == "at" or column.endswith("_at")) and isinstance(value, str):
        return Cell(_time(value))
    if isinstance(value, list) and all(isinstance(each, str) for each in cast("list[Any]", value)):
        return Cell(_harmless(", ".join(cast("list[str]", value))))
    if isinstance(value, dict | list):
        return Cell(_harmless(json.dumps(value, ensure_ascii=False)))
    return Cell(_harmless(str(value)))


def _time(text: str) -> str:
    """Return an instant in this machine's time zone, to the second."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone().strftime("%Y-%m-%d %H:%M:%S")
