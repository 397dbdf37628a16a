"""DNS rebinding and foreign pages: which Host, Origin and request target is answered, over HTTP and WebSocket."""

from urllib.parse import urlsplit

import pytest

from live_server import TOKEN
from network.raw_requests import open_socket, send_raw

pytestmark = [pytest.mark.security, pytest.mark.both_stores]

UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
BEARER = f"Authorization: Bearer {TOKEN}"
WRONG_HOST, UNREADABLE, WRONG_ORIGIN = (403, "wrong_host"), (400, "unreadable_host"), (403, "wrong_origin")


async def knock(server, *lines, target="/me", is_socket=False):
    """Send a request with exactly these header lines, with the owner's token."""
    target = "/ws/events" if is_socket and target == "/me" else target
    head = [f"GET {target} HTTP/1.1", BEARER, *lines, *(UPGRADE if is_socket else ("Connection: close",))]
    return await send_raw(server, "\r\n".join([*head, "", ""]).encode("latin-1"))


@pytest.fixture
def host(place):
    return urlsplit(place.door.address).netloc


def foreign_hosts(host):
    name, _, port = host.partition(":")
    return [
        f"evil.test:{port}",
        f"localhost.evil.test:{port}",
        f"{name}.evil.test:{port}",
        f"{name}:{int(port) - 1}",
        name,
        f"127.0.0.2:{port}",
        f"0.0.0.0:{port}",
        f"[::2]:{port}",
        f"localhost.:{port}",
        f"2130706433:{port}",
        f"127.1:{port}",
    ]


@pytest.mark.parametrize("is_socket", [False, True])
async def test_only_its_own_names_and_port_are_answered(place, host, is_socket):
    for name in foreign_hosts(host):
        assert await knock(place.door, f"Host: {name}", is_socket=is_socket) == WRONG_HOST, name
        origin = f"Origin: http://{name}"  # as the page of such a name sends it
        assert await knock(place.door, f"Host: {name}", origin, is_socket=is_socket) == WRONG_HOST, name
    if place.is_two:
        other = urlsplit(place.home.address).netloc
        assert await knock(place.door, f"Host: {other}", is_socket=is_socket) == WRONG_HOST
    assert (await knock(place.door, f"Host: {host}", is_socket=is_socket))[0] == (101 if is_socket else 200)


@pytest.mark.parametrize("is_socket", [False, True])
async def test_a_request_has_exactly_one_readable_host(place, host, is_socket):
    port = host.partition(":")[2]
    for lines in (
        ["Host: "],
        [f"Host: {host}", f"Host: evil.test:{port}"],
        [f"Host: evil.test:{port}", f"Host: {host}"],
        [f"Host: {host}", f"Host: {host}"],
        [f"Host: {host}, evil.test"],
        [f"Host: {host}@evil.test"],
        [f"Host: evil.test@{host}"],
        [f"Host: {host}/"],
        [f"Host: {host} evil.test"],
        [f"Host: http://{host}"],
    ):
        status, code = await knock(place.door, *lines, is_socket=is_socket)
        assert status == 400, (lines, status)
        assert code in ("unreadable_host", None), lines  # None: uvicorn itself refuses what is not HTTP
    assert (await knock(place.door, is_socket=is_socket))[0] == 400


@pytest.mark.parametrize("is_socket", [False, True])
async def test_a_target_that_names_another_host_is_not_served(place, host, is_socket):
    """A proxy in between may use the target alone, so the two must not differ."""
    path = "/ws/events" if is_socket else "/me"
    for target in (f"http://evil.test{path}", f"https://{host}{path}", f"http://{host}@evil.test{path}"):
        status, _ = await knock(place.door, f"Host: {host}", target=target, is_socket=is_socket)
        assert status in (400, 403, 404), (target, status)
    for target in (f"//evil.test{path}", f"//{host}{path}", f"/{path}", f"{path}/../..{path}", "*", "evil.test:443"):
        status, _ = await knock(place.door, f"Host: {host}", target=target, is_socket=is_socket)
        assert status in (400, 403, 404, 405), (target, status)


@pytest.mark.parametrize("is_socket", [False, True])
async def test_a_page_from_elsewhere_is_refused_whatever_it_brings(place, host, is_socket):
    port = host.partition(":")[2]
    for origin in (
        "null",
        "",
        "http://evil.test",
        f"http://evil.test:{port}",
        f"http://localhost:{port}",
        f"https://{host}",
        f"http://{host}.evil.test",
        f"http://{host}/",
        f"http://{host} http://evil.test",
        f"http://{host}@evil.test",
        "http://127.0.0.1",
        "file://",
        "chrome-extension://abcdefghijklmnop",
    ):
        answer = await knock(place.door, f"Host: {host}", f"Origin: {origin}", is_socket=is_socket)
        assert answer == WRONG_ORIGIN, origin
    twice = [f"Host: {host}", f"Origin: http://{host}", "Origin: http://evil.test"]
    # The WebSocket library refuses two of them before we are asked, in words of its own.
    assert await knock(place.door, *twice, is_socket=is_socket) == ((400, None) if is_socket else WRONG_ORIGIN)


@pytest.mark.parametrize("store_settings", ["two nodes"], indirect=True)
async def test_the_page_of_one_node_does_not_talk_to_the_other(place):
    ticket = (await place.home.call("POST", "/ws-ticket"))["ticket"]
    opened = await open_socket(place.door, f"/ws/events?ticket={ticket}", origin=place.home.address)
    assert opened == WRONG_ORIGIN
    assert await open_socket(place.door, f"/ws/events?ticket={ticket}", origin=place.door.address) == "session_sync"
