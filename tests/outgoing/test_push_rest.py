"""Push messages as a person sets them up over REST: subscribe, list, test, remove."""

import pytest

from live_server import of_kind, running_server
from network.push_service import Browser, PushService
from openai_server import call, calls, say


@pytest.fixture
async def service(tmp_path, monkeypatch):
    async with PushService(tmp_path) as service:
        monkeypatch.setenv("SSL_CERT_FILE", str(service.certificate))
        yield service


@pytest.fixture
async def server(settings):
    """Both stores have their turn in tests/outgoing/test_push.py."""
    async with running_server(settings, fetch_private_hosts=["localhost"]) as server:
        yield server


async def test_a_browser_subscribes_is_tried_and_removed_and_its_secrets_never_come_back(server, service):
    browser = Browser()
    asked = {"name": "Firefox on Linux", "endpoint": service.endpoint()} | browser.keys
    made = await server.rest.post("/push-subscriptions", json=asked)
    assert made.status_code == 201
    assert (made.json()["name"], made.json()["service"]) == ("Firefox on Linux", "localhost")
    path = f"/push-subscriptions/{made.json()['id']}"
    assert await server.call("POST", f"{path}/test") == {"outcome": "handed_over"}
    assert (await service.read(browser))["title"] == "A test from Wakeful"
    listed = await server.rest.get("/push-subscriptions")
    assert [each["name"] for each in listed.json()["browsers"]] == ["Firefox on Linux"]
    shown = made.text + listed.text
    assert "secret" not in shown
    assert not any(key in shown for key in browser.keys.values())
    await server.call("DELETE", path)
    assert (await server.call("GET", "/push-subscriptions"))["browsers"] == []


async def test_what_an_agent_tells_arrives_and_the_answer_says_so(server, service):
    browser = Browser()
    asked = {"name": "Firefox", "endpoint": service.endpoint()} | browser.keys
    await server.call("POST", "/push-subscriptions", json=asked)
    session = await server.session()
    server.provider.then(calls(*call("notify", '{"title": "Red", "body": "Three tests fail."}')), say("Told."))
    async with server.watch(session) as client:
        frames = await client.ask("Tell me when it is red")
    [answer] = of_kind(frames, "tool_call")
    assert "push 'Firefox': handed to the push service." in answer["result"]
    message = await service.read(browser)
    assert (message["title"].endswith(" writes: Red"), message["session_id"]) == (True, session)


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({"endpoint": "http://push.example/secret"}, 400, "must start with https://"),
        ({"endpoint": "https://127.0.0.2/secret"}, 403, "fetch_private_hosts"),
        ({"endpoint": "https://169.254.169.254/secret"}, 403, "not on the public internet"),
        ({"p256dh": "secret"}, 400, "65 bytes"),
        ({"auth": "secret"}, 400, "16 bytes"),
        ({"auth": 5}, 422, "auth"),
        ({"name": ""}, 422, "name"),
        ({"command": "rm"}, 422, "command"),
    ],
)
async def test_what_is_refused_says_why_and_repeats_no_secret(server, changed, status, words):
    asked = {"name": "Firefox", "endpoint": "https://push.example/secret"} | Browser().keys | changed
    answer = await server.rest.post("/push-subscriptions", json=asked)
    assert answer.status_code == status, answer.text
    assert words in answer.text
    assert "secret" not in answer.text
    assert (await server.call("GET", "/push-subscriptions"))["browsers"] == []
