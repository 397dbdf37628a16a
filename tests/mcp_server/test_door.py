"""The door /mcp itself: probes of clients, methods, Host and Origin, sizes, malformed requests, disconnects."""

import asyncio
import json

import httpx
import pytest

from live_server import Tap, eventually, running_server
from mcp_client import connected, make_token, text_of
from openai_server import say

LEGACY = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
MODERN = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
TODO = "Read notes.txt with read_file."


@pytest.fixture
async def server(sqlite_server):
    async with sqlite_server.as_new_owner() as server:
        yield server


def request(name, arguments, number=1):
    """Return a call of a tool, as a client of today sends it."""
    params = {"name": name, "arguments": arguments, "_meta": META}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


async def post(server, body, headers=LEGACY, **more):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await server.rest.post(
        "/mcp", content=content, headers={"Content-Type": "application/json", **headers}, **more
    )


# ── What clients try first ──────────────────────────────────────────────────────────────────────────────────────────

PROBES = [
    ("GET", "/.well-known/oauth-protected-resource"),
    ("GET", "/.well-known/oauth-protected-resource/mcp"),
    ("GET", "/.well-known/oauth-authorization-server"),
    ("GET", "/.well-known/oauth-authorization-server/mcp"),
    ("GET", "/.well-known/openid-configuration"),
    ("GET", "/mcp/.well-known/openid-configuration"),
    ("POST", "/register"),
    ("GET", "/authorize"),
    ("POST", "/token"),
]


async def test_a_client_that_looks_for_oauth_finds_none_and_then_sends_its_token(server):
    async with httpx.AsyncClient(base_url=server.address, verify=False) as stranger:
        for method, path in PROBES:
            answer = await stranger.request(method, path, json={} if method == "POST" else None)
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_oauth"), path
        refused = await stranger.post("/mcp", json={})
        assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
    listed = await post(server, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert listed.status_code == 200
    assert "book_wake" in listed.text


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "HEAD"])
@pytest.mark.parametrize("headers", [LEGACY, MODERN], ids=["old", "new"])
async def test_it_takes_post_alone(server, method, headers):
    answer = await server.rest.request(method, "/mcp", headers=headers)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("headers", "code"),
    [({"Host": "evil.example"}, "wrong_host"), ({"Origin": "https://evil.example"}, "wrong_origin")],
)
async def test_wrong_host_and_origin_are_refused_before_anything_is_read(server, headers, code):
    answer = await post(server, b"not even json", LEGACY | headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, code)


async def test_a_browsers_login_is_no_token_here(server):
    code = (await server.call("POST", "/login-links", json={}))["path"].partition("code=")[2]
    origin = {"Origin": server.address}
    async with httpx.AsyncClient(base_url=server.address, verify=False) as browser:
        secret = (await browser.post("/login", data={"code": code}, headers=origin)).json()["page_secret"]
        sent = origin | {"X-Wakeful-Page": secret} | LEGACY
        assert (await browser.get("/me", headers=sent)).status_code == 200
        assert (await browser.post("/mcp", json={}, headers=sent)).status_code == 401


# ── Malformed requests ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_body_over_the_limit_is_refused_with_and_without_its_length(server):
    body = b"[" + b" " * 1024 * 1024 + b"]"
    assert (await post(server, body)).status_code == 413

    async def pieces():
        for _ in range(17):
            yield b" " * 64 * 1024

    answer = await server.rest.post("/mcp", content=pieces(), headers=LEGACY)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")


MALFORMED = {
    "empty": b"",
    "no json": b"{",
    "not utf-8": b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}',
    "deep": b"[" * 5_000 + b"]" * 5_000,
    "number": b"5",
    "null": b"null",
    "batch": b'[{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]',
    "no method": b'{"jsonrpc": "2.0", "id": 1}',
    "wrong version": b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}',
    "wrong id": b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}',
    "unknown method": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/destroy"}',
    "params are a list": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [1]}',
    "no name": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": {}}}',
    "name is a number": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5}}',
    "arguments are text": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agenda","arguments":"x"}}',
    "unknown tool": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rm"}}',
    "a huge number": b'{"jsonrpc": "2.0", "id": ' + b"9" * 5_000 + b', "method": "tools/list"}',
    "a response": b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
}


@pytest.mark.parametrize("headers", [LEGACY, MODERN, {}, {"MCP-Protocol-Version": "1999-01-01"}])
@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
async def test_a_malformed_request_gets_a_clear_error(server, body, headers, caplog):
    answer = await post(server, body, headers)
    assert answer.status_code < 500, answer.text
    if answer.status_code == 200:
        assert '"error"' in answer.text or '"isError":true' in answer.text
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


HOSTILE = [
    ("book_wake", {}, "`instructions` is missing"),
    ("book_wake", {"instructions": 5, "when": "1h"}, "`instructions` must be a valid string, got 5"),
    ("book_wake", {"instructions": TODO}, "No time is given. Give `when`"),
    ("book_wake", {"instructions": TODO, "when": "soonish"}, "'soonish'"),
    ("book_wake", {"instructions": TODO, "when": ["1h"]}, "`when` must be a valid string"),
    ("book_wake", {"instructions": TODO, "interval_seconds": "3600"}, "`interval_seconds` must be a valid integer"),
    ("book_wake", {"instructions": TODO, "interval_seconds": True}, "`interval_seconds` must be a valid integer"),
    ("book_wake", {"instructions": TODO, "interval_seconds": 1}, "must be at least 10 s, got 1 s"),
    ("book_wake", {"instructions": TODO, "cron": "* * *"}, "'* * *'"),
    ("book_wake", {"instructions": " ", "when": "1h"}, "`instructions` must be a text"),
    ("book_wake", {"instructions": "a\x00b", "when": "1h"}, "NUL"),
    ("book_wake", {"instructions": TODO, "when": "1h", "agent": "nobody"}, "There is no agent 'nobody'. Yours are"),
    ("book_wake", {"instructions": TODO, "when": "1h", "session_id": "nothing"}, "nothing"),
    ("book_wake", {"instructions": TODO, "when": "1h", "door": "window"}, "`door` must be"),
    ("book_wake", {"instructions": TODO, "when": "1h", "door": "next_run", "cron": "0 9 * * *"}, "door 'next_run'"),
    ("book_wake", {"instructions": TODO, "when": "3 days", "door": "session"}, "24 h"),
    ("book_wake", {"instructions": TODO, "when": "1h", "timezone": "Mars/Olympus"}, "Mars/Olympus"),
    ("book_wake", {"instructions": TODO, "when": "1h", "key": "k" * 201}, "`key` must have at most 200"),
    (
        "book_wake",
        {"instructions": TODO, "when": "1h", "priority": "low"},
        "`priority` is not a field here, got 'low'. book_wake takes:",
    ),
    ("cancel_wake", {"wake_id": "../../etc"}, "`wake_id` must match"),
    ("cancel_wake", {"wake_id": "unknown"}, "There is no wake 'unknown'"),
    ("why", {}, "Give `wake_id`, or `at`"),
    ("why", {"agent": "Wakeful", "at": "yesterday"}, "ISO 8601"),
    ("why", {"at": "2020-01-01T00:00:00Z"}, "No run of this agent was planned within 12 hours"),
    ("agenda", {"days": 1_000}, "`days` must be less than or equal to 31"),
    ("ask_agent", {"message": ""}, "`message` must have at least 1 character"),
    ("ask_agent", {"message": "x", "wait_seconds": 241}, "`wait_seconds` must be less than or equal to 240"),
    ("ask_agent", {"message": "x", "session_id": "unknown"}, "unknown"),
    ("get_run", {"run_id": "unknown"}, "There is no run 'unknown'"),
    ("query_view", {"agent": "Wakeful", "view": "nothing; DROP TABLE x"}, "nothing"),
    ("list_wakes", {"status": "sleeping"}, "`status` must be"),
]


async def test_arguments_of_the_wrong_kind_are_named_with_the_next_step(server):
    async with connected(server) as client:
        for tool, arguments, problem in HOSTILE:
            refused = await client.call_tool(tool, arguments)
            assert refused.is_error, (tool, arguments)
            assert problem in text_of(refused), (tool, arguments, text_of(refused))
    assert (await server.call("GET", "/wakes"))["wakes"] == []
    assert (await server.call("GET", "/sessions"))["sessions"] == []


async def test_an_unknown_tool_is_refused_with_the_names_of_the_others(server):
    from mcp.shared.exceptions import MCPError

    async with connected(server, await make_token(server, "read")) as client:
        with pytest.raises(MCPError, match=r"There is no tool 'rm'\. This token has: list_agents, list_wakes"):
            await client.call_tool("rm", {})


# ── Disconnects ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("headers", [LEGACY, MODERN], ids=["old", "new"])
async def test_a_client_that_disconnects_stops_no_run(server, headers):
    tap = Tap()
    server.provider.then(tap)
    sent = headers | {"MCP-Method": "tools/call", "MCP-Name": "ask_agent"}
    asking = asyncio.create_task(post(server, request("ask_agent", {"message": "Go on."}), sent))
    await asyncio.wait_for(tap.is_asked.wait(), 20)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    tap.say("I went on.")
    tap.end()

    async def over():
        [run] = (await server.call("GET", "/runs"))["runs"]
        return run if run["finished_at"] else None

    run = await eventually(over)
    assert run["status"] == "success"
    assert (await server.run(run["id"]))["answer"] == "I went on."


@pytest.mark.parametrize("headers", [LEGACY, MODERN], ids=["old", "new"])
async def test_a_client_that_disconnects_at_once_leaves_a_whole_booking_or_none(server, headers):
    sent = headers | {"MCP-Method": "tools/call", "MCP-Name": "book_wake"}
    for delay in (0.0, 0.001, 0.002, 0.005, 0.01, 0.02):
        asked = {"instructions": TODO, "when": "1h", "key": f"after {delay}"}
        booking = asyncio.create_task(post(server, request("book_wake", asked), sent))
        await asyncio.sleep(delay)
        booking.cancel()
        await asyncio.gather(booking, return_exceptions=True)

    async def is_whole():  # a booking that was begun may still be written while the lists are read
        wakes = (await server.call("GET", "/wakes"))["wakes"]
        sessions = (await server.call("GET", "/sessions"))["sessions"]
        return {wake["session_id"] for wake in wakes} == {session["id"] for session in sessions}

    await eventually(is_whole)


async def test_it_works_under_a_base_path(settings):
    async with running_server(settings, base_path="/agents") as server:
        server.provider.then(say("Hello."))
        answer = await server.rest.post(
            f"{server.address.removesuffix('/agents')}/agents/mcp",
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
            headers=LEGACY,
        )
        server.provider.forget()
    assert answer.status_code == 200
    assert "book_wake" in answer.text
