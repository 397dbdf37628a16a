"""Bodies and frames: the scope is checked before they are read, and none of them holds up the others."""

import asyncio
import base64
import json
import os
import re
import time
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

import forked_process
from live_server import TOKEN, eventually
from openai_server import say
from wakeful.app.http import application
from wakeful.http.routes import DoorRoute, needed_scopes

MB = 1024 * 1024
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
async def server(sqlite_server):
    async with sqlite_server.as_new_owner() as server:
        yield server


async def scoped(server, scope):
    """Make a token of the owner's with this scope."""
    return (await server.call("POST", "/tokens", json={"name": scope, "scope": scope}))["secret"]


LONG, CHUNKED = f"Content-Length: {70 * MB}", "Transfer-Encoding: chunked"


def flat(routes):
    """All routes, those of included routers too."""
    for route in routes:
        if hasattr(route, "original_router"):
            yield from flat(route.original_router.routes)
        elif isinstance(route, APIRoute):
            yield route


def test_every_route_that_takes_a_body_checks_a_scope_before_it():
    routes = [route for route in flat(application("0").routes) if route.body_field is not None]
    assert len(routes) > 30
    assert [route.path for route in routes if not isinstance(route, DoorRoute)] == []
    assert [route.path for route in routes if not needed_scopes(route)] == ["/login"]


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_json_body_has_a_megabyte_at_most(server, is_chunked):
    body = b'{"title": "' + b"x" * MB + b'"}'

    async def pieces():
        for start in range(0, len(body), 65536):
            yield body[start : start + 65536]

    answer = await server.rest.post(
        "/sessions", content=pieces() if is_chunked else body, headers={"content-type": "application/json"}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")
    assert "1,048,576" in answer.json()["error"]["message"]


async def answered(server, session):
    return len(await server.messages(session)) == 2


async def test_messages_imports_and_uploads_may_be_larger(server, session):
    server.provider.then(say("A picture."))
    [agent] = (await server.call("GET", "/agents"))["agents"]
    sent = await server.rest.post(
        f"/sessions/{session}/messages",
        json={"content": "Look", "images": [base64.b64encode(PNG + bytes(3 * MB)).decode()]},
    )
    rows = "a,b\n" + f'"{"x, [{" * 20}",2\n' * 15_000
    imported = await server.rest.post(f"/agents/{agent['id']}/db/import", json={"table": "t", "text": rows})
    await eventually(lambda: answered(server, session))
    kept = await server.rest.post(f"/sessions/{session}/uploads", files={"files": ("a.bin", bytes(3 * MB))})
    assert (sent.status_code, imported.status_code, kept.status_code) == (202, 200, 201), imported.text
    assert imported.json()["imported"] == 15_000


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param('{"title": ' + "[" * 200 + "]" * 200 + "}", "100 deep", id="deep"),
        pytest.param('{"title": ' + '{"a":' * 200 + "0" + "}" * 200 + "}", "100 deep", id="deep objects"),
        pytest.param('{"title": ' + "[" * 100_000, "100 deep", id="deep and open"),
        pytest.param('{"title": [' + "[]," * 150_000 + "0]}", "100,000 values", id="many lists"),
        pytest.param('{"title": [' + "0," * 150_000 + "0]}", "100,000 values", id="many numbers"),
        pytest.param("{" + ",".join(f'"{n}":0' for n in range(50_000)) + "}", "50,000 fields", id="many fields"),
    ],
)
async def test_json_that_is_deep_or_has_very_many_values_is_refused_with_words(server, body, words):
    answer = await server.rest.post("/sessions", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unreadable_body")
    assert words in answer.json()["error"]["message"]


async def test_brackets_inside_of_a_text_are_text(server):
    title = '\\" [[{{' * 20
    made = await server.call("POST", "/sessions", json={"title": title})
    assert made["title"] == title


async def test_a_long_value_that_is_refused_is_not_repeated(server, session):
    answer = await server.rest.post(f"/sessions/{session}/messages", json={"content": "x" * 3 * MB})
    assert answer.status_code == 422
    assert len(answer.text) < 500


# ── Frames ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def closing_of(server, path, token, frame):
    """Send one frame and return the code with which the socket is closed, or the first answer."""
    address = server.address.replace("http://", "ws://") + path
    async with connect(
        address, additional_headers={"Authorization": f"Bearer {token}"}, proxy=None, compression=None
    ) as socket:
        assert json.loads(await socket.recv())["type"] == "session_sync"
        try:
            await socket.send(frame)
            while True:
                said = json.loads(await asyncio.wait_for(socket.recv(), 10))
                if said["type"] != "heartbeat":
                    return said.get("code")
        except ConnectionClosed as closed:
            return closed.rcvd.code


async def test_who_may_not_write_may_not_send_large_frames(server, session):
    read, large = await scoped(server, "read"), json.dumps({"type": "message", "content": "x" * 70_000})
    assert await closing_of(server, f"/ws/sessions/{session}", read, large) == 1009
    assert await closing_of(server, "/ws/events", server.token, large) == 1009
    assert (
        await closing_of(server, f"/ws/sessions/{session}", server.token, large.replace("message", "other"))
        == "bad_frame"
    )


async def test_the_scope_is_checked_before_a_frame_is_parsed(server, session):
    read = await scoped(server, "read")
    assert await closing_of(server, f"/ws/sessions/{session}", read, "not json") == "scope_too_small"


@pytest.mark.parametrize("values", ["[" * 200 + "]" * 200, "[" + "[]," * 150_000 + "0]"])
async def test_a_frame_that_is_deep_or_has_very_many_values_is_refused(server, session, client, values):
    await client.send('{"type": "message", "content": "Hi", "more": ' + values + "}")
    assert (await client.expect("error"))["code"] == "bad_frame"


# ── One request and the others ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def process(tmp_path: Path):
    """A server in a process of its own, so that what it does holds up nobody here."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    places = {"WAKEFUL_DATA_DIR": f"{tmp_path}/data", "WAKEFUL_CONFIG_DIR": f"{tmp_path}/config"}
    process = forked_process.Forked(
        ("serve", "--port", "0"), plain | places | {"WAKEFUL_TOKEN": TOKEN}, tmp_path / "log"
    )
    address = re.search(r"http://\S+", process.stdout.readline())
    assert address is not None
    yield process.pid, address[0]
    process.close()


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def many_lists():
    return b'{"content": [' + b"[]," * (23 * MB) + b"[]]}"


def one_long_text():
    return b'{"content": "' + b'\\"' * (35 * MB) + b'"}'


def ten_pictures():
    picture = b'"' + base64.b64encode(PNG + bytes(5 * MB - len(PNG))) + b'"'
    return b'{"content": "Hi", "images": [' + b",".join([picture] * 10) + b"]}"


@pytest.mark.parametrize("make_body", [many_lists, one_long_text, ten_pictures])
async def test_a_large_body_holds_up_nobody_and_its_memory_is_given_back(process, make_body):
    pid, address = process
    async with httpx.AsyncClient(
        base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60, verify=False
    ) as client:
        session = (await client.post("/sessions", json={})).json()["id"]
        before = resident(pid)
        headers = {"content-type": "application/json"}
        sending = asyncio.create_task(
            client.post(f"/sessions/{session}/messages", content=make_body(), headers=headers)
        )
        waits = []
        while not sending.done():
            asked = time.perf_counter()
            assert (await client.get("/healthz")).status_code == 200
            waits.append(time.perf_counter() - asked)
            await asyncio.sleep(0.01)
        assert (await sending).status_code in (202, 400, 422)
        assert max(waits) < 5.0, max(waits)  # lists took 12 s when they were parsed on the loop
        async with asyncio.timeout(20):
            while resident(pid) - before > 100:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
