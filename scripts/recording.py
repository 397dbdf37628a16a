"""Record docs/images/wake.gif for the README: an agent books a wake, and it fires while we watch.

Run `.venv/bin/python scripts/recording.py`, then look at some frames. Needs Chromium and ffmpeg (both from Debian).
"""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import Page, async_playwright, expect

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/support"))

from browser.visits import find_chromium, go, log_in, visit
from live_server import TOKEN, running_server

ROOT = Path(__file__).parent.parent
IMAGE = ROOT / "docs" / "images" / "wake.gif"
MAX_BYTES = 1_000_000
FRAMES_PER_SECOND = 5
SECONDS_AT_THE_END = 3
VIEW: dict[str, Any] = {"viewport": {"width": 900, "height": 620}, "locale": "en-GB", "color_scheme": "light"}
FIRST = "Write water the beans, tie up the tomatoes to garden.txt"
SECOND = "In 10 seconds check garden.txt"
WAKE = 60_000  # milliseconds: more than the ten seconds after which the agent wakes


async def record(page: Page, folder: Path, done: asyncio.Event) -> None:
    """Take a picture of the page at a steady rate until the scene is done."""
    loop = asyncio.get_running_loop()
    start, count = loop.time(), 0
    while not done.is_set():
        await page.screenshot(path=folder / f"{count:04}.png")
        count += 1
        await asyncio.sleep(max(0.0, start + count / FRAMES_PER_SECOND - loop.time()))


async def act(page: Page, done: asyncio.Event) -> None:
    """Type the two messages as a person would, and wait until the wake has run."""
    try:
        box = page.get_by_role("textbox", name="Message")
        for count, text in enumerate((FIRST, SECOND), start=1):
            await box.press_sequentially(text, delay=45)
            await page.wait_for_timeout(400)
            await box.press("Enter")
            await expect(page.locator(".footnote")).to_have_count(count, timeout=WAKE)
            await page.wait_for_timeout(1_200)
        await expect(page.locator(".asked.is-woken")).to_have_count(1, timeout=WAKE)
        await expect(page.locator(".footnote")).to_have_count(3, timeout=WAKE)
        await page.wait_for_timeout(1_000)
    finally:
        done.set()


def draw(folder: Path) -> None:
    """Make one animated picture of the frames, with a palette of their own colours."""
    frames = ["-framerate", str(FRAMES_PER_SECOND), "-i", str(folder / "%04d.png")]
    pad = f"tpad=stop_mode=clone:stop_duration={SECONDS_AT_THE_END}"
    palette = "palettegen=max_colors=64:stats_mode=full[p];[b][p]paletteuse=dither=none:diff_mode=rectangle"
    graph = f"{pad},split[a][b];[a]{palette}"
    subprocess.run(["ffmpeg", "-loglevel", "error", "-y", *frames, "-filter_complex", graph, str(IMAGE)], check=True)
    size = IMAGE.stat().st_size
    print(f"{IMAGE.relative_to(ROOT)}: {len(list(folder.iterdir()))} frames, {size // 1000} kB")
    if size > MAX_BYTES:
        sys.exit(f"{IMAGE} has {size} bytes; the limit is {MAX_BYTES}.")


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        settings = {"data_dir": f"{name}/data", "config_dir": f"{name}/config"}
        frames = Path(name) / "frames"
        frames.mkdir()
        async with running_server(settings, model="demo") as server, async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=find_chromium(), chromium_sandbox=False)
            await server.change_agent(name="Gardener")
            session = await server.session("The garden this week")
            login = await log_in(server.address, TOKEN)
            async with visit(browser, login, server.address, **VIEW) as page:
                await go(page, f"/ui/sessions/{session}")
                done = asyncio.Event()
                await asyncio.gather(record(page, frames, done), act(page, done))
            await browser.close()
        draw(frames)


if __name__ == "__main__":
    subprocess.run([sys.executable, ROOT / "scripts/page.py"], check=True)
    asyncio.run(main())
