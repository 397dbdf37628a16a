from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.models.openai_wire import DataLines, LineTooLong

STREAM = (
    ': OPENROUTER PROCESSING\r\n\r\ndata: {"a": "héllo 🌙"}\r\n\r\nevent: message\ndata:{"b":1}\n\n'
    "retry: 10\ndata:  spaced  \n\nid: 7\n\ndata: [DONE]\n\n"
).encode()
PAYLOADS = ['{"a": "héllo 🌙"}'.encode(), b'{"b":1}', b"spaced", b"[DONE]"]


@given(st.sets(st.integers(min_value=0, max_value=len(STREAM))))
def test_data_lines_are_the_same_wherever_the_bytes_are_cut(cuts):
    lines = DataLines()
    places = sorted({0, *cuts, len(STREAM)})
    found = [payload for begin, end in pairwise(places) for payload in lines.feed(STREAM[begin:end])]
    assert found == PAYLOADS
    assert lines.finish() == []


def test_a_last_line_without_a_line_break_is_not_lost():
    lines = DataLines()
    assert lines.feed(b"data: one\ndata: tw") == [b"one"]
    assert lines.feed(b"o") == []
    assert lines.finish() == [b"two"]


def test_a_line_that_never_ends_is_refused():
    lines = DataLines(longest=10)
    assert lines.feed(b"data: 1234") == []
    with pytest.raises(LineTooLong):
        lines.feed(b"5")
