import json

import pytest

from wakeful.http import limits
from wakeful.http.limits import MAX_DEPTH, MAX_FIELDS, MAX_VALUES, UnfitJson, check_shape, parse


def deep(levels, inside=b""):
    return b"[" * levels + inside + b"]" * levels


def test_depth_and_values_are_counted_exactly():
    check_shape(deep(MAX_DEPTH))
    check_shape(b"[" + b"0," * (MAX_VALUES - 1) + b"0]")
    for body in (deep(MAX_DEPTH + 1), b"[" + b"0," * MAX_VALUES + b"0]"):
        with pytest.raises(UnfitJson):
            check_shape(body)


@pytest.mark.parametrize(
    "text",
    [
        "[{" * 500,
        '\\" [[[' * 500,
        "\\",
        "[" * 70_000 + "\\",
        "," * 200_000,
        '",[' * 100_000,
        "ä[\u2028" * 50_000,
    ],
)
def test_what_stands_in_a_string_does_not_count(text):
    assert parse(json.dumps([text, [text]]).encode()) == [text, [text]]
    assert parse(json.dumps({text: text}, ensure_ascii=False).encode()) == {text: text}


@pytest.mark.parametrize("window", [7, 64, 1_000])
def test_it_does_not_matter_where_a_window_ends(monkeypatch, window):
    monkeypatch.setattr(limits, "WINDOW", window)
    strings = ["x" * n + '"\\[{,' * (n % 5) for n in range(40)] * 3
    body = json.dumps([strings, {"a": [strings]}]).encode()
    assert parse(body) == [strings, {"a": [strings]}]
    with pytest.raises(UnfitJson):
        parse(b"[" + body + b"," + deep(MAX_DEPTH) + b"]")


@pytest.mark.parametrize("body", [b'"', b'["\\', b"]" * 500, b"[" + b'"' * 301, b"[" * 90 + b'"' + b"[" * 500])
def test_text_that_is_no_json_is_left_to_the_parser(body):
    with pytest.raises(json.JSONDecodeError):
        parse(body)


def test_utf_16_is_refused_for_nobody_counts_its_values():
    with pytest.raises(ValueError):  # noqa: PT011
        parse("[1]".encode("utf-16"))


def test_an_object_has_so_many_fields():
    assert len(parse(json.dumps(dict.fromkeys(map(str, range(MAX_FIELDS)))).encode())) == MAX_FIELDS
    with pytest.raises(UnfitJson, match="1,001 fields"):
        parse(json.dumps(dict.fromkeys(map(str, range(MAX_FIELDS + 1)))).encode())
