"""The browser's time zone: sent to the server, offered to older agents; and runs that did nothing."""

import pytest
import pytest_asyncio
from playwright.async_api import expect

from live_server import eventually
from openai_server import chunk, improvise, stream

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TODO = "Read notes.txt with read_file."
NOTHING = stream(chunk({"role": "assistant"}))


async def answer(exchange):
    """Improvise, but answer nothing to a wake."""
    is_woken = exchange.request.body["messages"][-1]["content"] == TODO
    await (NOTHING if is_woken else improvise)(exchange)


SERVER = {"always": answer}


@pytest_asyncio.fixture(loop_scope="session")
async def agent(server):
    return (await server.call("GET", "/agents"))["agents"][0]["id"]


async def zone_of_user(server):
    return (await server.call("GET", "/me"))["user"]["timezone"]


async def make_old(server):
    """Make the agents as 0.1 left them, of a user in Berlin."""
    user = (await server.call("GET", "/me"))["user"]["id"]
    await server.call("PATCH", f"/users/{user}", json={"timezone": "Europe/Berlin"})
    await server.sql("UPDATE agents SET timezone = 'Etc/UTC', offers_zone = 1")


async def test_the_zone_of_the_browser_is_told_once_and_can_be_changed(server, agent, come):
    assert await zone_of_user(server) is None
    async with come(f"/ui/agents/{agent}/configure", timezone_id="Asia/Tokyo") as page:
        await expect(page.get_by_label("Time zone")).to_have_attribute("placeholder", "Asia/Tokyo (yours)")
    assert await zone_of_user(server) == "Asia/Tokyo"
    async with come("/ui/settings", timezone_id="Europe/Berlin") as page:
        zone = page.get_by_role("combobox", name="Your time zone")
        await expect(zone).to_have_value("Asia/Tokyo")  # another browser does not change it by itself
        await zone.fill("Mars/Olympus")
        await zone.press("Enter")
        await expect(page.get_by_role("alert").filter(has_text="Mars/Olympus")).to_be_visible()
        await page.get_by_role("button", name="Use Europe/Berlin").click()
        await expect(zone).to_have_value("Europe/Berlin")
    assert await zone_of_user(server) == "Europe/Berlin"


@pytest.mark.parametrize(("button", "zone"), [("Use", None), ("Keep", "Etc/UTC")])
async def test_an_older_agent_is_offered_the_users_zone_once(server, agent, come, button, zone):
    await make_old(server)
    async with come(f"/ui/agents/{agent}/configure", timezone_id="Europe/Berlin") as page:
        offer = page.get_by_text("This agent's time zone is Etc/UTC. Use Europe/Berlin instead?")
        await expect(offer).to_be_visible()
        await page.get_by_role("button", name=button, exact=True).click()
        await expect(offer).to_have_count(0)
        await page.reload()
        await expect(page.get_by_label("Time zone")).to_be_visible()
        await expect(offer).to_have_count(0)
    assert (await server.call("GET", f"/agents/{agent}"))["timezone"] == zone


async def test_a_woken_run_that_did_nothing_says_so_everywhere(server, agent, come):
    session = await server.session()
    body = {"call_type": "immediate", "additional_context_message": TODO}
    wake_id = (await server.call("POST", f"/sessions/{session}/recall", json=body))["recall"]["id"]

    async def ended():
        runs = (await server.call("GET", "/runs", params={"wake_id": wake_id}))["runs"]
        return runs[0] if runs and runs[0]["finished_at"] else None

    run = await eventually(ended)
    assert run["note"] == "did_nothing"
    async with come(f"/ui/agents/{agent}/activity") as page:
        row = page.get_by_role("list", name="Runs").get_by_role("button").first
        await expect(row).to_contain_text("did nothing")
        await page.goto(f"{server.address}/ui/runs/{run['id']}")
        await expect(page.locator(".run-origin")).to_contain_text("did nothing")
        await expect(page.get_by_role("region", name="How it came about")).to_contain_text("Requested: at once.")
        await page.goto(f"{server.address}/ui/sessions/{session}")
        await expect(page.get_by_text("It ran and did nothing.")).to_be_visible()
        await expect(page.locator(".footnote")).to_contain_text("did nothing")
        await page.goto(f"{server.address}/ui/agenda?view=day")
        await expect(page.get_by_role("link", name="did nothing")).to_be_visible()


async def test_the_words_of_a_next_run_reach_why(server, agent, come):
    async with come(f"/ui/agents/{agent}/configure", timezone_id="Europe/Berlin") as page:
        await page.get_by_role("button", name="Schedule", exact=True).first.click()
        dialog = page.get_by_role("dialog", name="Schedule the next run")
        await dialog.get_by_label("What the agent should do").fill("Read notes.txt with read_file, slowly.")
        await dialog.get_by_label("When").fill("in twenty minutes")
        await dialog.get_by_role("button", name="Schedule", exact=True).click()
        await expect(dialog).to_have_count(0)
    wake_id = (await server.call("GET", f"/agents/{agent}/next-run"))["next_run"]["id"]
    first = (await server.call("GET", f"/wakes/{wake_id}/why"))["decisions"][0]
    assert first["detail"]["requested"] == "in twenty minutes"
