"""Breaks lines between words, so that a streamed answer looks the same while it grows and when it is complete."""

import re

from wakeful.cli.tables import width_of

_PIECE = re.compile(r"(?P<code>\x1b\[[0-9;]*m)|(?P<space> +)|(?P<word>[^ \x1b]+)")


def wrap(text: str, columns: int) -> list[str]:
    """Break a line into rows; codes for colours take no room. A word that is too long is broken too."""
    rows, row, used = list[str](), "", 0
    for piece in _PIECE.finditer(text):
        if piece["code"]:
            row += piece[0]
            continue
        width = width_of(piece[0])
        if used + width > columns and piece["space"]:
            rows.append(row)
            row, used = "", 0
            continue
        if row.strip(" ") and used + width > columns:
            rows.append(row.rstrip(" "))
            row, used = "", 0
        for part in _break(piece[0], columns - used):
            if used and used + width_of(part) > columns:
                rows.append(row)
                row, used = "", 0
            row, used = row + part, used + width_of(part)
    return [*rows, row] if row else rows


def _break(word: str, columns: int) -> list[str]:
    """Return a word in parts that fit into a row."""
    if width_of(word) <= columns:
        return [word]
    return list(word)
