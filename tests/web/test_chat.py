"""The chat, with a model whose every token the test controls."""

import asyncio
import json
import re
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import expect

from browser.visits import send, visit
from live_server import Tap
from openai_server import call, calls, refuse, say, stream, text, thinking
from wakeful.core.ids import new_id
from wakeful.core.types import Message

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
def come(server, browser, login):
    """Open the page of a session, or the first one, as its owner."""

    @asynccontextmanager
    async def come(session=None, **how):
        path = "/" if session is None else f"/ui/sessions/{session}"
        async with visit(browser, login, server.address + path, **how) as page:
            await page.get_by_role("textbox", name="Message").wait_for()
            yield page

    return come


async def test_a_message_begins_a_session_and_its_answer_streams(server, come):
    tap = Tap()
    server.provider.then(tap, say("A title"))
    async with come() as page:
        await send(page, "Tell me something")
        await page.wait_for_url("**/ui/sessions/*")
        await expect(page.locator(".asked")).to_contain_text("Tell me something")
        tap.say("Once ")
        await expect(page.locator(".answer.is-running")).to_contain_text("Once")
        await expect(page.get_by_role("button", name="Stop")).to_be_visible()
        tap.say("upon **a time**.")
        tap.end()
        await expect(page.locator(".answer")).to_have_text("Once upon a time.")
        await expect(page.locator(".answer strong")).to_have_text("a time")
        await expect(page.locator(".answer.is-running")).to_have_count(0)
        await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
        await expect(page.locator(".turn")).to_have_count(1)


async def test_thinking_opens_while_it_runs_and_folds_after(server, come):
    tap = Tap()
    server.provider.then(tap)
    async with come(await server.session()) as page:
        await send(page, "Think")
        tap.let(*thinking("Step by step"))
        await expect(page.locator(".thinking-text")).to_have_text("Step by step")
        tap.say("Done.")
        await expect(page.locator(".thinking-text")).to_have_count(0)
        await page.get_by_role("button", name="Thought").click()
        await expect(page.locator(".thinking-text")).to_have_text("Step by step")
        # Between the live answer and the saved one there is no moment without either, be the page ever so busy.
        await page.evaluate("() => { const soon = setTimeout; window.setTimeout = (act, ms) => soon(act, ms || 200); }")
        tap.end()
        await expect(page.locator(".footnote")).to_be_visible()
        await page.wait_for_timeout(500)
        await expect(page.locator(".thinking-text")).to_have_text("Step by step")  # opened by hand, it stays open


async def test_tools_show_arguments_result_and_duration_and_failed_ones_say_so(server, come):
    server.provider.then(
        calls(*call("write_file", '{"path": "a.txt", "content": "hello"}')),
        calls(*call("read_file", '{"path": "gone.txt"}', id="call_2")),
        say("That was it."),
    )
    async with come(await server.session()) as page:
        await send(page, "Work")
        await expect(page.locator(".answer")).to_have_text("That was it.")
        written = page.get_by_label("Tool write_file")
        await expect(written).to_contain_text("a.txt")
        await expect(written).to_contain_text("ms")
        await written.get_by_role("button", name="write_file").click()
        await expect(written.locator(".file-result")).to_contain_text("a.txt5 bytes")
        await expect(written.locator(".code pre")).to_have_text("hello")
        await expect(written.get_by_text('"content": "hello"')).to_be_hidden()
        await written.get_by_text("Raw JSON").click()
        await expect(written.get_by_text('"content": "hello"')).to_be_visible()
        await expect(written.get_by_text("it has 5 bytes")).to_be_visible()
        failed = page.get_by_label("Tool read_file")
        await expect(failed).to_contain_text("Failed")
        await expect(failed.locator(".tool-error")).to_contain_text("gone.txt")
        await page.reload()
        await expect(page.get_by_label("Tool read_file")).to_contain_text("Failed")
        await expect(page.locator(".answer")).to_have_text("That was it.")


async def test_code_is_copied_with_a_button(server, come):
    server.provider.then(say("```python\nprint('hello')\n```\n"))
    async with come(await server.session(), permissions=["clipboard-read", "clipboard-write"]) as page:
        await send(page, "Code")
        await page.locator(".code").get_by_role("button", name="Copy").click()
        await expect(page.locator(".code")).to_contain_text("Copied")
        assert await page.evaluate("navigator.clipboard.readText()") == "print('hello')"


async def test_a_reload_in_mid_answer_goes_on_without_a_gap_or_a_repeat(server, come):
    tap = Tap()
    server.provider.then(calls(*call("write_file", '{"path": "b.txt", "content": "x"}')), tap)
    async with come(await server.session()) as page:
        await send(page, "Long")
        tap.say("One ", "two ")
        await expect(page.locator(".answer")).to_have_text("One two")
        await page.reload()
        await expect(page.locator(".answer")).to_have_text("One two")
        await expect(page.get_by_label("Tool write_file")).to_have_count(1)
        await expect(page.get_by_role("button", name="Stop")).to_be_visible()
        tap.say("three.")
        await expect(page.locator(".answer")).to_have_text("One two three.")
        tap.end()
        await expect(page.locator(".footnote")).to_be_visible()
        await expect(page.locator(".answer")).to_have_text("One two three.")
        await expect(page.locator(".turn")).to_have_count(1)
        await expect(page.get_by_label("Tool write_file")).to_have_count(1)


GROWING = [
    "First a paragraph\nthat goes on.\n\nA title\n",
    "---\n\n- one\n",
    "- two\n\n",
    "- three, after an empty line\n\n  with more to it\n\n",
    "1. a\n2. b\n\n```js\nlet x\n\n",
    "let y\n```\n\n| a | b |\n",
    "|---|---|\n| 1 | 2 |\n\n> quoted\n",
    "and lazily so\n\n    indented code\n\n",
    "    more of it\n\nThe **end** of [it].",
]


async def test_text_that_grows_looks_as_it_does_when_it_is_read_as_a_whole(server, come):
    tap = Tap()
    server.provider.then(tap)
    async with come(await server.session()) as page:
        await send(page, "Write")
        answer = page.locator(".answer")
        for piece in GROWING:
            tap.say(piece)
            last = re.findall(r"\w+", piece)[-1]
            await expect(answer).to_contain_text(re.compile(rf"{last}\W*$"))  # each is drawn by itself
        times = {"ul > li > p": 4, "ol > li": 2, "h4": 1, "figure.code": 2, "table": 1, "blockquote": 1, "a": 0}
        for tag, count in times.items():
            await expect(answer.locator(tag)).to_have_count(count)
        tap.say("\n\n[it]: https://example.org")
        tap.end()
        await expect(page.locator(".footnote")).to_be_visible()
        await expect(answer.locator(".token-keyword")).to_have_count(2)  # colours come a moment later
        grown = await answer.inner_html()
        await page.reload()
        await expect(page.locator(".footnote")).to_be_visible()
        await expect(answer.locator(".token-keyword")).to_have_count(2)
        assert await answer.inner_html() == grown
        await expect(answer.get_by_role("link", name="it")).to_have_attribute("href", "https://example.org/")


async def test_what_is_replayed_is_shown_without_animation(server, come):
    session = await server.session()
    sockets = asyncio.Queue()

    async def through(socket):
        if "/ws/sessions/" in socket.url:
            sockets.put_nowait(socket)
        else:
            socket.connect_to_server()

    async with come() as page:
        await page.route_web_socket("**/ws/**", through)
        await page.goto(f"{server.address}/ui/sessions/{session}")
        socket = await sockets.get()
        for frame in (
            {"type": "stream_start", "run_id": "r", "seq": 1},
            {"type": "replay_start", "count": 1},
            {"type": "stream_delta", "delta": "Said before", "run_id": "r", "seq": 2},
        ):
            socket.send(json.dumps(frame))
        await expect(page.locator(".answer.is-running")).to_have_text("Said before")
        moving = "document.querySelector('[role=log]').getAnimations({subtree: true}).length"
        assert await page.evaluate(moving) == 0
        socket.send(json.dumps({"type": "replay_end"}))
        await expect(page.locator(".transcript.is-still")).to_have_count(0)
        assert await page.evaluate(moving) > 0  # the cursor of what is said now


async def test_two_windows_show_the_same(server, come):
    tap = Tap()
    server.provider.then(tap)
    session = await server.session()
    async with come(session) as one, come(session) as other:
        await send(one, "For both")
        tap.say("Hello ")
        for page in (one, other):
            await expect(page.locator(".asked")).to_have_text("You: For both")
            await expect(page.locator(".answer")).to_have_text("Hello")
        await send(other, "Me too")  # while it answers: kept, and sent at the end
        await expect(other.locator(".composer-queued")).to_contain_text("sent when it's done")
        server.provider.then(say("And you."))
        tap.say("there.")
        tap.end()
        for page in (one, other):
            await expect(page.locator(".asked").nth(1)).to_have_text("You: Me too")
            await expect(page.locator(".answer")).to_have_text(["Hello there.", "And you."])


async def test_an_answer_stays_when_the_transcript_is_read_too_early_and_comes_late(server, come):
    tap = Tap()
    server.provider.then(tap)
    session = await server.session()
    is_over = asyncio.Event()

    async def late(route):
        early = await route.fetch()  # before the answer is saved
        await is_over.wait()
        await route.fulfill(response=early)

    async with come(session) as page:
        await page.route(f"**/sessions/{session}", late, times=1)
        async with page.expect_request(f"**/sessions/{session}"):
            await send(page, "Now")
            tap.say("Here ")
        await expect(page.locator(".answer")).to_have_text("Here")
        async with page.expect_response(f"**/sessions/{session}"):  # the reading at the end, which overtakes
            tap.say("it is.")
            tap.end()
        async with page.expect_response(f"**/sessions/{session}"):
            is_over.set()
        await expect(page.locator(".footnote")).to_be_visible()
        await expect(page.locator(".answer")).to_have_text("Here it is.")


async def test_stop_ends_it_and_continue_goes_on(server, come):
    tap = Tap()
    server.provider.then(tap)
    async with come(await server.session()) as page:
        await send(page, "Go")
        tap.say("Half a sen")
        await expect(page.locator(".answer")).to_have_text("Half a sen")
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator(".ending")).to_contain_text("This run was stopped.")
        await expect(page.locator(".answer")).to_have_text("Half a sen")
        server.provider.then(say("Going on."))
        await page.get_by_role("button", name="Continue").click()
        await expect(page.locator(".answer").last).to_have_text("Going on.")
        await expect(page.locator(".ending")).to_have_count(0)
        await expect(page.locator(".answer").first).to_have_text("Half a sen")


async def test_a_reload_while_a_continued_run_is_at_work_repeats_nothing(server, come):
    half, rest = Tap(), Tap()
    server.provider.then(half)
    async with come(await server.session("Continued")) as page:
        await send(page, "Go")
        half.say("Half a sen")
        await expect(page.locator(".answer")).to_have_text("Half a sen")
        await page.get_by_role("button", name="Stop").click()
        step = stream(*text("First a look."), *call("list_files", "{}"), finish="tool_calls")
        server.provider.then(step, rest)
        await page.get_by_role("button", name="Continue").click()
        rest.say("And ")
        said = ["Half a sen", "First a look.", "And"]
        await expect(page.locator(".answer")).to_have_text(said)
        await page.reload()
        await expect(page.locator(".answer")).to_have_text(said)
        await expect(page.locator(".ending")).to_have_count(0)
        rest.say("then.")
        rest.end()
        await expect(page.locator(".answer")).to_have_text([*said[:2], "And then."])
        await expect(page.locator(".footnote")).to_be_visible()
        await expect(page.locator(".answer")).to_have_text([*said[:2], "And then."])


async def test_a_failure_says_what_and_how_to_go_on(server, come):
    server.provider.then(refuse(400, "The model has a headache."))
    async with come(await server.session()) as page:
        await send(page, "Try")
        await expect(page.locator(".ending.is-bad")).to_contain_text("The model has a headache.")
        await page.reload()
        await expect(page.locator(".ending.is-bad")).to_contain_text("The model has a headache.")
        server.provider.then(say("Better now."))
        await page.get_by_role("button", name="Continue").click()
        await expect(page.locator(".answer")).to_have_text("Better now.")


async def test_a_conversation_that_is_too_large_offers_what_helps(server, come):
    session = await server.session()
    asked = {"content": "word " * 90_000}  # about 150,000 tokens, with a window of 128,000
    run = (await server.call("POST", f"/sessions/{session}/messages", json=asked))["run_id"]
    async with come(session) as page:
        ending = page.locator(".ending.is-bad")
        await expect(ending).to_contain_text("the model 'openai-chat:test' has a window of 128,000")
        await expect(ending.get_by_role("button", name="Continue")).to_have_count(0)  # it would fail again
        await expect(ending.get_by_role("link", name="Choose another model")).to_be_visible()
        await page.goto(f"{server.address}/ui/runs/{run}")
        await expect(page.get_by_role("link", name="Choose another model")).to_have_attribute(
            "href", re.compile("#model$")
        )
        await expect(page.get_by_role("button", name="Continue")).to_have_count(0)
        await page.get_by_role("link", name="Open the session").click()
        await ending.get_by_role("button", name="Edit the message").click()
        server.provider.then(say("Shorter."))
        await page.get_by_role("textbox", name="Edit message").fill("A few words")
        await page.get_by_role("button", name="Send", exact=True).first.click()
        await expect(page.locator(".answer")).to_have_text("Shorter.")


async def test_during_a_woken_run_a_message_is_kept_and_sent_at_its_end(server, come):
    tap = Tap()
    server.provider.then(tap)
    session = await server.session()
    async with come(session) as page:
        await server.book(session, "Look into a.txt with read_file.", comment="The usual look")
        woken = page.locator(".asked.is-woken")
        await expect(woken).to_contain_text("Look into a.txt")
        await expect(woken.locator(".badge.clock")).to_have_text("Scheduled run")
        await expect(woken).to_contain_text("The usual look")
        tap.say("Looking")
        await expect(page.locator(".answer")).to_have_text("Looking")
        await send(page, "And b.txt?")
        await expect(page.locator(".composer-queued")).to_contain_text("A scheduled run is in progress.")
        await expect(page.get_by_role("textbox", name="Message")).to_have_value("And b.txt?")
        server.provider.then(say("Also."))
        tap.end()
        await expect(page.locator(".asked").last).to_have_text("You: And b.txt?")
        await expect(page.locator(".answer").last).to_have_text("Also.")
        await expect(page.get_by_role("textbox", name="Message")).to_have_value("")


async def test_a_draft_survives_a_reload(server, come):
    session = await server.session()
    async with come(session) as page:
        await page.get_by_role("textbox", name="Message").fill("Half a thought")
        await page.reload()
        await expect(page.get_by_role("textbox", name="Message")).to_have_value("Half a thought")


GIVE = """({name, type, data, how}) => {
  const bytes = Uint8Array.from(atob(data), c => c.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name, {type}));
  const event = how === 'paste'
    ? new ClipboardEvent('paste', {clipboardData: transfer, bubbles: true, cancelable: true})
    : new DragEvent('drop', {dataTransfer: transfer, bubbles: true, cancelable: true});
  (how === 'paste' ? document.querySelector('textarea') : document.body).dispatchEvent(event);
}"""


async def test_pictures_and_files_come_by_button_paste_and_drop(server, come):
    server.provider.then(say("I see."))
    session = await server.session()
    async with come(session) as page:
        async with page.expect_file_chooser() as chooser:
            await page.get_by_role("button", name="Attach pictures or files").click()
        await (await chooser.value).set_files({"name": "report.txt", "mimeType": "text/plain", "buffer": b"numbers"})
        given = page.get_by_role("list", name="Attachments").get_by_role("listitem")
        await expect(given).to_have_text(["report.txt"])
        await page.evaluate(GIVE, {"name": "dot.png", "type": "image/png", "data": PIXEL, "how": "paste"})
        await expect(given).to_have_count(2)
        await page.evaluate(GIVE, {"name": "c.csv", "type": "text/csv", "data": "YSxi", "how": "drop"})
        await expect(given).to_have_count(3)
        await page.get_by_role("button", name="Remove c.csv").click()
        await expect(given).to_have_count(2)
        await send(page, "Look at these")
        await expect(page.locator(".answer")).to_have_text("I see.")
        await expect(page.get_by_role("list", name="Files")).to_have_text("report.txt")
        shown = page.locator(".asked img")
        await expect(shown).to_have_js_property("naturalWidth", 1)
        await page.reload()
        await expect(shown).to_have_js_property("naturalWidth", 1)
        async with page.expect_popup() as opened:
            await shown.click()
        tab = await opened.value
        await tab.wait_for_url("**/images/*ticket=*")
        await expect(tab.locator("img")).to_have_js_property("naturalWidth", 1)
    [message, _] = await server.messages(session)
    assert [file["name"] for file in message["files"]] == ["report.txt"]
    assert len(message["images"]) == 1


async def test_a_session_is_taken_out_as_markdown(server, come):
    server.provider.then(say("Hello yourself."))
    session = await server.session()
    async with come(session) as page:
        await send(page, "Hello")
        await expect(page.locator(".answer")).to_have_text("Hello yourself.")
        await page.get_by_role("button", name="Session", exact=True).click()
        async with page.expect_download() as taken:
            await page.get_by_role("menuitem", name="Export as Markdown").click()
        file = await taken.value
        assert file.suggested_filename == f"session-{session}.md"
        assert "Hello yourself." in (await file.path()).read_text()


async def test_a_refused_message_stays_in_the_box(server, come):
    session = await server.session()
    # Once the request reached the server all the same; perhaps because the service worker took over at that moment.
    async with come(session, service_workers="block") as page:
        await page.route(
            "**/messages", lambda route: route.fulfill(status=500, json={"error": {"code": "x", "message": "No room."}})
        )
        await send(page, "Precious words")
        await expect(page.locator(".composer-problem")).to_contain_text("No room.")
        await expect(page.get_by_role("textbox", name="Message")).to_have_value("Precious words")


async def test_a_lost_connection_is_said_and_made_up_for(server, come):
    tap = Tap()
    server.provider.then(tap)
    session = await server.session()
    sockets = []
    is_down = False

    async def through(socket):
        if is_down:
            await socket.close()
            return
        socket.connect_to_server()
        sockets.append(socket)

    async with come() as page:
        await page.route_web_socket("**/ws/**", through)
        await page.goto(f"{server.address}/ui/sessions/{session}")
        await send(page, "Hello")
        tap.say("One ")
        await expect(page.locator(".answer")).to_have_text("One")
        is_down = True
        for socket in sockets:
            await socket.close()
        await expect(page.locator(".link-notice")).to_contain_text("Connection lost")
        tap.say("two ")
        is_down = False
        await expect(page.locator(".answer")).to_have_text("One two")
        await expect(page.locator(".link-notice")).to_have_count(0)
        tap.say("three.")
        tap.end()
        await expect(page.locator(".answer")).to_have_text("One two three.")
        await expect(page.locator(".footnote")).to_be_visible()


async def test_plans_subagents_and_approvals_are_cards(server, come):
    helper = await server.call("POST", "/agents", json={"name": "Digger", "toolsets": ["files"]})
    team = {"planning": True, "subagents": [helper["id"]], "ask_before": ["write_file"]}
    boss = await server.call("POST", "/agents", json={"name": "Boss", "toolsets": ["files", "subagents"]} | team)
    analysis, ending = Tap(), Tap()
    server.provider.then(
        analysis,
        say("1. Look\n2. Tell"),
        calls(*call("spawn_agent", json.dumps({"agent": "Digger", "task": "dig"}), id="c/9")),
        stream(*thinking("Digging"), *call("list_files", "{}", id="c/10"), finish="tool_calls"),
        say("Found gold."),
        calls(
            *call("write_file", '{"path": "gold.txt", "content": "gold"}', id="c/11"),
            *call("finish_step", '{"step": 1}', id="c/12", index=1),
        ),
        ending,
    )
    session = await server.session("Gold", agent_id=boss["id"])
    async with come(session) as page:
        await send(page, "Plan it")
        planning = page.locator(".reply [role=status]", has=page.locator(".steps"))
        await expect(planning).to_be_visible()
        analysis.say("It wants gold.")
        analysis.end()
        word = page.get_by_role("group", name="Approve this?")
        await expect(word).to_be_visible()
        await expect(planning).to_have_count(0)
        await page.reload()  # the question is still there after a reload
        await word.get_by_label("Reason").fill("Only this once")
        await expect(word.locator(".approval-sentence")).to_have_text("Boss wants to write “gold.txt” (4 bytes)")
        asking = page.get_by_label("Tool write_file")
        await expect(asking.locator(".badge")).to_have_text("Needs approval")  # one word for its state
        await expect(asking).not_to_contain_text("working")
        await word.get_by_role("button", name="Approve", exact=True).click()
        await expect(word).to_have_count(0)
        ending.say("All done.")
        ending.end()
        await expect(page.locator(".answer").last).to_have_text("All done.")
        await expect(page.locator(".footnote")).to_be_visible()
        for _ in range(2):  # as it was streamed, and as it was saved
            await expect(page.get_by_label("Plan").locator("li")).to_have_text(["Lookdone", "Tell"])
            await expect(page.get_by_label("Plan")).to_contain_text("1 of 2 done")
            card = page.get_by_label("Subagent Digger: dig")
            await expect(card.get_by_role("button", name="Digger")).to_have_attribute("aria-expanded", "false")
            await card.get_by_role("button", name="Digger").click()
            await expect(card.get_by_text("Found gold.")).to_have_count(2)  # once as the answer, once in the raw JSON
            await expect(card.get_by_text("Found gold.").locator("visible=true")).to_have_count(1)
            await expect(card.get_by_label("Tool list_files")).to_be_visible()
            await expect(card.get_by_role("button", name="Thought")).to_be_visible()
            await expect(card.get_by_text('"task": "dig"')).to_be_hidden()
            await expect(page.locator(".reply > .tool")).to_have_count(2)  # nothing of the helper on the top level
            await expect(page.get_by_label("Tool write_file")).to_contain_text("gold.txt")
            await page.reload()
    [run] = await server.runs_of(session)
    [asked] = (await server.call("GET", f"/runs/{run['id']}/approvals"))["approvals"]
    assert (asked["call_id"], asked["status"], asked["note"]) == ("c/11", "used", "Only this once")
    for agent in (boss, helper):
        await server.call("DELETE", f"/agents/{agent['id']}")


async def test_a_session_is_renamed_and_deleted(server, come):
    session = await server.session("Old name")
    async with come(session) as page:
        await page.get_by_role("button", name="Session", exact=True).click()
        await page.get_by_role("menuitem", name="Rename…").click()
        await page.get_by_role("textbox", name="Title").fill("New name")
        await page.get_by_role("button", name="Rename").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("New name")
        await expect(page.get_by_role("list", name="Sessions")).to_contain_text("New name")
        await page.get_by_role("button", name="Session", exact=True).click()
        await page.get_by_role("menuitem", name="Delete…").click()
        await page.get_by_role("button", name="Delete").click()
        await page.wait_for_url(f"{server.address}/")
        await expect(page.get_by_role("list", name="Sessions")).not_to_contain_text("New name")


async def test_a_long_session_shows_its_end_first_and_the_rest_as_one_scrolls(server, come):
    session = await server.session()
    now = server.node.clock.now()
    said = [
        Message(id=new_id(now), session_id=session, position=0, role=role, content=f"{role} {number}", created_at=now)
        for number in range(100)
        for role in ("user", "assistant")
    ]

    async def write(tx):
        for message in said:
            await tx.sessions.append(message)

    await server.node.store.write(write)
    async with come(session) as page:
        await expect(page.locator(".asked").last).to_be_in_viewport()
        await expect(page.locator(".asked").last).to_have_text("You: user 99")
        assert await page.locator(".turn").count() < 100
        for _ in range(100):  # each time a few more; how many depends on how fast they are drawn
            await page.get_by_role("log").evaluate("log => { log.scrollTop = 0 }")
            await page.wait_for_timeout(50)
            if await page.locator(".turn").count() == 100:
                break
        await expect(page.locator(".turn")).to_have_count(100)
        await page.get_by_role("log").evaluate("log => { log.scrollTop = 0 }")
        await expect(page.locator(".asked").first).to_be_in_viewport()
        await page.get_by_role("button", name="Scroll to the end").click()
        await expect(page.locator(".asked").last).to_be_in_viewport()
