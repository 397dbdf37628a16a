"""Whose request it is behind proxies, and under which path."""

import pytest

from wakeful.http.hosts import BehindProxies, TrustedProxies

PROXY, CLIENT = "10.0.0.1", "203.0.113.7"


@pytest.mark.parametrize(
    ("forwarded", "found"),
    [
        ([], PROXY),
        ([CLIENT], CLIENT),
        ([f"192.0.2.99, {CLIENT}"], CLIENT),  # what stands before was written by the client
        (["192.0.2.99", CLIENT], CLIENT),  # two headers are one list
        ([f"{CLIENT}, 10.0.0.2"], CLIENT),  # two proxies
        (["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ([f"{CLIENT}:4711"], CLIENT),
        (["[2001:db8::1]:4711"], "2001:db8::1"),
        (["2001:db8::1"], "2001:db8::1"),
        ([f"{CLIENT}, unknown"], PROXY),
        ([""], PROXY),
    ],
)
def test_the_last_address_that_is_no_trusted_proxy_counts(forwarded, found):
    assert TrustedProxies(["10.0.0.0/24"]).find_client(PROXY, forwarded) == found


async def pass_through(scope, *, trusted=(), base_path=""):
    seen = {}

    async def app(scope, _receive, _send):
        seen.update(scope)

    given = {"type": "http", "scheme": "http", "client": (PROXY, 1), "path": "/x", "headers": [], **scope}
    await BehindProxies(app, TrustedProxies(trusted), base_path)(given, None, None)
    return seen


FORWARDED = [(b"x-forwarded-for", CLIENT.encode()), (b"x-forwarded-proto", b"https"), (b"x-forwarded-host", b"evil")]


async def test_headers_of_anyone_else_are_ignored():
    seen = await pass_through({"headers": FORWARDED})
    assert (seen["client"][0], seen["scheme"]) == (PROXY, "http")
    seen = await pass_through({"headers": FORWARDED}, trusted=["10.0.0.2"])
    assert (seen["client"][0], seen["scheme"]) == (PROXY, "http")


@pytest.mark.parametrize(("scheme", "secure"), [("http", "https"), ("ws", "wss")])
async def test_headers_of_a_trusted_proxy_count(scheme, secure):
    seen = await pass_through({"headers": FORWARDED, "scheme": scheme}, trusted=[PROXY])
    assert (seen["client"][0], seen["scheme"]) == (CLIENT, secure)


async def test_an_address_of_ipv4_written_as_ipv6_is_the_same():
    seen = await pass_through({"headers": FORWARDED, "client": (f"::ffff:{PROXY}", 1)}, trusted=[PROXY])
    assert seen["client"][0] == CLIENT


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/wakeful/agents", "/agents"),
        ("/wakeful", "/"),
        ("/wakeful/", "/"),
        ("/agents", "/agents"),  # the proxy has taken it off
        ("/wakefully", "/wakefully"),
        ("/wakeful/wakeful", "/wakeful"),
    ],
)
async def test_the_base_path_is_taken_off(path, found):
    seen = await pass_through({"path": path, "raw_path": path.encode()}, base_path="/wakeful")
    assert (seen["path"], seen["raw_path"]) == (found, found.encode())
