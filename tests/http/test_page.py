"""The files of the page: who gets which, with which headers."""

import gzip
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from wakeful.http import errors as http_errors
from wakeful.http.page import VIEWS, page_router

ROOT = Path(__file__).parents[2]


@pytest.fixture
def client(tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>the page")
    (tmp_path / "assets/app-1a2b.js").write_text("const long = 1;" * 100)
    (tmp_path / ".stamp").write_text("secret of the build")
    return client_of(tmp_path)


def client_of(folder, base_path=""):
    app = FastAPI()
    app.state.base_path = base_path
    http_errors.install(app)
    app.include_router(page_router(folder))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page.test")


@pytest.mark.parametrize("path", ["/", "/ui/", "/ui/agenda", "/ui/sessions/0a1b", "/ui/agents/7/data?table=x"])
async def test_every_address_of_the_page_is_the_page(client, path):
    answer = await client.get(path)
    assert (answer.status_code, answer.text) == (200, "<!doctype html>the page")
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path", ["/ui/assets/gone-3c4d.js", "/ui/nothing", "/ui/nothing.css", "/ui/.stamp", "/ui/../app.py", "/else"]
)
async def test_what_is_no_file_of_the_page_is_not_answered_with_the_page(client, path):
    assert (await client.get(path)).status_code == 404


def test_the_server_knows_the_views_that_the_page_has():
    routes = re.findall(r'<Route path="/ui/([a-z]+)', (ROOT / "web/src/App.tsx").read_text())
    assert set(routes) | {""} == VIEWS


NAVIGATION = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def test_a_person_who_opens_what_is_no_file_gets_the_page_which_says_so(client):
    etag = (await client.get("/")).headers["etag"]
    answer = await client.get("/ui/nothing.css", headers=NAVIGATION | {"if-none-match": etag})
    assert (answer.status_code, answer.text) == (404, "<!doctype html>the page")


@pytest.mark.parametrize(
    ("path", "base", "to"), [("/ui", "", "/ui/"), ("/ui?agent=a%20b", "/base", "/base/ui/?agent=a%20b")]
)
async def test_the_page_without_its_slash_is_redirected_with_its_query(tmp_path, path, base, to):
    answer = await client_of(tmp_path, base).get(path)
    assert (answer.status_code, answer.headers["location"]) == (307, to)


async def test_the_policy_takes_nothing_inline_and_nothing_from_elsewhere(client):
    policy = (await client.get("/")).headers["content-security-policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert rules["trusted-types"] == "service-worker"
    assert "unsafe" not in policy
    assert "http" not in policy


async def test_a_file_with_a_hash_in_its_name_is_kept_for_ever(client):
    answer = await client.get("/ui/assets/app-1a2b.js")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"


async def test_a_file_is_sent_packed_to_who_can_unpack_it(client):
    packed = await client.get("/ui/assets/app-1a2b.js", headers={"accept-encoding": "gzip"})
    plain = await client.get("/ui/assets/app-1a2b.js", headers={"accept-encoding": "identity"})
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert int(packed.headers["content-length"]) < len(gzip.compress(plain.content)) + 20 < len(plain.content)
    assert packed.text == plain.text


async def test_a_page_that_is_still_the_same_is_not_sent_again(client):
    etag = (await client.get("/")).headers["etag"]
    again = await client.get("/", headers={"if-none-match": etag})
    assert (again.status_code, again.content) == (304, b"")


async def test_a_page_that_was_not_built_says_so(tmp_path):
    answer = await client_of(tmp_path).get("/")
    assert answer.status_code == 503
    assert "make serve" in answer.text


def test_what_the_page_is_made_from_names_no_registry():
    lock = (ROOT / "web/package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert "registry" not in lock.replace("omit-lockfile-registry-resolved", "")
    assert "://" not in (ROOT / "web/node.lock").read_text()


def test_a_page_that_is_built_is_not_built_again(tmp_path):
    script = ROOT / "scripts/page.py"
    assert subprocess.run([sys.executable, script], capture_output=True, check=True).returncode == 0
    again = subprocess.run([sys.executable, script], capture_output=True, check=True, text=True)
    assert again.stdout == ""
