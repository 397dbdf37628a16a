"""Queries of the search in messages: which texts they match, and where."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from wakeful.domain.sessions.folding import GRAM, begins_word, fold
from wakeful.domain.sessions.markup import HIDDEN, hide_markup

MAX_QUERY = 500  # characters
SEARCHED_ROLES = frozenset({"user", "assistant"})  # of messages; results of tools are not searched

_TERM = re.compile(r'"([^"]*)"?|([^\s"]+)')
_QUOTES = str.maketrans("“”„«»", '"' * 5)
_MAX_TERMS = 64  # that the store looks up; the texts it finds are compared with the whole query
_MAX_MATCHES = 20  # of one part of a query, in one text
_BEFORE = 40  # characters of a snippet before the first match
_LENGTH = 200  # characters of a snippet
_MAX_LOOKED_AT = 2_000  # characters for a snippet; addresses of links are not shown
_JOINERS = "\u200c\u200d"  # invisible, but parts of Persian words and of emoji

Range = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A part of a text on one line, and the ranges of its characters that match."""

    text: str
    matches: Sequence[Range]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A message that matches, or a session by its title."""

    number: int  # its place in the index: later texts have higher ones
    session_id: str
    session_title: str
    agent_id: str
    message_id: str | None  # None: the title matches
    run_id: str | None
    role: str | None
    created_at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProgress:
    """Progress of indexing what was written before an upgrade."""

    is_complete: bool
    percent: int


@dataclass(frozen=True, slots=True)
class Query:
    """Words and quoted phrases; a text matches if it contains them all.

    Case, accents and punctuation do not matter. A word of three letters or more is found anywhere in a word, a shorter
    one at the beginning of one.
    """

    phrases: tuple[tuple[str, ...], ...]  # folded words

    @property
    def terms(self) -> list[str]:
        """Return terms that every matching text has in the index; none if nothing can match."""
        words = dict.fromkeys(word for phrase in self.phrases for word in phrase)
        return list(dict.fromkeys(term for word in words for term in _terms_of(word)))[:_MAX_TERMS]

    def find(self, text: str) -> list[Range] | None:
        """Return the ranges of a text that match, in order and without overlaps; None if it does not match."""
        folded = fold(text)
        ranges: list[Range] = []
        for phrase in self.phrases:
            found = list(_places_of(phrase, folded.text))
            if not found:
                return None
            ranges += [folded.range_of(*each) for each in found]
        return _merged(ranges)


def parse_query(text: str) -> Query:
    """Read words and quoted phrases; a quote that is not closed reaches to the end."""
    phrases = (tuple(fold(each[1] or each[2] or "").text.split()) for each in _TERM.finditer(text.translate(_QUOTES)))
    return Query(tuple(dict.fromkeys(phrase for phrase in phrases if phrase)))


def make_snippet(text: str, ranges: Sequence[Range], *, is_markdown: bool = False) -> Snippet:
    """Cut out the part of a text around its first match, on one line and without control characters and markup."""
    begin = _begin_of(text, ranges[0][0] if ranges else 0)
    if is_markdown:
        text = hide_markup(text, begin, begin + _MAX_LOOKED_AT, ranges)
    shown = "…" if begin else ""
    places: dict[int, int] = {}  # of the characters that are shown, by their place in the text
    end = begin
    while end < len(text) and len(shown) < _LENGTH:
        places[end] = len(shown)
        char = text[end] if text[end].isprintable() or text[end] in (*_JOINERS, HIDDEN) else " "
        if char != HIDDEN and (char != " " or shown[-1:] not in ("", " ")):
            shown += char
        end += 1
    places[end] = len(shown)
    matches = [(places[start], places[min(stop, end)]) for start, stop in ranges if begin <= start < end]
    return Snippet(text=shown + ("…" if end < len(text) else ""), matches=matches)


def _begin_of(text: str, first: int) -> int:
    """Return where a snippet begins: a little before the first match, at a word if there is one."""
    begin = first - _BEFORE
    if begin <= 0:
        return 0
    blank = re.search(r"\s\S", text[begin:first])
    return begin + blank.start() + 1 if blank else begin


def _terms_of(word: str) -> list[str]:
    if len(word) < GRAM:
        return [word]
    return [word[place : place + GRAM] for place in range(len(word) - GRAM + 1)]


def _places_of(phrase: tuple[str, ...], folded: str) -> Iterator[Range]:
    """Find the first places of words that follow each other."""
    pattern = re.compile(" +".join(map(re.escape, phrase)))
    place = count = 0
    while count < _MAX_MATCHES and (found := pattern.search(folded, place)):
        is_match = len(phrase[0]) >= GRAM or begins_word(folded, found.start())
        if is_match:
            yield found.span()
            count += 1
        place = found.end() if is_match else found.start() + 1


def _merged(ranges: list[Range]) -> list[Range]:
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
