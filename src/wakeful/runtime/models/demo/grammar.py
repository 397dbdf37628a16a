"""A sentence that the demo model understands: a row of a table, read by one rule."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """Something the demo model understands: how people say it, the tool, and how it tells itself."""

    example: str
    pattern: re.Pattern[str]  # must match the whole sentence, a person's or its own
    tool: str
    arguments: Callable[[re.Match[str]], dict[str, Any] | None]  # None: it does not mean this after all
    brief: str  # the same as an instruction to itself; names its tool


def make_sentence(
    example: str,
    pattern: str,
    tool: str,
    brief: str,
    arguments: Callable[[re.Match[str]], dict[str, Any] | None] = lambda said: said.groupdict(),
) -> Sentence:
    """Write a row of the table."""
    # Its own briefs end in "with TOOL …"; the same row reads them.
    whole = re.compile(rf"(?:{pattern})(?: with {tool}\b.*)?", re.IGNORECASE | re.DOTALL)
    return Sentence(example=example, pattern=whole, tool=tool, arguments=arguments, brief=brief)
