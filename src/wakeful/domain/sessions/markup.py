"""The markup of a Markdown text, which a part of the text is shown without."""

import re
from collections.abc import Iterator, Sequence

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
