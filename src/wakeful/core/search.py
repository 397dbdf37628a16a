"""Search in messages: folded texts and their terms, queries, and snippets without markup.

A folded text has no case, no accents, and a space for everything that is not part of a word. Its terms are made here,
not by the databases, so that both find the same texts in every language: each word's parts of three characters, and
one or two characters wherever a short word may begin.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

# Characters of one text that are searched. Terms of more would take over 0.1 s in the transaction that saves it, and
# PostgreSQL takes no more than 1 MB of them.
MAX_SEARCHED = 32_000
GRAM = 3

# Scripts that write words without spaces between them, and Korean, which joins words.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x9FFF),  # Chinese, Japanese
    (0xA980, 0xA9FF),  # Javanese, Burmese
    (0xAC00, 0xD7FF),  # Korean
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
# Marks that people leave out when they type: accents, Hebrew and Arabic vowels, variants of emoji. The marks of other
# scripts are letters to their readers.
_ACCENTS = (
    (0x0300, 0x036F),
    (0x0591, 0x05BD),
    (0x05BF, 0x05BF),
    (0x05C1, 0x05C2),
    (0x05C4, 0x05C5),
    (0x05C7, 0x05C7),
    (0x064B, 0x065F),
    (0x0670, 0x0670),
    (0xFE00, 0xFE0F),
)


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text, and the place in the original that each of its characters comes from."""

    text: str
    places: Sequence[tuple[int, int]] | None  # None: each comes from the character at its own place

    def range_of(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the original that became a part of the folded text."""
        if self.places is None:
            return start, end
        return self.places[start][0], self.places[end - 1][1]


def fold(text: str) -> Folded:
    """Fold the searched part of a text."""
    text = text[:MAX_SEARCHED]
    if text.isascii():
        return Folded(text.lower().translate(_SPACES), None)
    folded: list[str] = []
    places: list[tuple[int, int]] = []
    starts = [place for place, each in enumerate(text) if not place or not _continues(each)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = _fold_one(text[start:end])
        folded.append(part)
        places += [(start, end)] * len(part)
    return Folded("".join(folded)[:MAX_SEARCHED], places)


def terms_of(text: str) -> set[str]:
    """Return the terms under which a text is found."""
    terms: set[str] = set()
    for word in set(fold(text).text.split()):
        terms.update(word[place : place + GRAM] for place in range(len(word) - GRAM + 1))
        for place in range(len(word)):
            if begins_word(word, place):
                terms.update((word[place], word[place : place + 2]))
    return terms


def begins_word(folded: str, place: int) -> bool:
    """Return whether a word may begin there; between characters of a script without spaces, everywhere."""
    if not place or folded[place - 1] == " ":
        return True
    return _is_unspaced(folded[place]) or _is_unspaced(folded[place - 1])


class _SpaceTable(dict[int, int]):
    """Every ASCII character but letters and digits becomes a space."""

    def __missing__(self, code: int) -> int:
        self[code] = code if chr(code).isalnum() else 0x20
        return self[code]


_SPACES = _SpaceTable()


@lru_cache(maxsize=8_192)
def _continues(char: str) -> bool:
    """Return whether a character belongs to the one before: a mark, or a part of a Korean syllable."""
    first = unicodedata.normalize("NFKD", char)[0]
    return unicodedata.combining(first) != 0 or _is_in(first, _ACCENTS) or "\u1160" <= char <= "\u11ff"


@lru_cache(maxsize=8_192)
def _fold_one(char: str) -> str:
    """Fold one character with its marks: to several, one or none."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    kept = "".join(each for each in plain if not _is_in(each, _ACCENTS))
    return "".join(each if _is_in_word(each) else " " for each in unicodedata.normalize("NFC", kept))


def _is_in_word(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] in "LMN" or category == "So"  # emoji can be searched for


@lru_cache(maxsize=8_192)
def _is_unspaced(char: str) -> bool:
    return _is_in(char, _UNSPACED) or unicodedata.category(char) == "So"


def _is_in(char: str, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= ord(char) <= last for first, last in ranges)


# Markdown, whose markup a snippet is shown without.


HIDDEN = "\ufdd0"  # stands for a character of markup, so that all others keep their places; no text has it

_FENCE = re.compile(r"[ \t]*(```|~~~)")
_RULE = re.compile(r"[ \t]*(?:[-*_][ \t]*){3,}$|[ \t]*\|?[ \t]*:?-{2,}[-:| \t]*$")  # also the line under a table's head
_LINE_START = re.compile(r"[ \t]*(?:(?:#{1,6}|>|[-*+](?:[ \t]\[[ xX]\])?)[ \t]+)+|[ \t]*>")
# Each hides its groups and leaves the rest. A later one does not see what an earlier one has hidden or set aside.
_INLINE = tuple(
    map(
        re.compile,
        (
            r"(\\)[!-/:-@\[-`{-~]",
            r"(!?\[)[^\[\]]*(\]\([^()\s]*(?:\([^()\s]*\))?[^()\s]*(?:\s\"[^\"]*\")?\))",
            r"(<)[a-z][a-z0-9+.-]*:[^\s<>]*(>)",
            r"(\*\*|__|~~)(?=\S).+?(?<=\S)(\1)",
            r"(?<!\w)(_)(?=\S).+?(?<=\S)(_)(?!\w)",
            r"(\*)(?=\S).+?(?<=\S)(\*)",
        ),
    )
)
_CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)(\1)(?!`)")
_SET_ASIDE = "\ufdd1"  # in place of markup that was found, of code and of escaped characters
_BEFORE = 500  # characters that are read before a place, for markup that begins there

Range = tuple[int, int]


def hide_markup(text: str, begin: int, end: int, found: Sequence[Range]) -> str:
    """Return a text whose markup between two places is hidden; bars of a table become blanks.

    Markup that has something that was found in it, such as the address of a link, stays.
    """
    first, last = max(0, begin - _BEFORE), min(end, len(text))
    starts = [start - first for start, _ in found]
    part = text[first:last]
    for start, stop in _outside_of_code(text, first, last):
        start, stop = max(start, first) - first, min(stop, last) - first
        line = part[start:stop]
        if line.lstrip().startswith("|"):
            part = part[:start] + line.replace("|", " ") + part[stop:]
        for marks in _marks_of(line):
            places = [(start + here, start + there) for here, there in marks]
            if not any(here <= each < there for here, there in places for each in starts):
                part = _put(HIDDEN, part, places)
    return text[:first] + part + text[last:]


def _outside_of_code(text: str, begin: int, end: int) -> Iterator[Range]:
    """Return the lines that reach into a part of a text, with the fences of code blocks, but not their content."""
    fence, start = "", 0
    while start < min(end, len(text)):
        stop = text.find("\n", start)
        stop = len(text) if stop < 0 else stop
        mark = _FENCE.match(text, start, stop)
        if stop > begin and (mark or not fence):
            yield start, stop
        if mark and (not fence or fence == mark[1]):
            fence = "" if fence else mark[1]
        start = stop + 1


def _marks_of(line: str) -> Iterator[list[Range]]:
    """Return the places of markup in a line; those that belong together, such as both ends of a link, as one."""
    if _FENCE.match(line) or _RULE.match(line):
        yield [(0, len(line))]
        return
    if head := _LINE_START.match(line):
        yield [head.span()]
        line = _put(_SET_ASIDE, line, [head.span()])
    for code in _CODE.finditer(line):
        yield [code.span(1), code.span(3)]
    line = _CODE.sub(lambda code: _SET_ASIDE * len(code[0]), line)
    for pattern in _INLINE:
        for mark in pattern.finditer(line):
            marks = [mark.span(group) for group in range(1, pattern.groups + 1)]
            yield marks
            line = _put(_SET_ASIDE, line, marks if len(marks) > 1 else [mark.span()])


def _put(char: str, text: str, places: Sequence[Range]) -> str:
    """Return a text with a character in place of each one between these places."""
    for first, last in places:
        text = text[:first] + char * (last - first) + text[last:]
    return text


# Queries: which texts they match, and where.


MAX_QUERY = 500  # characters
SEARCHED_ROLES = frozenset({"user", "assistant"})  # of messages; results of tools are not searched

_TERM = re.compile(r'"([^"]*)"?|([^\s"]+)')
_QUOTES = str.maketrans("“”„«»", '"' * 5)
_MAX_TERMS = 64  # that the store looks up; the texts it finds are compared with the whole query
_MAX_MATCHES = 20  # of one part of a query, in one text
_SHOWN_BEFORE = 40  # characters of a snippet before the first match
_LENGTH = 200  # characters of a snippet
_MAX_LOOKED_AT = 2_000  # characters for a snippet; addresses of links are not shown
_JOINERS = "\u200c\u200d"  # invisible, but parts of Persian words and of emoji


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
    begin = first - _SHOWN_BEFORE
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
