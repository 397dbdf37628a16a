"""A server without file descriptors, or without a database worker: wakes wait and run later, and nothing is lost."""

import asyncio
import json
import os
import resource
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from crash.server_process import Conversation, Start, results
from openai_server import Answer, Exchange, call, calls, say

pytestmark = pytest.mark.crash

TABLE = {"name": "tasks", "purpose": "What is to be done.", "columns": [{"name": "title", "type": "text"}]}
NOW = {"call_type": "immediate", "additional_context_message": "Look at the tasks."}
TOO_FEW = "The server has no file descriptors left"


async def make_table(talk: Conversation) -> str:
    """Let the agent have a database, and return where it is reached."""
    db = f"/agents/{talk.agent_id}/db"
    await talk.served.send("POST", f"{db}/tables", TABLE)
    await talk.served.send("POST", f"{db}/tables/tasks/rows", {"rows": [{"title": "One"}]})
    return db


async def book_now(talk: Conversation) -> str:
    """Book a recall that is due at once, and return its wake."""
    session = (await talk.served.send("POST", "/sessions", {"title": "Woken"}))["id"]
    return (await talk.served.send("POST", f"/sessions/{session}/recall", NOW))["recall"]["id"]


async def why(talk: Conversation, wake_id: str) -> list[str]:
    return [each["code"] for each in (await talk.served.get(f"/wakes/{wake_id}/why"))["decisions"]]


async def ready(talk: Conversation) -> tuple[int, Any]:
    answer = await talk.served.client.get("/readyz")
    return answer.status_code, answer.json()["problems"]


async def take_descriptors(server: int) -> None:
    """Let the server open nothing more, and kill its database workers. What is open goes on."""
    # Not lower: poll() refuses more handles than the limit. 0, 1 and 2 are always open.
    resource.prlimit(server, resource.RLIMIT_NOFILE, (3, limits(server)[1]))
    while kill_workers(server):  # noqa: ASYNC110  (nothing else tells that the server has noticed)
        await asyncio.sleep(0.01)


async def give_descriptors_back(server: int) -> None:
    resource.prlimit(server, resource.RLIMIT_NOFILE, (limits(server)[1],) * 2)


def limits(server: int) -> tuple[int, int]:
    return resource.prlimit(server, resource.RLIMIT_NOFILE)


def kill_workers(server: int) -> bool:
    """Kill the database workers of a server, and return whether it had any."""
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    workers = [child for child in children if b"agentdb.worker" in Path(f"/proc/{child}/cmdline").read_bytes()]
    for worker in workers:
        os.kill(int(worker), signal.SIGKILL)
    return bool(workers)


async def test_without_descriptors_wakes_wait_bookings_go_on_and_nobody_reads_a_path(
    talking: Start, tmp_path: Path
) -> None:
    async with talking(always=say("Done.")) as (talk, provider):
        db = await make_table(talk)
        await take_descriptors(talk.served.pid)

        wake_id = await book_now(talk)
        later = [await book_now(talk) for _ in range(3)]

        async def is_put_off() -> bool:
            return "out_of_resources" in await why(talk, wake_id)

        await talk.wait_until(is_put_off)
        status, problems = await ready(talk)
        assert status == 503
        assert any("file descriptors" in problem for problem in problems)
        said = [
            await talk.served.client.request(method, path, json=body)
            for method, path, body in (
                ("GET", f"{db}/tables/tasks/rows", None),
                ("POST", f"{db}/tables/tasks/rows", {"rows": [{"title": "Two"}]}),
                ("POST", f"{db}/rotate-key", None),
                ("GET", f"/agents/{talk.agent_id}/instructions", None),
            )
        ]
        assert [answer.status_code for answer in said[:3]] == [503] * 3, [answer.text for answer in said]
        assert {answer.json()["error"]["code"] for answer in said[:3]} == {"out_of_resources"}
        assert not any(str(tmp_path) in answer.text for answer in said)
        assert not provider.requests

        await give_descriptors_back(talk.served.pid)
        for each in (wake_id, *later):
            runs = [run for run in await talk.runs() if run["wake_id"] == each]
            assert len(runs) == 1
            run = await talk.wait_for_end(runs[0]["id"])
            assert (run["status"], run["attempt"], run["error"]) == ("success", 1, None)
        assert len(provider.requests) == 4
        assert (await why(talk, wake_id)).count("out_of_resources") == 1
        assert await ready(talk) == (200, [])
        assert len((await talk.served.get(f"{db}/tables/tasks/rows"))["rows"]) == 1
        assert str(tmp_path) not in json.dumps(await talk.runs())


# On PostgreSQL a run is put off instead: without descriptors, what its tools wrote cannot be saved in the agent's home.
@pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True)
async def test_a_tool_without_descriptors_says_so_and_the_run_goes_on(talking: Start, tmp_path: Path) -> None:
    asked = calls(
        *call("read_file", '{"path": "notes"}', index=0, id="call_1"),
        *call("run_command", '{"command": "true"}', index=1, id="call_2"),
        *call("list_files", "{}", index=2, id="call_3"),
        *call("write_file", '{"path": "notes", "content": "x"}', index=3, id="call_4"),
        *call("db_query", '{"sql": "SELECT 1"}', index=4, id="call_5"),
    )

    servers: list[int] = []

    def first(act: Callable[[int], Awaitable[None]], answer: Answer) -> Answer:
        async def do(exchange: Exchange) -> None:
            await act(*servers)
            await answer(exchange)

        return do

    script = (say("Ready."), first(take_descriptors, asked), first(give_descriptors_back, say("I see.")))
    async with talking(*script) as (talk, provider):
        servers.append(talk.served.pid)
        await make_table(talk)
        talk.workspace.mkdir(parents=True, exist_ok=True)
        (talk.workspace / "notes").write_text("Buy milk.")
        assert (await talk.wait_for_end(await talk.say("Hello.")))["status"] == "success"
        run = await talk.wait_for_end(await talk.say("Read."))
        assert (run["status"], run["attempt"]) == ("success", 1)
        heard = results(provider)
        assert list(heard) == [f"call_{number}" for number in range(1, 6)]
        for result in heard.values():
            assert "file descriptors" in result or "Too many open files" in result
            assert str(tmp_path) not in result
        assert (talk.workspace / "notes").read_text() == "Buy milk."
        assert "Traceback" not in talk.served.log()
