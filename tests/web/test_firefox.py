"""The page in Firefox: every place once, and push messages from the server to the browser and back to nothing."""

import os
from pathlib import Path

import pytest
import pytest_asyncio

from browser.firefox import NoFirefox, find_firefox, firefox
from browser.places import make_places
from browser.visits import add_notice
from live_server import Patient, eventually, running_server
from network.autopush import Autopush

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

LIST = '[aria-label="Browsers with push messages"]'
DIALOG = "dialog"
SHOWN = """navigator.serviceWorker.ready
  .then(worker => worker.getNotifications())
  .then(all => all.map(({title, body, tag, data}) => [title, body, tag, data.address]))"""
SUBSCRIPTION = "navigator.serviceWorker.ready.then(worker => worker.pushManager.getSubscription())"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def service(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        async with Autopush(tmp_path_factory.mktemp("push")) as service:
            patch.setenv("SSL_CERT_FILE", str(service.certificate))
            yield service


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(own_files, service):
    async with running_server(own_files, patient=Patient(retries=0), fetch_private_hosts=["localhost"]) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tab(server, service, tmp_path_factory):
    """One Firefox for all tests of this file, logged in; without one they fail rather than being skipped."""
    try:
        find_firefox()
    except NoFirefox as problem:
        pytest.fail(str(problem), pytrace=False)
    preferences = {
        "alerts.useSystemBackend": False,  # headless, only Firefox's own notifications are shown
        "dom.push.connection.enabled": True,
        "dom.push.serverURL": service.address,
        "dom.push.testing.allowInsecureServerURL": True,  # for its WebSocket; the endpoint is HTTPS
    }
    async with firefox(tmp_path_factory.mktemp("firefox"), preferences) as tab:
        await tab.resize(1280, 820)
        link = (await server.call("POST", "/login-links", json={}))["path"]
        await tab.goto(server.address + link)
        await tab.eventually("location.pathname === '/' && document.querySelector('h1') !== null")
        yield tab


async def test_every_place_shows_its_content_and_logs_no_error(server, tab):
    places = await make_places(server)
    folder = os.environ.get("WAKEFUL_TEST_SHOTS")
    for name, path in places.items():
        await tab.evaluate(f"history.pushState(null, '', '{path}')")
        await tab.eventually(
            "document.querySelector('h1')?.innerText && document.querySelector('.loading') === null"
            " && document.querySelector('main').innerText.trim().length > 20"
        )
        await tab.eventually("!document.body.innerText.includes('Connection lost')")
        if folder is not None:
            Path(folder, f"firefox-{name}.png").write_bytes(await tab.shoot())  # noqa: ASYNC240
        assert (name, tab.complaints) == (name, [])
        wide = await tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert (name, wide) == (name, True)


async def in_list(tab, text):
    await tab.eventually(f"document.querySelector('{LIST}')?.innerText.includes('{text}')")


async def test_a_notification_comes_as_a_push_message_until_the_browser_is_removed(server, service, tab):
    await tab.goto(f"{server.address}/ui/settings")
    await tab.click("Notify this browser")
    await in_list(tab, "Firefox on Linux this browser")
    await tab.click("Test", LIST)
    await service.pass_on()
    await in_list(tab, "Handed to the push service.")
    body = "This browser shows notifications of your agents, also while the page is closed."
    shown = await tab.eventually(f"{SHOWN}.then(all => all.length ? all : null)")
    assert shown == [["A test from Wakeful", body, "test", "/ui/inbox"]]
    [agent] = (await server.call("GET", "/agents"))["agents"][:1]
    session = await server.session("What it is about")
    await add_notice(server, agent["id"], "Ripe", session_id=session)
    await service.pass_on()
    shown = await tab.eventually(f"{SHOWN}.then(all => all.length === 2 ? all : null)")
    assert [f"{agent['name']} writes: Ripe", "Body", "n-Ripe", f"/ui/sessions/{session}"] in shown
    await tab.click("Remove", LIST)
    await tab.click("Remove", DIALOG)
    await tab.eventually(f"{SUBSCRIPTION}.then(found => found === null)")
    assert (await server.call("GET", "/push-subscriptions"))["browsers"] == []
    assert tab.complaints == []


async def test_a_logout_ends_the_push_messages_of_this_browser(server, tab):
    await tab.goto(f"{server.address}/ui/settings")
    await tab.click("Notify this browser")
    await in_list(tab, "Firefox on Linux this browser")
    assert len((await server.call("GET", "/push-subscriptions"))["browsers"]) == 1
    await tab.click("Log out")

    async def is_empty():
        return not (await server.call("GET", "/push-subscriptions"))["browsers"]

    await eventually(is_empty)
    await tab.eventually(f"{SUBSCRIPTION}.then(found => found === null)")
