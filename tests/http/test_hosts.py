import pytest

from wakeful.http.hosts import AllowedHosts, UnreadableHost, WrongHost, WrongOrigin, parse_host

PORT = 8420
LOCAL = AllowedHosts("127.0.0.1", ())
PUBLIC = AllowedHosts("0.0.0.0", ("wakeful.example.org", "2001:db8::1"))


@pytest.mark.parametrize("host", ["localhost:8420", "LOCALHOST:8420", "127.0.0.1:8420", "[::1]:8420", "[0:0::1]:8420"])
def test_loopback_names_with_our_port_are_ours(host):
    LOCAL.check(host, "http", PORT)


@pytest.mark.parametrize(
    "host",
    [
        "evil.test:8420",
        "localhost.evil.test:8420",
        "evil.test",
        "localhost.:8420",
        "127.0.0.1.nip.io:8420",
        "127.0.0.2:8420",
        "0.0.0.0:8420",
        "[::ffff:127.0.0.1]:8420",
        "localhost:8421",
        "localhost",
        "wakeful.example.org:8420",
    ],
)
def test_every_other_host_is_refused(host):
    with pytest.raises(WrongHost):
        LOCAL.check(host, "http", PORT)


@pytest.mark.parametrize(
    "host", ["", ":8420", "localhost:", "localhost:84200000", "[::1", "[evil]:8420", "a b", "user@localhost:8420", "é"]
)
def test_what_is_no_host_is_refused_as_unreadable(host):
    with pytest.raises(UnreadableHost):
        LOCAL.check(host, "http", PORT)


def test_the_usual_port_may_be_left_out():
    LOCAL.check("localhost", "http", 80)
    LOCAL.check("localhost", "https", 443)


@pytest.mark.parametrize("host", ["wakeful.example.org", "wakeful.example.org:444", "[2001:DB8::1]:1"])
def test_a_host_from_the_settings_counts_with_every_port(host):
    PUBLIC.check(host, "http", PORT)


def test_the_address_for_all_addresses_is_no_name():
    with pytest.raises(WrongHost):
        PUBLIC.check("0.0.0.0:8420", "http", PORT)


def test_the_address_it_is_bound_to_is_a_name():
    AllowedHosts("192.168.1.5", ("x.test",)).check("192.168.1.5:8420", "http", PORT)


@pytest.mark.parametrize(
    ("hosts", "host", "origin"),
    [
        pytest.param(LOCAL, "localhost:8420", "http://localhost:8420", id="loopback"),
        pytest.param(LOCAL, "[::1]:8420", "http://[::1]:8420", id="IPv6"),
        pytest.param(PUBLIC, "wakeful.example.org", "https://wakeful.example.org", id="TLS ends at a proxy"),
        pytest.param(PUBLIC, "wakeful.example.org:443", "https://wakeful.example.org", id="the usual port, written"),
        pytest.param(PUBLIC, "wakeful.example.org:8443", "https://wakeful.example.org:8443", id="a mapped port"),
    ],
)
def test_a_page_may_talk_to_the_host_it_came_from(hosts, host, origin):
    hosts.check_origin(origin, parse_host(host), "http")


@pytest.mark.parametrize(
    ("hosts", "host", "origin"),
    [
        pytest.param(LOCAL, "localhost:8420", "null", id="null"),
        pytest.param(LOCAL, "localhost:8420", "", id="empty"),
        pytest.param(LOCAL, "localhost:8420", "http://evil.test", id="another site"),
        pytest.param(LOCAL, "localhost:8420", "http://evil.test:8420", id="another site, our port"),
        pytest.param(LOCAL, "localhost:8420", "http://localhost.evil.test:8420", id="a name that begins like ours"),
        pytest.param(LOCAL, "localhost:8420", "http://evil.test#localhost:8420", id="a name that ends like ours"),
        pytest.param(LOCAL, "localhost:8420", "http://localhost:3000", id="another server on this machine"),
        pytest.param(LOCAL, "localhost:8420", "http://127.0.0.1:8420", id="another name of ours"),
        pytest.param(LOCAL, "localhost:8420", "https://localhost:8420", id="another scheme"),
        pytest.param(LOCAL, "localhost:8420", "file://", id="a file"),
        pytest.param(LOCAL, "localhost:8420", "chrome-extension://localhost:8420", id="an extension"),
        pytest.param(LOCAL, "[::1]:8420", "http://[::2]:8420", id="another IPv6 address"),
        pytest.param(PUBLIC, "wakeful.example.org", "https://wakeful.example.org:9999", id="another port of our host"),
        pytest.param(PUBLIC, "wakeful.example.org", "https://example.org", id="the parent domain"),
    ],
)
def test_a_page_from_anywhere_else_may_not(hosts, host, origin):
    with pytest.raises(WrongOrigin):
        hosts.check_origin(origin, parse_host(host), "http")
