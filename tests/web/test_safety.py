"""Text of others never becomes HTML; nothing is loaded from elsewhere; keyboard and reduced motion."""

import json

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.visits import go, send
from browser.xss import PAYLOADS
from openai_server import call, calls, say, stream, text, thinking, usage
from wakeful.core.ids import new_id
from wakeful.core.types import Message, Notice

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

RENDERS = ("table", "bar", "line", "pie", "number")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hostile(server):
    """A session, an agent and an inbox in which everything that can be named is a payload; returns the session's id."""
    now = server.node.clock.now()
    [user] = (await server.call("GET", "/users"))["users"]
    session = await server.session(PAYLOADS[2])
    for number, payload in enumerate(PAYLOADS[:8]):
        await server.session(payload)
        await server.call("POST", "/agents", json={"name": payload, "description": PAYLOADS[-number - 1]})
    said = []
    for number, payload in enumerate(PAYLOADS):
        files = [{"name": payload, "path": payload}]
        told = {"call_id": f"c{number}", "tool": payload, "args": {payload: payload}}
        made = [
            {"role": "user", "content": payload, "data": {"files": files}},
            {
                "role": "user",
                "content": payload,
                "is_recall": True,
                "source": "recall",
                "label": payload,
                "run_id": "r",
            },
            {
                "role": "assistant",
                "content": payload,
                "data": {"thinking": payload, "tool_calls": [told]},
                "run_id": "r",
            },
            {
                "role": "tool",
                "content": payload,
                "data": told | {"success": number % 2 == 0, "metadata": {}},
                "run_id": "r",
            },
        ]
        said += [Message(id=new_id(now), session_id=session, position=0, created_at=now, **each) for each in made]

    async def write(tx):
        for message in said:
            await tx.sessions.append(message)
        for number, payload in enumerate(PAYLOADS):
            notice = Notice(
                id=f"n{number}",
                user_id=user["id"],
                agent_id=None,
                code="notify",
                title=payload,
                body=payload,
                once_key=str(number),
                created_at=now,
            )
            await tx.notices.add(notice)

    await server.node.store.write(write)
    asked = {
        "call_type": "once",
        "when": "1h",
        "additional_context_message": PAYLOADS[0],
        "internal_comment": PAYLOADS[2],
    }
    await server.call("POST", f"/sessions/{session}/recall", json=asked)
    return session


async def test_fifty_payloads_in_everything_that_can_be_named_run_nowhere(server, hostile, come):
    assert len(PAYLOADS) >= 50
    async with come() as page:
        await page.add_init_script("window.ran = []; window.xss = () => ran.push(location.pathname)")
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        await page.goto(f"{server.address}/ui/sessions/{hostile}")
        for _ in range(200):  # earlier turns are rendered as one scrolls up
            await page.get_by_role("log").evaluate("log => { log.scrollTop = 0 }")
            if await page.locator(".turn").count() == 2 * len(PAYLOADS):
                break
            await page.wait_for_timeout(30)
        await expect(page.locator(".turn")).to_have_count(2 * len(PAYLOADS))
        await page.evaluate("document.querySelectorAll('.fold').forEach(fold => fold.click())")
        await expect(page.locator(".tool-detail").first).to_be_visible()
        links = await page.evaluate("[...document.querySelectorAll('main a')].map(link => link.href)")
        assert [link for link in links if not link.startswith(("http://", "https://"))] == []
        assert (
            await page.evaluate(
                "document.querySelectorAll('main :is(script, iframe, object, embed, style, form, base, meta)').length"
            )
            == 0
        )
        assert await page.evaluate("ran") == []
        for path in ("/ui/inbox", "/ui/agents", "/ui/agenda", "/ui/settings"):
            await page.goto(server.address + path)
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
            await expect(page.get_by_role("list", name="Sessions")).to_contain_text("<script>")
            assert await page.evaluate("ran") == []
        assert [url for url in asked if not url.startswith((server.address, "data:", "blob:"))] == []


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hostile_data(server):
    """A database in which all that is not a bare name is a payload: values, purpose, headings, descriptions.

    Returns the ids of its agent and of the run that made it.
    """
    columns = [{"name": "said", "type": "text"}, {"name": "n", "type": "integer"}]
    made = {"name": "hostile", "purpose": PAYLOADS[2], "columns": columns}
    rows = [{"said": payload, "n": number} for number, payload in enumerate(PAYLOADS)]
    server.provider.then(
        calls(*call("db_create_table", json.dumps(made))),
        calls(*call("db_insert", json.dumps({"table": "hostile", "rows": rows}), id="call_2")),
        say("Done."),
    )
    session = await server.session("Hostile data")
    async with server.watch(session) as client:
        await client.ask("Go")
    [run] = await server.runs_of(session)
    for render in RENDERS:
        sql = f'SELECT said AS "{PAYLOADS[5]}", n AS "{PAYLOADS[2]}" FROM hostile'
        view = {"sql": sql, "description": PAYLOADS[0], "render": render, "pinned": True}
        await server.call("PUT", f"/agents/{run['agent_id']}/db/views/as_{render}", json=view)
    return run["agent_id"], run["id"]


async def test_fifty_payloads_in_an_agents_database_run_nowhere(server, hostile_data, come):
    agent, run = hostile_data
    async with come() as page:
        await page.add_init_script("window.ran = []; window.xss = () => ran.push(location.pathname)")
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        await page.goto(f"{server.address}/ui/agents/{agent}/configure")
        views = [f"views?view=as_{render}" for render in RENDERS]
        for tab in ("home", "schema", "data?table=hostile", *views, f"activity?run={run}"):
            await go(page, f"/ui/agents/{agent}/{tab}")
            await expect(page.locator(".page-body")).to_contain_text("<img src=x onerror=xss()>")
            await page.evaluate("document.querySelectorAll('main summary').forEach(summary => summary.click())")
            made = "document.querySelectorAll('main :is(script, iframe, object, embed, style, base, meta, img)').length"
            assert await page.evaluate(made) == 0
            assert await page.evaluate("ran") == []
        await go(page, f"/ui/agents/{agent}/data?table=hostile")
        await page.get_by_role("button", name="Open row 3", exact=True).click()
        dialog = page.get_by_role("dialog", name="hostile #3")
        await expect(dialog.locator(".row-values")).to_contain_text(PAYLOADS[2])
        await dialog.get_by_role("button", name="Edit").click()
        await expect(dialog.locator("textarea")).to_have_value(PAYLOADS[2])
        assert await page.evaluate("ran") == []
        assert [url for url in asked if not url.startswith((server.address, "data:", "blob:"))] == []


async def test_payloads_that_stream_in_run_nowhere(server, come):
    everything = "\n\n".join(PAYLOADS)
    server.provider.then(
        stream(*thinking(everything), *call("read_file", json.dumps({"path": PAYLOADS[2]})), finish="tool_calls"),
        stream(*text(*[everything[at : at + 7] for at in range(0, len(everything), 7)]), usage(1, 1)),
    )
    async with come(f"/ui/sessions/{await server.session()}") as page:
        await page.evaluate("window.ran = []; window.xss = () => ran.push(1); 0")
        await send(page, everything)
        await expect(page.locator(".footnote")).to_be_visible()
        await expect(page.locator(".answer")).to_contain_text("<script>xss()</script>")
        assert await page.evaluate("ran") == []


async def test_the_policy_stops_what_would_run(server, browser):
    page = await browser.new_page()
    await page.goto(server.address)
    tried = await page.evaluate("""() => {
      const said = [];
      document.addEventListener('securitypolicyviolation', event => said.push(event.violatedDirective));
      const script = document.createElement('script');
      try { document.body.innerHTML += '<img src=x onerror=1>'; } catch (error) { said.push(error.name); }
      try { script.text = 'window.ran = 1'; document.body.append(script); } catch (error) { said.push(error.name); }
      return {said, ran: window.ran};
    }""")
    assert tried["ran"] is None
    assert tried["said"] == ["TypeError", "TypeError"]
    await page.close()


async def test_all_of_it_works_with_the_keyboard_alone(server, come):
    session = await server.session("By keys")
    server.provider.then(say("Typed."))
    async with come(f"/ui/sessions/{session}") as page:
        await page.get_by_role("textbox", name="Message").wait_for()
        await page.keyboard.type("Hello")  # the box has the focus already
        await page.keyboard.press("Enter")
        await expect(page.locator(".answer")).to_have_text("Typed.")

        async def tab_to(name):
            for _ in range(60):
                await page.keyboard.press("Tab")
                if await page.evaluate("document.activeElement.innerText || document.activeElement.ariaLabel") == name:
                    outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                    assert outline != "none", f"nobody sees that {name!r} has the focus"
                    return
            raise AssertionError(f"the keyboard does not reach {name!r}")

        await tab_to("Schedule")
        await page.keyboard.press("Enter")
        await page.keyboard.type("Read a.txt with read_file.")
        await page.keyboard.press("Tab")
        await page.keyboard.type("in 2 hours")
        await expect(page.locator(".next-times li").first).to_contain_text("h")
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("Scheduled run", exact=True)).to_be_visible()
        await page.evaluate("document.activeElement.blur()")
        await tab_to("Pause everything")
        await page.keyboard.press("Enter")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(page.locator(".pause-all")).to_contain_text("Everything is paused")
        await tab_to("Resume")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Pause everything")).to_be_visible()


async def test_with_reduced_motion_nothing_moves(server, come):
    async with come(f"/ui/sessions/{await server.session()}", reduced_motion="reduce") as page:
        server.provider.then(stream(*thinking("Hm"), 0.3, *text("Still."), usage(1, 1)))
        await send(page, "Hold still")
        await expect(page.locator(".thinking")).to_be_visible()
        moving = "document.getAnimations().filter(each => each.playState === 'running').length"
        assert await page.evaluate(moving) == 0
        await expect(page.locator(".footnote")).to_be_visible()
