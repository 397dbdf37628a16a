"""The gate over real connections: sockets are refused before they are accepted, in the one error shape."""

import asyncio
import logging

import pytest

from asgi_client import CHOSEN, asgi_server, browser_headers, hear, refusal

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


@pytest.mark.parametrize("host", ["localhost", "[::1]"])
async def test_it_answers_to_every_loopback_name(port, browser, host):
    assert await hear(port, browser, host=host, origin=f"http://{host}:{port}") == "Owner "


async def test_a_ticket_opens_one_socket_and_does_not_stay_in_the_address(port, doors):
    ticket = await doors.accounts.make_ticket(doors.owner)
    assert await hear(port, query=f"?after=7&ticket={ticket}") == "Owner after=7"
    assert await refusal(port, query=f"?ticket={ticket}") == (401, "wrong_pass")


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


async def test_whoever_guesses_at_a_socket_must_wait(port):
    guesses = [await refusal(port, {"Authorization": "Bearer wrong"}) for _ in range(11)]
    assert guesses == [(401, "wrong_token")] * 10 + [(429, "too_many_tries")]


async def test_a_right_ticket_opens_a_socket_whatever_wrong_ones_came_from_its_address(port, doors):
    guesses = [await refusal(port, query="?ticket=wrong") for _ in range(11)]
    assert guesses[-1] == (429, "too_many_tries")
    assert await hear(port, query=f"?ticket={await doors.accounts.make_ticket(doors.owner)}") == "Owner "


async def test_a_browser_without_an_origin_opens_no_socket(port, browser):
    assert await refusal(port, browser) == (403, "origin_needed")


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
