"""Browsers logged in with 0.1 have to log in again, with an explanation; API tokens keep working."""

import pytest

from upgrade.old_data import change
from wakeful.http.auth import COOKIE, PAGE_HEADER

pytestmark = pytest.mark.upgrade


@pytest.fixture
async def old(old):
    """A store that 0.2 has upgraded from 0.1, whose logins were a cookie alone."""
    await change(old, "UPDATE tokens SET page_digest = NULL")
    return old


async def test_the_old_cookie_opens_nothing_and_the_answer_says_why(upgraded, old):
    cookie = old.facts["cookie"]
    async with upgraded.client(old.facts["token"]) as client:
        del client.headers["Authorization"]
        kept = {"Cookie": f"{COOKIE}={cookie}", "Origin": upgraded.address}
        answers = [
            await client.get("/me", headers=kept),
            await client.get("/me", headers=kept | {PAGE_HEADER: cookie}),
            await client.post("/tokens", json={"name": "evil", "scope": "admin"}, headers=kept),
            await client.get("/me", headers={"Authorization": f"Bearer {cookie}"}),
        ]
    codes = [(answer.status_code, answer.json()["error"]["code"]) for answer in answers]
    assert codes == [(401, "login_outdated")] * 3 + [(401, "wrong_token")]
    said = answers[0].json()["error"]
    assert "Wakeful was upgraded" in said["message"]
    assert "`wakeful login` makes one" in said["hint"]


async def test_one_new_login_is_enough_and_the_old_one_is_gone_from_the_list(upgraded, old):
    tokens = (await upgraded.rest.get("/tokens")).json()["tokens"]
    assert [token for token in tokens if token["kind"] == "browser"] == []
    link = (await upgraded.rest.post("/login-links", json={})).json()["path"]
    kept = {"Cookie": f"{COOKIE}={old.facts['cookie']}", "Origin": upgraded.address}
    async with upgraded.client(old.facts["token"]) as browser:
        del browser.headers["Authorization"]
        told = await browser.post("/login", data={"code": link.partition("code=")[2]}, headers=kept)
        page = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}", PAGE_HEADER: told.json()["page_secret"]}
        assert (await browser.get("/me", headers=page)).json()["user"]["role"] == "owner"
        old_again = await browser.get("/me", headers=kept)
    assert old_again.json()["error"]["code"] == "login_ended"
    tokens = (await upgraded.rest.get("/tokens")).json()["tokens"]
    assert len([token for token in tokens if token["kind"] == "browser"]) == 1
