"""The name of a browser in the list of tokens, from its User-Agent."""

import pytest

from wakeful.people.login import browser_name

WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (f"Mozilla/5.0 (X11; Linux x86_64) {WEBKIT} Chrome/156.0.0.0 Safari/537.36", "Chrome on Linux"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {WEBKIT} Chrome/156.0 Safari/537.36 Edg/156.0", "Edge on Windows"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0", "Firefox on Linux"),
        (f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {WEBKIT} Version/26.0 Safari/605.1", "Safari on macOS"),
        (f"Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) {WEBKIT} Safari/604.1", "Safari on iPhone"),
        (f"Mozilla/5.0 (Linux; Android 16) {WEBKIT} Chrome/156.0 Mobile Safari/537.36", "Chrome on Android"),
        ("python-httpx/0.28.1", "python-httpx/0.28.1"),
        ("\x07", "browser"),
    ],
)
def test_a_browser_is_named_as_people_name_it(user_agent, name):
    assert browser_name(user_agent) == name
