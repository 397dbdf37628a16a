"""Take pictures of every page and dialog in light, in dark and on a phone, for people to look at.

Run `.venv/bin/python scripts/places.py FOLDER`. The page is filled by a scripted model, as in the tests.
"""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Locator, Page, async_playwright, expect

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

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

Open = Callable[[Page, dict[str, str]], Awaitable[None]]


async def _unfold(page: Page, places: dict[str, str]) -> None:
    await go(page, places["chat"])
    await page.evaluate("document.querySelectorAll('.fold[aria-expanded=false]').forEach(fold => fold.click())")


async def _open_banner(page: Page, places: dict[str, str]) -> Locator:
    """Return the banner of the chat; on a phone, the sheet that its line opens."""
    await go(page, places["chat"])
    banner = page.get_by_label("Scheduled run", exact=True)
    line, sheet = page.get_by_role("button", name="Look at the garden"), page.get_by_role("dialog")
    await expect(banner.or_(line).first).to_be_visible()
    if await line.count():
        await line.click()
        return sheet
    return banner


async def _edit(page: Page, places: dict[str, str]) -> None:
    banner = await _open_banner(page, places)
    await banner.get_by_role("button", name="Edit", exact=True).first.click()
    await page.get_by_text("How it came about").click()
    await expect(page.locator(".next-times li")).to_have_count(5)


async def _schedule(page: Page, places: dict[str, str]) -> None:
    await go(page, places["scheduled-session"])
    await page.get_by_role("button", name="Schedule", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("When").fill("tomorrow at 9")
    await dialog.get_by_label("Repeat").select_option("Every…")
    await expect(page.locator(".next-times li").first).to_be_visible()


async def _pause_menu(page: Page, places: dict[str, str]) -> None:
    banner = await _open_banner(page, places)
    await banner.get_by_role("button", name="Pause").click()


async def _connect(page: Page, places: dict[str, str]) -> None:
    await go(page, places["settings"])
    await page.get_by_role("button", name="Connect a model").click()
    await expect(page.get_by_role("dialog")).to_contain_text("Anthropic")


async def _new_agent(page: Page, places: dict[str, str]) -> None:
    await go(page, places["agents"])
    await page.get_by_role("button", name="New agent").click()


async def _delete_session(page: Page, places: dict[str, str]) -> None:
    await go(page, places["chat"])
    await page.get_by_role("button", name="Session", exact=True).click()
    await page.get_by_role("menuitem", name="Delete…").click()


async def _open_row(page: Page, places: dict[str, str]) -> None:
    await go(page, places["data"])
    await page.get_by_role("button", name="Open row 1").click()


DIALOGS: dict[str, Open] = {
    "chat-unfolded": _unfold,
    "edit": _edit,
    "schedule": _schedule,
    "pause-menu": _pause_menu,
    "connect": _connect,
    "new-agent": _new_agent,
    "delete-session": _delete_session,
    "row": _open_row,
}


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


@asynccontextmanager
async def _fresh(browser: Browser, server: Server, look: str) -> AsyncIterator[Page]:
    async with visit(browser, await log_in(server.address, TOKEN), server.address, **LOOKS[look]) as page:
        yield page


async def take_places(browser: Browser, server: Server, places: dict[str, str], pictures: Pictures, look: str) -> None:
    async with _fresh(browser, server, look) as page:
        for name, path in places.items():
            await go(page, path)
            await pictures.take_whole(page, name)
    for name, open_dialog in DIALOGS.items():
        async with _fresh(browser, server, look) as page:
            await open_dialog(page, places)
            await pictures.take_whole(page, name)
    context = await browser.new_context(**LOOKS[look])
    for name, path in SIGNED_OUT.items():
        page = await context.new_page()
        await page.goto(server.address + path)
        await expect(page.get_by_role("main")).to_contain_text("wakeful login")
        await pictures.take(page, name)
    await context.close()


async def take_paused(browser: Browser, server: Server, places: dict[str, str], pictures: Pictures, look: str) -> None:
    """The places that say that everything is paused."""
    await server.call("PUT", "/pause", json={"preset": "indefinitely", "reason": "On holiday"})
    async with _fresh(browser, server, look) as page:
        for name in ("chat", "agenda-week", "agents"):
            await go(page, places[name])
            await pictures.take(page, f"paused-{name}")
    await server.call("DELETE", "/pause")


async def take_approval(browser: Browser, server: Server, pictures: Pictures, look: str) -> None:
    """A call that waits for a person."""
    asking = {"name": f"Clerk ({look})", "toolsets": ["files"], "ask_before": ["write_file"]}
    agent = await server.call("POST", "/agents", json=asking)
    session = await server.session("Tidy up", agent_id=agent["id"])
    server.provider.then(calls(*call("write_file", '{"path": "note.txt", "content": "Hello"}')), say("Done."))
    async with _fresh(browser, server, look) as page:
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
            for look in LOOKS:
                pictures = Pictures(folder, look)
                await take_places(browser, server, places, pictures, look)
                await take_paused(browser, server, places, pictures, look)
                await take_approval(browser, server, pictures, look)
            await browser.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: scripts/places.py FOLDER")
    subprocess.run([sys.executable, ROOT / "scripts/page.py"], check=True)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(folder))
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")
