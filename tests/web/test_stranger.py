"""The first hour of someone who knows ChatGPT and has never seen Wakeful, with a server that is killed in between.

A real `wakeful serve`, a real browser, and a scripted provider. At each step the page says what REST says.
"""

import asyncio
import os
import re
import signal

import httpx
import pytest
from playwright.async_api import expect

from browser.shown import BERLIN, IN_BERLIN, check_agenda, check_times, clock, moment
from browser.visits import PATIENCE, go, send, shoot, watch
from forked_process import Forked
from live_server import Provider
from openai_server import call, calls, listing, refuse, say
from wakeful.core.clock import SystemClock
from wakeful.core.texts import quote_own_brief

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

KEY = "sk-of-a-stranger-0123456789"
TOKEN = "a-token-for-all-tests"
STRETCH = "Use notify to tell the user to stretch."
WOKEN_TO_STRETCH = quote_own_brief(STRETCH)
FILMS = "Read films.txt with read_file and say which film to see tonight."
ASKED = {
    "Remind me to stretch": (
        "schedule_recall",
        f'{{"call_type": "once", "when": "in 40 minutes", "additional_context_message": "{STRETCH}"}}',
    ),
    "Look at my films soon": ("schedule_next_run", f'{{"in_seconds": 10, "instructions": "{FILMS}"}}'),
    WOKEN_TO_STRETCH: ("notify", '{"title": "Stretch", "body": "Stand up for two minutes."}'),
}


async def answer(exchange):
    """Answer as a model would that understands three requests."""
    body = exchange.request.body
    last = body["messages"][-1]
    if not body.get("tools"):
        await say("My first talk")(exchange)  # it is asked for a title
    elif "report_ready" in str(body["tools"]):
        await calls(*call("report_ready", '{"word": "ready"}'))(exchange)
    elif last["role"] == "tool":
        await say("Done as you asked.")(exchange)
    elif asked := ASKED.get(last["content"]):
        await calls(*call(*asked, id=f"call_{len(body['messages'])}"))(exchange)
    else:
        await say("Hello, I can set my own alarm.")(exchange)


async def list_models(exchange):
    is_right = exchange.request.headers.get("authorization") == f"Bearer {KEY}"
    await (listing("small", "large") if is_right else refuse(401, "Incorrect API key."))(exchange)


class RealServer:
    """`wakeful serve` in a process of its own, on a port that stays the same."""

    def __init__(self, folder):
        plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
        ours = {"WAKEFUL_DATA_DIR": f"{folder}/data", "WAKEFUL_CONFIG_DIR": f"{folder}/config", "WAKEFUL_TOKEN": TOKEN}
        self._environment, self._log = plain | ours, folder / "log"
        self._started = []
        self.address = ""

    async def start(self):
        """Start it, and return the login link that it prints."""
        port = self.address.rpartition(":")[2] or "0"
        self._started.append(Forked(("serve", "--port", port), self._environment, self._log))
        self.address, link = await asyncio.to_thread(self._started[-1].read_addresses)
        return link

    async def kill(self):
        self._started[-1].send_signal(signal.SIGKILL)
        assert await asyncio.to_thread(self._started[-1].wait, 20) == -signal.SIGKILL

    def close(self):
        for process in self._started:
            process.close()

    async def read(self, path, params=None):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=self.address, headers=headers, timeout=30, verify=False) as client:
            answer = await client.get(path, params=params)
        assert answer.is_success, answer.text
        return answer.json()

    async def wake(self, kind):
        [wake] = [each for each in (await self.read("/wakes"))["wakes"] if each["kind"] == kind]
        return wake


async def test_a_stranger_connects_a_model_and_meets_no_sentence_that_is_not_so(built_page, browser, tmp_path):
    server = RealServer(tmp_path)
    async with Provider(always=answer, routes={"GET /v1/models": list_models}) as provider:
        link = await server.start()
        context = await browser.new_context(**IN_BERLIN)
        context.set_default_timeout(PATIENCE)
        page = await context.new_page()
        complaints = watch(page)
        try:
            await log_in(page, server, link)
            await connect(page, server, provider)
            await chat(page, server)
            await check_schedule(page, server)
            await pause_and_resume(page, server)
            await edit(page, server)
            await kill_and_restart(page, server)
            await check_run(page, server, provider)
        finally:
            await context.close()
            server.close()
    assert complaints == []


async def log_in(page, server, link):
    await page.goto(f"{server.address}/ui/agenda")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Log in to Wakeful")
    await expect(page.get_by_role("main")).to_contain_text("A link works once, for ten minutes.")
    await page.goto(link)
    await page.wait_for_url(f"{server.address}/")
    await page.evaluate("window.isNeverReloaded = true")


async def connect(page, server, provider):
    """From the card about the demo model to a model of the provider's own list."""
    await expect(page.get_by_role("region", name="Model", exact=True)).to_contain_text("uses the demo model")
    await page.get_by_role("button", name="Connect a model").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Other (OpenAI-compatible)").click()
    await dialog.get_by_label("Address").fill(provider.base_url)
    await dialog.get_by_label("Key (if it needs one)").fill("sk-mistyped")
    await dialog.get_by_role("button", name="List models").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("refused the key: Incorrect API key.")
    await dialog.get_by_label("Key (if it needs one)").fill(KEY)
    await dialog.get_by_role("button", name="List models").click()
    await dialog.get_by_role("list", name="The provider's models").get_by_role("button", name="large").click()
    await dialog.get_by_role("button", name="Save and test").click()
    await expect(dialog).to_contain_text(re.compile("large answered “ready” in .* It calls tools."))
    await expect(dialog).to_contain_text("It is the default now")
    await shoot(page, "stranger-connected")
    await dialog.get_by_role("button", name="Done").click()
    await expect(page.get_by_role("button", name="Connect a model")).to_have_count(0)
    assert (await server.read("/models"))["default"]["model"] == "large"


async def chat(page, server):
    """The agent books a recall and its next run; both stand where it said so."""
    await send(page, "Hello")
    await expect(page.locator(".answer")).to_have_text("Hello, I can set my own alarm.")
    await expect(page.get_by_role("heading", level=1)).to_have_text("My first talk")
    await expect(page.get_by_label("Nothing scheduled")).to_be_visible()
    await send(page, "Remind me to stretch")
    await expect(page.get_by_label("Tool schedule_recall")).to_be_visible()
    banner = page.get_by_label("Scheduled run", exact=True)
    await expect(banner).to_contain_text(re.compile(f"in (40|39) min.*by the agent.*{STRETCH}", re.DOTALL))
    await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    await send(page, "Look at my films soon")
    other = page.get_by_role("list", name="Scheduled elsewhere")
    await expect(other).to_contain_text("asked for “in 10 s”: runs are at least 5 min apart")
    await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    for shown, kind in ((banner, "recall"), (other, "next_run")):
        at = (await server.wake(kind))["nominal_at"]
        assert moment(await shown.locator("time").first.get_attribute("datetime")) == moment(at)
        await expect(shown).to_contain_text(clock(at))
    await check_times(page, SystemClock().now())
    await shoot(page, "stranger-booked")


async def check_schedule(page, server):
    """The agenda, the agents and the sidebar know of both."""
    await expect(page.get_by_label("run scheduled")).to_be_visible()
    await check_agenda(page, server.read, SystemClock().now())
    await shoot(page, "stranger-agenda")
    await go(page, "/ui/agents")
    card = page.locator(".agent-card")
    await expect(card).to_contain_text("scheduled run in")
    first = min([(await server.wake(kind))["attempt_at"] for kind in ("recall", "next_run")])
    assert moment(await card.locator("time").get_attribute("datetime")) == moment(first)


async def pause_and_resume(page, server):
    [session] = (await server.read("/sessions"))["sessions"]
    [agent] = (await server.read("/agents"))["agents"]
    await go(page, f"/ui/sessions/{session['id']}")
    await page.get_by_label("Scheduled run", exact=True).get_by_role("button", name="Pause").click()
    await page.get_by_role("menuitem", name="1 hour").click()
    paused = page.get_by_label("Paused", exact=True)
    await expect(paused).to_contain_text("2 runs on hold")
    pause = (await server.read(f"/agents/{agent['id']}/pause"))["pause"]
    assert pause["held"] == 2
    await expect(paused).to_contain_text(f"Paused until {day_of(pause['until'])} {clock(pause['until'])}")
    await expect(page.get_by_label("run on hold")).to_be_visible()
    await go(page, "/ui/agents")
    await expect(page.locator(".agent-card")).to_contain_text(
        f"paused until {day_of(pause['until'])} {clock(pause['until'])} · 2 runs on hold"
    )
    await check_agenda(page, server.read, SystemClock().now())
    ribbon = page.get_by_role("region", name=f"{agent['name']} is paused")
    await expect(ribbon).to_contain_text("2 runs on hold")
    await shoot(page, "stranger-paused")
    await ribbon.get_by_role("button", name="Resume").click()
    await expect(ribbon).to_have_count(0)
    await expect(page.get_by_label("run scheduled")).to_be_visible()
    assert (await server.read(f"/agents/{agent['id']}/pause"))["pause"] is None
    await check_agenda(page, server.read, SystemClock().now())
    await go(page, f"/ui/sessions/{session['id']}")


async def edit(page, server):
    """Move the next run to later, and the recall so near that it is due while the server is down or just back."""
    other = page.get_by_role("list", name="Scheduled elsewhere")
    await other.get_by_role("button", name="Edit the next run").click()
    await change_time(page, "in 2 hours", "in 2 h")
    at = (await server.wake("next_run"))["nominal_at"]
    await expect(other).to_contain_text(re.compile(f"in 2 h.*{clock(at)}"))
    await expect(other).not_to_contain_text("asked for")
    banner = page.get_by_label("Scheduled run", exact=True)
    await banner.get_by_role("button", name="Edit", exact=True).click()
    await change_time(page, "in 6 seconds", r"in [3-6] s")


async def change_time(page, when, shown):
    dialog = page.get_by_role("dialog", name="Edit scheduled run")
    await dialog.get_by_label("When").fill(when)
    await expect(dialog.locator(".next-times li")).to_contain_text(re.compile(shown))
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_have_count(0)


async def kill_and_restart(page, server):
    await server.kill()
    await expect(page.get_by_text("Connection lost. This page may be out of date; reconnecting…")).to_be_visible()
    await shoot(page, "stranger-killed")
    await server.start()
    await expect(page.get_by_text("Connection lost.")).to_have_count(0)
    assert await page.evaluate("window.isNeverReloaded")


async def has_ended(server):
    """Wait until the one run of the recall has ended well; the answer is on the page a moment before."""
    while [run["status"] for run in await recalls_run(server)] == ["running"]:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    assert [(run["status"], run["attempt"]) for run in await recalls_run(server)] == [("success", 1)]


async def recalls_run(server):
    return [each for each in (await server.read("/runs"))["runs"] if each["kind"] == "recall"]


async def check_run(page, server, provider):
    """The recall ran once, by itself; the next run still waits; the inbox, the agenda and the run page say so."""
    woken = page.locator(".asked.is-woken")
    await expect(woken).to_contain_text(STRETCH)
    await expect(page.locator(".answer").last).to_have_text("Done as you asked.")
    await expect(page.get_by_label("Nothing scheduled")).to_be_visible()
    await expect(page.get_by_role("list", name="Scheduled elsewhere")).to_contain_text("next run in")
    await expect(page.get_by_label("run scheduled")).to_have_count(0)
    assert await woken.count() == 1
    await asyncio.wait_for(has_ended(server), PATIENCE / 1000)
    assert [request.body["messages"][-1]["content"] for request in provider.requests].count(WOKEN_TO_STRETCH) == 1
    await check_times(page, SystemClock().now())
    await shoot(page, "stranger-ran")
    await go(page, "/ui/inbox")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Inbox (1)")
    await expect(page.get_by_role("listitem").filter(has_text="Stand up for two minutes.")).to_contain_text("Stretch")
    await check_agenda(page, server.read, SystemClock().now())
    await page.locator(".agenda-entry.is-good").click()
    await expect(page.locator(".run-origin")).to_contain_text("scheduled by the agent")
    await expect(page.get_by_role("region", name="Result")).to_contain_text("Done as you asked.")
    story = page.locator(".story")
    await expect(story).to_contain_text("Requested: “in 40 minutes”")
    await expect(story).to_contain_text("You changed: time")
    await expect(story).to_contain_text(re.compile("Done after .* It scheduled nothing."))
    assert await page.evaluate("window.isNeverReloaded")
    await shoot(page, "stranger-run")


def day_of(text):
    """Return how the page names the day of an instant within the next hours."""
    return (
        "today"
        if moment(text).astimezone(BERLIN).date() == SystemClock().now().astimezone(BERLIN).date()
        else "tomorrow"
    )
