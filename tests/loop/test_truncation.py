"""A provider that counted far fewer tokens than were sent."""

import pytest

from wakeful.loop.context import is_cut


@pytest.mark.parametrize(
    ("sent", "counted", "expected"),
    [
        pytest.param(40_000, 2_048, True, id="a window of 2,048"),
        pytest.param(40_000, 10_000, False, id="English"),
        pytest.param(40_000, 8_000, False, id="5 characters per token"),
        pytest.param(40_000, 12, False, id="only what its cache did not have"),
        pytest.param(5_000, 900, False, id="short"),
        pytest.param(40_000, 40_000, False, id="Chinese"),
    ],
)
def test_a_count_is_compared_with_the_least_that_the_text_can_have(sent, counted, expected):
    assert is_cut(sent, counted) is expected
