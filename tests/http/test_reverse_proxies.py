"""A server behind real reverse proxies with TLS, at the root of a host and under a path."""

import asyncio
import contextlib
import http.client
import json

import httpx
import pytest
from websockets.asyncio.client import connect

from fixtures.stores import IS_LONG
from live_server import running_server
from network.reverse_proxies import HOST, find_program, running_proxy
from openai_server import say

BASE = "/wakeful"
SILENCE_SECONDS = 75  # nginx closes a connection after 60 seconds without a byte


@pytest.fixture(scope="module")
def module_settings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxied")
    return {
        "data_dir": folder / "data",
        "config_dir": folder / "config",
        "allowed_hosts": [HOST],
        "trusted_proxies": ["127.0.0.1"],
        "base_path": BASE,
        "public_url": f"https://{HOST}",
    }


@pytest.fixture(scope="module")
async def server(module_settings):
    async with running_server(module_settings) as server:
        yield server


@pytest.fixture(scope="module", params=[("nginx", BASE), ("caddy", BASE), ("caddy", "")], ids="-".join)
async def proxy(request, server, tmp_path_factory):
    name, path = request.param
    if find_program(name) is None:
        pytest.skip(f"{name} is not installed")
    upstream = int(server.address.rpartition(":")[2])
    async with running_proxy(name, upstream, tmp_path_factory.mktemp(name), path) as proxy:
        proxy.path = path
        yield proxy


def client(proxy, token, source="127.0.0.1", **headers):
    """Return a client that asks the proxy as a browser would that knows the host's name."""
    given = {"Host": f"{HOST}:{proxy.port}", **({"Authorization": f"Bearer {token}"} if token else {}), **headers}
    way = httpx.AsyncHTTPTransport(verify=proxy.context, local_address=source)
    return httpx.AsyncClient(
        base_url=f"https://127.0.0.1:{proxy.port}{proxy.path}", headers=given, transport=way, timeout=30
    )


def sni(**more):
    return {"extensions": {"sni_hostname": HOST}, **more}


async def test_requests_and_uploads_of_25_mb_pass(server, proxy):
    session_id = await server.session()
    async with client(proxy, server.token) as rest:
        assert (await rest.get("/me", **sni())).json()["user"]["name"] == "Owner"
        files = {"files": ("large.bin", b"x" * 25_000_000)}
        sent = await rest.post(f"/sessions/{session_id}/uploads", files=files, **sni())
        assert (sent.status_code, sent.json()["files"][0]["size"]) == (201, 25_000_000)


async def test_a_socket_passes_and_lives_through_silence(server, proxy):
    session_id = await server.session()
    server.provider.then(say("Through the proxy."))
    address = f"wss://{HOST}:{proxy.port}{proxy.path}/ws/sessions/{session_id}"
    headers = {"Authorization": f"Bearer {server.token}"}
    how = {"host": "127.0.0.1", "port": proxy.port, "ssl": proxy.context, "proxy": None}
    async with connect(address, additional_headers=headers, **how) as socket, asyncio.timeout(30):
        kinds = []
        while kinds.count("heartbeat") < 2:  # nothing else was said meanwhile
            kinds.append(json.loads(await socket.recv())["type"])
        await socket.send(json.dumps({"type": "message", "content": "Hello"}))
        while (frame := json.loads(await socket.recv()))["type"] != "stream_end":
            pass
    assert frame["content"] == "Through the proxy."


@pytest.mark.skipif(not IS_LONG, reason="waits longer than nginx does: WAKEFUL_TEST_LONG=1")
@pytest.mark.parametrize("name", ["nginx", "caddy"])
async def test_a_socket_lives_longer_than_a_proxy_waits_with_the_default_heartbeat(name, tmp_path):
    if find_program(name) is None:
        pytest.skip(f"{name} is not installed")
    settings = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "allowed_hosts": [HOST]}
    async with running_server(settings | {"socket_heartbeat_seconds": 20}) as server:
        upstream = int(server.address.rpartition(":")[2])
        async with running_proxy(name, upstream, tmp_path) as proxy:
            session_id = await server.session()
            address = f"wss://{HOST}:{proxy.port}/ws/sessions/{session_id}"
            headers = {"Authorization": f"Bearer {server.token}"}
            how = {"host": "127.0.0.1", "port": proxy.port, "ssl": proxy.context, "proxy": None, "ping_interval": None}
            async with connect(address, additional_headers=headers, **how) as socket:
                kinds = []
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(SILENCE_SECONDS):
                        while True:
                            kinds.append(json.loads(await socket.recv())["type"])
                assert kinds == ["session_sync", *["heartbeat"] * (1 + SILENCE_SECONDS // 20)]
                server.provider.then(say("Still there."))
                await socket.send(json.dumps({"type": "message", "content": "Hello"}))
                async with asyncio.timeout(30):
                    while (frame := json.loads(await socket.recv()))["type"] != "stream_end":
                        pass
                assert frame["content"] == "Still there."


async def test_wrong_tokens_are_counted_by_the_address_behind_the_proxy(server, proxy):
    person = f"127.1.{proxy.port >> 8}.{proxy.port & 255}"  # an address of this machine that is not the proxy's
    async with client(proxy, "wrong-token-wrong-token", source=person) as rest:
        codes = [(await rest.get("/me", **sni())).status_code for _ in range(12)]
    assert codes[:10] == [401] * 10
    assert codes[-1] == 429
    # A person elsewhere behind the same proxy is not locked out by them.
    elsewhere = {"X-Forwarded-For": f"203.0.113.{proxy.port % 200}"}
    assert await asyncio.to_thread(status_from, server, "127.0.0.1", elsewhere) == 401
    # Nobody else can pretend to be one: 127.0.0.2 is not trusted, and counts as itself.
    for number in range(11):
        pretended = {"X-Forwarded-For": f"198.51.100.{number}"}
        last = await asyncio.to_thread(status_from, server, "127.0.0.2", pretended)
    assert last == 429


def status_from(server, source, headers):
    """Send a wrong token from an address of this machine, around the proxy."""
    port = int(server.address.rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, source_address=(source, 0), timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", "/me", headers={"Authorization": "Bearer wrong-token-wrong-token", **headers})
        return connection.getresponse().status


async def test_the_page_and_its_files_are_under_the_path(server, proxy):
    async with client(proxy, None) as page:
        index = (await page.get("/", **sni())).text
        assert f'"{BASE}/ui/assets/' in index
        assert '"/ui/' not in index
        manifest = (await page.get("/ui/manifest.webmanifest", **sni())).json()
        assert (manifest["start_url"], manifest["scope"]) == (f"{BASE}/", f"{BASE}/")
        worker = await page.get("/ui/sw.js", **sni())
        assert worker.headers["Service-Worker-Allowed"] == f"{BASE}/"
        assert f'data-base="{BASE}"' in (await page.get("/login", **sni())).text


async def test_another_host_is_refused_whatever_is_forwarded(server):
    port = int(server.address.rpartition(":")[2])
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as rest:
        headers = {"Host": "other.example.org", "X-Forwarded-Host": HOST, "Authorization": f"Bearer {server.token}"}
        answer = await rest.get("/me", headers=headers)
    assert answer.json()["error"]["code"] == "wrong_host"


async def test_login_links_have_the_public_address(server, proxy):
    made = await server.call("POST", "/login-links", json={})
    assert made["url"] == f"https://{HOST}{BASE}{made['path']}"
    async with client(proxy, None, Origin=f"https://{HOST}:{proxy.port}") as browser:
        code = made["path"].partition("=")[2]
        answer = await browser.post("/login", data={"code": code}, **sni())
    assert "__Host-wakeful=" in answer.headers["set-cookie"]
    assert "Secure" in answer.headers["set-cookie"]


async def test_probes_need_no_token_and_are_told_no_reasons(server, proxy):
    async with client(proxy, None) as probe:
        assert (await probe.get("/readyz", **sni())).json() == {"ok": True}
        assert (await probe.get("/healthz", **sni())).json()["ok"]
    assert (await server.call("GET", "/readyz")) == {"ok": True, "problems": []}
