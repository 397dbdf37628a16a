"""Hooks on the page: made in Configure, and a delivery's run seen live with who started it; webhooks in Settings."""

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.visits import go
from network.webhook_receiver import WebhookReceiver
from openai_server import improvise
from wakeful.core.clock import SystemClock
from wakeful.hooks import schemes

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SERVER = {"fetch_private_hosts": ["127.0.0.1"], "always": improvise}

BODY = b'{"ref": "refs/heads/main", "note": "<img src=x onerror=alert(1)>"}'


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def agent(server):
    [first] = (await server.call("GET", "/agents"))["agents"]
    return first["id"]


async def test_a_hook_is_made_and_its_run_is_seen_live_with_who_started_it(server, agent, come):
    async with come(f"/ui/agents/{agent}/configure") as page:
        hooks = page.get_by_role("region", name="Hooks")
        await hooks.get_by_role("button", name="Add a hook").click()
        form = hooks.get_by_role("form", name="New hook")
        await form.get_by_label("Name of the hook").fill("deploys")
        await form.get_by_label("What the agent should do").fill("Say what was pushed.")
        await form.get_by_label("Events, separated by commas").fill("push")
        await form.get_by_role("button", name="Add", exact=True).click()
        shown = hooks.get_by_role("status").filter(has_text="shown only once")
        secret = await shown.locator("code").nth(1).inner_text()
        address = await shown.locator("code").nth(0).inner_text()
        assert address.startswith(f"{server.address}/hooks/")
        await go(page, f"/ui/agents/{agent}/activity")
        async with server.client("") as sender:
            del sender.headers["Authorization"]
            headers = schemes.sign("github", secret, "d-1", "push", SystemClock().now(), BODY)
            answer = await sender.post(address, content=BODY, headers=headers)
        assert answer.status_code == 202
        await expect(page.get_by_text("deploys: push").first).to_be_visible()  # without loading the page again
        await go(page, f"/ui/runs/{answer.json()['run_id']}")
        await expect(page.get_by_text("through a hook (hook “deploys”)").first).to_be_visible()
        run = await server.run(answer.json()["run_id"])
        await go(page, f"/ui/sessions/{run['session_id']}")
        await expect(page.get_by_text("Say what was pushed.").first).to_be_visible()
        await expect(page.locator(".woken-by .badge")).to_have_text("Hook")
        await page.get_by_text("What the hook received").click()
        await expect(page.locator(".hook-data pre")).to_contain_text('> {"ref": "refs/heads/main"')
        assert await page.locator(".hook-data img").count() == 0
        await go(page, f"/ui/agents/{agent}/configure")
        assert secret not in await page.content()
        await hooks.get_by_role("button", name="Deliveries").click()
        await expect(hooks.get_by_role("list", name="Deliveries of deploys")).to_contain_text("started a run")
        await hooks.get_by_role("button", name="Show body").click()
        await expect(hooks.locator("pre")).to_contain_text("refs/heads/main")
        await hooks.get_by_role("button", name="Turn off").click()
        await expect(hooks.locator(".badge")).to_have_text("off")


async def test_a_webhook_is_added_tested_and_its_deliveries_are_read(server, come):
    async with WebhookReceiver() as receiver, come("/ui/settings") as page:
        section = page.get_by_role("region", name="Webhooks")
        await section.get_by_label("Name of the webhook").fill("ops")
        await section.get_by_label("Address of the webhook").fill(receiver.url())
        await section.get_by_role("button", name="Add a webhook").click()
        secret = await section.locator(".secret code").inner_text()
        assert secret.startswith("whsec_")
        await section.get_by_role("button", name="Test").click()
        await expect(section).to_contain_text("The receiver has taken it.")
        [taken] = receiver.taken
        schemes.check("standard", taken.headers, taken.body, [secret], SystemClock().now())
        await section.get_by_role("button", name="Deliveries").click()
        await expect(section.get_by_role("list", name="Deliveries of ops")).to_contain_text("test · sent")
