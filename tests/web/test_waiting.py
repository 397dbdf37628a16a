"""Waiting, as a person sees it: for a model that says nothing or is busy, and for an MCP server.

The pictures go to WAKEFUL_TEST_SHOTS if it is set, for people to look at.
"""

from datetime import timedelta

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.visits import send, shoot
from harness import NOON
from live_server import Patient, Tap, running_server
from openai_server import refuse, say
from wakeful.core.clock import ManualClock
from wakeful.mcp.rules import McpServer

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

DARK_PHONE = {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def clock():
    return ManualClock(NOON)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(own_files, clock):
    mcp = {"files": McpServer(name="files", command=("/nowhere/files-mcp",))}
    patient = Patient(first=60, retries=3)
    async with running_server(own_files, patient=patient, clock=clock, lease_seconds=3600, mcp=mcp) as server:
        yield server


async def asked(page):
    await page.get_by_role("textbox", name="Message").wait_for()
    await send(page, "Are you there?")


async def test_a_silent_model_is_a_line_that_its_first_word_clears(server, come, clock):
    tap = Tap()
    server.provider.then(tap)
    async with come(f"/ui/sessions/{await server.session()}", **DARK_PHONE) as page:
        await asked(page)
        await tap.is_asked.wait()
        line = page.locator(".is-wait")
        await expect(line).to_have_count(0)
        clock.advance(timedelta(seconds=5))
        where = server.provider.base_url.removesuffix("/v1")
        await expect(line).to_have_text(f"Waiting for the model: no answer yet from {where} (5 s)")
        await shoot(page, "waiting-for-model")
        await page.reload()
        await expect(line).to_contain_text("no answer yet")  # the current state, after a reload
        await expect(page.locator(".dots")).to_have_count(0)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        tap.say("Here I am.")
        await expect(page.locator(".answer")).to_have_text("Here I am.")
        await expect(line).to_have_count(0)
        clock.advance(timedelta(seconds=5))
        await expect(line).to_contain_text("nothing more from")
        tap.say(" Still.")
        tap.end()
        await expect(page.locator(".answer")).to_have_text("Here I am. Still.")
        await expect(line).to_have_count(0)


async def test_a_busy_model_is_a_line_that_counts_down(server, come, clock):
    server.provider.then(refuse(503, "Overloaded", {"Retry-After": "40"}), say("Now."))
    async with come(f"/ui/sessions/{await server.session()}") as page:
        await asked(page)
        line = page.locator(".is-wait")
        await expect(line).to_contain_text("Overloaded (HTTP 503)")
        await expect(line).to_contain_text("Trying again in 3")  # 39 s, or a little less
        await shoot(page, "waiting-for-retry")
        clock.advance(timedelta(seconds=40))
        await expect(page.locator(".answer")).to_have_text("Now.")
        await expect(line).to_have_count(0)


async def test_an_mcp_server_that_did_not_start_is_a_note(server, come):
    await server.change_agent(mcp_servers=["files"])
    server.provider.then(say("Without it."))
    async with come(f"/ui/sessions/{await server.session()}") as page:
        await asked(page)
        await expect(page.locator(".answer")).to_have_text("Without it.")
        [run] = await server.runs_of(page.url.rpartition("/")[2])
        await page.goto(f"{server.address}/ui/runs/{run['id']}")
        note = page.locator(".note-line")
        await expect(note).to_contain_text("MCP server files is left out of this run: it could not be started")
        await expect(note).not_to_contain_text("/nowhere")
        await expect(page.locator(".is-wait")).to_have_count(0)
    await server.change_agent(mcp_servers=[])
