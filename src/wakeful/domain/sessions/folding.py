"""Folding of texts for search, and the terms under which the stores index them.

A folded text has no case, no accents, and a space for everything that is not part of a word. Its terms are made here,
not by the databases, so that both find the same texts in every language: each word's parts of three characters, and one
or two characters wherever a short word may begin.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
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
