"""Visits to the page: logged in, and failing on console errors and policy violations."""

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from playwright.async_api import Browser, Page, StorageState, StorageStateCookie, expect

from wakeful.server.gate import COOKIE
from wakeful.server.login import STORAGE_KEY

PATIENCE = 20_000  # milliseconds
CHROMIUM = Path(__file__).parents[2] / "scripts" / "chromium.sh"

# Console messages of the browser itself when a test makes a request fail on purpose.
EXPECTED = ("Failed to load resource", "WebSocket connection to")


class NoChromium(Exception):
    """No browser was found; the message says how to install one."""


def find_chromium() -> str:
    """Return the path of a Chromium; it is installed if possible."""
    asked = subprocess.run([CHROMIUM], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        raise NoChromium(asked.stderr.strip())
    return asked.stdout.strip()


async def log_in(address: str, token: str) -> StorageState:
    """Log in as a browser does and return what it stores; a login per test would take half their time."""
    async with httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=30) as client:
        link = (await client.post("/login-links", json={})).json()["path"]
        code = {"code": link.partition("=")[2]}
        told = (await client.post("/login", data=code, headers={"Origin": address})).json()
        return logged_in(address, client.cookies[COOKIE], told["page_secret"])


def logged_in(address: str, cookie: str, page_secret: str) -> StorageState:
    """The cookie and page secret that a browser stores at login."""
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
    """Open a page in a browser context of its own; fail at the end if the page has logged errors."""
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


async def send(page: Page, text: str) -> None:
    """Write a message and send it with the keyboard."""
    box = page.get_by_role("textbox", name="Message")
    await box.fill(text)
    await box.press("Enter")


async def go(page: Page, path: str) -> None:
    """Go to another place of the page, as a link inside it does, and wait until it is shown."""
    await page.evaluate("path => history.pushState(null, '', path)", path)
    await page.locator("h1").wait_for()
    await expect(page.locator(".loading")).to_have_count(0)
