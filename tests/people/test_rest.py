"""The routes of users and tokens, the login, and the one shape of every failure."""

import re
from datetime import datetime, timedelta

import pytest
from pydantic import SecretStr

from asgi_client import ADDRESS, CHOSEN, opened_doors
from harness import Harness
from wakeful.core.types import Scope
from wakeful.http.auth import COOKIE, PAGE_HEADER

OURS = {"origin": ADDRESS}


@pytest.fixture
async def owner(doors):
    async with doors.client(token=CHOSEN) as client:
        yield client


@pytest.fixture
async def nobody(doors):
    async with doors.client() as client:
        yield client


async def client_of(doors, owner, scope: Scope = "admin", **person):
    """A client with a new token; for a new person, if one is described."""
    asked = {"name": "script", "scope": scope}
    if person:
        asked["user_id"] = (await owner.post("/users", json=person)).json()["id"]
    return doors.client(token=(await owner.post("/tokens", json=asked)).json()["secret"])


def code_of(answer):
    assert set(answer.json()) == {"error"}
    return answer.json()["error"]["code"]


# ── Users ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_me_is_who_brought_the_token(owner, doors):
    told = (await owner.get("/me")).json()
    assert (told["user"]["name"], told["user"]["role"], told["scope"]) == ("Owner", "owner", "admin")
    assert told["token_id"] == doors.owner.token_id


async def test_an_owner_adds_changes_and_removes_people(owner):
    added = await owner.post("/users", json={"name": " Bob "})
    bob = added.json()
    assert (added.status_code, bob["name"], bob["role"]) == (201, "Bob", "user")
    changed = await owner.patch(f"/users/{bob['id']}", json={"role": "owner"})
    assert changed.json() == bob | {"role": "owner"}
    assert (await owner.get(f"/users/{bob['id']}")).json() == changed.json()
    assert [user["id"] for user in (await owner.get("/users")).json()["users"]][1:] == [bob["id"]]
    assert (await owner.delete(f"/users/{bob['id']}")).json() == {"ok": True, "wakes_left": 0}
    assert code_of(await owner.get(f"/users/{bob['id']}")) == "no_such_user"


# ── Tokens ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_tokens_secret_is_shown_once(owner):
    made = (await owner.post("/tokens", json={"name": "script", "scope": "chat"})).json()
    listed = await owner.get("/tokens")
    assert made["token"] in listed.json()["tokens"]
    assert made["secret"].startswith("wkf_")
    assert made["secret"] not in listed.text
    assert "digest" not in listed.text


# ── Login ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def link(owner):
    return (await owner.post("/login-links", json={})).json()["path"]


def code_in(path):
    return path.partition("code=")[2]


async def test_opening_a_login_link_uses_nothing_up(owner, nobody):
    path = await link(owner)
    pages = [await nobody.get(path) for _ in range(3)]
    assert {page.status_code for page in pages} == {200}
    assert {page.headers.get("set-cookie") for page in pages} == {None}
    sent = await nobody.post("/login", data={"code": code_in(path)}, headers=OURS)
    assert sent.status_code == 200


async def test_the_login_page_sends_the_code_on_and_loads_only_its_icon(owner, nobody):
    path = await link(owner)
    page = await nobody.get(path)
    assert re.findall(r"fetch\(`(.*?)`", page.text) == ["${base}/login"]
    assert re.findall(r'name="code" value="(.*?)"', page.text) == [code_in(path)]
    assert re.findall(r"\bsrc=|https?:", page.text) == []
    assert re.findall(r'href="(.*?)"', page.text) == ["/ui/icon.svg"]
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'sha256-")


async def test_what_stands_in_a_login_link_cannot_become_part_of_the_page(nobody):
    page = await nobody.get("/login", params={"code": '"><script>alert(1)</script>'})
    assert "<script>alert" not in page.text


async def log_in(owner, browser, **more):
    """Log a client in as a page does: the cookie is kept by itself, the secret is sent with everything."""
    answer = await browser.post("/login", data={"code": code_in(await link(owner))}, headers=OURS | more)
    assert answer.status_code == 200, answer.text
    browser.headers[PAGE_HEADER] = answer.json()["page_secret"]
    return answer


async def test_logging_in_sets_a_cookie_that_no_script_and_no_other_site_can_use(owner, nobody):
    answer = await log_in(owner, nobody)
    kept = answer.headers["set-cookie"]
    assert kept.startswith(f"{COOKIE}=wkf_")
    assert {part.strip().lower() for part in kept.split(";")[1:]} == {
        "httponly",
        "samesite=strict",
        "path=/",
        f"max-age={90 * 24 * 3600}",
    }
    assert (await nobody.get("/me")).json()["user"]["role"] == "owner"


async def test_the_cookie_is_for_tls_alone_where_the_page_came_over_it(tmp_path):
    settings = {"token": SecretStr(CHOSEN), "allowed_hosts": ("wakeful.example.org",), "store_encryption": False}
    async with opened_doors(Harness({"data_dir": tmp_path, "config_dir": tmp_path} | settings)) as doors:
        code = await doors.accounts.make_login_code(doors.owner)
        headers = {"host": "wakeful.example.org", "origin": "https://wakeful.example.org"}
        async with doors.client(headers=headers) as client:
            answer = await client.post("/login", data={"code": code})
            kept = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
            page = {PAGE_HEADER: answer.json()["page_secret"]}
            me = await client.get("/me", headers=kept | page)
            out = await client.post("/logout", headers=kept | page)
    parts = [part.strip().lower() for part in answer.headers["set-cookie"].split(";")]
    assert kept["cookie"].startswith("__Host-wakeful=wkf_")
    assert {"secure", "path=/", "httponly", "samesite=strict"} <= set(parts)
    assert not any(part.startswith("domain") for part in parts)
    assert (me.status_code, out.status_code) == (200, 200)
    assert "__Host-wakeful=" in out.headers["set-cookie"]  # a browser takes even its end only if it is Secure
    assert "; secure" in out.headers["set-cookie"].lower()


async def test_a_login_link_works_once_and_says_so(owner, nobody):
    code = code_in(await link(owner))
    await nobody.post("/login", data={"code": code}, headers=OURS)
    again = await nobody.post("/login", data={"code": code}, headers=OURS)
    assert (again.status_code, code_of(again)) == (401, "wrong_pass")
    assert "was used before" in again.json()["error"]["message"]
    assert "prints one each time it starts" in again.json()["error"]["hint"]


async def test_a_token_logs_a_browser_in_with_both_secrets(doors, nobody):
    answer = await nobody.post("/login", data={"token": f" {doors.secret}\n"}, headers=OURS)
    assert {"httponly", "samesite=strict"} <= {part.strip().lower() for part in answer.headers["set-cookie"].split(";")}
    me = await nobody.get("/me", headers={PAGE_HEADER: answer.json()["page_secret"]})
    assert (me.status_code, me.json()["user"]["role"], me.json()["scope"]) == (200, "owner", "admin")
    assert (await nobody.get("/me")).status_code == 401  # the cookie alone


async def test_a_token_that_may_not_make_login_links_logs_no_browser_in(owner, nobody):
    made = (await owner.post("/tokens", json={"name": "phone", "scope": "schedule"})).json()
    answer = await nobody.post("/login", data={"token": made["secret"]}, headers=OURS)
    assert (answer.status_code, code_of(answer), dict(nobody.cookies)) == (403, "scope_too_small", {})


async def test_a_revoked_token_and_a_browsers_cookie_log_no_browser_in(owner, nobody):
    made = (await owner.post("/tokens", json={"name": "old", "scope": "admin"})).json()
    await owner.delete(f"/tokens/{made['token']['id']}")
    await log_in(owner, nobody)
    for token in (made["secret"], nobody.cookies[COOKIE], nobody.headers[PAGE_HEADER]):
        answer = await nobody.post("/login", data={"token": token}, headers=OURS)
        assert (answer.status_code, code_of(answer)) == (401, "wrong_token")
        assert "`wakeful login`" in answer.json()["error"]["hint"]


async def test_wrong_tokens_at_the_login_are_limited_and_a_right_one_gets_in(doors, nobody):
    answers = [await nobody.post("/login", data={"token": f"guess-{number}"}) for number in range(11)]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429]
    assert (await nobody.post("/login", data={"token": doors.secret}, headers=OURS)).status_code == 200


@pytest.mark.parametrize("form", [{}, {"code": "x", "token": "y"}])
async def test_a_login_has_either_a_code_or_a_token(nobody, form):
    answer = await nobody.post("/login", data=form, headers=OURS)
    assert (answer.status_code, code_of(answer)) == (400, "nothing_to_log_in_with")


async def test_another_site_cannot_log_a_browser_in(owner, nobody):
    answer = await nobody.post(
        "/login", data={"code": code_in(await link(owner))}, headers={"origin": "http://evil.test"}
    )
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


async def test_logging_out_ends_the_cookie_and_the_page_secret(owner, nobody, doors):
    await log_in(owner, nobody)
    cookie, page = nobody.cookies[COOKIE], nobody.headers[PAGE_HEADER]
    assert (await nobody.post("/logout", headers=OURS)).json() == {"ok": True}
    assert COOKIE not in nobody.cookies
    async with doors.client(cookies={COOKIE: cookie}, headers={PAGE_HEADER: page}) as stolen:
        assert code_of(await stolen.get("/me")) == "login_ended"


async def test_logging_in_again_ends_the_browsers_earlier_login(owner, nobody, doors):
    await log_in(owner, nobody)
    cookie, page = nobody.cookies[COOKIE], nobody.headers[PAGE_HEADER]
    await log_in(owner, nobody)
    assert (await nobody.get("/me")).status_code == 200
    async with doors.client(cookies={COOKIE: cookie}, headers={PAGE_HEADER: page}) as earlier:
        assert code_of(await earlier.get("/me")) == "login_ended"
    kinds = [token["kind"] for token in (await owner.get("/tokens")).json()["tokens"]]
    assert kinds.count("browser") == 1


async def test_someone_elses_login_in_the_same_browser_leaves_the_first_ones(owner, nobody, doors):
    await log_in(owner, nobody)
    first = {"cookie": f"{COOKIE}={nobody.cookies[COOKIE]}", PAGE_HEADER: nobody.headers[PAGE_HEADER]}
    async with await client_of(doors, owner, name="Bob") as bob:
        await log_in(bob, nobody)
    async with doors.client(headers=first) as client:
        assert (await client.get("/me")).json()["user"]["name"] == "Owner"


# ── Only soon after a login ─────────────────────────────────────────────────────────────────────────────────────────

MINTING = (("/tokens", {"name": "script", "scope": "read"}), ("/login-links", {}))


async def test_a_browser_makes_tokens_and_links_within_ten_minutes_of_its_login(owner, nobody, doors):
    await log_in(owner, nobody)
    doors.clock.advance(timedelta(minutes=10))
    for path, asked in MINTING:
        assert (await nobody.post(path, json=asked, headers=OURS)).status_code == 201
    doors.clock.advance(timedelta(seconds=1))
    for path, asked in MINTING:
        answer = await nobody.post(path, json=asked, headers=OURS)
        assert (answer.status_code, code_of(answer)) == (403, "login_too_old")
        assert "`wakeful login` makes one" in answer.json()["error"]["hint"]
        assert (await owner.post(path, json=asked)).status_code == 201
    assert (await nobody.get("/tokens")).status_code == 200


async def renew(browser, proof):
    return await browser.post("/login/renew", json={"proof": proof}, headers=OURS)


async def code_for(client):
    return (await client.post("/login-links", json={})).json()["path"].partition("code=")[2]


async def test_a_login_code_or_a_token_renews_the_login_in_place(owner, nobody, doors):
    await log_in(owner, nobody)
    me, cookie = (await nobody.get("/me")).json(), nobody.cookies[COOKIE]
    for has_link in (True, False):
        doors.clock.advance(timedelta(minutes=11))
        proof = await code_for(owner) if has_link else CHOSEN
        assert (await nobody.post("/login-links", json={}, headers=OURS)).status_code == 403
        assert (await renew(nobody, proof)).json() == {"ok": True}
        for path, asked in MINTING:
            assert (await nobody.post(path, json=asked, headers=OURS)).status_code == 201
    assert (await nobody.get("/me")).json() == me  # the same login: tabs and sockets of this browser go on
    assert nobody.cookies[COOKIE] == cookie


async def test_a_proof_that_is_wrong_used_or_of_somebody_else_renews_nothing(owner, nobody, doors):
    await log_in(owner, nobody)
    used = await code_for(owner)
    assert (await renew(nobody, used)).status_code == 200
    doors.clock.advance(timedelta(minutes=11))
    async with await client_of(doors, owner, name="Bob") as bob:
        theirs = await code_for(bob)
        token = bob.headers["authorization"].partition(" ")[2]
        for proof in (used, "wrong", theirs, token):
            answer = await renew(nobody, proof)
            assert (answer.status_code, code_of(answer)) == (403, "wrong_proof")
        async with doors.client() as browser:  # his link was not used up
            assert (await browser.post("/login", data={"code": theirs}, headers=OURS)).status_code == 200
    small = (await owner.post("/tokens", json={"name": "small", "scope": "schedule"})).json()["secret"]
    assert code_of(await renew(nobody, small)) == "scope_too_small"
    assert code_of(await nobody.post("/login-links", json={}, headers=OURS)) == "login_too_old"


async def test_wrong_proofs_are_limited_as_wrong_tokens_are(owner, nobody):
    await log_in(owner, nobody)
    codes = [code_of(await renew(nobody, "wrong")) for _ in range(11)]
    assert codes == ["wrong_proof"] * 10 + ["too_many_tries"]
    assert (await renew(nobody, CHOSEN)).status_code == 200  # a right one is never locked out


async def test_only_a_browsers_login_is_renewed_and_only_by_its_own_page(owner, nobody):
    assert code_of(await owner.post("/login/renew", json={"proof": CHOSEN})) == "not_a_browser"
    assert code_of(await renew(nobody, CHOSEN)) == "not_signed_in"
    await log_in(owner, nobody)
    assert code_of(await nobody.post("/login/renew", json={"proof": CHOSEN})) == "origin_needed"
    elsewhere = {"origin": "http://evil.test"}
    assert (await nobody.post("/login/renew", json={"proof": CHOSEN}, headers=elsewhere)).status_code == 403


# ── Bad input ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "field", "shown"),
    [
        pytest.param({"name": "x", "scope": "root"}, "scope", "'root'", id="a scope that is none"),
        pytest.param({"scope": "read"}, "name", "missing", id="something left out"),
        pytest.param({"name": "", "scope": "read"}, "name", "''", id="empty"),
        pytest.param({"name": " \u3000 ", "scope": "read"}, "name", "`name`", id="blank"),
        pytest.param({"name": "a\x00b", "scope": "read"}, "name", "x00", id="a character no database keeps"),
        pytest.param({"name": "x" * 5000, "scope": "read"}, "name", "…", id="too long, and not repeated in full"),
        pytest.param({"name": "x", "scope": "read", "owner": 1}, "owner", "1", id="a field we do not know"),
        pytest.param({"name": "x", "scope": "read", "expires_at": "2030-01-01T00:00"}, "expires_at", "2030", id="zone"),
    ],
)
async def test_a_value_that_is_refused_is_named_with_its_field(owner, body, field, shown):
    answer = await owner.post("/tokens", json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["field"]) == (422, "invalid_value", field)
    assert shown in error["message"]
    assert len(error["message"]) < 500


async def test_a_rule_that_refuses_names_the_field_too(owner):
    answer = await owner.post("/tokens", json={"name": "x", "scope": "read", "expires_at": "2001-01-01T00:00:00Z"})
    assert (answer.status_code, code_of(answer)) == (400, "expires_in_the_past")
    assert answer.json()["error"]["field"] == "expires_at"


async def test_a_token_expires_at_one_time_or_after_one_length(doors, owner):
    asked = {"name": "x", "scope": "read", "expires_in": 3_600}
    made = (await owner.post("/tokens", json=asked)).json()["token"]
    assert datetime.fromisoformat(made["expires_at"]) == doors.clock.now() + timedelta(hours=1)
    answer = await owner.post("/tokens", json=asked | {"expires_at": "2030-01-01T00:00:00Z"})
    assert (answer.status_code, code_of(answer)) == (400, "two_expiries")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        pytest.param(b'{"name": ', "invalid_json", id="half a body"),
        pytest.param(b"[]", "invalid_value", id="a list"),
        pytest.param(b'{"name": "\\ud800", "scope": "read"}', "invalid_value", id="half a character"),
        pytest.param(b'{"\\ud800": 1, "name": "x", "scope": "read"}', "invalid_value", id="half a character as a key"),
        pytest.param(b"\x80abc", "unreadable_body", id="not text"),
        pytest.param(b"[" * 100_000, "unreadable_body", id="very deep"),
    ],
)
async def test_a_body_that_is_no_good_is_refused_in_the_one_shape(owner, content, code):
    answer = await owner.post("/tokens", content=content, headers={"content-type": "application/json"})
    assert (answer.status_code in (400, 422), code_of(answer)) == (True, code)


@pytest.mark.parametrize("path", ["/users/%00", "/users/a%20b", "/users/" + "x" * 65])
async def test_what_can_be_no_id_is_refused(owner, path):
    assert (await owner.get(path)).json()["error"]["field"] == "user_id"


async def test_nothing_there_and_a_wrong_method_have_the_shape_too(owner):
    nothing, method = await owner.get("/nothing"), await owner.put("/me")
    assert (nothing.status_code, code_of(nothing)) == (404, "not_found")
    assert (method.status_code, code_of(method), method.headers["allow"]) == (405, "method_not_allowed", "GET")
    assert "'/nothing'. GET /docs" in nothing.json()["error"]["message"]
    assert method.json()["error"]["message"] == "'/me' does not take PUT. It takes GET."


async def test_a_failure_of_ours_tells_nothing_of_our_insides(owner):
    answer = await owner.get("/boom")
    assert (answer.status_code, code_of(answer)) == (500, "internal_error")
    assert "inside" not in answer.text
