"""Bad frames of clients: a clear error, the connection stays open where possible, nothing is lost."""

import asyncio
import base64
import contextlib
import json
import logging

import pytest
from websockets.exceptions import ConnectionClosed

from live_server import ENDS, Tap
from openai_server import say

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
MEGABYTE = 1024 * 1024


@pytest.fixture
async def server(sqlite_server):
    async with sqlite_server.as_new_owner() as server:
        yield server


def message(**fields):
    return {"type": "message", "content": "Hello"} | fields


def image_of(content):
    return base64.b64encode(content).decode()


BAD = [
    pytest.param({"type": "ping"}, "bad_frame", "type", id="unknown type"),
    pytest.param({"type": "stop"}, "bad_frame", "type", id="stop is not sent here"),
    pytest.param({"content": "Hello"}, "bad_frame", "type", id="no type"),
    pytest.param({"type": None, "content": "Hello"}, "bad_frame", "type", id="type null"),
    pytest.param({"type": ["message"], "content": "Hello"}, "bad_frame", "type", id="type is a list"),
    pytest.param({"type": "x" * 100_000}, "bad_frame", "type", id="long type"),
    pytest.param("{", "bad_frame", None, id="half JSON"),
    pytest.param("hello", "bad_frame", None, id="plain text"),
    pytest.param("", "bad_frame", None, id="nothing"),
    pytest.param("[" * 100_000, "bad_frame", None, id="deep JSON"),
    pytest.param('{"type": "message", "content": "\\ud800"}', "bad_frame", "content", id="half a character"),
    pytest.param('{"type": "message", "content": NaN}', "bad_frame", None, id="NaN"),
    pytest.param(b"\x00\x01\x02", "bad_frame", None, id="binary"),
    pytest.param(b'{"type": "message", "content": "Hello"}', "bad_frame", None, id="JSON as binary"),
    pytest.param([message()], "bad_frame", None, id="a list"),
    pytest.param(42, "bad_frame", None, id="a number"),
    pytest.param(None, "bad_frame", None, id="null"),
    pytest.param("true", "bad_frame", None, id="true"),
    pytest.param(message(content=""), "bad_frame", "content", id="empty content"),
    pytest.param(message(content=" \n\t "), "bad_frame", "content", id="blank content"),
    pytest.param(message(content=None), "bad_frame", "content", id="content null"),
    pytest.param(message(content=["Hello"]), "bad_frame", "content", id="content is a list"),
    pytest.param({"type": "message"}, "bad_frame", "content", id="no content"),
    pytest.param(message(content="a\x00b"), "bad_frame", "content", id="NUL in content"),
    pytest.param(message(content="x" * 1_000_001), "bad_frame", "content", id="long content"),
    pytest.param(message(images=[PNG] * 11), "bad_frame", "images", id="11 images"),
    pytest.param(message(images=PNG), "bad_frame", "images", id="images is text"),
    pytest.param(message(images={"0": PNG}), "bad_frame", "images", id="images is an object"),
    pytest.param(message(images=[PNG, 1]), "bad_image", "images", id="an image is a number"),
    pytest.param(message(images=["~~~"]), "bad_image", "images", id="an image is not base64"),
    pytest.param(message(images=[""]), "bad_image", "images", id="an empty image"),
    pytest.param(
        message(images=[image_of(b"\x89PNG\r\n\x1a\n" + bytes(6 * MEGABYTE))]), "bad_image", "images", id="6 MB"
    ),
    pytest.param(
        message(images=[image_of(b"\x89PNG\r\n\x1a\n" + bytes(5 * MEGABYTE))]), "bad_image", "images", id="5 MB and 8"
    ),
    pytest.param(message(images=[image_of(b"just some text")]), "bad_image", "images", id="text posing as an image"),
    pytest.param(
        message(images=["data:image/png;base64," + image_of(b"<svg onload=alert(1)>")]), "bad_image", "images", id="svg"
    ),
    pytest.param(message(files="a.txt"), "bad_frame", "files", id="files is text"),
    pytest.param(message(files=["a.txt"]), "bad_frame", "files", id="a file is text"),
    pytest.param(message(files=[{"name": "a.txt"}]), "bad_frame", "files", id="a file without a path"),
    pytest.param(message(files=[{"path": "/x"}] * 101), "bad_frame", "files", id="101 files"),
    pytest.param(
        message(files=[{"name": "p", "path": "/etc/passwd"}]), "foreign_file", "files", id="a path of the machine"
    ),
    pytest.param(message(files=[{"name": "p", "path": "../x"}]), "foreign_file", "files", id="a path upwards"),
    pytest.param(message(files=[{"name": "p", "path": "a\x00b"}]), "bad_frame", "files", id="NUL in a path"),
]


@pytest.mark.parametrize(("frame", "code", "field"), BAD)
async def test_a_bad_frame_is_answered_and_the_connection_kept(server, session, client, frame, code, field):
    await client.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))
    error = await client.expect("error")
    assert error.pop("message")
    assert error == {"type": "error", "code": code} | ({} if field is None else {"field": field})
    assert await server.messages(session) == []
    server.provider.then(say("All is well."))
    assert (await client.ask("Still there?"))[-1]["content"] == "All is well."


@pytest.mark.parametrize(
    "frame",
    [
        message(files=[{"name": "p", "path": "x" * MEGABYTE}]),
        {"type": "y" * MEGABYTE},
        message(images=["z" * MEGABYTE]),
        "w" * MEGABYTE,
    ],
    ids=["path", "type", "image", "no JSON"],
)
async def test_an_error_does_not_repeat_a_megabyte(client, frame):
    await client.send(frame)
    assert len((await client.expect("error"))["message"]) < 1_000


async def test_ten_images_are_taken_with_and_without_the_prefix(server, session, client):
    server.provider.then(say("Ten."))
    images = [PNG] * 5 + [f"data:image/png;base64,{PNG}"] * 5
    assert (await client.ask("Look", images=images))[-1]["type"] == "stream_end"
    assert len((await server.messages(session))[0]["images"]) == 10


async def test_ten_images_of_five_megabytes_fit_into_one_frame(server, client):
    image = image_of(b"\x89PNG\r\n\x1a\n" + bytes(5 * MEGABYTE - 8))
    server.provider.then(say("Very large."))
    await client.say("Look", images=[image] * 10)
    assert (await client.until(*ENDS, seconds=60))[-1]["type"] == "stream_end"


async def test_null_for_images_and_files_means_none(server, client):
    server.provider.then(say("Ok."))
    assert (await client.ask("Hello", images=None, files=None))[-1]["type"] == "stream_end"


async def test_fields_that_the_protocol_does_not_know_are_passed_over(server, client):
    server.provider.then(say("Ok."))
    assert (await client.ask("Hello", client_version="1.2", seq=5))[-1]["type"] == "stream_end"


async def test_the_upload_of_another_session_is_foreign(server, session, client):
    other = await server.session()
    files = {"files": ("a.txt", b"secret")}
    [theirs] = (await server.call("POST", f"/sessions/{other}/uploads", files=files))["files"]
    await client.say("Read it", files=[theirs])
    assert (await client.expect("error"))["code"] == "foreign_file"


async def test_a_frame_of_more_than_72_megabytes_closes_the_connection_and_no_other(server, session, client):
    async with server.watch(session) as other:
        with contextlib.suppress(ConnectionClosed):  # perhaps it does not wait for the rest
            await other.send("x" * (72 * MEGABYTE + 1))
        assert (await other.closing())[0] == 1009
    server.provider.then(say("Here."))
    assert (await client.ask("Still there?"))[-1]["content"] == "Here."


async def test_a_large_frame_that_is_no_message_is_answered(client):
    await client.send(json.dumps({"type": "x", "padding": "x" * (20 * MEGABYTE)}))
    assert (await client.expect("error"))["field"] == "type"


async def test_bad_frames_in_mid_run_disturb_nothing(server, session, client):
    tap = Tap()
    server.provider.then(tap)
    await client.say("Go on")
    tap.say("One ")
    await client.until("stream_delta")
    for frame in ("{", b"\x00", {"type": "ping"}, message(content="")):
        await client.send(frame)
        assert "seq" not in await client.expect("error")
    tap.say("two")
    tap.end()
    assert (await client.until(*ENDS))[-1]["content"] == "One two"


async def test_a_session_that_is_deleted_closes_its_sockets_with_4004(server, session, client):
    async with server.watch(session) as other:
        await server.call("DELETE", f"/sessions/{session}")
        for each in (client, other):
            code, words = await each.closing(3)
            assert code == 4004
            assert session in words
    async with server.watch(session, is_fresh=False) as late:
        assert (await late.closing(3))[0] == 4004


async def test_messages_that_cross_with_the_deletion_of_their_session_break_nothing(server, caplog):
    caplog.set_level(logging.ERROR)
    for _ in range(10):
        session = await server.session()
        async with server.watch(session) as client:

            async def shout(client=client):
                with contextlib.suppress(ConnectionClosed):
                    for number in range(1_000):
                        await client.send({"type": "ping", "number": number})
                        await asyncio.sleep(0)

            deleting = server.call("DELETE", f"/sessions/{session}")
            (code, _), *_ = await asyncio.gather(client.closing(), shout(), deleting)
            assert code == 4004
    assert [record.getMessage() for record in caplog.records] == []


async def test_whatever_is_sent_to_the_events_socket_is_refused(server):
    async with server.watch_events() as client:
        for frame in ("{", b"\x00", message()):
            await client.send(frame)
            error = await client.expect("error")
            assert error["code"] == "bad_frame"
            assert "/ws/sessions/" in error["message"]
