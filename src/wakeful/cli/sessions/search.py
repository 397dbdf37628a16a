"""`wakeful search`: find messages and sessions by their words."""

from typing import Annotated

import typer

from wakeful.cli.client import connect
from wakeful.cli.show import AsJson, OutputZone, PageOption, print_note, show_list


def search(
    words: Annotated[
        list[str],
        typer.Argument(metavar="WORDS", help='Words that must all occur; put a "quoted phrase" in single quotes.'),
    ],
    limit: Annotated[int, typer.Option(help="How many at most.", min=1, max=200)] = 20,
    page: PageOption = None,
    _zone: OutputZone = None,
    as_json: AsJson = False,
) -> None:
    """Search your messages and session titles, the latest first.

    Case, accents and punctuation do not matter. A word of three letters or more is found anywhere in a word, a shorter
    one at its beginning. Results of tools are not searched.
    """
    found = connect().get("search", q=" ".join(words), limit=limit, page=page)
    rows = [{**each, "from": each["role"] or "title", "text": each["snippet"]} for each in found["results"]]
    columns = ("session_id", "created_at", "from", "text")
    show_list(found, rows, columns, empty="Nothing found.", as_json=as_json)
    if not found["index"]["is_complete"]:
        print_note(
            f"The search index is being built: {found['index']['percent']} %. Older messages are not all found yet."
        )
