"""Take the screenshots of the documentation, docs/images/*.png: the page with the demo model, after some use.

Run `.venv/bin/python scripts/screenshots.py`, then look at the images.
"""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright, expect

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/support"))

from browser.visits import find_chromium, go, log_in, send, visit
from live_server import TOKEN, Server, running_server

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
MAX_BYTES = 200_000
WIDE: dict[str, Any] = {"viewport": {"width": 1200, "height": 680}, "locale": "en-GB"}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 780},
    "locale": "en-GB",
    "has_touch": True,
    "is_mobile": True,
}
WAKE = 60_000  # milliseconds: more than the ten seconds after which the agent wakes

HARVEST = """week,plant,kilos
2026-W38,tomatoes,6.5\n2026-W38,beans,2.1\n2026-W39,tomatoes,7.2\n2026-W39,beans,2.8\n2026-W40,tomatoes,5.1
2026-W40,beans,3.4\n2026-W41,tomatoes,3.9\n2026-W41,pumpkins,8.3\n2026-W42,tomatoes,1.6\n2026-W42,pumpkins,11.2
2026-W43,pumpkins,6.4\n2026-W43,leeks,2.2\n2026-W44,leeks,3.1\n2026-W45,leeks,3.6
"""
VIEWS = {
    "kilos_by_plant": ("bar", "SELECT plant, sum(kilos) AS kilos FROM harvest GROUP BY plant ORDER BY kilos DESC"),
    "kilos_by_week": ("line", "SELECT week, sum(kilos) AS kilos FROM harvest GROUP BY week"),
    "this_season": ("number", "SELECT sum(kilos) AS kilos, count(DISTINCT plant) AS plants FROM harvest"),
}
JOURNAL = """day,mood,text
2026-11-05,3,Rain\n2026-11-06,4,Soup with Ada\n2026-11-07,4,Swept the leaves\n2026-11-08,2,A cold\n2026-11-09,2,Ill
2026-11-10,3,Better\n2026-11-11,4,Lanterns in the street\n2026-11-12,5,Letter from Grace\n2026-11-13,4,Baked bread
2026-11-14,3,A long walk in the rain\n2026-11-15,5,Lunch with Ada\n2026-11-16,4,Planted garlic
"""
JOURNAL_VIEWS = {
    "mood_by_day": ("line", "SELECT day, mood FROM journal ORDER BY day"),
    "so_far": ("number", "SELECT count(*) AS entries, round(avg(mood), 1) AS mood FROM journal"),
}
HELPERS = [
    {"name": "Researcher", "description": "Reads the news of the trade", "schedule": {"mode": "project"}},
    {"name": "Bookkeeper", "description": "Keeps the receipts in order", "schedule": {"mode": "ambient"}},
]


async def talk(browser: Browser, server: Server, login: Any, session: str) -> None:
    """Let the agent write a file, wake ten seconds later to read it, and book a recurring recall."""
    async with visit(browser, login, f"{server.address}/ui/sessions/{session}", **WIDE) as page:
        await send(page, "Write water the beans, tie up the tomatoes to garden.txt")
        await expect(page.locator(".footnote")).to_have_count(1)
        await send(page, "In 10 seconds check garden.txt")
        await expect(page.locator(".asked.is-woken")).to_have_count(1, timeout=WAKE)
        await expect(page.locator(".footnote")).to_have_count(3)
    brief = "Read garden.txt with read_file and say what is left to do."
    asked = {"call_type": "recurring", "when": "tomorrow at 08:00", "interval_seconds": 43_200}
    asked |= {"additional_context_message": brief, "internal_comment": "Look after the garden", "timezone": "UTC"}
    await server.call("POST", f"/sessions/{session}/recall", json=asked)


async def furnish(server: Server, gardener: str) -> None:
    """Give the agenda and Home something to show."""
    await server.call("POST", f"/agents/{gardener}/db/import", json={"table": "harvest", "text": HARVEST})
    for name, (render, sql) in VIEWS.items():
        view = {"sql": sql, "render": render, "pinned": True}
        await server.call("PUT", f"/agents/{gardener}/db/views/{name}", json=view)
    for hour, (helper, what) in enumerate(zip(HELPERS, ("Read the news", "Sort the receipts"), strict=True)):
        agent = await server.call("POST", "/agents", json=helper | {"self_scheduling": True})
        session = await server.session(what, agent_id=agent["id"])
        asked = {"call_type": "recurring", "cron": f"30 {9 + 5 * hour} * * *", "timezone": "UTC"}
        asked |= {"additional_context_message": "Read inbox.txt with read_file.", "internal_comment": what}
        await server.call("POST", f"/sessions/{session}/recall", json=asked)


async def keep_journal(server: Server) -> str:
    """Make the agent of the tutorial about a journal, and return its id."""
    agent = await server.call("POST", "/agents", json={"name": "Journal", "toolsets": ["database"]})
    await server.call("POST", f"/agents/{agent['id']}/db/import", json={"table": "journal", "text": JOURNAL})
    for name, (render, sql) in JOURNAL_VIEWS.items():
        view = {"sql": sql, "render": render, "pinned": True}
        await server.call("PUT", f"/agents/{agent['id']}/db/views/{name}", json=view)
    return agent["id"]


async def take(page: Page, path: str, name: str, *, height: int | None = None) -> None:
    if height is not None:
        await page.set_viewport_size({"width": WIDE["viewport"]["width"], "height": height})
    await go(page, path)
    await page.wait_for_timeout(300)  # for charts, which are drawn last
    await page.evaluate("document.activeElement.blur()")  # a blinking cursor would change the image
    file = IMAGES / f"{name}.png"
    await page.screenshot(path=file, animations="disabled")
    size = file.stat().st_size
    print(f"{file.relative_to(ROOT)}: {size // 1000} kB")
    if size > MAX_BYTES:
        sys.exit(f"{file} has {size} bytes; the limit is {MAX_BYTES}.")


async def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        settings = {"data_dir": f"{folder}/data", "config_dir": f"{folder}/config"}
        async with running_server(settings, model="demo") as server, async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=find_chromium(), chromium_sandbox=False)
            login = await log_in(server.address, TOKEN)
            gardener = (await server.change_agent(name="Gardener"))["id"]
            session = await server.session("The garden this week")
            await talk(browser, server, login, session)
            await furnish(server, gardener)
            chat, home = f"/ui/sessions/{session}", f"/ui/agents/{gardener}/home"
            async with visit(browser, login, server.address, color_scheme="light", **WIDE) as page:
                await take(page, home, "home")
                await take(page, chat, "chat", height=960)
                journal = await keep_journal(server)  # after the others, which do not show it
                await take(page, f"/ui/agents/{journal}/home", "journal", height=640)
            async with visit(browser, login, server.address, color_scheme="dark", **WIDE) as page:
                await take(page, "/ui/agenda", "agenda-dark")
            async with visit(browser, login, server.address, color_scheme="light", **PHONE) as page:
                await take(page, chat, "chat-phone")
                await take(page, home, "home-phone")
            await browser.close()


if __name__ == "__main__":
    subprocess.run([sys.executable, ROOT / "scripts/page.py"], check=True)
    asyncio.run(main())
