"""Quote untrusted text, so that it cannot be mistaken for the server's own instructions in a prompt."""

import unicodedata

MAX_LINE = 300  # characters of a quoted line
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")  # control, format, surrogate, private use, line and paragraph breaks


def quote_line(text: str, most: int = MAX_LINE) -> str:
    """Return a text as one line in double quotes: no line breaks, no control characters, no quotes inside."""
    line = " ".join(_visible(text).split())
    line = line if len(line) <= most else line[: most - 1] + "…"
    return '"' + line.replace('"', "'") + '"'


def quote_block(text: str) -> str:
    """Return a text with "> " before every line, for every kind of line break."""
    return "\n".join(f"> {line}" for line in text.splitlines()) or "> "


def _visible(text: str) -> str:
    return "".join(" " if unicodedata.category(each) in _INVISIBLE else each for each in text)
