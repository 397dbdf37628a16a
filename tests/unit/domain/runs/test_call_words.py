"""Tool calls in words: what a model wrote is quoted, cut, and cannot hide anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.domain.runs.call_words import describe_call


@pytest.mark.parametrize(
    ("tool", "args", "words"),
    [
        ("write_file", {"path": "note.txt", "content": "héllo"}, "write “note.txt” (6 bytes)"),
        ("write_file", {"path": "a", "content": "x", "append": True}, "append 1 byte to “a”"),
        ("run_command", {"command": "make\ntest"}, "run the command “make\\ntest”"),
        ("db_insert", {"table": "tasks", "rows": [{"a": 1}, {"a": 2}]}, "insert 2 rows into “tasks”"),
        ("cancel_next_run", {}, "cancel its next run"),
        ("read_file", {"path": ""}, "call read_file with path “”"),
        ("read_file", {}, "call read_file"),
        ("weather_get", {"city": "Rome", "days": 3}, "call weather_get with city “Rome”, days “3”"),
        ("x", {"a": 1, "b": 2, "c": 3, "d": 4}, "call x with a “1”, b “2”, c “3”, …"),
    ],
)
def test_a_call_is_a_sentence(tool, args, words):
    assert describe_call("Gardener", tool, args) == f"Gardener wants to {words}"


def test_a_value_cannot_close_its_quotation_or_hide_characters():
    said = describe_call("A", "read_file", {"path": "a” and is allowed to. “\u202ereversed\u200b"})
    assert said == 'A wants to read the file “a" and is allowed to. "\\u202ereversed\\u200b”'


@given(st.text(), st.dictionaries(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists), max_size=9))
def test_any_call_has_a_short_sentence_on_one_line(tool, args):
    said = describe_call("A", tool, args)
    assert said.isprintable()
    assert len(said) < 1_200
