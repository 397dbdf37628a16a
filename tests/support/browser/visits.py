"""Visits of a logged-in browser to the page, which fail if the page logs an error or violates its policy."""

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from playwright.async_api import Browser, Page, StorageState, StorageStateCookie, expect

from live_server import Server
from wakeful.app.http import application
from wakeful.core.types import Notice
from wakeful.http.auth import COOKIE
from wakeful.http.page import page_router
from wakeful.people.login import STORAGE_KEY

PATIENCE = 20_000  # milliseconds
CHROMIUM = Path(__file__).parents[3] / "scripts" / "chromium.sh"

AXE = Path(__file__).parents[3] / "web/node_modules/axe-core/axe.min.js"
CHECK = """async how => {
  const found = await axe.run(document, {resultTypes: ['violations'], ...how});
  return found.violations
    .filter(each => each.impact !== 'minor')
    .map(({id, nodes}) => `${id}: ${nodes.map(node => node.html.slice(0, 160) + node.failureSummary).join(' | ')}`);
}"""

# Messages of the browser itself when a test makes a request fail on purpose.
EXPECTED = ("Failed to load resource", "WebSocket connection to", "Service Worker registration blocked by Playwright")


class NoChromium(Exception):
    """There is no browser; the message says how to get one."""


def find_chromium() -> str:
    """Return the path of a Chromium; install it if possible."""
    asked = subprocess.run([CHROMIUM], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        raise NoChromium(asked.stderr.strip())
    return asked.stdout.strip()


def serve_page(folder: Path) -> None:
    """Let a server process that is about to start serve the page of another build."""
    page_router.__defaults__ = (folder,)
    application.cache_clear()  # its routes are made once


async def log_in(address: str, token: str) -> StorageState:
    """Log in once and return the cookie and the secret; to log in in every test would take half of their time."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=30, verify=False) as client:
        link = (await client.post("/login-links", json={})).json()["path"]
        code = {"code": link.partition("=")[2]}
        told = (await client.post("/login", data=code, headers={"Origin": address})).json()
        return logged_in(address, client.cookies[COOKIE], told["page_secret"])


def logged_in(address: str, cookie: str, page_secret: str) -> StorageState:
    """Return the browser's state after a login."""
    kept: StorageStateCookie = {
        "name": COOKIE,
        "value": cookie,
        "domain": urlsplit(address).hostname or "",
        "path": "/",
        "expires": -1,
        "httpOnly": True,
        "secure": False,
        "sameSite": "Strict",
    }
    storage = [{"name": STORAGE_KEY, "value": page_secret}]
    return {"cookies": [kept], "origins": [{"origin": address, "localStorage": storage}]}


@asynccontextmanager
async def visit(browser: Browser, login: StorageState, address: str, **how: Any) -> AsyncIterator[Page]:
    """Open a page in its own browser context; fail at the end if it has logged an error."""
    context = await browser.new_context(storage_state=login, **how)
    context.set_default_timeout(PATIENCE)
    page = await context.new_page()
    complaints = watch(page)
    await page.goto(address)
    yield page
    await context.close()
    assert complaints == []


def watch(page: Page) -> list[str]:
    """Return a list that fills with errors: exceptions, console errors, violations of the policy."""
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda said: (
            complaints.append(said.text)
            if said.type in ("error", "warning") and not said.text.startswith(EXPECTED)
            else None
        ),
    )
    return complaints


async def add_notice(server: Server, agent_id: str, title: str, **about: Any) -> None:
    """Add a notification to the owner's inbox."""
    [user] = [each for each in (await server.call("GET", "/users"))["users"] if each["role"] == "owner"]
    notice = Notice(
        id=f"n-{title.replace(' ', '-')}",
        user_id=user["id"],
        code="notify",
        once_key=title,
        title=title,
        body="Body",
        created_at=server.node.clock.now(),
        agent_id=agent_id,
        **about,
    )
    await server.node.store.write(lambda tx: tx.notices.add(notice))


async def load_axe(page: Page) -> None:
    """Load axe into the page, until it is loaded again."""
    await page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")


async def check_with_axe(page: Page, rules: dict[str, Any] | None = None) -> list[str]:
    """Return what axe finds on the page as it is now, minor things left out."""
    return await page.evaluate(CHECK, rules or {})


async def shoot(page: Page, name: str) -> None:
    """Take pictures into WAKEFUL_TEST_SHOTS, if it is set, for people to look at: desktop, dark and phone."""
    folder = os.environ.get("WAKEFUL_TEST_SHOTS")
    if folder is None:
        return
    before = page.viewport_size
    for look, scheme, width, height in (
        ("desktop", "light", 1440, 900),
        ("dark", "dark", 1440, 900),
        ("phone", "light", 390, 844),
    ):
        await page.emulate_media(color_scheme=scheme)
        await page.set_viewport_size({"width": width, "height": height})
        await page.screenshot(path=Path(folder, f"{name}-{look}.png"), animations="disabled")
    await page.emulate_media(color_scheme="null")
    if before is not None:
        await page.set_viewport_size(before)


async def send(page: Page, text: str) -> None:
    """Write a message and send it with the keyboard."""
    box = page.get_by_role("textbox", name="Message")
    await box.fill(text)
    await box.press("Enter")


async def go(page: Page, path: str) -> None:
    """Navigate inside the page, as a link does, and wait until the view is loaded."""
    await page.evaluate("path => history.pushState(null, '', path)", path)
    await page.locator("h1").wait_for()
    await expect(page.locator(".loading")).to_have_count(0)
