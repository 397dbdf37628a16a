"""A browser's login has two secrets: one of them alone is useless, and tickets need both."""

import pytest

from asgi_client import ADDRESS, CHOSEN, asgi_server, browser_headers, refusal
from harness import MINUTE
from wakeful.core.identity import MAX_TICKETS
from wakeful.http.auth import COOKIE, PAGE_HEADER

OURS = {"origin": ADDRESS}
PATH = "/me?b=2&a=%2F%27x"


def code_of(answer):
    assert set(answer.json()) == {"error"}
    return answer.json()["error"]["code"]


@pytest.fixture
async def login(doors):
    return await doors.log_in()


@pytest.fixture
async def page(doors, login):
    """A client that sends what the page sends."""
    async with doors.client(headers=browser_headers(login) | OURS) as client:
        yield client


@pytest.fixture
async def nobody(doors):
    async with doors.client() as client:
        yield client


async def test_the_page_is_let_in_with_its_cookie_and_its_secret(page):
    assert (await page.get("/me")).json()["user"]["name"] == "Owner"
    assert (await page.post("/ws-ticket")).status_code == 200


# ── What another server on this host could do with the cookie ───────────────────────────────────────────────────────


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("path", ["/me", "/tokens", "/login-links", "/docs", "/openapi.json", "/nothing", "/ws-ticket"])
async def test_the_cookie_alone_opens_nothing(doors, login, method, path):
    async with doors.client(cookies={COOKIE: login.cookie}, headers=OURS) as thief:
        assert (await thief.request(method, path)).status_code == 401


async def test_the_cookie_in_any_other_place_opens_nothing(doors, login):
    cookie = login.cookie
    async with doors.client(headers=OURS) as thief:
        as_token = await thief.get("/me", headers={"authorization": f"Bearer {cookie}"})
        as_both = await thief.get("/me", headers={"cookie": f"{COOKIE}={cookie}", PAGE_HEADER: cookie})
        as_secret = await thief.get("/me", headers={PAGE_HEADER: cookie})
        as_ticket = await thief.get("/me", params={"ticket": cookie})
        as_code = await thief.post("/login", data={"code": cookie})
        under_the_other_name = await thief.get("/me", headers={"cookie": f"__Host-wakeful={cookie}"})
    answers = [as_token, as_both, as_secret, as_ticket, as_code, under_the_other_name]
    assert [(answer.status_code, code_of(answer)) for answer in answers] == [
        (401, "wrong_token"),
        (401, "page_secret_missing"),
        (401, "not_signed_in"),
        (401, "wrong_pass"),
        (401, "wrong_pass"),
        (401, "page_secret_missing"),
    ]


async def test_the_cookie_opens_no_socket_in_any_place(doors, login):
    async with asgi_server(doors.gate) as port:
        origin, kept = f"http://127.0.0.1:{port}", {"Cookie": f"{COOKIE}={login.cookie}"}
        assert (await refusal(port, kept, origin=origin))[0] == 401
        assert (await refusal(port, kept, origin=origin, query=f"?ticket={login.cookie}"))[0] == 401
        assert (await refusal(port, {"Authorization": f"Bearer {login.cookie}"}))[0] == 401


async def test_a_secure_cookie_counts_before_one_that_another_server_may_have_set(doors, login):
    headers = browser_headers(login)
    headers["cookie"] = f"{COOKIE}=wkf_planted; __Host-wakeful={login.cookie}"
    async with doors.client(headers=headers) as client:
        assert (await client.get("/me")).status_code == 200


# ── Downloads ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def ticketed(client, path=PATH):
    answer = await client.post("/download-tickets", json={"path": path})
    assert (answer.status_code, answer.json()["expires_in"]) == (200, 30), answer.text
    return answer.json()["path"]


async def test_a_ticket_gets_one_path_once(page, nobody):
    path = await ticketed(page)
    first, second = await nobody.get(path), await nobody.get(path)
    assert (first.status_code, first.json()["user"]["name"]) == (200, "Owner")
    assert (second.status_code, code_of(second)) == (401, "wrong_pass")
    assert "POST /download-tickets" in second.json()["error"]["hint"]


async def test_a_programs_token_makes_such_tickets_too(doors, nobody):
    async with doors.client(token=CHOSEN) as program:
        path = await ticketed(program, "/me")
    assert (await nobody.get(path)).status_code == 200


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda path: path.replace("/me", "/tokens"), id="another path"),
        pytest.param(lambda path: path.replace("b=2", "b=3"), id="another query"),
        pytest.param(lambda path: path.replace("b=2&", ""), id="less of the query"),
        pytest.param(lambda path: path + "&c=1", id="more of it"),
    ],
)
async def test_a_ticket_gets_nothing_else(page, nobody, other):
    path = await ticketed(page)
    assert code_of(await nobody.get(other(path))) == "wrong_pass"
    assert (await nobody.get(path)).status_code == 200


async def test_a_ticket_is_for_get_alone(page, nobody):
    path = await ticketed(page, "/tokens")
    for method in ("POST", "DELETE", "HEAD", "OPTIONS"):
        assert (await nobody.request(method, path)).status_code == 401
    assert (await nobody.get(path)).status_code == 200


async def test_a_revoked_logins_tickets_get_nothing(page, nobody):
    path = await ticketed(page)
    await page.post("/logout")
    assert (await nobody.get(path)).status_code == 401


@pytest.mark.parametrize(
    "path",
    ["me", "http://evil.test/", "//evil.test/me", "/\\evil.test/me", "/a#b", "/a b", "/ä", "", "/" + "x" * 8000],
)
async def test_what_is_no_path_of_ours_gets_no_ticket(page, path):
    answer = await page.post("/download-tickets", json={"path": path})
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "path")


async def test_a_token_has_so_many_unused_tickets(doors, page, nobody):
    async with doors.client(token=CHOSEN) as program:
        paths = [await ticketed(program) for _ in range(MAX_TICKETS - 1)]
        assert (await program.post("/ws-ticket")).status_code == 200
        for path in ("/download-tickets", "/ws-ticket"):
            refused = await program.post(path, json={"path": "/me"} if path == "/download-tickets" else None)
            assert (refused.status_code, code_of(refused)) == (429, "too_many_tickets")
            assert refused.headers["Retry-After"] == "30"
        await ticketed(page)  # of another token
        assert (await nobody.get(paths[0])).status_code == 200
        await ticketed(program)
        doors.clock.advance(MINUTE)
        await ticketed(program)
