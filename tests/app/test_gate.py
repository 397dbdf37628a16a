"""The gate over ASGI: Host, Origin, authentication, and the headers of every response."""

from datetime import timedelta

import pytest

from asgi_client import CHOSEN, browser_headers
from harness import MINUTE
from wakeful.app import http as gate_module
from wakeful.http.auth import COOKIE, PAGE_HEADER
from wakeful.http.page import page_router

OURS = "http://127.0.0.1:8420"


@pytest.fixture
async def browser(doors):
    """Return the headers of a browser that has logged in."""
    return browser_headers(await doors.log_in())


def code_of(answer):
    assert set(answer.json()) == {"error"}
    return answer.json()["error"]["code"]


# ── Host and Origin ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["/me", "/healthz", "/login", "/", "/ui/app.js"])
@pytest.mark.parametrize("host", ["evil.test:8420", "localhost.evil.test:8420", "127.0.0.1:9999"])
async def test_a_wrong_host_is_refused_everywhere_even_with_a_token(doors, path, host):
    async with doors.client(token=CHOSEN) as client:
        answer = await client.get(path, headers={"host": host})
    assert (answer.status_code, code_of(answer)) == (403, "wrong_host")


@pytest.mark.parametrize("path", ["/me", "/healthz", "/login"])
@pytest.mark.parametrize("origin", ["null", "http://evil.test", "http://127.0.0.1:3000", "http://localhost:8420"])
async def test_a_page_from_elsewhere_is_refused_even_with_a_token(doors, path, origin):
    async with doors.client(token=CHOSEN) as client:
        answer = await client.get(path, headers={"origin": origin})
    assert (answer.status_code, code_of(answer)) == (403, "wrong_origin")


async def test_our_own_page_is_let_in(doors):
    async with doors.client(token=CHOSEN) as client:
        answer = await client.get("/me", headers={"origin": OURS})
    assert answer.status_code == 200


async def test_a_request_that_another_site_sent_may_not_act(doors):
    async with doors.client(token=CHOSEN, headers={"sec-fetch-site": "cross-site"}) as client:
        acting, asking = await client.post("/ws-ticket"), await client.get("/me")
    assert (code_of(acting), asking.status_code) == ("cross_site", 200)


async def test_forwarded_headers_change_nothing(doors):
    forwarded = {"x-forwarded-host": "127.0.0.1:8420", "x-forwarded-for": "10.9.9.9", "forwarded": "for=10.9.9.9"}
    async with doors.client() as client:
        wrong_host = await client.get("/healthz", headers=forwarded | {"host": "evil.test"})
        for number in range(11):
            headers = forwarded | {"authorization": "Bearer wrong", "x-forwarded-for": f"10.9.9.{number}"}
            last = await client.get("/me", headers=headers)
    assert (wrong_host.status_code, last.status_code) == (403, 429)


# ── Who it is ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/me"),
        ("GET", "/users"),
        ("POST", "/tokens"),
        ("POST", "/logout"),
        ("GET", "/metrics"),
        ("GET", "/docs"),
        ("GET", "/openapi.json"),
        ("GET", "/nothing-here"),
        ("POST", "/"),
        ("GET", "/healthz/"),
        ("GET", "//healthz"),
        ("OPTIONS", "/me"),
    ],
)
async def test_without_a_token_nothing_else_answers(doors, method, path):
    async with doors.client() as client:
        answer = await client.request(method, OURS + path)
    assert (answer.status_code, code_of(answer)) == (401, "not_signed_in")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("path", "status"), [("/healthz", 200), ("/login", 200), ("/", 404), ("/ui", 404), ("/ui/app.js", 404)]
)
async def test_life_signs_the_login_and_the_page_need_no_token(doors, path, status):
    async with doors.client() as client:
        assert (await client.get(path)).status_code == status  # the page itself is not built here


@pytest.mark.parametrize("path", ["/nothing-here", "/agents", "/ui/nothing.txt"])
async def test_a_person_who_opens_what_is_no_page_gets_the_page_and_a_program_json(doors, browser, tmp_path, path):
    (tmp_path / "index.html").write_text("the page")
    doors.app.include_router(page_router(tmp_path))
    navigation = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    async with doors.client(headers=navigation) as client:
        for cookie in ({}, {"cookie": browser["cookie"]}):  # a navigation cannot have the page's secret
            answer = await client.get(path, headers=cookie)
            assert (answer.status_code, answer.text) == (404, "the page")
            assert "script-src" in answer.headers["content-security-policy"]
        bearer = {"authorization": f"Bearer {CHOSEN}"}
        if not path.startswith("/ui/"):
            assert code_of(await client.get(path, headers=bearer)) == "not_found"
            assert code_of(await client.get(path, headers={"authorization": "Bearer wrong"})) == "wrong_token"
            assert code_of(await client.get(path, params={"ticket": "used"})) == "wrong_pass"
            assert (await client.post(path)).status_code == 401
    async with doors.client() as program:
        assert (await program.get(path)).json()["error"]["code"] in ("not_signed_in", "no_such_file")


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer", "", "Basic YTpi", CHOSEN, f"Basic {CHOSEN}"])
async def test_a_wrong_authorization_is_refused(doors, header):
    async with doors.client() as client:
        answer = await client.get("/me", headers={"authorization": header})
    assert (answer.status_code, code_of(answer)) == (401, "wrong_token")


async def test_a_wrong_token_is_not_made_good_by_a_login(doors, browser):
    async with doors.client(token="wrong", headers=browser) as client:
        assert (await client.get("/me")).status_code == 401


async def test_the_scheme_of_a_bearer_is_read_in_any_case(doors):
    async with doors.client() as client:
        assert (await client.get("/me", headers={"authorization": f"bearer {CHOSEN}"})).status_code == 200


async def test_a_token_in_the_address_opens_nothing(doors):
    ticket = await doors.accounts.make_ticket(doors.owner)
    async with doors.client() as client:
        for query in (f"token={CHOSEN}", f"access_token={CHOSEN}", f"ticket={ticket}"):
            assert (await client.get(f"/me?{query}")).status_code == 401


async def test_a_browser_asks_without_an_origin_and_acts_only_with_ours(doors, browser):
    async with doors.client(headers=browser) as client:
        asking = await client.get("/me")
        acting = await client.post("/ws-ticket")
        ours = await client.post("/ws-ticket", headers={"origin": OURS})
    assert (asking.status_code, ours.status_code) == (200, 200)
    assert (acting.status_code, code_of(acting)) == (403, "origin_needed")


async def test_a_programs_token_is_no_cookie(doors):
    async with doors.client(cookies={COOKIE: CHOSEN}, headers={PAGE_HEADER: CHOSEN}) as client:
        assert code_of(await client.get("/me")) == "login_ended"


# ── Guessing ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def be_wrong(doors, client="127.0.0.1", times=10):
    async with doors.client(client=client, token="wrong") as guesser:
        return [(await guesser.get("/me")).status_code for _ in range(times)]


async def test_whoever_guesses_must_wait_loopback_included(doors):
    assert await be_wrong(doors, times=11) == [401] * 10 + [429]
    async with doors.client(token="wrong") as client:
        refused = await client.get("/me")
        doors.clock.advance(timedelta(seconds=59))
        still = await client.get("/me")
        doors.clock.advance(timedelta(seconds=1))
        again = await client.get("/me")
    assert (refused.status_code, code_of(refused), refused.headers["retry-after"]) == (429, "too_many_tries", "60")
    assert (still.status_code, again.status_code) == (429, 401)


async def test_a_right_token_is_let_in_whatever_wrong_ones_came_from_its_address(doors, browser):
    made = await doors.accounts.make_token(doors.owner, name="script", scope="read")
    for number in range(120):
        await be_wrong(doors, f"10.0.0.{number}", times=1)
    assert (await be_wrong(doors, times=20))[-1] == 429
    answers = []
    for token in (CHOSEN, made.secret):
        async with doors.client(token=token) as client:
            answers.append((await client.get("/me")).status_code)
    async with doors.client(headers=browser) as client:
        answers.append((await client.get("/me")).status_code)
        opened = await client.post("/download-tickets", json={"path": "/me"}, headers={"origin": OURS})
    async with doors.client() as client:
        answers.append((await client.get(opened.json()["path"])).status_code)
    assert answers == [200, 200, 200, 200]


async def test_a_right_login_link_works_whatever_wrong_ones_came_from_its_address(doors):
    await be_wrong(doors, times=20)
    async with doors.client() as client:
        wrong = await client.post("/login", data={"code": "wrong"})
        right = await client.post("/login", data={"code": await doors.accounts.make_login_code(doors.owner)})
    assert (wrong.status_code, right.status_code) == (429, 200)


async def test_wrong_tokens_from_very_many_addresses_do_not_fill_the_log(doors, caplog):
    for number in range(300):
        await be_wrong(doors, f"10.0.{number // 250}.{number % 250}", times=1)
    assert caplog.text.count("wrong token") == 100


async def test_guesses_in_the_form_of_our_own_tokens_are_counted_too(doors):
    async with doors.client(token="wkf_" + "a" * 43) as guesser:
        assert [(await guesser.get("/me")).status_code for _ in range(11)] == [401] * 10 + [429]


async def test_a_page_with_an_old_cookie_is_no_guesser(doors):
    async with doors.client(cookies={COOKIE: "wkf_" + "a" * 43}) as client:
        assert {(await client.get("/me")).status_code for _ in range(30)} == {401}


async def test_a_page_from_elsewhere_cannot_lock_anyone_out(doors):
    async with doors.client(token="wrong", headers={"origin": "http://evil.test"}) as client:
        assert {(await client.get("/me")).status_code for _ in range(30)} == {403}
    async with doors.client(token=CHOSEN) as client:
        assert (await client.get("/me")).status_code == 200


async def test_no_secret_is_logged(doors, caplog):
    caplog.set_level("DEBUG")
    async with doors.client(token="wrong-but-secret") as client:
        await client.get("/me")
    async with doors.client(token=CHOSEN) as client:
        made = (await client.post("/tokens", json={"name": "script", "scope": "read"})).json()
    assert "wrong token" in caplog.text
    assert [secret for secret in ("wrong-but-secret", CHOSEN, made["secret"]) if secret in caplog.text] == []


# ── What every answer carries ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        pytest.param("/me", {}, id="an answer"),
        pytest.param("/nothing", {}, id="nothing there"),
        pytest.param("/boom", {}, id="a failure"),
        pytest.param("/me", {"host": "evil.test"}, id="a wrong host"),
        pytest.param("/me", {"authorization": "Bearer wrong"}, id="a wrong token"),
    ],
)
async def test_every_answer_tells_the_browser_to_be_careful(doors, path, headers):
    async with doors.client(token=CHOSEN) as client:
        answer = await client.get(path, headers=headers)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_body_that_is_too_large_is_refused(doors, monkeypatch, is_chunked):
    monkeypatch.setattr(gate_module, "MAX_BODY", 1000)

    async def pieces():
        for _ in range(11):
            yield b"x" * 100

    async with doors.client(token=CHOSEN, headers={"content-type": "application/json"}) as client:
        answer = await client.post("/tokens", content=pieces() if is_chunked else b"x" * 1100)
        smaller = await client.post("/tokens", json={"name": "script", "scope": "read"})
    assert (answer.status_code, code_of(answer)) == (413, "body_too_large")
    assert smaller.status_code == 201


async def test_a_stranger_may_send_only_a_little(doors):
    async with doors.client() as client:
        answer = await client.post("/login", data={"code": "x" * 70_000})
    assert (answer.status_code, code_of(answer)) == (413, "body_too_large")


async def test_a_ticket_of_a_socket_lasts_half_a_minute_and_says_so(doors):
    async with doors.client(token=CHOSEN) as client:
        told = (await client.post("/ws-ticket")).json()
    assert told["expires_in"] == 30
    doors.clock.advance(MINUTE)
    assert await doors.accounts.use_ticket(told["ticket"]) is None
