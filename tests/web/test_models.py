"""From the demo model to a real one: the start page's card, Settings → Models, and the models of an agent."""

import re

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.visits import check_with_axe, load_axe, log_in, send, shoot
from live_server import Provider, running_server
from ollama_server import call as ollama_call
from ollama_server import ollama
from ollama_server import say as ollama_say
from openai_server import call, calls, hang, listing, refuse, say

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

KEY = "sk-the-right-key-0123456789"
MINUTES_11 = 660_000_000  # microseconds
LOCAL, REMOTE = "qwen3:8b", "large"


def is_test(exchange):
    """Return whether this is the request of a model's test, which offers one tool."""
    return "report_ready" in str(exchange.request.body.get("tools"))


async def local_answer(exchange):
    await (ollama_call("report_ready", word="ready") if is_test(exchange) else ollama_say("Hello from Ollama."))(
        exchange
    )


async def remote_answer(exchange):
    tested = calls(*call("report_ready", '{"word": "ready"}'))
    await (tested if is_test(exchange) else say("Hello from far away."))(exchange)


async def remote_list(exchange):
    is_right = exchange.request.headers.get("authorization") == f"Bearer {KEY}"
    await (listing("small", REMOTE) if is_right else refuse(401, "This key is wrong."))(exchange)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def local():
    async with ollama(always=local_answer) as local:
        yield local


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def remote():
    async with Provider(always=remote_answer, routes={"GET /v1/models": remote_list}) as remote:
        yield remote


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(own_files, local):
    """A server as it is at its first start, with a local model on the same machine."""
    first = {"model": None, "model_base_url": None, "local_model_ports": [local.port]}
    async with running_server(own_files | first) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def at_first(server):
    """The server without the models of earlier tests."""
    for model in (await server.call("GET", "/models"))["models"]:
        await server.call("DELETE", f"/models/{model['name']}?force=true")
    await server.call("PUT", "/models/default", json={"model": None})
    await server.change_agent(model=None)


async def fill_in(dialog, remote, key):
    await dialog.get_by_role("button", name="Other (OpenAI-compatible)").click()
    await dialog.get_by_label("Address").fill(remote.base_url)
    await dialog.get_by_label("Key (if it needs one)").fill(key)


async def test_from_the_demo_to_the_answer_of_a_local_model_in_three_clicks(at_first, server, local, come):
    async with come("/") as page:
        card = page.get_by_role("region", name="Model", exact=True)
        await expect(card).to_contain_text("Wakeful uses the demo model. It is not an LLM")
        examples = page.get_by_role("list", name="Examples")
        await expect(examples).to_contain_text("Write buy milk to notes.txt")
        await shoot(page, "start-demo")
        assert not local.lookups  # nothing is looked for by itself
        await card.get_by_role("button", name="Connect a model").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("Anthropic")
        assert not local.lookups
        await dialog.get_by_role("button", name="Look for local models").click()
        await expect(dialog.get_by_role("list", name="Models of Ollama")).to_contain_text(LOCAL)
        await shoot(page, "connect-found")
        await dialog.get_by_role("button", name=f"Use {LOCAL}").click()
        await expect(dialog).to_contain_text(
            re.compile(r"works qwen3-8b answered.* It calls tools\. ?It is the default")
        )
        await shoot(page, "connect-done")
        await dialog.get_by_role("button", name="Done").click()
        await expect(card).to_have_count(0)
        await expect(examples).not_to_contain_text("buy milk")
        await expect(examples).to_contain_text("remind me to stretch")
        await shoot(page, "start-real")
        await send(page, "Hello")
        await expect(page.locator(".answer")).to_contain_text("Hello from Ollama.")


async def test_a_wrong_key_is_said_at_its_field_and_the_right_one_connects(at_first, server, remote, come):
    """On a phone: everything fits there too, and axe finds nothing at any step."""
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    async with come("/", **phone) as page:
        await load_axe(page)
        await page.get_by_role("button", name="Connect a model").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("Anthropic")
        assert await check_with_axe(page) == []
        await fill_in(dialog, remote, "sk-a-wrong-key")
        await dialog.get_by_label("Key (if it needs one)").press("Enter")
        await expect(dialog.get_by_role("alert")).to_contain_text("This key is wrong.")
        await expect(dialog.get_by_label("Key (if it needs one)")).to_have_attribute("aria-invalid", "true")
        await shoot(page, "connect-wrong-key")
        assert (await server.call("GET", "/models"))["models"] == []
        await dialog.get_by_label("Key (if it needs one)").fill(KEY)
        await dialog.get_by_role("button", name="List models").click()
        listed = dialog.get_by_role("list", name="The provider's models")
        await expect(listed.get_by_role("button")).to_have_text(["large", "small"])
        await dialog.get_by_label("Model", exact=True).fill("LAR")
        await expect(listed.get_by_role("button")).to_have_text(["large"])
        await listed.get_by_role("button", name=REMOTE).click()
        await shoot(page, "connect-list")
        assert await check_with_axe(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth") == 390
        await dialog.get_by_role("button", name="Save and test").click()
        await expect(dialog).to_contain_text("It is the default now")
        assert await check_with_axe(page) == []
        await dialog.get_by_role("button", name="Done").click()
        assert KEY not in await page.content()
    shown = await server.call("GET", "/models")
    assert (shown["default"]["model"], shown["models"][0]["has_key"]) == (REMOTE, True)


async def test_a_model_that_does_not_answer_is_not_the_default_until_it_does(at_first, server, local, come):
    async with come("/") as page:
        await page.get_by_role("button", name="Connect a model").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("button", name="Look for local models").click()
        local.always = refuse(400, "The model does not fit into memory.")
        await dialog.get_by_role("button", name=f"Use {LOCAL}").click()
        await expect(dialog).to_contain_text("The model does not fit into memory.")
        await expect(dialog).to_contain_text("It is saved, but it is not the default")
        assert (await server.call("GET", "/about"))["is_demo"]
        await shoot(page, "connect-failed")
        local.always = local_answer
        await dialog.get_by_role("button", name="Test again").click()
        await expect(dialog).to_contain_text("It is the default now")


async def add_remote(server, remote, **more):
    asked = {"provider": "openai-chat", "model": REMOTE, "address": remote.base_url, "key": KEY}
    await server.call("POST", "/models", json=asked | more)


async def test_settings_list_test_edit_and_remove_models(at_first, server, remote, come):
    await add_remote(server, remote)
    await server.change_agent(model=REMOTE)
    async with come("/ui/settings", color_scheme="dark") as page:
        section = page.get_by_role("region", name="Models")
        row = section.get_by_role("listitem").filter(has_text=remote.base_url)
        await expect(row).to_contain_text("key saved")
        await expect(row).to_contain_text("tools not tested yet")
        await expect(row).to_contain_text("Used by Wakeful (Owner)")
        await row.get_by_role("button", name="Test").click()
        await expect(row).to_contain_text("It calls tools.")
        await expect(row).to_contain_text("128,000 tokens assumed · calls tools")
        await row.get_by_role("button", name="Make default").click()
        await expect(row.get_by_text("default", exact=True)).to_be_visible()
        await section.scroll_into_view_if_needed()
        await shoot(page, "settings-models")
        await load_axe(page)
        assert await check_with_axe(page) == []

        await row.get_by_role("button", name="Edit").click()
        dialog = page.get_by_role("dialog")
        key = dialog.get_by_label("Key (if it needs one)")
        await expect(key).to_have_attribute("placeholder", "Key saved. Leave empty to keep it")
        await dialog.get_by_role("button", name="List models").click()  # with the saved key
        await expect(dialog.get_by_role("list", name="The provider's models")).to_contain_text("small")
        await dialog.get_by_label("Address").fill("http://127.0.0.1:9/v1")
        await expect(dialog).to_contain_text("Saving deletes it: enter the key for this address.")
        await shoot(page, "settings-edit")
        await dialog.get_by_role("button", name="Save and test").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("http://127.0.0.1:9 cannot be reached")
        await expect(dialog.get_by_role("alert")).not_to_contain_text("--no-check")
        await dialog.get_by_role("button", name="Cancel").click()

        await row.get_by_role("button", name="Remove").click()
        await dialog.get_by_role("button", name="Remove", exact=True).click()
        await expect(dialog.get_by_role("alert")).to_contain_text(
            "'large' is used by Wakeful (Owner), every agent without"
        )
        await shoot(page, "settings-remove")
        await dialog.get_by_role("button", name="Remove anyway").click()
        await expect(row).to_have_count(0)
        await expect(section).to_contain_text("The default large was removed.")
        await page.get_by_role("link", name="New session").click()
        await expect(page.get_by_role("region", name="Model", exact=True)).to_contain_text(
            "The model large was removed."
        )


async def test_an_agent_is_offered_the_models_by_name(at_first, server, remote, come):
    await add_remote(server, remote)
    [agent] = (await server.call("GET", "/agents"))["agents"]
    async with come(f"/ui/agents/{agent['id']}/configure") as page:
        field = page.get_by_role("region", name="Model").get_by_label("Model", exact=True)
        offered = page.locator(f"datalist#{await field.get_attribute('list')} option".replace(":", r"\:"))
        await expect(offered).to_have_count(2)
        assert [await each.get_attribute("value") for each in await offered.all()] == [REMOTE, "demo"]
        await field.fill(REMOTE)
        await field.press("Enter")
        await expect(page.locator(".save-state")).to_have_text("Saved.")
    assert (await server.call("GET", f"/agents/{agent['id']}"))["model"] == REMOTE


async def test_people_who_are_not_the_owner_connect_nothing(at_first, server, come):
    member = await log_in(server.address, await server.add_user())
    async with come("/", as_=member) as page:
        card = page.get_by_role("region", name="Model", exact=True)
        await expect(card).to_contain_text("An owner of this server can connect a real one.")
        await expect(card.get_by_role("button")).to_have_count(0)
        await page.get_by_role("link", name="Settings").click()
        await expect(page.get_by_role("region", name="Server")).to_contain_text("demo (built in, not an LLM)")
        await expect(page.get_by_role("region", name="Models")).to_have_count(0)


# ── More than ten minutes after the login ──────────────────────────────────────────────────────────────────────────


@pytest_asyncio.fixture(loop_scope="session")
async def early(server):
    """A browser that logged in eleven minutes ago."""
    early = await log_in(server.address, server.token)
    await grow_old(server)
    return early


async def grow_old(server):
    last = "(SELECT max(id) FROM tokens WHERE kind = 'browser')"
    await server.sql(f"UPDATE tokens SET created_at = created_at - {MINUTES_11} WHERE id = {last}")
    me = (await server.call("GET", "/me"))["user"]
    await server.call("PATCH", f"/users/{me['id']}", json={"name": me["name"]})  # the server reads logins again


async def new_link(server):
    return server.address + (await server.call("POST", "/login-links", json={}))["path"]


def question_of(page):
    return page.get_by_role("dialog", name="Confirm that it is you")


async def prove(page, proof):
    await question_of(page).get_by_label("Login link or token").fill(proof)
    await question_of(page).get_by_role("button", name="Confirm").click()


async def test_a_model_is_connected_with_the_typed_key_after_a_proof_in_place(at_first, server, remote, come, early):
    async with come("/", as_=early) as page:
        await load_axe(page)
        await page.get_by_role("button", name="Connect a model").click()
        form = page.get_by_role("dialog", name="Other (OpenAI-compatible)")
        await fill_in(page.get_by_role("dialog"), remote, KEY)
        await form.get_by_label("Model", exact=True).fill(REMOTE)
        await form.get_by_role("button", name="Save and test").click()
        await expect(question_of(page)).to_contain_text("What you have entered stays.")
        assert await check_with_axe(page) == []
        await shoot(page, "confirm-login")
        await prove(page, "not the token")
        await expect(question_of(page).get_by_role("alert")).to_contain_text("is not known here, was used before")
        await shoot(page, "confirm-login-wrong")
        await page.keyboard.press("Escape")  # closes the question alone
        await expect(form.get_by_role("alert")).to_contain_text("Nothing was changed")
        await expect(form.get_by_label("Key (if it needs one)")).to_have_value(KEY)
        await form.get_by_role("button", name="Save and test").click()
        await prove(page, f" {await new_link(server)}\n")
        await expect(question_of(page)).to_have_count(0)
        await expect(page.get_by_role("dialog")).to_contain_text("It is the default now")
    [model] = (await server.call("GET", "/models"))["models"]
    assert (model["name"], model["has_key"]) == (REMOTE, True)


async def test_the_proof_is_also_a_link_that_is_opened_in_another_tab(at_first, server, come, early):
    async with come("/ui/settings", as_=early) as page:
        await page.get_by_role("button", name="Connect a model").click()
        dialog = page.get_by_role("dialog", name="Connect a model")
        await dialog.get_by_role("button", name="Look for local models").click()
        await dialog.get_by_role("button", name=f"Use {LOCAL}").click()
        await expect(question_of(page)).to_contain_text("wakeful login")
        tab = await page.context.new_page()
        await tab.goto(await new_link(server))
        await tab.wait_for_url(f"{server.address}/")
        await expect(question_of(page)).to_have_count(0)
        await expect(page.get_by_role("dialog")).to_contain_text("It is the default now")


async def test_tokens_login_links_and_changes_of_models_ask_for_the_proof_too(at_first, server, remote, come, early):
    await add_remote(server, remote)
    async with come("/ui/settings", as_=early) as page:
        tokens, people, models = (page.get_by_role("region", name=name) for name in ("Tokens", "People", "Models"))
        await tokens.get_by_label("Name of the program").fill("backup script")
        await tokens.get_by_role("button", name="Create token").click()
        await prove(page, server.token)
        await expect(tokens).to_contain_text("The token backup script, shown only once")
        await people.get_by_role("button", name="Login link").first.click()
        await expect(people.get_by_role("status")).to_contain_text("/login?code=")  # within ten minutes of the proof

        await grow_old(server)
        await page.reload()
        await people.get_by_role("button", name="Login link").first.click()
        await prove(page, server.token)
        await expect(people.get_by_role("status")).to_contain_text("/login?code=")

        await grow_old(server)
        row = models.get_by_role("listitem").filter(has_text=remote.base_url)
        await row.get_by_role("button", name="Make default").click()
        await prove(page, server.token)
        await expect(row.get_by_text("default", exact=True)).to_be_visible()

        await grow_old(server)
        await row.get_by_role("button", name="Remove").click()
        await page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
        await prove(page, server.token)
        await expect(question_of(page)).to_have_count(0)
        await expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("'large' is used by")
        await page.get_by_role("button", name="Remove anyway").click()
        await expect(row).to_have_count(0)


# ── An endpoint that does not answer ───────────────────────────────────────────────────────────────────────────────


async def test_asking_an_endpoint_that_does_not_answer_is_shown_at_once_and_can_be_stopped(at_first, remote, come):
    remote.routes["GET /v1/models"] = hang
    try:
        async with come("/") as page:
            await page.get_by_role("button", name="Connect a model").click()
            dialog = page.get_by_role("dialog")
            await fill_in(dialog, remote, KEY)
            await dialog.get_by_role("button", name="List models").click()
            await expect(dialog.get_by_role("status")).to_have_text(f"Asking {remote.base_url} for its models…")
            await shoot(page, "connect-asking")
            await dialog.get_by_role("button", name="Stop asking").click()
            await expect(dialog.get_by_role("status")).to_be_hidden()
            await expect(dialog.get_by_role("alert")).to_have_count(0)
            await expect(dialog.get_by_label("Key (if it needs one)")).to_have_value(KEY)
            remote.routes["GET /v1/models"] = remote_list
            await dialog.get_by_role("button", name="List models").click()
            await expect(dialog.get_by_role("list", name="The provider's models")).to_contain_text(REMOTE)
    finally:
        remote.routes["GET /v1/models"] = remote_list


async def test_an_error_of_a_field_that_is_folded_away_is_seen(at_first, come):
    """OpenRouter's address is under More settings, because it is usually left as it is."""
    async with come("/") as page:
        await page.get_by_role("button", name="Connect a model").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("button", name="OpenRouter").click()
        await dialog.get_by_text("More settings").click()
        await dialog.get_by_label("Address").fill("http://127.0.0.1:9/v1")
        await dialog.get_by_text("More settings").click()
        await dialog.get_by_role("button", name="List models").click()
        await expect(dialog.get_by_role("alert")).to_be_visible()
        await expect(dialog.get_by_role("alert")).to_contain_text("127.0.0.1:9")
