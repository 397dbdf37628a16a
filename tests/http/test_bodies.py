"""JSON that is ambiguous, too deep or too large: refused with an explanation on every route, never a 500."""

from urllib.parse import urlsplit

import pytest

from live_server import TOKEN, running_server
from network.raw_requests import code_of, send_raw

pytestmark = [pytest.mark.security, pytest.mark.both_stores]

JSON = {"content-type": "application/json"}
MB = 1024 * 1024
UNREADABLE, INVALID = (400, "unreadable_body"), (422, "invalid_value")

# A JSON value, and how a body is refused that has it in a field for text.
VALUES = [
    pytest.param("NaN", UNREADABLE, id="NaN"),
    pytest.param("-Infinity", UNREADABLE, id="Infinity"),
    pytest.param("1e999", UNREADABLE, id="a float that overflows"),
    pytest.param("9" * 5000, UNREADABLE, id="very many digits"),
    pytest.param('"a", "FIELD": "b"', UNREADABLE, id="a field twice"),
    pytest.param('{"a": 1, "\\u0061": 2}', UNREADABLE, id="a field twice, spelt differently"),
    pytest.param("[" * 101 + "]" * 101, UNREADABLE, id="deep"),
    pytest.param("[" * 5_000, UNREADABLE, id="deep and open"),
    pytest.param("[" + "0," * 100_001 + "0]", UNREADABLE, id="many"),
    pytest.param('"\\ud800"', INVALID, id="half a character"),
    pytest.param('"\\udfff\\ud800"', INVALID, id="two halves, the wrong way round"),
]


@pytest.fixture
async def paths(place):
    """Doors with a field for text, and its name."""
    session = await place.home.session()
    [agent] = (await place.home.call("GET", "/agents"))["agents"]
    return {
        ("POST", "/sessions"): "title",
        ("PATCH", f"/sessions/{session}"): "title",
        ("POST", f"/sessions/{session}/messages"): "content",
        ("POST", f"/sessions/{session}/schedules"): "message",
        ("PUT", f"/agents/{agent['id']}/next-run"): "instructions",
        ("PATCH", f"/agents/{agent['id']}"): "system_prompt",
        ("POST", f"/agents/{agent['id']}/db/import"): "text",
        ("POST", f"/agents/{agent['id']}/db/query"): "sql",
        ("POST", "/tokens"): "name",
        ("POST", "/users"): "name",
        ("PUT", "/pause"): "reason",
        ("POST", "/download-tickets"): "path",
    }


async def test_a_body_that_means_two_things_or_nothing_is_refused(place, paths):
    for value, refused in [each.values for each in VALUES]:
        for (method, path), field in list(paths.items())[: None if len(value) < 1000 else 2]:
            body = f'{{"{field}": {value.replace("FIELD", field)}}}'
            answer = await place.door.rest.request(method, path, content=body, headers=JSON)
            assert code_of(answer) == refused, (path, value[:40], answer.text)
            assert len(answer.text) < 1000
    for body in (b'{"title": "\xff"}', '{"title": "x"}'.encode("utf-16"), b'{"title": "\xed\xa0\x80"}'):
        assert code_of(await place.door.rest.post("/sessions", content=body, headers=JSON)) == UNREADABLE
    for body in (b"{", b"{}{}", b"\xef\xbb\xbf{}", b"{'title': 1}", b'{"title": "a\nb"}', b"[1,]"):
        assert code_of(await place.door.rest.post("/sessions", content=body, headers=JSON)) == (422, "invalid_json")
    assert (await place.home.call("GET", "/sessions"))["sessions"][1:] == []


async def test_a_number_that_is_none_is_not_kept_as_an_empty_value(place):
    [agent] = (await place.home.call("GET", "/agents"))["agents"]
    database = f"/agents/{agent['id']}/db"
    table = {"name": "t", "purpose": "p", "columns": [{"name": "v", "type": "real"}]}
    await place.home.call("POST", f"{database}/tables", json=table)
    for value in ("NaN", "Infinity", "-Infinity", "1e400", '1, "v": 2'):
        for path, body in (
            ("/tables/t/rows", '{"rows": [{"v": <v>}]}'),
            ("/tables/t/rows/upsert", '{"rows": [{"v": <v>}], "conflict_columns": ["v"]}'),
            ("/query", '{"sql": "SELECT :v", "params": {"v": <v>}}'),
            ("/execute", '{"sql": "INSERT INTO t (v) VALUES (:v)", "params": {"v": <v>}}'),
        ):
            answer = await place.home.rest.post(f"{database}{path}", content=body.replace("<v>", value), headers=JSON)
            assert code_of(answer) == UNREADABLE, (path, value, answer.text)
    rows = await place.home.call("POST", f"{database}/query", json={"sql": "SELECT count(*) FROM t"})
    assert rows["rows"] == [[0]]


async def test_a_frame_that_means_two_things_or_nothing_is_refused_and_the_socket_stays_open(place):
    session = await place.home.session()
    async with place.door.watch(session) as client:
        for value, _ in [each.values for each in VALUES]:
            await client.send(f'{{"type": "message", "content": {value.replace("FIELD", "content")}}}')
            error = await client.expect("error")
            assert error["code"] == "bad_frame", (value[:40], error)
            assert len(error["message"]) < 500
        for frame in (
            "NaN",
            "null",
            "[]",
            '"message"',
            '{"type": "message", "type": "stop", "content": "Hi"}',
            '{"type": "message", "content": "Hi", "files": [{"path": "\\ud800"}]}',
            '{"type": "message", "content": "Hi", "files": [NaN]}',
            '{"type": "message", "content": "\\u0000"}',
            '{"type": "\\ud800", "content": "Hi"}',
            b'{"type": "message", "content": "Hi"}',
        ):
            await client.send(frame)
            assert (await client.expect("error"))["code"] == "bad_frame", frame
        await client.send('{"type": "message", "content": "Hi", "images": ["\\ud800"]}')
        assert (await client.expect("error"))["code"] == "bad_image"
    assert await place.home.messages(session) == []


def head(server, path, token, *lines):
    host = urlsplit(server.address).netloc
    first = [f"POST {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {token}", "Connection: close"]
    return "\r\n".join([*first, "Content-Type: application/json", *lines, "", ""]).encode()


async def test_a_body_over_the_limit_is_refused_however_it_is_sent(place):
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    chunked = head(place.door, "/sessions", TOKEN, "Transfer-Encoding: chunked")
    assert await send_raw(place.door, chunked, *[chunk] * 17) == (413, "body_too_large")
    declared = head(place.door, "/sessions", TOKEN, f"Content-Length: {MB + 1}")
    assert await send_raw(place.door, declared) == (413, "body_too_large")


@pytest.fixture
async def server(tmp_path):
    """The plainest server: no store is asked here."""
    settings = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "store_encryption": False}
    async with running_server(settings) as server:
        yield server


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["Content-Length: 2", "Content-Length: 3"], id="two lengths"),
        pytest.param(["Content-Length: 2, 3"], id="two lengths in one"),
        pytest.param(["Content-Length: -1"], id="a length below zero"),
        pytest.param(["Content-Length: +2"], id="a length with a sign"),
        pytest.param(["Content-Length: 0x2"], id="a length in hexadecimal"),
        pytest.param(["Transfer-Encoding: chunked, identity"], id="an encoding that is not the last"),
        pytest.param(["Transfer-Encoding: xchunked"], id="an encoding that is none"),
        pytest.param(["Content-Length : 2"], id="a blank before the colon"),
    ],
)
async def test_a_request_whose_end_is_not_clear_is_refused(server, lines):
    """A proxy that reads it otherwise would take the rest for a request of somebody else's."""
    status, _ = await send_raw(server, head(server, "/sessions", TOKEN, *lines), b"{}")
    assert status in (400, 501), status
