"""Take pictures of every page and dialog in light, in dark and on a phone, for people to look at.

Run `.venv/bin/python scripts/places.py FOLDER`. The page is filled by a scripted model, as in the tests.
"""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright, expect

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/support"))

from browser.dialogs import DIALOGS
from browser.places import make_places
from browser.visits import find_chromium, go, log_in, send, visit
from live_server import TOKEN, Server, running_server
from openai_server import call, calls, say

ROOT = Path(__file__).parent.parent
DESKTOP = {"viewport": {"width": 1440, "height": 900}, "locale": "en-GB"}
LOOKS: dict[str, dict[str, Any]] = {
    "light": DESKTOP | {"color_scheme": "light"},
    "dark": DESKTOP | {"color_scheme": "dark"},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "locale": "en-GB",
        "color_scheme": "light",
        "has_touch": True,
        "is_mobile": True,
    },
}
SIGNED_OUT = {"login": "/login", "used-link": "/login?code=used", "signed-out": "/ui/agenda"}
# Heights, in pixels, of pages that are photographed as a whole.
LONG = {"configure": 3_600, "settings": 2_600, "agenda-week": 1_700, "chat-unfolded": 2_200}


async def _unfold(page: Page, places: dict[str, str]) -> None:
    await go(page, places["chat"])
    await page.evaluate("document.querySelectorAll('.fold[aria-expanded=false]').forEach(fold => fold.click())")


class Pictures:
    """Takes the pictures of one look."""

    def __init__(self, folder: Path, look: str) -> None:
        self._folder, self._look = folder, look

    async def take(self, page: Page, name: str) -> None:
        await page.wait_for_timeout(300)  # for charts, which are drawn last
        await page.screenshot(path=self._folder / f"{name}-{self._look}.png", animations="disabled")

    async def take_whole(self, page: Page, name: str) -> None:
        """Take a page whose content scrolls, as high as it is."""
        size = page.viewport_size
        assert size is not None
        await page.set_viewport_size({"width": size["width"], "height": LONG.get(name, size["height"])})
        await self.take(page, name)
        await page.set_viewport_size(size)


Fresh = Callable[[str], AbstractAsyncContextManager[Page]]


async def _log_in(browser: Browser, server: Server) -> Fresh:
    """Log in once, and return a function that opens the page in a browser context of its own."""
    login = await log_in(server.address, TOKEN)
    return lambda look: visit(browser, login, server.address, **LOOKS[look])


async def take_places(
    browser: Browser, server: Server, fresh: Fresh, places: dict[str, str], pictures: Pictures, look: str
) -> None:
    async with fresh(look) as page:
        for name, path in places.items():
            await go(page, path)
            await pictures.take_whole(page, name)
    for name, open_dialog in {"chat-unfolded": _unfold, **DIALOGS}.items():
        async with fresh(look) as page:
            await open_dialog(page, places)
            await pictures.take_whole(page, name)
    context = await browser.new_context(**LOOKS[look])
    for name, path in SIGNED_OUT.items():
        page = await context.new_page()
        await page.goto(server.address + path)
        await expect(page.get_by_role("main")).to_contain_text("wakeful login")
        await pictures.take(page, name)
    await context.close()


async def take_paused(server: Server, fresh: Fresh, places: dict[str, str], pictures: Pictures, look: str) -> None:
    """The places that say that everything is paused."""
    await server.call("PUT", "/pause", json={"preset": "indefinitely", "reason": "On holiday"})
    async with fresh(look) as page:
        for name in ("chat", "agenda-week", "agents"):
            await go(page, places[name])
            await pictures.take(page, f"paused-{name}")
    await server.call("DELETE", "/pause")


async def take_approval(server: Server, fresh: Fresh, pictures: Pictures, look: str) -> None:
    """A call that waits for a person."""
    asking = {"name": f"Scribe ({look})", "toolsets": ["files"], "ask_before": ["write_file"]}
    agent = await server.call("POST", "/agents", json=asking)
    session = await server.session("Tidy up", agent_id=agent["id"])
    server.provider.then(calls(*call("write_file", '{"path": "note.txt", "content": "Hello"}')), say("Done."))
    async with fresh(look) as page:
        await go(page, f"/ui/sessions/{session}")
        await send(page, "Write a note")
        await expect(page.get_by_role("button", name="Approve")).to_be_visible()
        await pictures.take(page, "approve")
        await page.get_by_role("button", name="Approve").click()
        await expect(page.locator(".footnote")).to_be_visible()
    await server.call("DELETE", f"/agents/{agent['id']}")


async def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as own:
        settings = {"data_dir": f"{own}/data", "config_dir": f"{own}/config"}
        async with running_server(settings) as server, async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=find_chromium(), chromium_sandbox=False)
            places = await make_places(server)
            fresh = await _log_in(browser, server)
            for look in LOOKS:
                pictures = Pictures(folder, look)
                await take_places(browser, server, fresh, places, pictures, look)
                await take_paused(server, fresh, places, pictures, look)
                await take_approval(server, fresh, pictures, look)
            await browser.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: scripts/places.py FOLDER")
    subprocess.run([sys.executable, ROOT / "scripts/page.py"], check=True)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(folder))
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")
