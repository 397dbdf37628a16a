"""Log lines hold no secrets, however a library has written them."""

import pytest

from wakeful.people.service import make_secret
from wakeful.telemetry.logs import Redactor

CHOSEN = "a token/that+someone chose"


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("< GET /ws/events?after=7&ticket=~ HTTP/1.1", "< GET /ws/events?after=7&ticket=[secret] HTTP/1.1"),
        ('"GET /login?code=~&x=1 HTTP/1.1" 200', '"GET /login?code=[secret]&x=1 HTTP/1.1" 200'),
        ("< Cookie: wakeful=~; other=~", "< Cookie: [secret]"),
        ("> Set-Cookie: __Host-wakeful=~; HttpOnly", "> Set-Cookie: [secret]"),
        ("< Authorization: Basic ~", "< Authorization: [secret]"),
        ("< X-Wakeful-Page: ~", "< X-Wakeful-Page: [secret]"),
        ("{'authorization': 'Bearer ~', 'accept': '*/*'}", "{'authorization': [secret], 'accept': '*/*'}"),
        ('{"Cookie": "a=\\"~\\"; b=~", "n": 1}', '{"Cookie": [secret], "n": 1}'),
        ("[(b'cookie', b'wakeful=~'), (b'host', b'x')]", "[(b'cookie', [secret]), (b'host', b'x')]"),
        ("[(b'x-api-key', b'~')]", "[(b'x-api-key', [secret])]"),
        ("sent Bearer ~ and more", "sent Bearer [secret] and more"),
        ("connect to postgresql://me:~@db/wakeful", "connect to postgresql://[secret]@db/wakeful"),
    ],
)
def test_what_stands_where_secrets_stand_is_taken_out(line, left):
    assert Redactor()(line.replace("~", "tOp-5ecret_")) == left


@pytest.mark.parametrize(
    "line",
    [
        "wrong token client=127.0.0.1",
        "The cookie is gone, and the ticket was used before.",
        "run ended run_id=01a1e6b8 code=timeout tokens=1200",
        "GET /agents/1/db/tables/code/rows?table=key",
        "https://example.org:8420/a@b",
    ],
)
def test_other_lines_stay_as_they_are(line):
    assert Redactor([CHOSEN])(line) == line


def test_what_we_make_is_found_anywhere():
    secret = make_secret()
    assert Redactor()(f"<Task args=({secret!r},)>x{secret}") == "<Task args=('[secret]',)>x[secret]"


def test_a_secret_of_the_settings_is_found_anywhere_also_as_part_of_an_address():
    redact = Redactor([CHOSEN])
    assert redact(f"so {CHOSEN} it is") == "so [secret] it is"
    assert redact("/x?y=a%20token%2Fthat%2Bsomeone%20chose") == "/x?y=[secret]"
