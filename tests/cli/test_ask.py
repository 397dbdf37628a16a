"""`wakeful ask`: one message, its answer, and an exit code by the run's end."""

import asyncio
import json
import signal

import pytest

from live_server import Tap
from openai_server import call, calls, refuse, say
from terminal import WAKEFUL, environment, pipe, typed


@pytest.fixture
async def server(sqlite_server):
    async with sqlite_server.as_new_owner() as server:
        yield server


def use(tool, arguments):
    return calls(*call(tool, json.dumps(arguments)))


async def test_the_answer_alone_is_on_stdout(server, session, tmp_path):
    server.provider.then(use("list_files", {}), say("All ", "done."))
    code, out, errors = await pipe(server, tmp_path, "ask", "Do it", "--session", session[:30])
    assert (code, out) == (0, "All done.\n")
    assert "✓ list_files" in errors


async def test_json_has_the_answer_and_the_run(server, session, tmp_path):
    server.provider.then(say("Yes."))
    code, out, _ = await pipe(server, tmp_path, "ask", "-", "--session", session, "--json", given="Is it?\nReally?")
    found = json.loads(out)
    assert code == 0
    assert (found["answer"], found["session_id"], found["run"]["status"]) == ("Yes.", session, "success")
    assert server.provider.last["messages"][-1]["content"].endswith("Is it?\nReally?")


async def test_a_run_that_fails_exits_with_1(server, session, tmp_path):
    server.provider.then(refuse(400, {"error": {"message": "bad model"}}))
    code, out, errors = await pipe(server, tmp_path, "ask", "Hi", "--session", session)
    assert (code, out) == (1, "")
    assert "bad model" in errors


async def test_a_run_that_is_stopped_exits_with_4(server, session, tmp_path):
    server.provider.then(tap := Tap())
    asking = asyncio.create_task(pipe(server, tmp_path, "ask", "Hi", "--session", session))
    await tap.is_asked.wait()
    await server.stop(session)
    assert (await asking)[0] == 4


async def test_after_the_timeout_the_run_is_stopped(server, session, tmp_path):
    server.provider.then(Tap())
    code, out, errors = await pipe(server, tmp_path, "ask", "Hi", "--session", session, "--timeout", "1s", "--json")
    assert code == 5
    assert json.loads(out)["run"]["status"] == "stopped"
    assert "No answer within 1 s." in errors


async def test_without_a_terminal_a_call_that_needs_approval_is_left_waiting(server, session, tmp_path):
    await server.change_agent(ask_before=["write_file"])
    server.provider.then(use("write_file", {"path": "a.txt", "content": "x"}))
    code, _, errors = await pipe(server, tmp_path, "ask", "Hi", "--session", session)
    assert code == 7
    assert f"wakeful chat --session {session}" in errors
    [run] = await server.runs_of(session)
    assert run["status"] == "running"
    await server.stop(session)


async def test_on_a_terminal_it_asks_for_approval(server, session, tmp_path):
    await server.change_agent(ask_before=["write_file"])
    server.provider.then(use("write_file", {"path": "a.txt", "content": "x"}), say("Written."))
    async with typed("ask", "Hi", "--session", session, environment=environment(server, tmp_path)) as asking:
        await asking.until("Approve?")
        asking.enter("y")
        await asking.until("Written.")
        assert await asking.code() == 0


async def test_ctrl_c_stops_the_run(server, session, tmp_path):
    server.provider.then(tap := Tap())
    process = await asyncio.create_subprocess_exec(
        WAKEFUL, "ask", "Hi", "--session", session, env=environment(server, tmp_path), stderr=asyncio.subprocess.PIPE
    )
    await tap.is_asked.wait()
    process.send_signal(signal.SIGINT)
    _, errors = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 4
    assert b"Stopping." in errors


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("ask", "Hi", "--agent", "Nobody"), 1, "There is no agent 'Nobody'"),
        (("ask", " "), 2, "The message is empty"),
        (("ask", "Hi", "--timeout", "soon"), 2, "--timeout must be a duration such as 90s"),
        (("ask", "Hi", "--session", "ffff"), 1, "There is no session 'ffff'"),
        (("chat", "--session", "x", "--continue"), 2, "not both"),
        (("chat", "Nobody"), 1, "There is no agent 'Nobody'"),
    ],
)
async def test_a_refusal_names_what_is_wrong(server, tmp_path, arguments, code, words):
    found, _, errors = await pipe(server, tmp_path, *arguments)
    assert (found, words in errors) == (code, True), errors
