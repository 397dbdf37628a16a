"""Durations as people type them."""

import pytest

from wakeful.cli.arguments import read_seconds, show_seconds
from wakeful.cli.output import Failed


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1h30m", 5_400), ("1 h 30 min", 5_400), ("1.5 hours", 5_400), ("2 weeks", 1_209_600)],
)
def test_a_duration_is_read(text, seconds):
    assert read_seconds(text, "--for") == seconds


@pytest.mark.parametrize("text", ["", "soon", "5 parsecs", "-5m", "1h x", "²h"])
def test_what_is_not_a_duration_is_refused(text):
    with pytest.raises(Failed, match="--for must be a duration such as"):
        read_seconds(text, "--for")


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (59.6, "1 min"), (5_400, "1 h 30 min"), (90_061, "1 d 1 h")])
def test_a_duration_is_shown_in_its_largest_units(seconds, text):
    assert show_seconds(seconds) == text
    assert read_seconds(show_seconds(seconds, units=4), "--for") == round(seconds)
