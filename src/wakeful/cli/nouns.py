"""Nouns of the server, such as webhooks, and the commands that nouns have in common: ls, show, test, on, off, rm.

A feature declares its noun, then each of these commands with what is particular about it: its help, columns and
sentences. A command that has options of its own is a function with `@app.command()`, as everywhere in Typer. Commands
are listed in the order in which they stand in the file.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import typer

from wakeful.cli.arguments import Candidate, Yes, confirm, pick
from wakeful.cli.output import (
    WRONG,
    AsJson,
    OutputZone,
    echo,
    fail,
    harmless,
    print_note,
    show_json,
    show_list,
    show_one,
)
from wakeful.cli.server import Server, connect

Tell = str | Callable[[Server, Any], None]  # a sentence with fields of the response, or a function that prints it


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    """A kind of thing that has ids, and the list in which they are found."""

    name: str
    label: Callable[[Mapping[str, Any]], str] = itemgetter("name")  # shown beside an id
    shown_by: str = ""  # the command that shows the ids
    is_paged: bool = False
    limit: int | None = None  # of a list that is not paged
    is_named: bool = True  # it can also be given by its name

    @property
    def path(self) -> str:
        """The list over REST; its entries are in the field of the same name."""
        return f"{self.name}s"

    @property
    def command(self) -> str:
        return self.shown_by or f"wakeful {self.name} ls"

    @property
    def argument(self) -> Any:
        """The argument of a command that names one of them."""
        ways = "name, id or the beginning of the id" if self.is_named else "id or the beginning of it"
        text = f"A {self.name}, by {ways}; `{self.command}` shows {'them' if self.is_named else 'ids'}."
        return typer.Argument(metavar=self.name.upper(), help=text)


SESSION = Noun(name="session", label=lambda session: session["title"] or "(untitled)", is_paged=True, is_named=False)
RUN = Noun(
    name="run",
    label=lambda run: f"{run['status']}  {run['kind'] or run['trigger']}",
    shown_by="wakeful runs",
    is_paged=True,
    is_named=False,
)
WAKE = Noun(
    name="wake",
    label=lambda wake: f"{wake['status']}  {wake['comment'] or wake['instructions']}",
    shown_by="wakeful wake ls --all",
    is_paged=True,
    is_named=False,
)


class Commands(typer.Typer):
    """A group of commands. Its help is its line in `wakeful --help`, unless it has a callback with a docstring."""

    def __init__(self, *, runs_alone: bool = False) -> None:
        super().__init__(
            invoke_without_command=runs_alone,
            no_args_is_help=not runs_alone,
            add_completion=False,
            rich_markup_mode=None,
        )


class NounCommands(Commands):
    """The commands of a noun. Each method adds one, or two, and takes their help texts."""

    def __init__(self, noun: Noun) -> None:
        super().__init__()
        self.noun = noun

    def ls(
        self,
        text: str,
        columns: Sequence[str],
        *,
        empty: str,
        rows: Callable[[Server, Any], Sequence[Mapping[str, Any]]] | None = None,
    ) -> None:
        """`ls`: list all of them. `rows` returns what is shown in the columns, if that differs from the response."""
        noun = self.noun

        @self.command("ls", help=text)
        def ls(_zone: OutputZone = None, as_json: AsJson = False) -> None:
            server = connect()
            found = server.get(noun.path)
            shown = rows(server, found) if rows else found[noun.path]
            show_list(found, shown, columns, empty=empty, as_json=as_json)

    def show(self, text: str, fields: Callable[[Server, Any], Mapping[str, Any]] | None = None) -> None:
        """`show`: show the fields of one. `fields` returns them, if they differ from the response."""
        noun, argument = self.noun, self.noun.argument

        @self.command("show", help=text)
        def show(wanted: str = argument, _zone: OutputZone = None, as_json: AsJson = False) -> None:
            server = connect()
            found = server.get(noun.path, find_id(server, noun, wanted))
            if as_json:
                show_json(found)
            else:
                show_one(fields(server, found) if fields else found)

    def act(
        self, name: str, text: str, *, tell: Tell, note: str = "", is_good: Callable[[Any], bool] | None = None
    ) -> None:
        """Add a command that posts to the route of its name below one of them; exit 1 if the response is not good."""
        noun, argument = self.noun, self.noun.argument

        @self.command(name, help=text)
        def act(wanted: str = argument, as_json: AsJson = False) -> None:
            server = connect()
            done = server.post(noun.path, find_id(server, noun, wanted), name)
            _tell(server, done, tell, as_json)
            if note and not as_json:
                print_note(note)
            if is_good and not is_good(done):
                raise typer.Exit(1)

    def test(self, text: str, *, outcome: str, reason: str) -> None:
        """`test`: send a test message; exit 0 only if it was sent, by these fields of the response."""

        def tell(_server: Server, did: Mapping[str, Any]) -> None:
            echo(f"{did[outcome]}: {harmless(did[reason])}" if did.get(reason) else did[outcome])

        self.act("test", text, tell=tell, is_good=lambda did: did[outcome] == "sent")

    def switch(self, *, off: str, on: str) -> None:
        """`off` and `on`: set the field `enabled`."""
        noun, argument = self.noun, self.noun.argument

        def set_enabled(wanted: str, is_on: bool, as_json: bool) -> None:
            server = connect()
            changed = server.patch(noun.path, find_id(server, noun, wanted), body={"enabled": is_on})
            _tell(server, changed, "{name} is on." if is_on else "{name} is off.", as_json)

        @self.command("off", help=off)
        def switch_off(wanted: str = argument, as_json: AsJson = False) -> None:
            set_enabled(wanted, False, as_json)

        @self.command("on", help=on)
        def switch_on(wanted: str = argument, as_json: AsJson = False) -> None:
            set_enabled(wanted, True, as_json)

    def rm(
        self,
        text: str,
        *,
        question: str | Callable[[Server, str, str], str],
        tell: Tell = "Deleted.",
    ) -> None:
        """`rm`: delete one, after a question, in which {} is the name as given; a function gets id and name."""
        noun, argument = self.noun, self.noun.argument

        @self.command("rm", help=text)
        def rm(wanted: str = argument, yes: Yes = False, as_json: AsJson = False) -> None:
            server = connect()
            found = find_id(server, noun, wanted)
            name = harmless(wanted)
            confirm(question.format(name) if isinstance(question, str) else question(server, found, name), yes)
            _tell(server, server.delete(noun.path, found), tell, as_json)


def find_id(server: Server, noun: Noun, wanted: str) -> str:
    """Return a whole id, given the id, an unambiguous beginning of it or, for some nouns, a name."""
    wanted = wanted.removeprefix("sch-")  # the scheduler's own spelling of a wake's id
    if _WHOLE.fullmatch(wanted):
        return wanted
    listed = _list(server, noun)
    found = [Candidate(each["id"], noun.label(each), each["name"] if noun.is_named else None) for each in listed]
    return pick(found, wanted, noun.name, noun.command).id


def find_session_id(server: Server, wanted: str | None) -> str | None:
    """Return the whole id of a session; None stays None."""
    return None if wanted is None else find_id(server, SESSION, wanted)


_WHOLE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PAGE = 200
_MAX_PAGES = 25


def _list(server: Server, noun: Noun) -> Sequence[Mapping[str, Any]]:
    if not noun.is_paged:
        return server.get(noun.path, limit=noun.limit)[noun.path]
    found: list[Mapping[str, Any]] = []
    page: str | None = None
    for _ in range(_MAX_PAGES):
        listed = server.get(noun.path, limit=_PAGE, page=page)
        found += listed[noun.path]
        page = listed.get("next")
        if page is None:
            return found
    return fail(
        f"There are more than {_MAX_PAGES * _PAGE:,} {noun.path}, so a part of an id is not looked up. "
        "Give the whole id.",
        WRONG,
    )


def _tell(server: Server, done: Any, tell: Tell, as_json: bool) -> None:
    if as_json:
        show_json(done)
    elif isinstance(tell, str):
        echo(tell.format_map({key: harmless(each) if isinstance(each, str) else each for key, each in done.items()}))
    else:
        tell(server, done)
