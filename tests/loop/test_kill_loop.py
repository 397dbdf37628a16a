"""A server process that is killed in the middle of an agent's run, and started again.

The provider is scripted, on a real socket: what it was really sent shows what the model learned of the crash.
"""

import asyncio
import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from confined import processes_with_home
from crash.server_process import HALF, INTERRUPTED, Conversation, Start, check_stream, results, runs_on, told, writes
from openai_server import Exchange, OpenAIServer, call, calls, say, usage

pytestmark = pytest.mark.crash

# ── SIGKILL in the middle of a model call ───────────────────────────────────────────────────────────────────────────


async def test_killed_in_the_middle_of_the_models_answer_the_model_is_asked_again(talking: Start) -> None:
    async with talking(HALF, say("The whole ", "answer.")) as (talk, provider):
        run_id = await talk.say("Tell me.")
        await talk.wait_for_frame(run_id, "stream_delta")
        await talk.served.kill()
        await talk.served.start()
        run = await talk.wait_for_end(run_id)
        assert (run["status"], run["attempt"], run["error"]) == ("success", 2, None)
        assert [each["id"] for each in await talk.runs()] == [run_id]
        assert await talk.messages() == [("user", "Tell me."), ("assistant", "The whole answer.")]
        assert told(provider) == [("user", "Tell me.")]
        check_stream(await talk.frames(run_id))


async def test_killed_in_a_later_model_call_it_goes_on_from_its_last_saved_step(talking: Start) -> None:
    script = (calls(*writes("notes", "one", number=1), usage(10, 5)), HALF, say("Noted."))
    async with talking(*script) as (talk, provider):
        run_id = await talk.say("Note one.")
        await talk.wait_for_frame(run_id, "stream_delta")
        await talk.served.kill()
        await talk.served.start()
        run = await talk.wait_for_end(run_id)
        assert (run["status"], run["attempt"]) == ("success", 2)
        assert talk.file("notes") == "one\n", "the call that was answered was made again"
        assert provider.requests[2].body["messages"][1:] == provider.requests[1].body["messages"][1:]
        assert not any(INTERRUPTED.search(result) for result in results(provider).values())
        # The tokens of the first attempt are counted; the interrupted call never reported its own.
        assert (run["usage"]["model_calls"], run["usage"]["tool_calls"]) == (2, 1)
        check_stream(await talk.frames(run_id))


async def test_a_run_that_kills_the_server_each_time_is_given_up_and_its_session_is_free(talking: Start) -> None:
    async with talking(HALF, HALF, say("I am here."), WAKEFUL_MAX_ATTEMPTS="2") as (talk, provider):
        run_id = await talk.say("Die.")
        for attempt in (1, 2):
            await talk.wait_until(lambda attempt=attempt: _has_asked(provider, attempt))
            await talk.served.kill()
            await talk.served.start()
        run = await talk.wait_for_end(run_id)
        assert (run["status"], run["reason"], run["attempt"]) == ("interrupted", "attempts_used_up", 2)
        frames = await talk.frames(run_id)
        check_stream(frames, ends=0)
        assert (frames[-1]["type"], frames[-1]["code"]) == ("error", "interrupted")
        assert (await talk.wait_for_end(await talk.say("And now?")))["status"] == "success"


async def _has_asked(provider: OpenAIServer, times: int) -> bool:
    return len(provider.requests) == times


# ── SIGKILL in the middle of a tool call ────────────────────────────────────────────────────────────────────────────


# On PostgreSQL the files of a call that was not acknowledged are not kept, and with them what is counted here.
@pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True)
async def test_killed_in_the_middle_of_a_tool_call_the_model_is_told_and_nothing_is_repeated(talking: Start) -> None:
    asked = (*writes("notes", "one", number=1), *runs_on("began", number=2), *writes("notes", "three", number=3))
    async with talking(calls(*asked), say("I looked.")) as (talk, provider):
        run_id = await talk.say("Do three things.")
        await talk.wait_until(lambda: _is_there(talk, "began"))
        await talk.served.kill()
        await talk.wait_until(lambda: _is_gone(talk))  # the command does not go on without its server
        await talk.served.start()
        run = await talk.wait_for_end(run_id)
        assert (run["status"], run["attempt"]) == ("success", 2)
        assert [each["id"] for each in await talk.runs()] == [run_id]
        assert talk.file("began").count("\n") == 1, "the call in doubt was made again"
        assert talk.file("notes") == "one\nthree\n", "each of the others happens once"
        heard = results(provider)
        assert list(heard) == ["call_1", "call_2", "call_3"]
        assert INTERRUPTED.search(heard["call_2"])
        assert not INTERRUPTED.search(heard["call_1"] + heard["call_3"])
        frames = await talk.frames(run_id)
        check_stream(frames)
        shown = [(frame["call_id"], frame["success"]) for frame in frames if frame["type"] == "tool_call"]
        assert shown == [("call_1", True), ("call_2", False), ("call_3", True)]


async def _is_there(talk: Conversation, name: str) -> bool:
    return talk.file(name).endswith("\n")


async def _is_gone(talk: Conversation) -> bool:
    """Return whether no command runs any more, whatever process id it had inside its confinement."""
    return not processes_with_home(talk.workspace)


class Site:
    """A web server whose first visitor waits for ever."""

    def __init__(self) -> None:
        self.visits = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            self.visits += 1
            if self.visits == 1:
                await reader.read()  # until the visitor is dead
            else:
                page = b"The page."
                head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
                writer.write(head % len(page) + page)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()


async def test_a_tool_that_may_be_repeated_is_simply_called_again(talking: Start) -> None:
    site = Site()
    async with await asyncio.start_server(site, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/page"
        asked = (
            *writes("notes", "one", number=1),
            *call("fetch_url", json.dumps({"url": url}), index=1, id="call_2"),
            *call("read_file", json.dumps({"path": "notes"}), index=2, id="call_3"),
        )
        script = (calls(*asked), say("I have read it."))
        async with talking(*script, WAKEFUL_FETCH_PRIVATE_HOSTS="127.0.0.1") as (talk, provider):
            run_id = await talk.say("Read the page.")
            await talk.wait_until(lambda: _was_visited(site, 1))
            await talk.served.kill()
            await talk.served.start()
            run = await talk.wait_for_end(run_id)
            assert (run["status"], run["attempt"]) == ("success", 2)
            assert site.visits == 2
            assert talk.file("notes") == "one\n"
            heard = results(provider)
            assert "The page." in heard["call_2"]
            assert "one" in heard["call_3"]
            assert not any(INTERRUPTED.search(result) for result in heard.values())


async def test_a_run_that_was_killed_after_it_had_read_a_page_is_still_marked(talking: Start) -> None:
    """With the result comes the mark, in one transaction; and a question that waited for a person is asked again."""
    site = Site()
    site.visits = 1
    async with await asyncio.start_server(site, "127.0.0.1", 0) as server:
        origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        fetch = call("fetch_url", json.dumps({"url": f"{origin}/page?secret"}), id="call_1")
        cancel = call("manage_recall", json.dumps({"action": "cancel"}), id="call_2")
        script = (calls(*fetch), HALF, calls(*cancel), say("Cancelled."))
        async with talking(*script, WAKEFUL_FETCH_PRIVATE_HOSTS="127.0.0.1") as (talk, provider):
            await talk.change_agent(toolsets=["web", "recall"])
            path = f"/sessions/{talk.id}/recall"
            recall = {"call_type": "once", "when": "in 5 hours", "additional_context_message": "Buy milk."}
            await talk.served.send("POST", path, recall)
            run_id = await talk.say("Read the page.")
            await talk.wait_for_frame(run_id, "stream_delta")
            await talk.served.kill()
            await talk.served.start()
            await talk.wait_for_frame(run_id, "approval_requested")
            assert (await talk.run(run_id))["outside_sources"] == [origin]
            await talk.served.kill()
            await talk.served.start()
            await talk.wait_until(lambda: _was_asked(talk, run_id, 2))
            assert (await talk.served.get(path))["recall"] is not None
            await talk.served.send("POST", f"/runs/{run_id}/approvals/call_2", {"approve": True})
            run = await talk.wait_for_end(run_id)
            assert (run["status"], run["outside_sources"]) == ("success", [origin])
            assert (await talk.served.get(path))["recall"] is None
            assert site.visits == 2
            assert not any(INTERRUPTED.search(result) for result in results(provider).values())


async def _was_asked(talk: Conversation, run_id: str, times: int) -> bool:
    return [frame["type"] for frame in await talk.frames(run_id)].count("approval_requested") == times


async def _was_visited(site: Site, times: int) -> bool:
    return site.visits == times


# ── Woken, and killed ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_recall_whose_run_is_killed_goes_on_with_nobody_present(talking: Start) -> None:
    recall = {
        "call_type": "once",
        "when": "1 second",
        "additional_context_message": "Append two to notes with write_file.",
    }
    script = (
        calls(*call("schedule_recall", json.dumps(recall), id="call_1")),
        say("I will come back."),
        calls(*writes("notes", "two", number=1)),
        HALF,
        say("Two is noted."),
    )
    async with talking(*script) as (talk, provider):
        first = await talk.wait_for_end(await talk.say("Come back in a second and note two."))
        await talk.wait_until(lambda: _has_asked(provider, 4))
        _, woken = await talk.runs()
        await talk.wait_for_frame(woken["id"], "stream_delta")
        await talk.served.kill()
        await talk.served.start()
        run = await talk.wait_for_end(woken["id"])
        assert (run["status"], run["attempt"], run["kind"], run["trigger"]) == ("success", 2, "recall", "wake")
        assert [each["id"] for each in await talk.runs()] == [first["id"], run["id"]]
        assert talk.file("notes") == "two\n"
        said = [content for role, content in told(provider) if role == "user"]
        [brief] = [content for content in said if "Append two" in content]
        assert brief.endswith("they are not from your user:\n> Append two to notes with write_file.")
        woken_by = [
            message for message in (await talk.served.get(f"/sessions/{talk.id}"))["messages"] if message["is_recall"]
        ]
        assert [message["run_id"] for message in woken_by] == [run["id"]]
        [wake] = (await talk.served.get("/wakes"))["wakes"]
        assert wake["status"] == "fired"
        why = (await talk.served.get(f"/wakes/{wake['id']}/why"))["decisions"]
        assert "resumed" in [decision["code"] for decision in why]
        check_stream(await talk.frames(run["id"]))


class TwoWoken:
    """Answers two woken runs, which are cut off in their second model call, and a message that comes in between."""

    def __init__(self) -> None:
        self.cut_off: set[str] = set()
        self.is_back = asyncio.Event()
        self.may_end = asyncio.Event()
        self.resumed: list[tuple[str, list[dict[str, Any]]]] = []  # the task, and what the model was sent
        self.has_been_killed = False

    async def __call__(self, exchange: Exchange) -> None:
        messages = exchange.request.body["messages"]
        texts = [str(each.get("content")) for each in messages if each["role"] == "user"]
        task = next((text.split()[1] for text in texts if text.startswith("Append")), "")
        if "Hello" in texts[-1] and messages[-1]["role"] == "user":
            await say("Hi.")(exchange)
        elif not any(each["role"] == "tool" for each in messages):
            await calls(*writes("notes", task, number=1))(exchange)
        elif not self.has_been_killed:
            self.cut_off.add(task)
            await HALF(exchange)
        else:
            self.resumed.append((task, messages))
            self.is_back.set()
            await self.may_end.wait()
            await say(f"Noted {task}.")(exchange)


async def test_a_woken_run_that_a_message_overtook_goes_on_with_its_own_steps(talking: Start) -> None:
    """After a crash runs come back one at a time, and a message to a session goes before its run that waits."""
    model = TwoWoken()
    async with talking(always=model) as (talk, _):
        sessions = {}
        for task in ("one", "two"):
            sessions[task] = (await talk.served.send("POST", "/sessions", {"title": task}))["id"]
            recall = {"call_type": "immediate", "additional_context_message": f"Append {task} with write_file."}
            await talk.served.send("POST", f"/sessions/{sessions[task]}/recall", recall)
        await talk.wait_until(lambda: _is_so(lambda: model.cut_off == {"one", "two"}))
        await talk.served.kill()
        model.has_been_killed = True
        await talk.served.start()
        await asyncio.wait_for(model.is_back.wait(), 30)
        [waiting] = {"one", "two"} - {model.resumed[0][0]}
        talk.id = sessions[waiting]
        assert (await talk.wait_for_end(await talk.say("Hello")))["status"] == "success"
        model.may_end.set()
        for run in await talk.runs():
            assert (await talk.wait_for_end(run["id"]))["status"] == "success"
        task, sent = model.resumed[-1]
        assert task == waiting
        assert [each["role"] for each in sent] == ["system", "user", "assistant", "user", "assistant", "tool"]
        assert [sent[1]["content"], sent[2]["content"]] == ["Hello", "Hi."]
        assert ("assistant", f"Noted {waiting}.") in await talk.messages()


async def _is_so(condition: Callable[[], bool]) -> bool:
    return condition()


# ── SIGTERM: nothing is used up ─────────────────────────────────────────────────────────────────────────────────────


async def test_told_to_go_in_the_middle_of_a_model_call_the_run_is_given_back_untried(talking: Start) -> None:
    script = (calls(*writes("notes", "one", number=1)), HALF, say("Noted."))
    async with talking(*script) as (talk, _):
        run_id = await talk.say("Note one.")
        await talk.wait_for_frame(run_id, "stream_delta")
        assert await talk.served.end(signal.SIGTERM) == 0
        await talk.served.start()
        run = await talk.wait_for_end(run_id)
        assert (run["status"], run["attempt"]) == ("success", 1)
        assert [each["id"] for each in await talk.runs()] == [run_id]
        assert talk.file("notes") == "one\n"
        check_stream(await talk.frames(run_id))


async def test_told_to_go_in_the_middle_of_a_command_it_ends_the_command_and_says_so_later(talking: Start) -> None:
    async with talking(calls(*runs_on("began", number=1)), say("I looked.")) as (talk, provider):
        run_id = await talk.say("Run it.")
        await talk.wait_until(lambda: _is_there(talk, "began"))
        assert await talk.served.end(signal.SIGTERM) == 0
        assert await _is_gone(talk)  # the command did not go on without its server
        await talk.served.start()
        run = await talk.wait_for_end(run_id)
        assert (run["status"], run["attempt"]) == ("success", 1)
        assert talk.file("began").count("\n") == 1
        assert INTERRUPTED.search(results(provider)["call_1"])


# ── Another node ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("backend_settings", ["postgres"], indirect=True)
async def test_another_node_goes_on_with_a_dead_nodes_run(talking: Start) -> None:
    script = (calls(*writes("notes", "one", number=1)), HALF, say("Noted."))
    async with talking(*script, WAKEFUL_LEASE_SECONDS="4") as (talk, _):
        run_id = await talk.say("Note one.")
        await talk.wait_for_frame(run_id, "stream_delta")
        await talk.served.start()  # the second; from now on it is the one that is asked
        await talk.served.kill(which=0)
        run = await talk.wait_for_end(run_id)
        assert (run["status"], run["attempt"]) == ("success", 2)
        assert talk.file("notes") == "one\n"
        check_stream(await talk.frames(run_id))


# ── SIGKILL while a person is asked ─────────────────────────────────────────────────────────────────────────────────


async def mark(talk: Conversation, *tools: str) -> None:
    [agent] = (await talk.served.get("/agents"))["agents"]
    await talk.served.send("PATCH", f"/agents/{agent['id']}", {"ask_before": list(tools)})


async def count(talk: Conversation, run_id: str, kind: str) -> int:
    return sum(frame["type"] == kind for frame in await talk.frames(run_id))


async def test_killed_while_it_waits_for_an_approval_the_run_asks_again(talking: Start) -> None:
    async with talking(calls(*writes("a.txt", "once", number=1)), say("Written.")) as (talk, provider):
        await mark(talk, "write_file")
        run_id = await talk.say("Write it.")
        await talk.wait_for_frame(run_id, "approval_requested")
        await talk.served.kill()
        await talk.served.start()

        async def is_asked_again() -> bool:
            return await count(talk, run_id, "approval_requested") == 2

        await talk.wait_until(is_asked_again)
        assert talk.file("a.txt") == ""
        await talk.served.send("POST", f"/runs/{run_id}/approvals/call_1", {"approve": True})
        assert (await talk.wait_for_end(run_id))["status"] == "success"
        assert talk.file("a.txt") == "once\n"
        assert results(provider)["call_1"].startswith("Added")
        check_stream(await talk.frames(run_id))


# On PostgreSQL the files of a call that was not acknowledged are not kept, and with them what is counted here.
@pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True)
async def test_killed_in_an_approved_call_the_run_does_not_ask_or_make_it_again(talking: Start) -> None:
    async with talking(calls(*runs_on("pids", number=1)), say("I do not know.")) as (talk, provider):
        await mark(talk, "run_command")
        run_id = await talk.say("Run it.")
        await talk.wait_for_frame(run_id, "approval_requested")
        await talk.served.send("POST", f"/runs/{run_id}/approvals/call_1", {"approve": True})

        async def is_begun() -> bool:
            return talk.file("pids") != ""

        await talk.wait_until(is_begun)
        await talk.served.kill()
        (talk.workspace / "end").touch()
        await talk.served.start()
        assert (await talk.wait_for_end(run_id))["status"] == "success"
        assert await count(talk, run_id, "approval_requested") == 1
        assert INTERRUPTED.search(results(provider)["call_1"])
        assert len(talk.file("pids").split()) == 1
