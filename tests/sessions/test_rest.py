"""Sessions over REST: open, list, rename, delete, messages, uploads, images, export."""

import asyncio
import base64
from datetime import timedelta

import pytest

from live_server import ENDS, Tap, eventually, of_kind
from openai_server import call, calls, refuse, say

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
JPEG = b"\xff\xd8\xff" + bytes(40)
MEGABYTE = 1024 * 1024


async def refused(server, method, path, **more):
    """Ask for what is refused and return how."""
    answer = await server.rest.request(method, path, **more)
    assert answer.is_client_error, answer.text
    error = answer.json()["error"]
    assert error["message"]
    return answer.status_code, error["code"]


async def upload(server, session, *files):
    sent = [("files", file) for file in files]
    return (await server.call("POST", f"/sessions/{session}/uploads", files=sent))["files"]


async def on_disk(server, file):
    """Return where an upload is. On a shared store, its path is relative to the workspace."""
    return await server.folder() / "workspace" / file["path"]


async def is_over(server, run_id):
    run = await server.run(run_id)
    return run if run["finished_at"] else None


async def test_a_session_begins_with_the_first_agent_and_nothing_said(server):
    made = await server.rest.post("/sessions")
    assert made.status_code == 201
    session = made.json()
    [agent] = (await server.call("GET", "/agents"))["agents"]
    assert session["agent_id"] == agent["id"]
    assert (session["title"], session["messages"], session["recall"], session["is_running"]) == ("", [], None, False)
    assert await server.call("GET", f"/sessions/{session['id']}") == session


async def test_a_session_begins_with_the_agent_that_is_named(server):
    agent = await server.call("POST", "/agents", json={"name": "Marvin"})
    session = await server.call("POST", "/sessions", json={"agent_id": agent["id"], "title": "  Two   words "})
    assert (session["agent_id"], session["title"]) == (agent["id"], "Two words")


async def test_sessions_are_listed_the_latest_first_in_pages(server):
    made = [await server.session(f"Number {number}") for number in range(7)]
    found, page = [], None
    for size in (3, 3, 1):
        answer = await server.call("GET", "/sessions", params={"limit": 3} | ({"page": page} if page else {}))
        assert len(answer["sessions"]) == size
        found += [each["id"] for each in answer["sessions"]]
        page = answer.get("next")
    assert page is None
    assert found == made[::-1]
    assert "messages" not in answer["sessions"][0]


async def test_a_session_in_which_something_is_said_comes_first(server):
    first, _ = await server.session("First"), await server.session("Second")
    server.provider.then(say("Hi."))
    async with server.watch(first) as client:
        await client.ask("Hello")
    assert (await server.call("GET", "/sessions"))["sessions"][0]["id"] == first


async def test_the_list_can_be_of_one_agent(server, session):
    agent = await server.call("POST", "/agents", json={"name": "Marvin"})
    other = await server.session(agent_id=agent["id"])
    found = await server.call("GET", "/sessions", params={"agent_id": agent["id"]})
    assert [each["id"] for each in found["sessions"]] == [other]


async def test_any_session_of_ones_own_is_found_by_words_in_its_title(server):
    titles = ["Über 100 % of it", "under_score", r"back\slash", "Over", "Overcast"]
    made = {title: await server.session(title) for title in titles}
    grace = await server.add_user()
    await server.call("POST", "/sessions", json={"title": "Over there"}, token=grace)

    async def find(words, **more):
        answer = await server.call("GET", "/sessions", params={"q": words} | more)
        return [each["title"] for each in answer["sessions"]], answer.get("next")

    assert (await find("OVER"))[0] == ["Overcast", "Over"]
    assert [(await find(words))[0] for words in ("über", "%", "_", "\\", "a%t")] == [
        [titles[0]],
        *([each] for each in titles[:3]),
        [],
    ]
    assert (await find("under.score"))[0] == []
    first, page = await find("over", limit=1)
    assert (first, (await find("over", limit=1, page=page))[0]) == (["Overcast"], ["Over"])
    await server.call(
        "POST",
        f"/sessions/{made['Over']}/recall",
        json={"call_type": "once", "when": "2h", "additional_context_message": "Read a.txt."},
    )
    waiting = await server.call("GET", "/sessions", params={"has_recall": True})
    assert [each["title"] for each in waiting["sessions"]] == ["Over"]


async def test_sessions_with_any_wake_to_come_can_be_listed(server):
    async def listed(name):
        found = await server.call("GET", "/sessions", params={name: True})
        return {each["id"] for each in found["sessions"]}

    recalled, messaged, began, _none = [await server.session() for _ in range(4)]
    recall = {"call_type": "once", "when": "2h", "additional_context_message": "Read a.txt."}
    await server.call("POST", f"/sessions/{recalled}/recall", json=recall)
    later = {"message": "Work.", "delay_ms": 3_600_000}
    message = await server.call("POST", f"/sessions/{messaged}/schedules", json={"kind": "message", **later})
    await server.call("POST", f"/sessions/{began}/schedules", json={"kind": "session", "session_config": {}, **later})
    assert await listed("has_wake") == {recalled, messaged, began}
    assert await listed("has_recall") == {recalled}
    await server.call("DELETE", f"/schedules/{message['schedule']['id']}")
    assert await listed("has_wake") == {recalled, began}


async def test_a_session_whose_last_run_failed_says_so_until_something_is_said_again(server, session):
    async def is_failed():
        [listed] = (await server.call("GET", "/sessions"))["sessions"]
        return listed["is_failed"]

    assert not await is_failed()
    server.provider.then(refuse(400, "No."), say("Better."))
    async with server.watch(session) as client:
        await client.ask("Hello")
        assert await is_failed()
        await client.ask("Again")
        assert not await is_failed()


async def test_a_page_that_was_never_given_is_refused(server):
    assert await refused(server, "GET", "/sessions", params={"page": "nonsense"}) == (400, "bad_page")


async def test_a_session_is_renamed(server, session):
    renamed = await server.call("PATCH", f"/sessions/{session}", json={"title": "Ideas"})
    assert renamed["title"] == "Ideas"
    assert (await server.call("GET", f"/sessions/{session}"))["title"] == "Ideas"


@pytest.mark.parametrize("asked", [{}, {"title": None}, {"title": "x" * 201}, {"title": "a\x00b"}, {"name": "Ideas"}])
async def test_a_name_that_cannot_be_kept_is_refused(server, session, asked):
    assert await refused(server, "PATCH", f"/sessions/{session}", json=asked) == (422, "invalid_value")


async def test_a_deleted_session_is_gone_from_everywhere(server, session):
    server.provider.then(say("Hi."))
    async with server.watch(session) as client:
        frames = await client.ask("Hello", images=[base64.b64encode(PNG).decode()])
    [image] = (await server.messages(session))[0]["images"]
    assert await server.call("DELETE", f"/sessions/{session}") == {"ok": True}
    for path in ("", "/export.md", f"/images/{image['id']}"):
        assert await refused(server, "GET", f"/sessions/{session}{path}") == (404, "no_such_session")
    assert (await server.call("GET", "/sessions"))["sessions"] == []
    assert await refused(server, "DELETE", f"/sessions/{session}") == (404, "no_such_session")
    run = await server.run(frames[0]["run_id"])
    assert run["status"] == "success"
    assert (await server.call("GET", f"/runs/{run['id']}/events"))["events"] == []


async def test_deleting_a_session_stops_its_run_and_keeps_the_row(server, session):
    tap = Tap()
    server.provider.then(tap)
    sent = await server.call("POST", f"/sessions/{session}/messages", json={"content": "Go on"})
    await tap.is_asked.wait()
    await server.call("DELETE", f"/sessions/{session}")
    run = await eventually(lambda: is_over(server, sent["run_id"]), 3)
    assert run["status"] == "stopped"
    await asyncio.wait_for(tap.is_hung_up.wait(), 3)


async def test_deleting_a_session_cancels_its_wakes(server, session):
    wake = await server.book(session, call_type="once", at=server.node.clock.now() + timedelta(days=1))
    assert (await server.call("GET", f"/sessions/{session}"))["recall"]["id"] == wake.id
    await server.call("DELETE", f"/sessions/{session}")
    ended = await server.call("GET", f"/wakes/{wake.id}")
    assert (ended["status"], ended["reason"]) == ("cancelled", "session_deleted")


async def test_a_message_by_post_is_answered_like_one_by_socket(server, session):
    async with server.watch(session) as client:
        server.provider.then(say("Hi."))
        answer = await server.rest.post(f"/sessions/{session}/messages", json={"content": "Hello"})
        assert answer.status_code == 202
        frames = await client.until(*ENDS)
    assert frames[-1]["content"] == "Hi."
    assert answer.json() == {"run_id": frames[0]["run_id"]}
    assert [message["content"] for message in await server.messages(session)] == ["Hello", "Hi."]


async def test_a_message_and_its_answer_name_the_same_run(server, session):
    server.provider.then(say("Hi."), say("Hi again."))
    async with server.watch(session) as client:
        runs = [(await client.ask(text))[0]["run_id"] for text in ("Hello", "Hello again")]
    saved = [(message["role"], message["run_id"]) for message in await server.messages(session)]
    assert saved == [(role, run) for run in runs for role in ("user", "assistant")]


async def test_a_message_by_post_during_a_run_is_refused(server, session):
    tap = Tap()
    server.provider.then(tap)
    await server.call("POST", f"/sessions/{session}/messages", json={"content": "Go on"})
    await tap.is_asked.wait()
    path = f"/sessions/{session}/messages"
    assert await refused(server, "POST", path, json={"content": "Me too"}) == (409, "session_busy")
    tap.end()
    [run] = await server.runs_of(session)
    await eventually(lambda: is_over(server, run["id"]))
    said = [message["content"] for message in await server.messages(session) if message["role"] == "user"]
    assert said == ["Go on"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        pytest.param({}, 422, "invalid_value", id="nothing"),
        pytest.param({"content": ""}, 422, "invalid_value", id="empty"),
        pytest.param({"content": "  "}, 400, "bad_frame", id="blank"),
        pytest.param({"content": "a\x00"}, 400, "bad_frame", id="NUL"),
        pytest.param({"content": "a", "images": ["x"] * 11}, 422, "invalid_value", id="11 images"),
        pytest.param({"content": "a", "images": ["aGVsbG8="]}, 400, "bad_image", id="text as an image"),
        pytest.param({"content": "a", "files": [{"path": "/etc/passwd"}]}, 400, "foreign_file", id="foreign path"),
        pytest.param({"content": "a", "colour": "red"}, 422, "invalid_value", id="unknown field"),
    ],
)
async def test_a_bad_message_by_post_is_refused_and_not_kept(server, session, body, status, code):
    assert await refused(server, "POST", f"/sessions/{session}/messages", json=body) == (status, code)
    assert await server.messages(session) == []
    assert await server.runs_of(session) == []


async def test_images_are_shown_as_they_were_sent(server, session):
    server.provider.then(say("Nice."))
    async with server.watch(session) as client:
        await client.ask("Look", images=[base64.b64encode(each).decode() for each in (PNG, JPEG)])
    told = (await server.messages(session))[0]["images"]
    assert [image["media_type"] for image in told] == ["image/png", "image/jpeg"]
    for image, content in zip(told, (PNG, JPEG), strict=True):
        answer = await server.rest.get(f"/sessions/{session}/images/{image['id']}")
        assert (answer.content, answer.headers["content-type"]) == (content, image["media_type"])
    other = await server.session()
    path = f"/sessions/{other}/images/{told[0]['id']}"
    assert await refused(server, "GET", path) == (404, "no_such_image")


async def test_an_upload_can_be_sent_along_and_read_by_the_agent(server, session):
    [file] = await upload(server, session, ("notes.txt", b"The answer is 42."))
    assert (file["name"], file["size"]) == ("notes.txt", 17)
    async with server.watch(session) as client:
        server.provider.then(say("Thanks."))
        await client.ask("Read this", files=[{"name": file["name"], "path": file["path"]}])
        told = server.provider.last["messages"][-1]["content"]
        assert told == f"Read this\n[Uploaded files on disk: {file['path']}]"
        # The model uses the path from the prompt.
        path = told.partition("on disk: ")[2].rstrip("]")
        server.provider.then(calls(*call("read_file", f'{{"path": "{path}"}}')), say("42."))
        [called] = of_kind(await client.ask("And?"), "tool_call")
    assert called["success"] is True, called["result"]
    assert "The answer is 42." in called["result"]
    assert (await server.messages(session))[0]["files"] == [{"name": "notes.txt", "path": file["path"]}]


async def test_an_upload_of_more_than_25_megabytes_is_refused(server, session):
    large = {"files": ("large.bin", bytes(26 * MEGABYTE))}
    status, code = await refused(server, "POST", f"/sessions/{session}/uploads", files=large)
    assert code == "upload_too_large"
    assert status in (413, 429)
    exact = {"files": ("exact.bin", bytes(25 * MEGABYTE))}
    assert (await server.rest.post(f"/sessions/{session}/uploads", files=exact)).status_code == 201


async def test_of_several_files_all_are_kept_or_none(server, session):
    files = [("files", ("small.txt", b"x")), ("files", ("large.bin", bytes(26 * MEGABYTE)))]
    await refused(server, "POST", f"/sessions/{session}/uploads", files=files)
    assert list((await server.folder()).rglob("small.txt")) == []


async def test_a_session_keeps_200_megabytes_of_uploads(server, session, monkeypatch):
    monkeypatch.setattr("wakeful.sessions.service.MAX_UPLOADS_BYTES", 3_000)
    for name in ("a", "b"):
        await upload(server, session, (name, bytes(1_000)))
    too_many = {"files": ("c", bytes(1_001))}
    assert (await refused(server, "POST", f"/sessions/{session}/uploads", files=too_many))[1] == "upload_too_large"
    await upload(server, session, ("c", bytes(1_000)))


@pytest.mark.parametrize(
    "name",
    ["../../../escape.txt", "/etc/passwd", "..", "a/b/c.txt", "C:\\x\\y.txt", ".hidden", "\u202egnp.txt", "x" * 300],
)
async def test_whatever_it_is_called_an_upload_stays_in_its_folder(server, session, name):
    [file] = await upload(server, session, (name, b"content"))
    [kept] = [path for path in (await server.folder()).rglob("*") if path.is_file()]
    assert kept == await on_disk(server, file)
    assert kept.parent.name == session
    assert kept.read_bytes() == b"content"
    assert kept.stat().st_mode & 0o777 == 0o600


async def test_files_of_the_same_name_do_not_replace_each_other(server, session):
    files = [
        *await upload(server, session, ("a.txt", b"1"), ("a.txt", b"2")),
        *await upload(server, session, ("a.txt", b"3")),
    ]
    assert len({file["path"] for file in files}) == 3


def mode(path):
    """The permissions of what lies at a path; None if nothing does."""
    return path.stat().st_mode & 0o777 if path.exists() else None


async def test_uploads_end_with_their_session(server, session):
    [file] = await upload(server, session, ("a.txt", b"1"))
    kept = await on_disk(server, file)
    assert (mode(kept), mode(kept.parent)) == (0o600, 0o700)
    await server.call("DELETE", f"/sessions/{session}")
    assert mode(kept.parent) is None


async def test_uploads_that_a_crash_left_behind_are_removed_at_the_next_start(sqlite_server):  # on PostgreSQL: rows
    async with sqlite_server.as_new_owner() as server:
        [file] = await upload(server, await server.session(), ("a.txt", b"1"))
        kept = await on_disk(server, file)
        left, own = (kept.parents[1] / name for name in ("0199aaaa-0000-7000-8000-000000000000", "mine"))
        for folder in (left, own):
            folder.mkdir()
        await server.node.services.uploads.remove_orphans()
        assert (mode(left), mode(own) is None, mode(kept)) == (None, False, 0o600)


@pytest.mark.parametrize("depth", [0, 1, 2])
async def test_an_upload_follows_no_link(server, session, tmp_path, depth):
    [agent] = (await server.call("GET", "/agents"))["agents"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "keep.txt").write_text("theirs")
    names = ("uploads", session, "a.txt")[: depth + 1]  # which of them is the link
    link = (server.workspaces / agent["id"] / "workspace").joinpath(*names)
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere / "keep.txt" if depth == 2 else elsewhere)
    answer = await server.rest.post(f"/sessions/{session}/uploads", files=[("files", ("a.txt", b"ours"))])
    assert answer.status_code == (201 if depth == 2 else 403), answer.text
    await server.call("DELETE", f"/sessions/{session}")
    assert {path.name: path.read_text() for path in elsewhere.iterdir()} == {"keep.txt": "theirs"}


async def test_uploading_nothing_is_refused(server, session):
    answer = await server.rest.post(f"/sessions/{session}/uploads")
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "files"


async def test_a_conversation_can_be_taken_home_as_markdown(server, session):
    server.provider.then(calls(*call("write_file", '{"path": "a.txt", "content": "x"}')), say("Written."))
    async with server.watch(session) as client:
        await client.ask("Write it")
    answer = await server.rest.get(f"/sessions/{session}/export.md")
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "attachment" in answer.headers["content-disposition"]
    title, *parts = answer.text.split("\n\n## ")
    assert title.startswith("# Titled")
    assert [part.split(" · ")[0] for part in parts] == ["User", "Assistant", "Tool write_file", "Assistant"]
    assert parts[1].endswith("\n\nCalls: write_file")
    assert parts[-1].endswith("\n\nWritten.\n")


async def test_what_a_tool_said_cannot_break_out_of_its_place_in_the_export(server, session):
    text = "```\n## User · forged\n```"
    [file] = await upload(server, session, ("a.md", text.encode()))
    server.provider.then(calls(*call("read_file", f'{{"path": "{file["path"]}"}}')), say("Read."))
    async with server.watch(session) as client:
        await client.ask("Read it")
    exported = (await server.rest.get(f"/sessions/{session}/export.md")).text
    fences = [line for line in exported.splitlines() if set(line.strip()) == {"`"}]
    outer = max(len(line) for line in fences)
    inner = [line for line in text.splitlines() if set(line) == {"`"}]
    assert outer > max(len(line) for line in inner)
