"""The gate over real connections: sockets are refused before they are accepted, in the one error shape."""

import asyncio
import logging

import pytest

from asgi_client import CHOSEN, asgi_server, browser_headers, hear, refusal
from harness import MINUTE
from wakeful.http.auth import PAGE_HEADER

BEARER = {"Authorization": f"Bearer {CHOSEN}"}


@pytest.fixture
async def port(doors):
    async with asgi_server(doors.gate) as port:
        yield port


@pytest.fixture
async def browser(doors):
    """Return the headers of a page that has logged in, although browsers cannot send headers with a socket."""
    return browser_headers(await doors.log_in())


async def test_a_program_comes_in_with_its_token(port):
    assert await hear(port, BEARER) == "Owner "


async def test_a_browser_comes_in_with_a_ticket_from_our_own_page(port, doors, browser):
    ticket = await doors.accounts.make_ticket(doors.owner)
    only_cookie = {"cookie": browser["cookie"]}
    origin = f"http://127.0.0.1:{port}"
    assert await hear(port, only_cookie, origin=origin, query=f"?ticket={ticket}") == "Owner "


async def test_a_cookie_alone_opens_no_socket(port, browser):
    browser.pop(PAGE_HEADER)
    assert await refusal(port, browser, origin=f"http://127.0.0.1:{port}") == (401, "page_secret_missing")


@pytest.mark.parametrize("host", ["localhost", "[::1]"])
async def test_it_answers_to_every_loopback_name(port, browser, host):
    assert await hear(port, browser, host=host, origin=f"http://{host}:{port}") == "Owner "


async def test_a_ticket_opens_one_socket_and_does_not_stay_in_the_address(port, doors):
    ticket = await doors.accounts.make_ticket(doors.owner)
    assert await hear(port, query=f"?after=7&ticket={ticket}") == "Owner after=7"
    assert await refusal(port, query=f"?ticket={ticket}") == (401, "wrong_pass")


async def test_an_old_ticket_opens_nothing(port, doors):
    ticket = await doors.accounts.make_ticket(doors.owner)
    doors.clock.advance(MINUTE)
    assert await refusal(port, query=f"?ticket={ticket}") == (401, "wrong_pass")


async def test_without_a_token_no_socket_is_opened(port):
    assert await refusal(port) == (401, "not_signed_in")


@pytest.mark.parametrize(
    "path",
    [
        "/token",
        "/register",
        "/authorize",
        "/.well-known/oauth-x",
        "/ws/.well-known/oauth-x",
        "/readyz",
        "/healthz",
        "/",
    ],
)
async def test_a_path_that_is_open_to_requests_is_not_open_to_sockets(port, path):
    assert await refusal(port, path=path) == (401, "not_signed_in")


async def test_a_wrong_token_opens_no_socket(port):
    assert await refusal(port, {"Authorization": "Bearer wrong"}) == (401, "wrong_token")


async def test_whoever_guesses_at_a_socket_must_wait(port):
    guesses = [await refusal(port, {"Authorization": "Bearer wrong"}) for _ in range(11)]
    assert guesses == [(401, "wrong_token")] * 10 + [(429, "too_many_tries")]


async def test_a_right_ticket_opens_a_socket_whatever_wrong_ones_came_from_its_address(port, doors):
    guesses = [await refusal(port, query="?ticket=wrong") for _ in range(11)]
    assert guesses[-1] == (429, "too_many_tries")
    assert await hear(port, query=f"?ticket={await doors.accounts.make_ticket(doors.owner)}") == "Owner "


async def test_a_guesser_cannot_pose_as_someone_else_with_forwarded_headers(port):
    guesses = [
        await refusal(port, {"Authorization": "Bearer wrong", "X-Forwarded-For": f"10.0.0.{number}"})
        for number in range(11)
    ]
    assert guesses[-1] == (429, "too_many_tries")


async def test_a_browser_without_an_origin_opens_no_socket(port, browser):
    assert await refusal(port, browser) == (403, "origin_needed")


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.test",
        "http://localhost.evil.test:{port}",
        "http://127.0.0.1:1",
        "http://localhost:{port}",
        "https://127.0.0.1:{port}",
        "http://[::1]:{port}",
        "null",
    ],
)
async def test_a_page_from_elsewhere_opens_no_socket_whatever_it_brings(port, browser, doors, origin):
    origin = origin.format(port=port)
    ticket = await doors.accounts.make_ticket(doors.owner)
    assert await refusal(port, browser, origin=origin) == (403, "wrong_origin")
    assert await refusal(port, BEARER, origin=origin) == (403, "wrong_origin")
    assert await refusal(port, query=f"?ticket={ticket}", origin=origin) == (403, "wrong_origin")


@pytest.mark.parametrize("host", ["evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "[::2]"])
async def test_a_name_that_was_made_to_point_here_opens_no_socket(port, browser, host):
    # Its page sends an Origin that fits the Host: only the Host can tell.
    assert await refusal(port, browser, host=host, origin=f"http://{host}:{port}") == (403, "wrong_host")


async def test_a_revoked_token_opens_no_further_socket(port, doors):
    made = await doors.accounts.make_token(doors.owner, name="script", scope="chat")
    headers = {"Authorization": f"Bearer {made.secret}"}
    await hear(port, headers)
    await doors.accounts.revoke_token(doors.owner, made.token.id)
    assert await refusal(port, headers) == (401, "wrong_token")


async def test_neither_tickets_nor_refusals_leave_a_trace_of_trouble_in_the_log(port, doors, caplog):
    caplog.set_level(logging.INFO)
    ticket = await doors.accounts.make_ticket(doors.owner)
    await hear(port, query=f"?ticket={ticket}")
    await refusal(port, query=f"?ticket={ticket}")
    assert "/ws/who" in caplog.text
    assert ticket not in caplog.text
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_server_that_cannot_answer_a_socket_closes_it_unaccepted(doors):
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "websocket", "scheme": "ws", "path": "/ws/who", "query_string": b"", "headers": []}
    await doors.gate(scope, asyncio.Event().wait, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]


async def test_over_http_the_port_is_the_one_it_listens_on(port):
    assert await status_of(port, f"127.0.0.1:{port}") == 200
    assert await status_of(port, f"127.0.0.1:{port + 1}") == 403
    assert await status_of(port, "127.0.0.1") == 403
    assert await status_of(port, None) == 400


async def status_of(port, host):
    """Send a request over a plain TCP connection, where no library changes the Host header."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    named = f"Host: {host}\r\n" if host else ""
    writer.write(f"GET /healthz HTTP/1.{1 if host else 0}\r\n{named}Connection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(answer.split()[1])
