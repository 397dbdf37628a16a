"""Lines of an answer on a terminal."""

import pytest

from wakeful.cli.chat.prompt import wrap


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", []),
        ("short", ["short"]),
        ("one two three", ["one two", "three"]),
        ("    indented", ["    inde", "nted"]),
        ("abcdefghijkl", ["abcdefgh", "ijkl"]),
        ("日本語日本語", ["日本語日", "本語"]),
        ("\x1b[2mone two\x1b[0m three", ["\x1b[2mone two\x1b[0m", "three"]),
    ],
)
def test_a_line_is_broken_between_words_where_it_can_be(text, rows):
    assert wrap(text, 8) == rows


def test_a_line_that_grows_keeps_the_rows_that_are_full():
    text = "It was the best of times, it was the worst of times."
    for length in range(1, len(text)):
        before, after = wrap(text[:length], 12), wrap(text[: length + 1], 12)
        assert [row.rstrip() for row in before[:-1]] == [row.rstrip() for row in after[: len(before) - 1]]
