"""The installed page: its manifest and service worker, without a server, after an upgrade, and its notifications."""

import itertools
import json
import os
import re
import shutil
from functools import partial

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.visits import PATIENCE, add_notice, check_with_axe, go, load_axe, log_in, serve_page, shoot, watch
from crash.server_process import TOKEN, ServerProcess
from live_server import eventually
from openai_server import improvise
from wakeful.http.page import FOLDER

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SERVER = {"always": improvise}

CACHED = """async () => {
  const found = {};
  for (const name of await caches.keys())
    found[name] = (await (await caches.open(name)).keys()).map(request => new URL(request.url).pathname);
  return found;
}"""
UPDATE = "navigator.serviceWorker.getRegistration('/').then(worker => worker.update()).then(() => null)"
IS_CONTROLLED = "navigator.serviceWorker.controller !== null"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def agent(server):
    [agent] = (await server.call("GET", "/agents"))["agents"]
    return agent["id"]


async def test_the_manifest_and_its_icons_are_there_without_a_login(server):
    async with httpx.AsyncClient(base_url=server.address) as client:
        page = await client.get("/")
        address = re.search(r'rel="manifest" href="([^"]+)"', page.text)
        assert address is not None
        answer = await client.get(address[1])
        assert answer.headers["content-type"] == "application/manifest+json"
        manifest = answer.json()
        assert (manifest["start_url"], manifest["scope"], manifest["display"]) == ("/", "/", "standalone")
        for icon in manifest["icons"]:
            drawn = await client.get(icon["src"])
            assert (drawn.status_code, drawn.headers["content-type"]) == (200, icon["type"])
            if icon["type"] == "image/png":
                width, height = (int.from_bytes(drawn.content[start : start + 4], "big") for start in (16, 20))
                assert f"{width}x{height}" == icon["sizes"]
        assert {icon["sizes"] for icon in manifest["icons"]} >= {"192x192", "512x512"}
        assert "maskable" in [icon.get("purpose") for icon in manifest["icons"]]
        worker = await client.get("/ui/sw.js")
        assert worker.headers["service-worker-allowed"] == "/"
        assert worker.headers["cache-control"] == "no-cache"


async def test_nothing_but_static_files_is_kept(server, agent, come):
    session = await server.session("Private")
    async with come("/") as page:
        await eventually(lambda: page.evaluate(IS_CONTROLLED))
        for path in ("/", "/ui/inbox", "/ui/agenda", "/ui/settings", f"/ui/agents/{agent}/data"):
            await page.goto(server.address + path)
            await page.locator("h1").wait_for()
        await go(page, f"/ui/sessions/{session}")
        kept = await page.evaluate(CACHED)
    [paths] = kept.values()
    files = {f"/ui/{path.relative_to(FOLDER).as_posix()}" for path in FOLDER.rglob("*") if path.is_file()}
    assert set(paths) <= files
    assert "/ui/index.html" not in paths
    assert "/ui/offline.html" in paths
    assert any(path.startswith("/ui/assets/SettingsView-") for path in paths)


@pytest_asyncio.fixture(loop_scope="session")
async def installed(built_page, browser, tmp_path):
    """A server that can be killed, and a page of it with its service worker; it must log no error."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    ours = {"WAKEFUL_DATA_DIR": f"{tmp_path}/data", "WAKEFUL_CONFIG_DIR": f"{tmp_path}/config"}
    server = ServerProcess(tmp_path, plain | ours | {"WAKEFUL_TOKEN": TOKEN})
    try:
        await server.start()
        address = str(server.client.base_url)
        context = await browser.new_context(storage_state=await log_in(address, TOKEN))
        context.set_default_timeout(PATIENCE)
        page = await context.new_page()
        complaints = watch(page)
        await page.goto(address)
        await eventually(lambda: page.evaluate(IS_CONTROLLED))
        yield server, page
        await context.close()
        assert complaints == []
    finally:
        await server.clean_up()


async def test_without_the_server_it_says_so_and_loads_when_the_server_is_back(installed):
    server, page = installed
    address = str(server.client.base_url)
    await server.kill()
    await page.goto(f"{address}/ui/inbox")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Can't reach the server")
    await expect(page.get_by_role("button", name="Try again")).to_have_css("min-height", "44px")  # with its styles
    await load_axe(page)
    assert await check_with_axe(page) == []
    await shoot(page, "offline")
    await server.start(server.client.base_url.port)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Inbox")
    await page.context.route("**/ui/agenda", lambda route: route.fulfill(status=502, body="Bad Gateway"))
    await page.goto(f"{address}/ui/agenda")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Can't reach the server")
    await page.context.unroute("**/ui/agenda")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Agenda")


def write_next_build(folder):
    """Write the page as the next version would have it: all scripts have other names, and so has the cache."""
    names = [path.name for path in (FOLDER / "assets").iterdir()]
    pattern = re.compile("|".join(map(re.escape, names)))

    def rename(text):
        return pattern.sub(lambda found: f"next-{found[0]}", text)

    shutil.copytree(FOLDER, folder)
    shutil.rmtree(folder / "assets")
    (folder / "assets").mkdir()
    for name in names:
        (folder / "assets" / f"next-{name}").write_text(rename((FOLDER / "assets" / name).read_text()))
    (folder / "index.html").write_text(rename((FOLDER / "index.html").read_text()))
    worker = (FOLDER / "sw.js").read_text()
    (folder / "sw.js").write_text(re.sub(r"wakeful-[0-9a-f]{16}", "wakeful-next", worker))


async def test_after_an_upgrade_nothing_old_is_served(installed, tmp_path):
    server, page = installed
    address = str(server.client.base_url)
    await page.goto(f"{address}/ui/inbox")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Inbox")
    assert list(await page.evaluate(CACHED)) != ["wakeful-next"]
    write_next_build(tmp_path / "next")
    await server.kill()
    await server.start(server.client.base_url.port, partial(serve_page, tmp_path / "next"))
    notice = page.get_by_role("status").filter(has_text="Wakeful was updated.")
    await expect(notice.get_by_role("button", name="Reload")).to_be_visible()
    await page.get_by_role("link", name="Agenda").click()
    await expect(page.get_by_text("Wakeful was updated, so this page has to be reloaded.")).to_be_visible()
    # Playwright would wait for the navigation, and miss it if the service worker is replaced meanwhile.
    await notice.get_by_role("button", name="Reload").click(no_wait_after=True)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Agenda")
    source = await page.locator("script[type=module]").get_attribute("src")
    assert (source or "").startswith("/ui/assets/next-index-")
    await expect(notice).to_have_count(0)

    async def is_replaced():
        return list(await page.evaluate(CACHED)) == ["wakeful-next"]

    await page.evaluate(UPDATE)  # as the browser does by itself, some seconds after the page was opened
    await eventually(is_replaced, 60)
    await page.reload()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Agenda")
    [kept] = (await page.evaluate(CACHED)).values()
    assets = [path for path in kept if path.startswith("/ui/assets/")]
    assert assets
    assert all("/next-" in path for path in assets)


async def push(page, message):
    """Hand a push message to the page's worker, as the browser does."""
    client = await page.context.new_cdp_session(page)
    versions = []
    client.on("ServiceWorker.workerVersionUpdated", lambda said: versions.extend(said["versions"]))
    await client.send("ServiceWorker.enable")

    async def find():
        return next((each["registrationId"] for each in versions if each["status"] == "activated"), None)

    origin = await page.evaluate("location.origin")
    found = await eventually(find)
    asked = {"origin": origin, "registrationId": found, "data": json.dumps(message)}
    await client.send("ServiceWorker.deliverPushMessage", asked)


async def test_a_push_message_is_shown_and_its_click_leads_to_the_place_in_the_open_page(server, come):
    session = await server.session("What it is about")
    message = {"id": "n-1", "code": "notify", "title": "Agent writes: Red", "body": "Fails.", "session_id": session}
    async with come("/ui/inbox", permissions=["notifications"]) as page:
        await eventually(lambda: page.evaluate(IS_CONTROLLED))
        [worker] = page.context.service_workers
        await worker.evaluate("""() => {
          // Headless Chromium shows no notifications and denies them whatever is granted.
          self.shown = [];
          ServiceWorkerRegistration.prototype.showNotification = async (title, options) => shown.push([title, options]);
          WindowClient.prototype.focus = async function() { self.focused = this.url; };
        }""")
        await push(page, message)
        await eventually(lambda: worker.evaluate("shown.length"))
        [[title, options]] = await worker.evaluate("shown")
        assert (title, options["body"], options["tag"]) == ("Agent writes: Red", "Fails.", "n-1")
        await worker.evaluate("""() => {
          const event = new ExtendableEvent("notificationclick");
          event.notification = {close() {}, data: shown[0][1].data};
          self.dispatchEvent(event);
        }""")
        await expect(page.get_by_role("heading", level=1)).to_have_text("What it is about")
        assert await worker.evaluate("focused") == f"{server.address}/ui/inbox"


HANGS = """() => { PushManager.prototype.subscribe = () => new Promise(() => undefined); }"""
GRANTED = "Object.defineProperty(Notification, 'permission', {get: () => 'granted'});"
ASKED = "Notification.requestPermission = async () => 'granted';"


async def test_a_browser_that_never_answers_is_given_up_after_a_while(server, come):
    async with come("/ui/inbox") as page:
        await eventually(lambda: page.evaluate(IS_CONTROLLED))
        await page.context.add_init_script(f"({HANGS})(); {GRANTED} {ASKED}")
        await page.clock.install()
        await page.goto(f"{server.address}/ui/settings")
        await page.get_by_role("button", name="Notify this browser").click()
        await expect(page.get_by_role("button", name="Waiting for the browser…")).to_be_disabled()
        await page.clock.fast_forward(25_000)
        await expect(page.get_by_role("alert").filter(has_text="did not answer within 20 seconds")).to_be_visible()
        await expect(page.get_by_role("button", name="Notify this browser")).to_be_enabled()
        await shoot(page, "push-hangs")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("Object.defineProperty(window, 'isSecureContext', {get: () => false})", "Push messages need HTTPS"),
        ("delete window.PushManager", "This browser has no push messages"),
        ("Object.defineProperty(Notification, 'permission', {get: () => 'denied'})", "are blocked in this browser"),
    ],
)
async def test_where_push_is_impossible_the_page_says_what_is_missing(server, come, script, words):
    async with come("/ui/inbox") as page:
        await page.context.add_init_script(script)
        await page.goto(f"{server.address}/ui/settings")
        await expect(page.get_by_role("region", name="Notifications")).to_contain_text(words)
        await expect(page.get_by_role("button", name="Notify this browser")).to_have_count(0)


async def test_a_page_shows_no_notification_of_its_own_where_push_does(server, agent, come):
    async with come("/ui/agents") as page:
        await eventually(lambda: page.evaluate(IS_CONTROLLED))
        await page.context.add_init_script("""
          localStorage.setItem('wakeful.notifications', 'on');
          window.made = [];
          window.Notification = class {
            static permission = 'granted';
            constructor() { throw new TypeError('Illegal constructor'); }  // as in Chrome on Android
          };
          const show = async (title, {data}) => made.push([title, data.address]);
          ServiceWorkerRegistration.prototype.showNotification = show;
          Object.defineProperty(document, 'visibilityState', {get: () => 'hidden'});
        """)
        await page.goto(f"{server.address}/ui/inbox")
        numbers = itertools.count()

        async def is_shown():
            await add_notice(server, agent, f"Without push {next(numbers)}")  # again, until the page is connected
            return await page.evaluate("made.length")

        await eventually(is_shown)
        await page.evaluate("""localStorage.setItem('wakeful.push', '{"id": "x", "tokenId": "y"}')""")
        await add_notice(server, agent, "With push")
        await expect(page.get_by_role("listitem").filter(has_text="With push")).to_be_visible()
        made = await page.evaluate("made")
        assert made
        assert {address for _, address in made} == {f"/ui/agents/{agent}"}  # where a click leads
        assert "With push" not in dict(made)
