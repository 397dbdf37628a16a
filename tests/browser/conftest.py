"""Fixtures: a real browser, a real server, and another site that the browser visits."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, StorageState, async_playwright, expect

from browser.visits import PATIENCE, NoChromium, find_chromium, log_in, visit
from forked_process import Forked
from wakeful.people.login import STORAGE_KEY

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-for-all-tests"
expect.set_options(timeout=PATIENCE)
REBOUND = "evil.test"  # a host name that resolves to this machine (DNS rebinding)


@dataclass(frozen=True)
class Served:
    """A server process, started as a user does."""

    address: str
    login_link: str

    @property
    def port(self) -> str:
        return self.address.rpartition(":")[2]

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Send a request as the owner, without a browser."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=self.address, headers=headers, timeout=30, verify=False) as client:
            answer = await client.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    async def new_login_link(self, user_id: str | None = None) -> str:
        asked = {} if user_id is None else {"user_id": user_id}
        return self.address + (await self.ask("POST", "/login-links", asked))["path"]


@pytest.fixture(scope="session")
def built_page() -> None:
    """Build the page if its sources have changed; `make test` has done so already."""
    subprocess.run([sys.executable, ROOT / "scripts/page.py"], check=True)


@pytest.fixture(scope="module")
def served(built_page: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with the demo model; one for all tests of a file."""
    folder = tmp_path_factory.mktemp("served")
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    ours = {"WAKEFUL_DATA_DIR": f"{folder}/data", "WAKEFUL_CONFIG_DIR": f"{folder}/config", "WAKEFUL_TOKEN": TOKEN}
    process = Forked(("serve", "--port", "0"), plain | ours, folder / "log")
    addresses = process.read_addresses()
    assert len(addresses) == 2, (folder / "log").read_text()
    yield Served(*addresses)
    process.send_signal(signal.SIGTERM)
    code = process.wait(10)
    process.close()
    assert code == 0
    assert "Traceback" not in (folder / "log").read_text()


@pytest.fixture(scope="module")
def own_files(built_page: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Settings for a file's own server in this process: `async with running_server(own_files) as server`."""
    folder = tmp_path_factory.mktemp("own")
    return {"data_dir": folder / "data", "config_dir": folder / "config"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def login(server: Any) -> StorageState:
    """The cookie and the page secret of a browser in which the owner of the file's server is logged in."""
    return await log_in(server.address, TOKEN)


@pytest.fixture
def come(server: Any, browser: Browser, login: StorageState) -> Callable[..., AbstractAsyncContextManager[Page]]:
    """Open a page, as the owner or as someone else: `async with come("/ui/inbox") as page`."""

    def come(path: str = "/", as_: StorageState | None = None, **how: Any) -> AbstractAsyncContextManager[Page]:
        return visit(browser, as_ or login, server.address + path, **how)

    return come


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium; without one these tests fail rather than being skipped."""
    try:
        return find_chromium()
    except NoChromium as problem:
        pytest.fail(str(problem), pytrace=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """One browser for all files, in one event loop with them: it takes longer to start than most tests last."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium,
            chromium_sandbox=False,  # does not work for root, as in CI
            args=[f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1"],
        )
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    """A browser context without a login."""
    context = await browser.new_context()
    context.set_default_timeout(PATIENCE)
    yield context
    await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(context: BrowserContext) -> Page:
    return await context.new_page()


@pytest_asyncio.fixture(loop_scope="session")
async def logged_in(context: BrowserContext, served: Served) -> BrowserContext:
    """A browser context in which the owner is logged in; the page is not loaded."""
    code = (await served.new_login_link()).partition("code=")[2]
    asked: dict[str, Any] = {"form": {"code": code}, "headers": {"Origin": served.address}}
    told = await (await context.request.post(f"{served.address}/login", **asked)).json()
    await context.add_init_script(
        f"if (location.origin === '{served.address}') localStorage.setItem('{STORAGE_KEY}', '{told['page_secret']}')"
    )
    [cookie] = await context.cookies()
    assert cookie["sameSite"] == "Strict"  # as the server set it: the protection against other sites depends on it
    return context


@asynccontextmanager
async def _serve_site(html: str) -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            body = html.encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
            writer.write(f"{head}\r\n".encode() + body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # browsers open connections that they then do not use
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.fixture
def site() -> Callable[[str], Any]:
    """Another site on this machine: `async with site("<p>Hello</p>") as port:`."""
    return _serve_site
