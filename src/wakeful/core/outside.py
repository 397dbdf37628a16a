"""Outside sources: what runs have read that their user did not write, and which bookings such runs may change.

A source is the origin of a web page (`https://example.org`), `hook:NAME` or `mcp:SERVER`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from wakeful.core.errors import Forbidden
from wakeful.core.texts import quote_line
from wakeful.core.types import Run, Wake

MAX_SOURCES = 5  # of a run or a wake: the first ones
HOOK = "hook:"
MCP = "mcp:"

Change = Literal["cancel", "skip", "replace"]
Verdict = Literal["allowed", "ask", "refused"]

_WORDS: dict[Change, str] = {"cancel": "cancel", "skip": "skip the next time of", "replace": "replace"}


class NotThisRuns(Forbidden):
    """A headless run that has read outside data may not change this booking."""

    code = "outside_data"

    def __init__(self, change: Change, why: str) -> None:
        super().__init__(
            f"This run may not {_WORDS[change]} that booking: {why}. Nothing was changed. Say in your answer what you "
            "would have changed, so that your user can do it."
        )


class AskPerson(Forbidden):
    """A chat that has read outside data may change this booking if the person approves it."""

    code = "needs_approval"

    def __init__(self, wake: Wake, run: Run, change: Change, when: str) -> None:
        self.wake_id = wake.id
        label = f" {quote_line(wake.comment)}" if wake.comment else ""
        who = "you" if wake.user_id == run.user_id else "another person"  # an owner's agent reaches other sessions
        self.request = (
            f"wants to {_WORDS[change]} the scheduled run{label} that {who} booked for {when}; this chat has read "
            f"{describe_sources(run.outside_sources)}"
        )
        super().__init__("Your user booked this, and has not approved that you change it. Nothing was changed.")


def add_sources(sources: Sequence[str], new: Iterable[str]) -> tuple[str, ...]:
    """Return the sources with new ones after them, each once, and no more than the first few."""
    return tuple(dict.fromkeys((*sources, *new)))[:MAX_SOURCES]


def describe_sources(sources: Iterable[str]) -> str:
    """Return sources in words: https://example.org, the hook "deploy", the MCP server "mail"."""
    return ", ".join(map(_describe, sources))


def hook_of(wake: Wake | None) -> str | None:
    """Return the hook that a wake goes back to: it is the hook's own, or a run of the hook booked it."""
    return None if wake is None else next((each for each in wake.outside_sources if each.startswith(HOOK)), None)


def judge(wake: Wake, *, is_chat: bool, sources: Sequence[str], hook: str | None) -> Verdict:
    """Decide whether a run may change a booking.

    `sources` are those of the run, `hook` is the one that it goes back to. A run of a hook reaches what runs of that
    hook have booked; another one that has read outside data reaches what an agent has booked.
    """
    if hook is not None and not is_chat:
        return "allowed" if wake.scheduled_by == "agent" and hook_of(wake) == hook else "refused"
    if not sources or wake.scheduled_by == "agent":
        return "allowed"
    return "ask" if is_chat else "refused"


def check(wake: Wake, run: Run, hook: str | None, change: Change, when: str, approved: str | None) -> None:
    """Refuse a change of a booking that a run may not make; `approved` is the id of one that a person let it change."""
    verdict = judge(wake, is_chat=not run.is_headless, sources=run.outside_sources, hook=hook)
    if verdict == "ask" and wake.id != approved:
        raise AskPerson(wake, run, change, when)
    if verdict == "refused" and hook is not None:
        raise NotThisRuns(change, f"it goes back to {_describe(hook)} and reaches only what runs of that hook booked")
    if verdict == "refused":
        read = describe_sources(run.outside_sources)
        raise NotThisRuns(change, f"a person booked it, this run has read {read}, and no one is here to ask")


def _describe(source: str) -> str:
    for prefix, words in (HOOK, "the hook"), (MCP, "the MCP server"):
        if source.startswith(prefix):
            return f"{words} {quote_line(source.removeprefix(prefix))}"
    return source


@dataclass(frozen=True, slots=True, kw_only=True)
class ActingRun:
    """A run that changes bookings, and the id of one that a person has let it change."""

    run: Run
    approved: str | None = None
