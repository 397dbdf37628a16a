"""Programs that use agents over MCP, as a person sees it on the page."""

import pytest
from playwright.async_api import expect

from browser.visits import shoot
from mcp_client import held, make_token, text_of
from openai_server import say

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


DARK_PHONE = {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}}
TODO = "Read notes.txt with read_file."


@pytest.mark.parametrize("how", [{}, DARK_PHONE], ids=["desktop", "phone"])
async def test_a_booking_of_a_program_appears_live_with_its_token(server, come, how):
    session = await server.session()
    token = await make_token(server, "schedule", "claude-code")
    async with come(f"/ui/sessions/{session}", **how) as page, held(server, token, "auto") as client:
        await page.get_by_role("textbox", name="Message").wait_for()
        booked = await client.call_tool("book_wake", {"instructions": TODO, "when": "1h", "session_id": session})
        assert not booked.is_error, text_of(booked)
        if how:  # on a phone it is a line, which opens the rest
            await page.get_by_role("button", name="in 1 h").click()
        banner = page.get_by_role("region", name="Scheduled run")
        await expect(banner).to_contain_text("by you through MCP (token “claude-code”)")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await shoot(page, f"booked-through-mcp-{'phone' if how else 'desktop'}")


async def test_a_run_that_a_program_started_says_so(server, come):
    server.provider.then(say("Four."))
    token = await make_token(server, "chat", "cursor")
    async with held(server, token, "auto") as client:
        asked = await client.call_tool("ask_agent", {"message": "Two and two?"})
    async with come(f"/ui/runs/{asked.structured_content['run_id']}") as page:
        await expect(page.locator(".run-origin")).to_contain_text("your message through MCP (token “cursor”)")
