"""Authentication fails with every secret that is missing, wrong, expired, used or of the wrong kind, on every route."""

import asyncio
from datetime import timedelta

import pytest

from live_server import eventually
from network.raw_requests import code_of, open_socket
from wakeful.http.auth import COOKIE, PAGE_HEADER
from wakeful.people import service

pytestmark = [pytest.mark.security, pytest.mark.both_stores]

WRONG_TOKEN, WRONG_PASS = (401, "wrong_token"), (401, "wrong_pass")
NO_SECRET, NOT_SIGNED_IN = (401, "page_secret_missing"), (401, "not_signed_in")


@pytest.fixture
async def nobody(place):
    """A client of the attacked node that brings nothing."""
    async with place.door.client("") as client:
        del client.headers["Authorization"]
        yield client


async def log_in(server, nobody):
    """Return the cookie and the page's secret of a new login."""
    code = (await server.call("POST", "/login-links", json={}))["path"].rpartition("=")[2]
    answer = await nobody.post("/login", data={"code": code})
    cookie = answer.cookies[COOKIE]
    nobody.cookies.clear()
    return cookie, answer.json()["page_secret"], code


async def ticket(server):
    return (await server.call("POST", "/ws-ticket"))["ticket"]


async def download(server, path="/me"):
    return (await server.call("POST", "/download-tickets", json={"path": path}))["path"]


async def test_nothing_opens_without_a_right_token(place, nobody):
    session = await place.home.session()
    path = f"/ws/sessions/{session}"
    wrong = {"Authorization": "Bearer wkf_wrong"}
    assert code_of(await nobody.get("/me")) == NOT_SIGNED_IN
    assert code_of(await nobody.get(f"/me?token={place.home.rest.headers['authorization'][7:]}")) == NOT_SIGNED_IN
    assert code_of(await nobody.get("/me", headers=wrong)) == WRONG_TOKEN
    assert await open_socket(place.door, path) == NOT_SIGNED_IN
    assert await open_socket(place.door, "/ws/events") == NOT_SIGNED_IN
    assert await open_socket(place.door, path, wrong) == WRONG_TOKEN


async def test_a_revoked_token_opens_nothing_on_any_node(place, nobody):
    made = await place.home.call("POST", "/tokens", json={"name": "t", "scope": "admin"})
    headers = {"Authorization": f"Bearer {made['secret']}"}
    assert (await nobody.get("/me", headers=headers)).status_code == 200
    waiting = (await nobody.post("/ws-ticket", headers=headers)).json()["ticket"]
    await place.home.call("DELETE", f"/tokens/{made['token']['id']}")

    async def is_out():
        return (await nobody.get("/me", headers=headers)).status_code == 401

    await eventually(is_out, 3)  # another node caches tokens for a second
    assert await open_socket(place.door, "/ws/events", headers) == WRONG_TOKEN
    assert await open_socket(place.door, f"/ws/events?ticket={waiting}") == WRONG_PASS


async def test_a_ticket_that_is_used_old_or_for_something_else_opens_nothing(place, nobody, monkeypatch):
    path = f"/ws/sessions/{await place.home.session()}"
    used = await ticket(place.home)
    assert await open_socket(place.home, f"{path}?ticket={used}") == "session_sync"
    assert await open_socket(place.door, f"{path}?ticket={used}") == WRONG_PASS
    got = await download(place.home)
    assert (await nobody.get(got)).status_code == 200
    assert code_of(await nobody.get(got)) == WRONG_PASS
    for_me, for_socket = await download(place.home), await ticket(place.home)
    assert code_of(await nobody.get(for_me.replace("/me?", "/tokens?"))) == WRONG_PASS
    assert code_of(await nobody.get(f"/me?ticket={for_socket}")) == WRONG_PASS
    assert await open_socket(place.door, f"{path}?{for_me.partition('?')[2]}") == WRONG_PASS
    assert (await nobody.get(for_me)).status_code == 200  # all that used nothing up
    monkeypatch.setattr(service, "TICKET_LASTS", timedelta(0))
    assert await open_socket(place.door, f"{path}?ticket={await ticket(place.home)}") == WRONG_PASS
    assert code_of(await nobody.get(await download(place.home))) == WRONG_PASS


async def test_of_many_who_use_a_ticket_or_a_code_at_once_one_is_let_in(place, nobody):
    both = [place.home, place.door] * 2
    shared = await ticket(place.home)
    opened = await asyncio.gather(*[open_socket(each, f"/ws/events?ticket={shared}") for each in both])
    assert sorted(opened, key=str) == [WRONG_PASS] * 3 + ["session_sync"]
    path = await download(place.home)
    got = await asyncio.gather(*[nobody.get(each.address + path) for each in both])
    assert sorted(answer.status_code for answer in got) == [200, 401, 401, 401]
    link = (await place.home.call("POST", "/login-links", json={}))["path"]
    code = {"code": link.rpartition("=")[2]}
    logins = await asyncio.gather(*[nobody.post(f"{each.address}/login", data=code) for each in both])
    assert sorted(answer.status_code for answer in logins) == [200, 401, 401, 401]
    assert sum("page_secret" in answer.text for answer in logins) == 1


async def test_half_of_a_login_opens_nothing(place, nobody):
    cookie, secret, code = await log_in(place.home, nobody)
    other_cookie, other_secret, _ = await log_in(place.home, nobody)
    ours = {"Origin": place.door.address}
    both = {"Cookie": f"{COOKIE}={cookie}", PAGE_HEADER: secret}
    tried = [
        ({"Cookie": f"{COOKIE}={cookie}"}, NO_SECRET),
        ({PAGE_HEADER: secret}, NOT_SIGNED_IN),
        ({"Cookie": f"{COOKIE}={secret}", PAGE_HEADER: cookie}, (401, "login_ended")),
        (both | {PAGE_HEADER: other_secret}, NO_SECRET),
        (both | {"Cookie": f"{COOKIE}={other_cookie}"}, NO_SECRET),
        ({"Authorization": f"Bearer {cookie}"}, WRONG_TOKEN),
        ({"Authorization": f"Bearer {secret}"}, WRONG_TOKEN),
    ]
    for headers, refused in tried:
        for method, path in (("GET", "/me"), ("POST", "/ws-ticket"), ("POST", "/download-tickets")):
            if refused != WRONG_TOKEN or path == "/me":  # ten wrong tokens a minute are answered
                assert code_of(await nobody.request(method, path, headers=headers | ours)) == refused, headers
        assert await open_socket(place.door, "/ws/events", headers, origin=place.door.address) == refused, headers
    assert (await nobody.get("/me", headers=both | ours)).status_code == 200
    assert code_of(await nobody.post("/login", data={"code": code})) == WRONG_PASS
    assert code_of(await nobody.post("/logout", headers=both)) == (403, "origin_needed")
    assert (await nobody.post("/logout", headers=both | ours)).status_code == 200

    async def is_out():
        return (await nobody.get("/me", headers=both | ours)).status_code == 401

    await eventually(is_out, 3)
