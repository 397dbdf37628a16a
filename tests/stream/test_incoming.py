"""Validation of incoming frames."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.errors import Invalid
from wakeful.core.records import Image
from wakeful.core.types import MAX_IMAGE_BYTES
from wakeful.sessions.messages import MAX_CONTENT, BadFrame, BadImage, read_message

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


def encoded(content):
    return base64.b64encode(content).decode()


def test_a_plain_message_is_its_text():
    incoming = read_message({"type": "message", "content": " Hello\n"})
    assert (incoming.content, incoming.images, incoming.paths) == (" Hello\n", (), ())


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0" + bytes(20), "image/jpeg"),
        (b"GIF87a" + bytes(20), "image/gif"),
        (b"GIF89a" + bytes(20), "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    ],
)
def test_a_picture_is_known_by_its_bytes_whatever_it_is_said_to_be(content, media_type):
    said = f"data:text/html;base64,{encoded(content)}"
    assert read_message({"content": "Look", "images": [said]}).images == (Image(media_type, content),)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        b"<svg/>",
        b"%PDF-1.7",
        b"RIFF\x00\x00\x00\x00WAVE",
        b"\x89PN",
        b"BM" + bytes(40),
        b"<!doctype html>" + PNG,
    ],
)
def test_what_is_no_picture_is_refused(content):
    with pytest.raises(BadImage, match="Image 1"):
        read_message({"content": "Look", "images": [encoded(content)]})


@pytest.mark.parametrize("prefix", ["data:image/png;base64,", "data:;base64,", "data:image/png;charset=x;base64,", ""])
def test_the_prefix_of_a_data_uri_is_left_out(prefix):
    [image] = read_message({"content": "Look", "images": [prefix + encoded(PNG)]}).images
    assert image.content == PNG


@pytest.mark.parametrize("prefix", ["data:image/png,", "http://x/", "DATA:", "data:" + "x" * 300 + ";base64,"])
def test_other_prefixes_are_no_base64(prefix):
    with pytest.raises(BadImage, match="not base64"):
        read_message({"content": "Look", "images": [prefix + encoded(PNG)]})


def test_the_limit_of_a_picture_is_exact():
    fits, too_large = PNG.ljust(MAX_IMAGE_BYTES, b"\0"), PNG.ljust(MAX_IMAGE_BYTES + 1, b"\0")
    assert len(read_message({"content": "Look", "images": [encoded(fits)]}).images) == 1
    with pytest.raises(BadImage):
        read_message({"content": "Look", "images": [encoded(too_large)]})


def test_the_number_of_the_bad_picture_is_named():
    with pytest.raises(BadImage, match="Image 3"):
        read_message({"content": "Look", "images": [encoded(PNG), encoded(PNG), "~"]})


def test_the_limit_of_a_text_is_exact():
    assert read_message({"content": "x" * MAX_CONTENT}).content
    with pytest.raises(BadFrame, match="Upload"):
        read_message({"content": "x" * (MAX_CONTENT + 1)})


def test_files_are_told_by_their_paths():
    files = [{"name": "a", "path": "/w/a"}, {"path": "/w/b"}]
    assert read_message({"content": "Read", "files": files}).paths == ("/w/a", "/w/b")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(content=JSON | st.just("Hello"), images=JSON, files=JSON)
def test_whatever_comes_is_taken_or_refused_and_nothing_breaks(content, images, files):
    problem = incoming = None
    try:
        incoming = read_message({"content": content, "images": images, "files": files})
    except Invalid as error:
        problem = error
    if incoming is not None:
        assert incoming.content.strip()
    else:
        assert problem.field in ("content", "images", "files")
