"""What others wrote stays text; everyone can use the page; nothing comes from elsewhere."""

import json
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.visits import go, log_in, send, visit
from browser.xss import PAYLOADS
from openai_server import call, calls, say, stream, text, thinking, usage
from served import TOKEN, Patient, served
from wakeful.domain.ids import new_id
from wakeful.domain.types import Message, Notice

pytestmark = pytest.mark.asyncio(loop_scope="module")

RENDERS = ("table", "bar", "line", "pie", "number")
ROOT = Path(__file__).parents[2]
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
CHECK = """async only => {
  const found = await axe.run(document, {resultTypes: ['violations'], ...(only && {runOnly: only})});
  return found.violations
    .filter(each => each.impact === 'serious' || each.impact === 'critical')
    .map(({id, nodes}) => `${id}: ${nodes.map(node => node.html.slice(0, 160) + node.failureSummary).join(' | ')}`);
}"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(built_page, tmp_path_factory):
    folder = tmp_path_factory.mktemp("safety")
    settings = {"data_dir": folder / "data", "config_dir": folder / "config"}
    async with served(settings, patient=Patient(retries=0)) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cookies(server):
    return await log_in(server.address, TOKEN)


@pytest.fixture
def come(server, browser, cookies):
    @asynccontextmanager
    async def come(path="/", **how):
        async with visit(browser, cookies, server.address + path, **how) as page:
            yield page

    return come


@pytest_asyncio.fixture(scope="module", loop_scope="module")
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
        for _ in range(8):
            await page.get_by_role("log").evaluate("log => { log.scrollTop = 0 }")
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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
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


PLACES = ["/", "/ui/agents", "/ui/agenda", "/ui/agenda?view=day", "/ui/inbox", "/ui/settings"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def busy(server):
    """A session with something of everything in it; returns the places that have ids in their address."""
    session = await server.session("All sorts")
    server.provider.then(
        stream(*thinking("Let me see"), *call("write_file", '{"path": "a.txt", "content": "x"}'), finish="tool_calls"),
        calls(*call("read_file", '{"path": "gone.txt"}', id="call_2")),
        say(
            "# Title\n\nA [link](https://example.org), `code` and\n\n```js\nlet x = 1\n```\n\n| a | b |\n",
            "|---|---|\n| 1 | 2 |\n\n- [x] done\n- one\n\n> quote\n",
        ),
    )
    async with server.watch(session) as client:
        await client.ask("Show me all sorts of things")
    asked = {
        "call_type": "recurring",
        "when": "1h",
        "interval_seconds": 3600,
        "additional_context_message": "Read a.txt with read_file.",
    }
    await server.call("POST", f"/sessions/{session}/recall", json=asked)
    [run] = await server.runs_of(session)
    agent = run["agent_id"]
    data = f"/agents/{agent}/db"
    garden = f"plant,beds,note\ntomato,3,\nbean,5,{'climbs ' * 30}\nleek,2,\n"
    await server.call("POST", f"{data}/import", json={"table": "garden", "text": garden})
    await server.call("POST", f"{data}/tables/garden/rows/delete", json={"row_ids": [3]})
    for render in RENDERS:
        view = {"sql": "SELECT plant, beds FROM garden WHERE beds >= :least", "render": render, "pinned": True}
        view |= {"parameters": [{"name": "least", "description": "How many beds", "default": 0}]}
        await server.call("PUT", f"{data}/views/as_{render}", json=view)
    return [
        f"/ui/sessions/{session}",
        f"/ui/runs/{run['id']}",
        f"/ui/agents/{agent}/configure",
        f"/ui/agents/{agent}/home",
        f"/ui/agents/{agent}/schema",
        f"/ui/agents/{agent}/data?table=garden&show=all",
        f"/ui/agents/{agent}/views?view=as_bar",
        f"/ui/agents/{agent}/activity",
    ]


# In the dark only the colours differ, on a phone only the layout.
LOOKS = [
    pytest.param({"color_scheme": "light"}, None, id="light"),
    pytest.param({"color_scheme": "dark"}, ["color-contrast"], id="dark"),
    pytest.param(
        {"viewport": {"width": 360, "height": 740}}, ["target-size", "scrollable-region-focusable"], id="phone"
    ),
]


@pytest.mark.parametrize(("how", "only"), LOOKS)
async def test_axe_finds_nothing_serious_on_any_page(server, busy, come, how, only):
    found = {}
    async with come(**how) as page:
        await page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
        for place in [*PLACES, *busy]:
            await go(page, place)
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
            await page.evaluate("document.querySelectorAll('.fold[aria-expanded=false]').forEach(fold => fold.click())")
            found[place] = await page.evaluate(CHECK, only)
        assert {place: problems for place, problems in found.items() if problems} == {}


async def test_axe_finds_nothing_serious_in_dialogs_and_menus(server, busy, come):
    async with come(busy[0]) as page:
        await page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
        await page.get_by_role("button", name="Edit").click()
        await expect(page.locator(".next-times li")).to_have_count(5)
        assert await page.evaluate(CHECK) == []
        await page.keyboard.press("Escape")
        await page.get_by_label("Next wake").get_by_role("button", name="Pause").click()
        await expect(page.get_by_role("menu")).to_be_visible()
        assert await page.evaluate(CHECK) == []
        await go(page, next(place for place in busy if "/data?" in place))
        await page.get_by_role("button", name="Open row 1").click()
        await page.get_by_text("What happened to it").click()
        assert await page.evaluate(CHECK) == []
        await page.get_by_role("dialog").get_by_role("button", name="Edit").click()
        assert await page.evaluate(CHECK) == []


async def test_on_a_phone_nothing_is_wider_than_the_screen_and_the_sidebar_opens(server, busy, come):
    async with come(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True) as page:
        for place in [*PLACES, *busy]:
            await go(page, place)
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert (place, wide) == (place, 360)
        await page.get_by_role("button", name="Open the sidebar").click()
        await page.get_by_role("link", name="Agenda").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Agenda")
        await expect(page.get_by_role("link", name="Agenda")).to_be_hidden()


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

        await tab_to("Book")
        await page.keyboard.press("Enter")
        await page.keyboard.type("Read a.txt with read_file.")
        await page.keyboard.press("Tab")
        await page.keyboard.type("in 2 hours")
        await expect(page.locator(".next-times li").first).to_contain_text("h")
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("Next wake")).to_be_visible()
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
