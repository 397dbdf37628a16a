"""The page during a run whose server is killed and started again."""

import os

import pytest
from playwright.async_api import expect

from browser.visits import go, log_in, send, visit
from crash.server_process import HALF, TOKEN, ServerProcess
from openai_server import OpenAIServer, calls, say
from openai_server import call as tool_call

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_page_that_watches_a_run_cut_off_by_a_crash_sees_it_go_on(built_page, browser, tmp_path):
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    places = {"WAKEFUL_DATA_DIR": f"{tmp_path}/data", "WAKEFUL_CONFIG_DIR": f"{tmp_path}/config"}
    written = calls(*tool_call("write_file", '{"path": "a.txt", "content": "hello"}'))
    async with OpenAIServer(written, HALF, say("The whole answer.")) as provider:
        model = {"WAKEFUL_MODEL": "openai-chat:test", "WAKEFUL_MODEL_BASE_URL": provider.base_url}
        server = ServerProcess(tmp_path, plain | places | model | {"WAKEFUL_TOKEN": TOKEN})
        try:
            await server.start()
            session = (await server.send("POST", "/sessions", {"title": "Watched"}))["id"]
            address = str(server.client.base_url)
            login = await log_in(address, TOKEN)
            async with visit(browser, login, f"{address}/ui/sessions/{session}") as page:
                await send(page, "Work")
                await expect(page.locator(".answer")).to_have_text("Half an answer")
                await server.kill()
                await expect(page.get_by_text("Connection lost.")).to_be_visible()
                await expect(page.locator(".answer")).to_have_text("Half an answer")  # nothing vanishes meanwhile
                await server.start(server.client.base_url.port)
                await expect(page.locator(".answer")).to_have_text("The whole answer.")  # and not behind the half one
                await expect(page.get_by_label("Tool write_file")).to_have_count(1)
                await expect(page.locator(".asked")).to_have_count(1)
                await expect(page.locator(".footnote")).to_be_visible()
                await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
                [run] = (await server.get(f"/runs?session_id={session}"))["runs"]
                await go(page, f"/ui/runs/{run['id']}")  # which shows the frames of both attempts
                result = page.get_by_role("region", name="Result")
                await expect(result.locator(".answer")).to_have_text("The whole answer.")
                await expect(result.get_by_label("Tool write_file")).to_have_count(1)
        finally:
            await server.clean_up()
