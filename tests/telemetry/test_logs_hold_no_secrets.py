"""A real server with log level debug: every kind of secret is used, rightly and wrongly, and none is in its log."""

import asyncio
import os
import signal

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from forked_process import Forked
from network.push_service import Browser
from wakeful.http.auth import COOKIE, PAGE_HEADER

CHOSEN = "a-token-that-a-person-chose"
WRONG = "a-guess-that-is-nearly-right"


@pytest.mark.parametrize("style", ["text", "json"])
async def test_no_secret_is_in_the_log_at_level_debug(style, tmp_path):
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    ours = {
        "WAKEFUL_DATA_DIR": str(tmp_path / "data"),
        "WAKEFUL_CONFIG_DIR": str(tmp_path / "config"),
        "WAKEFUL_TOKEN": CHOSEN,
        "WAKEFUL_LOG_LEVEL": "debug",
        "WAKEFUL_LOG_REQUESTS": "true",
        "WAKEFUL_LOG_FORMAT": style,
        "PYTHONASYNCIODEBUG": "1",
    }
    process = Forked(("serve", "--port", "0"), plain | ours, tmp_path / "log")
    try:
        address, link = process.read_addresses()
        secrets = await asyncio.wait_for(use_every_secret(address, link), 60)
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait, 20)
    finally:
        process.close()
    log = await asyncio.to_thread((tmp_path / "log").read_text)
    assert "/ws/events" in log  # it was talkative
    assert "debug" in log
    assert {name for name, secret in secrets.items() if secret in log} == set()


async def use_every_secret(address, link):
    """Come in by every door with every secret, also with wrong ones and in wrong places; return them all."""
    used = {"chosen token": CHOSEN, "wrong token": WRONG, "code": link.partition("code=")[2]}
    async with httpx.AsyncClient(base_url=address, timeout=30, verify=False) as client:
        owner, ours = {"Authorization": f"Bearer {CHOSEN}"}, {"Origin": address}

        await client.get(link)
        told = await client.post("/login", data={"code": used["code"]}, headers=ours)
        used["cookie"], used["page secret"] = client.cookies[COOKIE], told.json()["page_secret"]
        client.cookies.clear()
        page = ours | {"Cookie": f"{COOKIE}={used['cookie']}", PAGE_HEADER: used["page secret"]}
        made = await client.post("/tokens", json={"name": "script", "scope": "chat"}, headers=page)
        used["token"] = made.json()["secret"]
        used["ticket"] = (await client.post("/ws-ticket", headers=page)).json()["ticket"]
        used["next ticket"] = (await client.post("/ws-ticket", headers=page)).json()["ticket"]
        download = (await client.post("/download-tickets", json={"path": "/me"}, headers=page)).json()["path"]
        used["download ticket"] = download.partition("ticket=")[2]
        keys = Browser().keys
        used |= {"endpoint": "9d6c-secret-endpoint", "p256dh": keys["p256dh"], "auth": keys["auth"]}
        subscription = keys | {"name": "Firefox", "endpoint": f"https://192.0.2.1/{used['endpoint']}"}
        assert (await client.post("/push-subscriptions", json=subscription, headers=page)).status_code == 403
        away = subscription | {"endpoint": f"https://nowhere.invalid/{used['endpoint']}"}
        assert (await client.post("/push-subscriptions", json=away, headers=page)).status_code == 201
        used["next code"] = (await client.post("/login-links", json={}, headers=owner)).json()["path"].partition("=")[2]

        for headers in (owner, page, {"Authorization": f"Bearer {used['token']}"}):
            assert (await client.get("/me", headers=headers)).status_code == 200
        assert [(await client.get(download)).status_code for _ in range(2)] == [200, 401]
        for path in (f"/me?token={CHOSEN}", f"/nothing?code={used['next code']}", f"/ui/{used['token']}.js"):
            await client.get(path, headers={"Authorization": f"Bearer {WRONG}"})
        await client.get("/me", headers={"Authorization": f"Basic {WRONG}", "Host": WRONG})
        await client.post("/tokens", content=b'{"name": "' + CHOSEN.encode(), headers=owner | {"X-Bad": "y"})

        socket = f"{address.replace('http', 'ws')}/ws/events"
        await open_socket(f"{socket}?ticket={used['ticket']}", {})
        await open_socket(f"{socket}?after=0", owner)
        for wrong, headers in (
            (f"?ticket={used['ticket']}", {}),
            (f"?token={CHOSEN}&ticket={WRONG}", page),
            ("", {"Cookie": page["Cookie"], "Origin": address}),
            ("", {"Authorization": f"Bearer {WRONG}"}),
            (f"?ticket={used['next ticket']}", {"Origin": "http://evil.test"}),
        ):
            with pytest.raises(InvalidStatus):
                await open_socket(socket + wrong, headers)
        await send_raw(address, f"GET /?ticket={used['next ticket']} HTTP/9.9\r\nCookie: {WRONG}\r\nbad line\r\n\r\n")
        await client.post("/logout", headers=page)
    return used


async def open_socket(address, headers):
    async with connect(address, additional_headers=headers, proxy=None) as socket:
        await socket.send("{}")
        await socket.recv()


async def send_raw(address, request):
    host, _, port = address.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request.encode())
    await reader.read()
    writer.close()
