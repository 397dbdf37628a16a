"""The first minutes of a newcomer who only ran `make serve`, on the demo model."""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from playwright.async_api import expect

from browser.visits import log_in, send, visit, watch
from live_server import running_server

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


EXAMPLES = ("What can you do?", "Write buy milk to notes.txt", "In 10 seconds notify me: tea is ready")


@pytest.mark.parametrize("example", EXAMPLES)
async def test_each_example_of_the_start_page_works_when_it_is_clicked_first(browser, own_files, tmp_path, example):
    """On a server that nobody has used, to the end of the wake."""
    fresh = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "model": None, "model_base_url": None}
    async with running_server(own_files | fresh) as server:
        login = await log_in(server.address, server.token)
        async with visit(browser, login, f"{server.address}/", timezone_id="Asia/Kolkata") as page:
            shown = page.get_by_role("list", name="Examples").get_by_role("button")
            await expect(shown).to_have_text(EXAMPLES)
            await shown.filter(has_text=example).click()
            await expect(page.locator(".answer").first).to_contain_text(re.compile("Done|demo model"))
            if example.startswith("In 10 seconds"):
                answer = page.locator(".answer").first
                await expect(answer).to_have_text(
                    re.compile(r"Done: I will wake (today|tomorrow) \d\d:\d\d \(in \d+ s\)\.")
                )
                [wake] = (await server.call("GET", "/wakes"))["wakes"]
                due = datetime.fromisoformat(wake["nominal_at"]).astimezone(ZoneInfo("Asia/Kolkata"))
                await expect(answer).to_contain_text(f" {due:%H:%M} (")
                await expect(page.locator(".asked.is-woken")).to_be_visible(timeout=20_000)
                await expect(page.locator(".answer").last).to_contain_text("Done: it is in your inbox.")
                await expect(page.get_by_role("link", name=re.compile("Inbox"))).to_contain_text("1")
            await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
            await expect(page.locator(".bad, .bad-text, [role=alert]:not(:empty)")).to_have_count(0)
            assert {run["status"] for run in (await server.call("GET", "/runs"))["runs"]} == {"success"}


async def test_a_newcomer_with_nothing_but_the_link_sees_the_whole_loop(served, browser):
    """First message, a wake in ten seconds, its live run, rows in the database, a chart, a pause, the agenda."""
    context = await browser.new_context()
    page = await context.new_page()
    complaints = watch(page)
    await page.goto(served.login_link)
    await page.wait_for_url(f"{served.address}/")

    await send(page, "What can you do?")
    await expect(page.locator(".answer")).to_contain_text("This is the demo model, not an LLM")
    await send(page, "Write buy milk to notes.txt")
    await expect(page.get_by_label("Tool write_file")).to_contain_text("notes.txt")

    await send(page, "In 10 seconds check notes.txt")
    banner = page.get_by_label("Scheduled run", exact=True)
    await expect(banner).to_contain_text("by the agent")
    await expect(banner).to_contain_text(re.compile(r"in \d+ s"))
    await expect(page.locator(".session-clock")).to_be_visible()
    woken = page.locator(".asked.is-woken")
    await expect(woken).to_contain_text("Check notes.txt with read_file", timeout=20_000)
    await expect(page.locator(".answer").last).to_contain_text("buy milk")
    await expect(page.locator(".session-clock")).to_have_count(0)

    await send(page, "Remember that the plumber comes on Friday")
    await expect(page.get_by_label("Tool db_insert").last).to_be_visible()
    await expect(page.locator(".answer").last).to_contain_text("I have noted that.")
    await page.get_by_role("link", name="Agents").click()
    await page.get_by_role("main").get_by_role("link", name="Wakeful").click()
    tabs = page.get_by_role("navigation", name="Parts of this agent")
    await tabs.get_by_role("link", name="Data").click()
    await expect(page.get_by_role("cell", name="the plumber comes on Friday")).to_be_visible()

    await page.get_by_role("list", name="Sessions").get_by_role("link").click()
    await send(page, "Draw a chart of memories")
    await expect(page.get_by_label("Tool db_define_view")).to_be_visible()
    await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    await page.get_by_role("link", name="Agents").click()
    await page.get_by_role("main").get_by_role("link", name="Wakeful").click()
    await tabs.get_by_role("link", name="Home").click()
    await expect(page.get_by_role("img", name=re.compile("chart of"))).to_be_visible()

    await page.get_by_label("Nothing scheduled").get_by_role("button", name="Pause").click()
    await page.get_by_role("menuitem", name="1 hour").click()
    await expect(page.get_by_label("Paused", exact=True)).to_contain_text("Paused until")
    await page.get_by_role("button", name="Resume").click()
    await expect(page.get_by_label("Nothing scheduled")).to_be_visible()

    await page.get_by_role("link", name="Agenda").click()
    await page.locator(".agenda-entry.is-good", has_text="Demo: check notes.txt").click()
    await expect(page.locator(".run-origin")).to_contain_text("scheduled by the agent")
    await page.get_by_role("link", name="Settings").click()
    await expect(page.get_by_role("region", name="Models")).to_contain_text("demo default built in")
    assert complaints == []
    await context.close()
