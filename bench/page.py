"""Speed of the page in a real Chromium: size, first paint, a long session, frame rate while text streams in.

Writes bench/out/page.json and says which of the targets are met. The browser and the server share this machine.
"""

import asyncio
import gzip
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, CDPSession, Page, async_playwright

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/support"))

from browser.visits import find_chromium, log_in, visit
from live_server import TOKEN, Server, running_server
from openai_server import improvise
from wakeful.core.ids import new_id
from wakeful.core.types import Message

ROOT = Path(__file__).parent.parent
OUT = Path(__file__).parent / "out" / "page.json"
STATIC = ROOT / "src/wakeful/http/static"
MESSAGES = 2_000
DELTAS, APART = 1_000, 0.005  # 200 a second
WIDE = {"viewport": {"width": 1280, "height": 820}}

# Records how long each frame took, until the result is read.
WATCH_FRAMES = """() => {
  window.frames_ = []; let last = performance.now(); window.watching = true;
  const tick = now => { frames_.push(now - last); last = now; if (watching) requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
}"""
SCROLL = """async () => {
  const log = document.querySelector('[role=log]');
  for (let step = 0; step < 240; step++) {
    log.scrollTop -= 120;
    await new Promise(requestAnimationFrame);
  }
}"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def measure_size() -> float:
    """Return the kilobytes of compressed script that the chat loads: the page's scripts and their imports."""
    seen: set[str] = set()
    todo = re.findall(r"assets/([\w-]+\.js)", (STATIC / "index.html").read_text())
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += re.findall(r'from"\./([\w-]+\.js)"', (STATIC / "assets" / name).read_text())
    return sum(len(gzip.compress((STATIC / "assets" / name).read_bytes())) for name in seen) / 1000


async def fill(server: Server) -> str:
    """Make a long session and return its id."""
    session = await server.session("A long one")
    now = server.node.clock.now()
    text = "A paragraph with **weight**, `code` and a [link](https://example.org).\n\n- one\n- two\n\n```js\nlet x\n```"

    async def write(tx: Any) -> None:
        for number in range(MESSAGES):
            role, content = ("user", f"Question {number}") if number % 2 == 0 else ("assistant", text)
            await tx.sessions.append(
                Message(id=new_id(now), session_id=session, position=0, role=role, content=content, created_at=now)
            )

    await server.node.store.write(write)
    return session


async def measure_opening(browser: Browser, server: Server, login: Any, session: str) -> dict[str, float]:
    """Open the long session with the script already cached, then scroll up through it."""
    async with visit(browser, login, server.address, **WIDE) as page:
        await page.get_by_role("textbox", name="Message").wait_for()
        paint = await page.evaluate(PAINT)
        await page.goto(f"{server.address}/ui/sessions/{session}")
        await page.locator(".asked").last.wait_for()
        opened = await page.evaluate("performance.now()")
        await page.evaluate(WATCH_FRAMES)
        await page.evaluate(SCROLL)
        return {"first_paint_ms": paint, "open_ms": opened} | await frames_of(page, "scroll")


async def measure_jump(browser: Browser, server: Server, login: Any, session: str) -> dict[str, float]:
    """Open the long session at its first message, as a result of the search does."""
    first = (await server.call("GET", f"/sessions/{session}"))["messages"][0]["id"]
    async with visit(browser, login, server.address, **WIDE) as page:
        await page.get_by_role("textbox", name="Message").wait_for()
        await page.goto(f"{server.address}/ui/sessions/{session}?message={first}")
        await page.locator(".is-found").wait_for()
        return {"jump_ms": await page.evaluate("performance.now()")}


async def measure_stream(browser: Browser, server: Server, login: Any) -> dict[str, float]:
    """Measure the frame rate while a model streams 200 deltas a second."""
    async with visit(browser, login, f"{server.address}/ui/sessions/{await server.session()}", **WIDE) as page:
        box = page.get_by_role("textbox", name="Message")
        await box.fill(f"stream {DELTAS} {APART}")
        devtools = await page.context.new_cdp_session(page)
        await devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = await busy_seconds(devtools)
        await page.evaluate(WATCH_FRAMES)
        await box.press("Enter")
        await page.locator(".footnote").wait_for(timeout=60_000)
        busy, frames = await busy_seconds(devtools) - before, await page.evaluate("frames_.length")
        return await frames_of(page, "stream") | {"stream_cpu_per_frame_ms": busy * 1000 / frames}


async def measure_slowest_work(browser: Browser, server: Server, login: Any, session: str) -> dict[str, float]:
    """Trace one more answer and more scrolling: a late frame of an idle page waited for the machine."""
    async with visit(browser, login, f"{server.address}/ui/sessions/{await server.session()}", **WIDE) as page:
        box = page.get_by_role("textbox", name="Message")
        await box.fill(f"stream {DELTAS} {APART}")
        await browser.start_tracing(page=page, categories=["cc"])
        await box.press("Enter")
        await page.locator(".footnote").wait_for(timeout=60_000)
        streamed = slowest_work(json.loads(await browser.stop_tracing()))
    async with visit(browser, login, f"{server.address}/ui/sessions/{session}", **WIDE) as page:
        await page.locator(".asked").last.wait_for()
        await browser.start_tracing(page=page, categories=["cc"])
        await page.evaluate(SCROLL)
        scrolled = slowest_work(json.loads(await browser.stop_tracing()))
    return {"stream_cpu_of_frame_p99_ms": streamed, "scroll_cpu_of_frame_p99_ms": scrolled}


def slowest_work(trace: dict[str, Any]) -> float:
    """Return the CPU time, in milliseconds, of the slowest frames in a trace (p99)."""
    begun = [each for each in trace["traceEvents"] if each["name"] == "ProxyMain::BeginMainFrame" and "tdur" in each]
    spent = sorted(each["tdur"] / 1000 for each in begun)
    return spent[int(len(spent) * 0.99)]


async def busy_seconds(devtools: CDPSession) -> float:
    """Return the CPU time of the page's main thread: the cost of frames even on a busy machine."""
    metrics = (await devtools.send("Performance.getMetrics"))["metrics"]
    return next(each["value"] for each in metrics if each["name"] == "TaskDuration")


async def frames_of(page: Page, what: str) -> dict[str, float]:
    taken: list[float] = sorted(await page.evaluate("(watching = false, frames_)"))
    return {f"{what}_frame_p50_ms": taken[len(taken) // 2], f"{what}_frame_p99_ms": taken[int(len(taken) * 0.99)]}


async def main() -> None:
    figures: dict[str, float] = {"chat_script_kb": measure_size()}
    with tempfile.TemporaryDirectory() as folder:
        places = {"data_dir": f"{folder}/data", "config_dir": f"{folder}/config"}
        async with running_server(places, always=improvise) as server, async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=find_chromium(), chromium_sandbox=False)
            login = await log_in(server.address, TOKEN)
            session = await fill(server)
            figures |= await measure_opening(browser, server, login, session)
            figures |= await measure_jump(browser, server, login, session)
            figures |= await measure_stream(browser, server, login)
            figures |= await measure_slowest_work(browser, server, login, session)
            await browser.close()
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(figures, indent=2) + "\n")
    for name, key, limit in (
        ("script of the chat, packed, kB", "chat_script_kb", 200),
        ("first paint, ms", "first_paint_ms", 500),
        (f"a session of {MESSAGES:,} messages opens, ms", "open_ms", 600),
        ("the same at its first message, ms", "jump_ms", 600),
        ("frames while scrolling it, p99 ms", "scroll_frame_p99_ms", 32),
        ("work of the page in its slowest frames, p99 CPU ms", "scroll_cpu_of_frame_p99_ms", 16),
        ("frames while 200 deltas a second come, p99 ms", "stream_frame_p99_ms", 32),
        ("work of the page for each of them, mean CPU ms", "stream_cpu_per_frame_ms", 16),
        ("the same in the slowest of them, p99 CPU ms", "stream_cpu_of_frame_p99_ms", 16),
    ):
        print(f"{'met   ' if figures[key] <= limit else 'MISSED'} {name}: {figures[key]:.1f} (at most {limit})")


if __name__ == "__main__":
    subprocess.run([sys.executable, ROOT / "scripts/page.py"], check=True)
    asyncio.run(main())
