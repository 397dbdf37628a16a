"""Asking before something that cannot be undone."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from wakeful.cli.output import WRONG, fail, printable
from wakeful.cli.server import Candidate, Server, pick

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def confirm(question: str, yes: bool, option: str = "--yes") -> None:
    """Ask on the terminal; end the command unless the answer is yes. Without a terminal, only the option answers."""
    if yes:
        return
    if not sys.stdin.isatty():
        fail(f"{question}\nThere is no terminal to ask on. Give {option} if you are sure; nothing was changed.", WRONG)
    if not typer.confirm(printable(question), err=True):
        fail("Nothing was changed.")


# Reading durations such as `2h`, `1h30m` or `3 days`, and printing them.


_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_TERM = re.compile(
    r"(\d+(?:\.\d+)?)\s*(w|wks?|weeks?|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)(?![a-z])[\s,]*",
    re.ASCII,
)
EXAMPLES = "90s, 30m, 2h, 1h30m or 3 days"


def read_seconds(text: str, option: str, also: str = "") -> int:
    """Return a duration in whole seconds; a bare number counts seconds. Ends the command if it is not one."""
    words = text.strip().lower()
    if words.isdecimal() and words.isascii():
        return int(words)
    terms = list(_TERM.finditer(words))
    if not terms or "".join(term[0] for term in terms) != words:
        fail(f"{option} must be a duration such as {EXAMPLES}{also}, got {text!r}.", WRONG)
    return round(sum(float(term[1]) * _SECONDS[term[2][0]] for term in terms))


def show_seconds(seconds: float, units: int = 2) -> str:
    """Return a duration in its largest units, such as `1 h 30 min` or `12 s`."""
    left, parts = round(seconds), list[str]()
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:units]) or "0 s"


# Finding things by their id, the beginning of their id, or their name.


_WHOLE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PAGE = 200
_MAX_PAGES = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    """A kind of thing that has ids, and the list in which they are found."""

    name: str
    path: str  # of the list over REST; its entries are in the field of the same name
    command: str  # that shows the ids
    label: Callable[[Mapping[str, Any]], str]  # shown beside an id
    is_paged: bool = True
    is_named: bool = False  # it can also be given by its name


WAKE = Noun(
    name="wake",
    path="wakes",
    command="wakeful wake ls --all",
    label=lambda wake: f"{wake['status']}  {wake['comment'] or wake['instructions']}",
)
SESSION = Noun(
    name="session",
    path="sessions",
    command="wakeful session ls",
    label=lambda session: session["title"] or "(untitled)",
)
RUN = Noun(
    name="run",
    path="runs",
    command="wakeful runs",
    label=lambda run: f"{run['status']}  {run['kind'] or run['trigger']}",
)
NOTIFICATION = Noun(
    name="notification",
    path="notifications",
    command="wakeful inbox ls",
    label=lambda notice: notice["title"],
    is_paged=False,
)
USER = Noun(
    name="user",
    path="users",
    command="wakeful user ls",
    label=lambda user: user["name"],
    is_paged=False,
    is_named=True,
)
TOKEN = Noun(
    name="token",
    path="tokens",
    command="wakeful token ls",
    label=lambda token: token["name"],
    is_paged=False,
    is_named=True,
)
CHANNEL = Noun(
    name="channel",
    path="channels",
    command="wakeful channel ls",
    label=lambda channel: channel["name"],
    is_paged=False,
    is_named=True,
)
HOOK = Noun(
    name="hook",
    path="hooks",
    command="wakeful hook ls",
    label=lambda hook: hook["name"],
    is_paged=False,
    is_named=True,
)
WEBHOOK = Noun(
    name="webhook",
    path="webhooks",
    command="wakeful webhook ls",
    label=lambda webhook: webhook["name"],
    is_paged=False,
    is_named=True,
)


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


def _list(server: Server, noun: Noun) -> Sequence[Mapping[str, Any]]:
    if not noun.is_paged:
        asked = {"limit": _PAGE} if noun is NOTIFICATION else {}
        return server.get(noun.path, **asked)[noun.path]
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
