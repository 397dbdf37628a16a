"""Requests that the server sends: where a redirect, a changed name or a channel's address would lead it."""

import asyncio
import json
from urllib.parse import quote, unquote

import pytest

from live_server import of_kind
from network.http_server import HttpServer
from network.raw_requests import code_of
from openai_server import call, calls, say
from wakeful.core.errors import WakefulError
from wakeful.core.outgoing import AddressRefused
from wakeful.core.types import Channel
from wakeful.toolbox.web import Fetcher

pytestmark = [pytest.mark.security, pytest.mark.both_stores]

PUBLIC = "93.184.216.34"


class Redirecting:
    """Answers a request for /to/ADDRESS with a redirect there, and notes who came."""

    async def __aenter__(self):
        self.asked = []
        self._server = await asyncio.start_server(self._answer, "127.0.0.1")
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()

    def to(self, address):
        return f"http://127.0.0.1:{self.port}/to/{quote(address, safe='')}"

    async def _answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split()[1]
        self.asked.append(path)
        location = unquote(path.partition("/to/")[2])
        line = f"HTTP/1.1 302 Found\r\nLocation: {location}" if location else "HTTP/1.1 200 OK"
        writer.write(f"{line}\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nSECRET".encode())
        await writer.drain()
        writer.close()


@pytest.fixture
async def site():
    async with Redirecting() as site:
        yield site


async def ask_for(place, *addresses):
    """Have the agent fetch addresses, and return what each call was answered."""
    session = await place.home.session()
    pieces = [
        piece
        for number, address in enumerate(addresses)
        for piece in call("fetch_url", json.dumps({"url": address}), index=number, id=f"call_{number}")
    ]
    place.provider.then(calls(*pieces), say("Done."))
    async with place.door.watch(session) as client:
        frames = await client.ask("Read these.")
    assert frames[-1]["type"] == "stream_end"
    answers = {frame["call_id"]: frame for frame in of_kind(frames, "tool_call") if frame.get("result") is not None}
    return [answers[f"call_{number}"] for number in range(len(addresses))]


@pytest.mark.parametrize("store_settings", ["sqlite", "two nodes"], indirect=True)
async def test_this_machine_is_fetched_by_no_spelling_and_no_way_around(place, site):
    hosts = ("127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "localhost")
    addresses = [f"http://{host}:{site.port}/" for host in (*hosts, "169.254.169.254", "10.0.0.1")]
    addresses += [
        "file:///etc/passwd",
        "data:text/plain,SECRET",
        "javascript:alert(1)",
        "ftp://127.0.0.1/",
        "gopher://x",
    ]
    for answer in await ask_for(place, *addresses):
        assert answer["success"] is False
        assert answer["metadata"]["code"] in ("address_refused", "url_unusable", "host_unknown"), answer
        assert "SECRET" not in answer["result"].replace("data:text/plain,SECRET", "")
    assert site.asked == []


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("javascript:alert(1)", "url_unusable"),
        ("JavaScript://%0aalert(1)", "url_unusable"),
        ("data:text/html,<script>alert(1)</script>", "url_unusable"),
        ("file:///etc/passwd", "url_unusable"),
        ("ftp://127.0.0.1/", "url_unusable"),
        ("http://user:password@127.0.0.1/", "url_unusable"),
        ("http://localhost:{port}/", "address_refused"),
        ("//localhost:{port}/", "address_refused"),
        ("http://[::ffff:127.0.0.1]:{port}/", "address_refused"),
        ("http://169.254.169.254/latest/meta-data/", "address_refused"),
    ],
)
async def test_a_redirect_leads_to_no_script_file_or_private_address(site, location, code):
    fetcher = Fetcher(private_hosts=frozenset({"127.0.0.1"}))
    try:
        with pytest.raises(WakefulError) as refused:
            await fetcher.fetch(site.to(location.format(port=site.port)))
    finally:
        await fetcher.aclose()
    assert refused.value.code == code
    assert len(site.asked) == 1


async def test_a_name_that_changes_between_two_lookups_is_looked_at_both_times(site):
    """The second request of a redirect resolves the name again; the answer has become private by then."""
    answers = iter([["127.0.0.1"], ["127.0.0.1", PUBLIC]])

    async def resolve(host):
        return next(answers) if host == "rebind.test" else ["127.0.0.1"]

    fetcher = Fetcher(private_hosts=frozenset({"first.test"}), resolve=resolve)
    first = f"http://first.test:{site.port}/to/{quote(f'http://rebind.test:{site.port}/', safe='')}"
    try:
        with pytest.raises(AddressRefused):
            await fetcher.fetch(first)
        with pytest.raises(AddressRefused):
            await fetcher.fetch(first)  # one private address among public ones is enough
    finally:
        await fetcher.aclose()
    assert len(site.asked) == 2


async def test_a_channel_to_this_machine_is_taken_at_no_node_and_sent_to_by_none(place):
    async with HttpServer() as inside:
        port = inside.port
        for address in (f"json://127.0.0.1:{port}/", f"json://[::1]:{port}/", f"json://2130706433:{port}/"):
            asked = {"name": "phone", "url": address}
            assert code_of(await place.door.rest.post("/channels", json=asked)) == (403, "private_address"), address
        now = place.home.node.clock.now()
        user = (await place.home.call("GET", "/me"))["user"]["id"]
        # As a name leaves it in the store that was public when it was added, and is not any more.
        kept = Channel(
            id="00000000-0000-4000-8000-000000000001",
            user_id=user,
            name="phone",
            url=f"json://localhost:{port}/",
            shown="json://localhost",
            enabled=True,
            created_at=now,
            updated_at=now,
        )
        await place.home.node.store.write(lambda tx: tx.channels.add(kept))
        tried = await place.door.call("POST", f"/channels/{kept.id}/test")
        assert tried["outcome"] == "failed"
        assert "not on the public internet" in tried["reason"]
        assert inside.received == []
