"""The text that a run was given, and its answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from wakeful.domain.types import Message, Wake


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTexts:
    """Both are empty if there is none: the session was deleted, or the run has not answered."""

    brief: str
    answer: str


def texts_of(messages: Sequence[Message], wake: Wake | None) -> RunTexts:
    """Read both from the messages of a run; one that has not begun is given the instructions of its wake."""
    asked = [each.content for each in messages if each.role == "user" and each.source != "preloaded"]
    replies = [each.content for each in messages if each.role == "assistant" and each.source != "preloaded"]
    brief = asked[0] if asked else "" if wake is None else wake.instructions
    return RunTexts(brief=brief, answer=next((each for each in reversed(replies) if each.strip()), ""))
