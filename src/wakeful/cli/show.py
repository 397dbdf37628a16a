"""How commands show what they got: tables on a terminal, JSON for programs."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
PageOption = Annotated[str | None, typer.Option(help="Where to go on, as the list before said.")]

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


def show_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def show_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, empty: str) -> None:
    """Print rows as a table; without any, say what there is to do."""
    if not rows:
        typer.echo(empty)
        return
    headers = [Text(column.replace("_", " ")) for column in columns]
    _print_table(headers, [[_cell(column, row.get(column)) for column in columns] for row in rows])


def show_found(found: Mapping[str, Any]) -> None:
    """Print rows of an agent's database just as they are, but on a line each."""
    _print_table([Text(_harmless(name)) for name in found["columns"]], [[*map(_value, row)] for row in found["rows"]])
    if found["truncated"]:
        typer.echo("There is more than is shown here.")


def _print_table(headers: Sequence[Text], rows: Sequence[Sequence[Text]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console()
    # An id that is cut off is of no use, so a narrow terminal wraps whole lines instead of squeezing columns.
    needed = Console(width=10_000).measure(table).maximum
    (console if needed <= console.width else Console(width=needed)).print(table, crop=False)


def in_words(code: str | None) -> str | None:
    """Write a code of the server as people read it: did_nothing is 'did nothing'."""
    return code and code.replace("_", " ")


def show_more(found: Mapping[str, Any]) -> None:
    """Say that a list goes on, and how."""
    if found.get("next"):
        tell(f"There are more: --page {found['next']}")


def tell(words: str) -> None:
    """Say something besides what was asked for."""
    typer.secho(words, fg=typer.colors.YELLOW, err=True)


def show_one(value: Mapping[str, Any]) -> None:
    """Print what is known of one thing, a line each."""
    width = max(map(len, value), default=0)
    console = Console(soft_wrap=True, highlight=False)
    for name, each in value.items():
        if each not in (None, "", [], {}):
            console.print(Text(f"{name:<{width}}  ", style="bold"), _cell(name, each), sep="", end="\n")


def _value(value: Any) -> Text:
    if value is None:
        return Text("–", style="dim")
    return Text(_harmless(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))


def _harmless(text: str) -> str:
    """Write out what would do something to a terminal instead of being shown: a model may have written it."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _cell(column: str, value: Any) -> Text:
    if value is None:
        return Text("–", style="dim")
    if column == "status":
        return Text(str(value), style=_COLOURS.get(str(value), ""))
    if (column == "at" or column.endswith("_at")) and isinstance(value, str):
        return Text(_time(value))
    if isinstance(value, list) and all(isinstance(each, str) for each in cast("list[Any]", value)):
        return Text(", ".join(cast("list[str]", value)))
    if isinstance(value, dict | list):
        return Text(_harmless(json.dumps(value, ensure_ascii=False)))
    return Text(str(value))


def _time(text: str) -> str:
    """Write an instant in this machine's zone, to the second."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone().strftime("%Y-%m-%d %H:%M:%S")
