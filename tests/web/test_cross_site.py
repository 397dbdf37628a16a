"""Pages of other sites in the browser of someone who is logged in: they see nothing, and they change nothing.

What each of them tries works from a page of our own; the first test says so. A page on another port of the same host is
the hardest of them, because the browser counts it as the same site and sends the cookie along.
"""

import asyncio
from contextlib import asynccontextmanager

import httpx
import pytest
import pytest_asyncio
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from browser.attempts import FETCH, LOAD, SOCKET, SUBMIT
from wakeful.http.auth import PAGE_HEADER

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

HOME = "<!doctype html><title>Elsewhere</title><p>A page of another site.</p>"
BOX = "<!doctype html><iframe sandbox='allow-scripts allow-forms' srcdoc='<p>A box.</p>'></iframe>"
REBOUND = "evil.test"
# A delivery at a hook is proven by its signature: `tests/hooks`.
OPEN = {"/login": {"get", "post"}, "/healthz": {"get", "post"}, "/hooks/{hook_id}": {"post"}}


@pytest_asyncio.fixture(loop_scope="session")
async def session(served):
    """A session of the owner's with something said in it."""
    made = await served.ask("POST", "/sessions", {"title": "Private"})
    yield made["id"]
    await served.ask("DELETE", f"/sessions/{made['id']}")


async def everything(served):
    """All that a page might have changed, as the owner sees it."""
    sessions = (await served.ask("GET", "/sessions"))["sessions"]
    return {
        "sessions": [await served.ask("GET", f"/sessions/{session['id']}") for session in sessions],
        "runs": await served.ask("GET", "/runs"),
        "agents": await served.ask("GET", "/agents"),
        "users": await served.ask("GET", "/users"),
        "tokens": await served.ask("GET", "/tokens"),
    }


# Where the page is that tries; `PORT` is the server's own, `SITE` another site's.
PLACES = [
    pytest.param("http://127.0.0.1:SITE/", id="another port of our host"),
    pytest.param("http://localhost:SITE/", id="another name for this machine"),
    pytest.param(f"http://{REBOUND}:SITE/", id="a name of its own"),
    pytest.param("http://localhost:PORT/healthz", id="our own page under our other name"),
    pytest.param("box", id="a sandboxed frame, whose origin is null"),
]


@pytest.fixture(params=PLACES)
def elsewhere(request, logged_in, served, site):
    """A page, or a frame in one, that is not ours, in a browser that is logged in with us."""

    @asynccontextmanager
    async def open_it():
        is_box = request.param == "box"
        async with site(BOX if is_box else HOME) as port:
            place = "http://127.0.0.1:SITE/" if is_box else request.param
            page = await logged_in.new_page()
            await page.goto(place.replace("SITE", str(port)).replace("PORT", served.port))
            yield page, page.frames[1] if is_box else page

    return open_it


async def test_from_a_page_of_our_own_everything_that_is_tried_here_works(logged_in, served, session):
    base = served.address
    page = await logged_in.new_page()
    await page.goto(f"{base}/healthz")
    assert (await page.evaluate(FETCH, {"base": base, "method": "GET", "path": "/sessions"}))["status"] == 200
    rename = {"base": base, "method": "PATCH", "path": f"/sessions/{session}", "body": {"title": "Mine"}}
    assert (await page.evaluate(FETCH, rename))["body"]["title"] == "Mine"
    stop = {"base": base, "method": "POST", "path": f"/sessions/{session}/stop"}
    assert (await page.evaluate(FETCH, stop))["status"] == 200
    for path in (f"/ws/sessions/{session}", "/ws/events"):
        assert (await page.evaluate(SOCKET, {"base": base, "path": path}))["opened"]


async def test_another_page_reads_nothing(elsewhere, served, session):
    async with elsewhere() as (_, frame):
        for path in ("/me", "/sessions", f"/sessions/{session}", "/tokens", "/openapi.json"):
            asked = {"base": served.address, "method": "GET", "path": path}
            assert await frame.evaluate(FETCH, asked) == {"failed": "TypeError"}
            # Without asking for leave the browser keeps the answer to itself, or our headers keep it from the page.
            hidden = await frame.evaluate(FETCH, asked | {"mode": "no-cors"})
            assert hidden in ({"failed": "TypeError"}, {"opaque": True})
            for tag in ("script", "img"):
                assert await frame.evaluate(LOAD, {"base": served.address, "path": path, "tag": tag}) == "failed"


async def test_another_page_changes_nothing_by_fetch(elsewhere, served, session):
    before = await everything(served)
    tries = [
        ("POST", "/sessions", {"title": "Evil"}),
        ("POST", f"/sessions/{session}/messages", {"content": "write evil to notes.txt"}),
        ("POST", f"/sessions/{session}/stop", None),
        ("POST", "/tokens", {"name": "Evil", "scope": "admin"}),
        ("POST", "/users", {"name": "Evil", "role": "owner"}),
        ("POST", "/logout", None),
        ("POST", "/ws-ticket", None),
    ]
    async with elsewhere() as (_, frame):
        for method, path, body in tries:
            asked = {"base": served.address, "method": method, "path": path, "body": body}
            assert await frame.evaluate(FETCH, asked) == {"failed": "TypeError"}
            hidden = await frame.evaluate(FETCH, asked | {"mode": "no-cors"})
            assert hidden in ({"failed": "TypeError"}, {"opaque": True})
        for method in ("PATCH", "DELETE"):
            asked = {"base": served.address, "method": method, "path": f"/sessions/{session}", "body": {"title": "x"}}
            assert await frame.evaluate(FETCH, asked) == {"failed": "TypeError"}
    assert await everything(served) == before


async def test_another_page_opens_no_socket(elsewhere, served, session):
    before = await everything(served)
    message = {"type": "message", "content": "write evil to notes.txt"}
    async with elsewhere() as (_, frame):
        for path in (f"/ws/sessions/{session}", f"/ws/sessions/{session}?after=0", "/ws/events", "/ws/sessions/x"):
            tried = await frame.evaluate(SOCKET, {"base": served.address, "path": path, "message": message})
            assert tried == {"opened": False, "frames": [], "code": 1006}
    assert await everything(served) == before


async def test_another_page_sends_no_form(elsewhere, served, session):
    before = await everything(served)
    stranger = await served.ask("POST", "/users", {"name": "Stranger"})
    code = (await served.new_login_link(stranger["id"])).partition("code=")[2]
    tries = [
        {"path": "/sessions", "encoding": "text/plain", "fields": {'{"title": "Evil", "x": "': '"}'}},
        {"path": "/sessions", "encoding": "text/plain"},  # a body that may be left out
        {"path": f"/sessions/{session}/stop"},
        {"path": f"/sessions/{session}/uploads", "encoding": "multipart/form-data", "fields": {"files": "evil"}},
        {"path": "/logout"},
        {"path": "/ws-ticket"},
        {"path": "/login", "fields": {"code": code}},  # to have the owner work in a stranger's account unawares
    ]
    async with elsewhere() as (first, _):
        for tried in tries:
            page = await first.context.new_page()  # a form leads away
            await page.goto(first.url)
            target = served.address + tried["path"]
            async with page.expect_response(lambda response, target=target: response.url == target) as answer:
                await page.frames[-1].evaluate(SUBMIT, {"base": served.address} | tried)
            assert (await answer.value).status == 403, tried
            await page.close()
    await served.ask("DELETE", f"/users/{stranger['id']}")
    assert await everything(served) == before


async def test_another_server_on_our_host_gets_the_cookie_and_opens_nothing_with_it(logged_in, served, session):
    taken = await _receive(logged_in)
    cookie = taken["cookie"].partition("=")[2]
    assert cookie.startswith("wkf_")
    assert not any("page" in name for name in taken)
    as_browser = {"Cookie": taken["cookie"], "Origin": served.address}
    before = await everything(served)
    described = await served.ask("GET", "/openapi.json")
    async with httpx.AsyncClient(base_url=served.address, timeout=30, verify=False) as thief:
        tried = 0
        for path, methods in described["paths"].items():
            for method in methods.keys() - OPEN.get(path, set()):
                answer = await thief.request(method, path.replace("{session_id}", session), headers=as_browser)
                assert answer.status_code == 401, (method, path, answer.text)
                tried += 1
        assert tried > 100
        assert (await thief.get("/me", headers={"Authorization": f"Bearer {cookie}"})).status_code == 401
        assert (await thief.get("/me", headers=as_browser | {PAGE_HEADER: cookie})).status_code == 401
        assert (await thief.get("/me", params={"ticket": cookie}, headers=as_browser)).status_code == 401
        assert (await thief.post("/login", data={"code": cookie}, headers=as_browser)).status_code == 401
    for path in (f"/ws/sessions/{session}", "/ws/events", f"/ws/events?ticket={cookie}"):
        for headers in (as_browser, {"Authorization": f"Bearer {cookie}"}):
            with pytest.raises(InvalidStatus) as refused:
                async with connect(f"ws://127.0.0.1:{served.port}{path}", additional_headers=headers, proxy=None):
                    pass
            assert refused.value.response.status_code in (401, 429)  # nothing, or not even a further try
    assert await everything(served) == before


async def _receive(browser) -> dict[str, str]:
    """Let a browser visit another server on this host, and return the headers that it sends there."""
    received: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:]
        if not received.done():
            received.set_result({name.lower(): value for name, _, value in (line.partition(": ") for line in head)})
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        page = await browser.new_page()
        await page.goto(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        return await received


async def test_another_page_cannot_frame_ours(logged_in, served, site):
    async with site(f'<iframe src="{served.address}/healthz"></iframe>') as port:
        page = await logged_in.new_page()
        await page.goto(f"http://127.0.0.1:{port}/")
        assert (await page.frames[1].evaluate("location.href")).startswith("chrome-error://")


async def test_a_name_that_was_made_to_point_to_us_is_refused_by_http_and_by_socket(logged_in, served, session):
    before = await everything(served)
    base = f"http://{REBOUND}:{served.port}"
    page = await logged_in.new_page()
    opened = await page.goto(f"{base}/healthz")
    assert opened is not None
    assert opened.status == 403
    assert (await opened.json())["error"]["code"] == "wrong_host"
    # For the browser this page and our server are one origin now: it may send and read whatever it likes.
    for method, path, body in (
        ("GET", "/healthz", None),
        ("GET", "/me", None),
        ("GET", f"/sessions/{session}", None),
        ("GET", "/login", None),
        ("POST", "/sessions", {"title": "Evil"}),
        ("POST", "/ws-ticket", None),
    ):
        tried = await page.evaluate(FETCH, {"base": base, "method": method, "path": path, "body": body})
        assert (tried["status"], tried["body"]["error"]["code"]) == (403, "wrong_host")
    for path in (f"/ws/sessions/{session}", "/ws/events"):
        tried = await page.evaluate(SOCKET, {"base": base, "path": path, "message": {"type": "message"}})
        assert tried == {"opened": False, "frames": [], "code": 1006}
    assert await everything(served) == before
