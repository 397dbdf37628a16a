"""Texts use the term a reader would search for, not a picture of it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

# A phrase to avoid, and what to write instead. Upper and lower case are the same.
PHRASES = {
    r"those who (?:watch|listen|wait|ask|come|look)": "subscribers, clients, callers",
    r"whoever": "anyone who, the caller, the process that",
    r"whom": "name them: the owner, the subscribers ('whom we trust' is the TLS context)",
    r"journeys?": "round trip",
    r"giv(?:es?|en|ing) back": "release, return",
    r"bur(?:y|ies|ied)": "reap (a child process), hide (an error)",
    r"accepted is(?= (?:an?|one|from|ISO))": "`x` must be a whole number, got 5",
    r"(?<!there\s)(?:is|are|was|were) no(?= (?!longer|more|one))": "is not a",
    r"takes? out as": "export as",
    r"a word about it": "a message, a notice",
    r"(?:your|user's|person's|people's|owner's) word": "approval, answer",
    r"without (?:a )?words?": "empty",
    r"(?:said|says?) a word": "wrote something, sent a frame",
    r"(?:is|are|was|were|be|not) told": "gets, reads, sees, is notified; in code: announced, published",
    r"nobody (?:is at|works on|cares? for|cared for)": "no process holds; abandoned",
    r"lets? us down": "fails",
    r"deaf to": "ignores",
    r"anew": "again, from the start",
    r"under way": "in progress, running",
    r"at work": "running, executing",
    r"in good order": "gracefully",
    r"wish(?:es)? to stop|stop wish(?:es)?": "stop request",
    r"(?:is|are) away": "is unavailable",
    r"will do": "is enough",
    r"(?:is|are|was) meant": "means",
    r"puts? (?:it |them |that )?right": "correct",
    r"so many": "n, that number of",
    r"pass(?:es)? by": "skip (locked rows)",
    r"sees? to": "make sure, handle",
    r"who may come in": "who is authorized",
    r"who types": "type … to",
    r"last words": "last frame, last output",
    r"surroundings": "context",
    r"mend(?:s|ed|ing)?": "fix, repair",
    r"l(?:ies|ie) (?:in|beside|there|elsewhere|outside)": "is in",
    r"comes? to (?:its|their) (?:end|work)": "ends, starts",
    r"in (?:our|their) own words": "as text",
}
# The same for code alone: names, and how a docstring or a comment starts.
CODE = {
    r"^\s*(?:\"\"\"|#\s|//\s|/?\*\*?\s)(?:What|Whoever|Who|How)\b(?![^.\n]*\?)": "start with what it is or does",
    r"^\s*\"\"\"Tells?\b": "Return whether …, Return …, Send …",
    r"\bdef _?tells?(?:_\w+)?(?=\()(?!\(self\) -> int)": "to_body, to_result, publish, announce, print_note",
    r"^(?:export )?(?:const )?_?(?:MOST|LARGEST|LONGEST)_[A-Z]\w*(?= *[:=])": "MAX_…",
}


PROSE_PATTERN = re.compile(r"\b(?:" + "|".join(f"({each})" for each in PHRASES) + r")\b", re.IGNORECASE)
CODE_PATTERN = re.compile("|".join(f"({each})" for each in CODE), re.MULTILINE)

# How many odd phrases a room may still have. A number may only go down: when you clean up, lower it to what is left
# (with a number that is too low, the test lists them); at 0 remove the entry. Never raise one for a new text.
ROOMS = {
    "tests": 4,  # assertions about texts of other rooms
}


class Found(NamedTuple):
    place: str
    phrase: str
    plain: str

    def __str__(self) -> str:
        return f"{self.place}: {self.phrase!r}; write instead: {self.plain}"


def odd_phrases(file: Path) -> Iterator[Found]:
    text = file.read_text(encoding="utf-8")
    yield from matches(PROSE_PATTERN, list(PHRASES.values()), text, file)
    if file.suffix != ".md":
        yield from matches(CODE_PATTERN, list(CODE.values()), text, file)


def matches(pattern: re.Pattern[str], plain: list[str], text: str, file: Path) -> Iterator[Found]:
    for match in pattern.finditer(text):
        assert match.lastindex is not None
        phrase = match[0].strip()
        line = text.count("\n", 0, match.end()) + 1
        yield Found(f"{file.relative_to(ROOT)}:{line}", phrase, plain[match.lastindex - 1])


def files_of(room: str) -> list[Path]:
    """Return the texts of a room: what we write, not what is generated or built."""
    place = ROOT / room
    if place.is_file():
        return [place]
    found = [each for each in sorted(place.rglob("*")) if each.suffix in {".md", ".py", ".ts", ".tsx", ".css"}]
    ours = [each for each in found if not {"reference", "static", "out"} & set(each.parts) and each != Path(__file__)]
    return [each for each in ours if ".generated" not in each.name]


def rooms() -> list[str]:
    source = sorted((ROOT / "src/wakeful").iterdir())
    folders = [f"src/wakeful/{each.name}" for each in source if each.is_dir() and each.name != "__pycache__"]
    modules = [f"src/wakeful/{each.name}" for each in source if each.suffix == ".py"]
    return ["README.md", "CONTRIBUTING.md", "docs", *folders, *modules, "web/src", "tests", "bench", "scripts"]


@pytest.mark.parametrize("room", rooms())
def test_texts_use_plain_words(room):
    found = [each for file in files_of(room) for each in odd_phrases(file)]
    allowed = ROOMS.get(room, 0)
    assert len(found) <= allowed, f"{len(found)} odd phrases, {allowed} allowed:\n" + "\n".join(map(str, found))


@pytest.mark.parametrize(
    ("written", "odd"),
    [
        ("Let those who watch know", "those who watch"),
        ("What nobody is at any more is given back", "nobody is at"),
        ("`x` is 5; accepted is a whole number", "accepted is"),
        ("It is no LLM", "is no"),
        ("Whoever waits there", "Whoever"),
        ("There is no tool of that name; it is no longer there", None),
    ],
)
def test_the_list_knows_the_dialect(written, odd):
    found = PROSE_PATTERN.search(written)
    assert (None if found is None else found[0]) == odd
