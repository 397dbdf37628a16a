"""Servers whose connections to PostgreSQL are terminated again and again: each wake ends well, once, at first try."""

import asyncio
import json
import re
import time
from collections import Counter
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from crash.server_process import TOKEN, ServerProcess
from fixtures.stores import IS_LONG
from openai_server import Exchange, OpenAIServer, call, calls, say
from wakeful.app.building import build
from wakeful.config.settings import Settings

pytestmark = pytest.mark.crash

WAKES = 500 if IS_LONG else 30
NODES = 2 if IS_LONG else 1
AT_ONCE = 8
EVERY = 0.04  # seconds from one termination to the next

# Whatever the node has open there: the pools, the heartbeat's, the one that listens.
KILL_ONE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> 'judge'
ORDER BY random() LIMIT 1
"""
TOOL_RESULTS = "SELECT content, data FROM messages WHERE role = 'tool'"
UNFINISHED = "SELECT count(*) FROM wakes WHERE scheduled_by = 'user' AND status IN ('pending', 'queued', 'running')"


async def work(exchange: Exchange) -> None:
    """Answer as a model that reads, books and writes once for each wake, then says so."""
    messages = exchange.request.body["messages"]
    asked = max(place for place, message in enumerate(messages) if message["role"] == "user")
    number = re.search(r"wake (\d+)", str(messages[asked]["content"]))[1]
    if any(message["role"] == "tool" for message in messages[asked:]):
        await say(f"Wake {number} is done.")(exchange)
        return
    wanted = (
        ("scheduler", {"op": "list"}),
        ("scheduler", {"op": "create", "kind": "message", "message": f"later {number}", "delay_ms": 86_000_000}),
        ("write_file", {"path": f"{number}.txt", "content": "once\n", "append": True}),
        ("read_file", {"path": f"{number}.txt"}),
    )
    chunks = [
        piece
        for place, (tool, arguments) in enumerate(wanted)
        for piece in call(tool, json.dumps(arguments), index=place, id=f"call_{number}_{place}")
    ]
    await calls(*chunks)(exchange)


@asynccontextmanager
async def cutting(url: str):
    """Terminate one connection after the other; yields the number of those terminated so far."""
    connection = await asyncpg.connect(url, server_settings={"application_name": "judge"})
    killed: list[float] = []
    is_over = asyncio.Event()

    async def cut() -> None:
        while not is_over.is_set():
            if await connection.fetchval(KILL_ONE):
                killed.append(time.monotonic())
            await asyncio.sleep(EVERY)

    cutter = asyncio.create_task(cut())
    try:
        yield killed
    finally:
        is_over.set()
        await cutter
        await connection.close()


@pytest.fixture
def environment(postgres_url, tmp_path):
    return {
        "WAKEFUL_DATA_DIR": str(tmp_path / "data"),
        "WAKEFUL_CONFIG_DIR": str(tmp_path / "config"),
        "WAKEFUL_DATABASE_URL": postgres_url,
        "WAKEFUL_TOKEN": TOKEN,
        "WAKEFUL_MODEL": "openai-chat:test",
        "WAKEFUL_MAX_HEADLESS_RUNS": str(AT_ONCE),
    }


refused: list[str] = []


async def send(served: ServerProcess, method: str, path: str, body: dict[str, Any]) -> Any:
    """Ask, and ask again as often as it is refused with the assurance that nothing was changed."""
    while True:
        answer = await served.client.request(method, path, json=body)
        if answer.status_code != 503 or "Nothing was changed" not in answer.text:
            assert answer.is_success, answer.text
            return answer.json()
        refused.append(answer.text)


async def book(served: ServerProcess) -> list[str]:
    """Book wakes that each begin a session of their own, in a moment and spread over a while."""
    [agent] = (await served.get("/agents"))["agents"]
    change = {
        "budgets": {"day_tokens": 1_000_000_000},  # so that what other runs spent is read before each model call
        "self_scheduling": True,
        "toolsets": ["scheduler", "files"],
    }
    await send(served, "PATCH", f"/agents/{agent['id']}", change)
    booked: list[str] = []
    for first in range(0, WAKES, 25):
        session = (await send(served, "POST", "/sessions", {"title": "Bookings"}))["id"]

        async def book_one(number: int, session: str = session) -> str:
            wanted = {"kind": "session", "message": f"This is wake {number}.", "session_config": {}, "delay_ms": 1000}
            return (await send(served, "POST", f"/sessions/{session}/schedules", wanted))["schedule"]["id"]

        booked += await asyncio.gather(*[book_one(number) for number in range(first, min(first + 25, WAKES))])
    return booked


async def runs_of(served: ServerProcess) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    page: str | None = ""
    while page is not None:
        told = await served.get(f"/runs?most=200{f'&page={page}' if page else ''}")
        found += told["runs"]
        page = told.get("next")
    return found


async def read_files(postgres_url, tmp_path):
    """Return the content of each wake's file, as a node of our own brings it."""
    folders = {"data_dir": tmp_path / "judge", "config_dir": tmp_path / "config", "database_url": postgres_url}
    node = build(Settings.model_validate(folders))
    async with node.opened():
        [agent_id] = await node.store.read(agents_with_home)
        await node.services.data.files.bring_files(agent_id)
        files = [node.services.workspace_of(agent_id) / f"{number}.txt" for number in range(WAKES)]
        return [file.read_text() if file.exists() else "" for file in files]


async def agents_with_home(tx):
    [user] = await tx.accounts.users()
    agents = await tx.agents.of_user(user.id)
    return [agent.id for agent in agents if await tx.homes.of_agent(agent.id) is not None]


async def test_a_terminated_connection_costs_no_wake(environment, postgres_url, tmp_path):
    async with OpenAIServer(always=work) as provider:
        served = ServerProcess(tmp_path, environment | {"WAKEFUL_MODEL_BASE_URL": provider.base_url})
        try:
            for _ in range(NODES):
                await served.start()
            judge = await asyncpg.connect(postgres_url, server_settings={"application_name": "judge"})
            began = time.monotonic()
            async with cutting(postgres_url) as killed, asyncio.timeout(1_200 if IS_LONG else 60):
                schedules = await book(served)
                while await judge.fetchval(UNFINISHED):  # noqa: ASYNC110  (it moves by itself)
                    await asyncio.sleep(0.1)
            seconds = time.monotonic() - began
            later = await judge.fetch("SELECT instructions FROM wakes WHERE scheduled_by = 'agent'")
            results = await judge.fetch(TOOL_RESULTS)
            await judge.close()
            runs = await runs_of(served)
            log = served.log()
            written = await read_files(postgres_url, tmp_path)
        finally:
            await served.clean_up()
    ended = Counter((run["status"], run["reason"]) for run in runs)
    failed = Counter(row["content"] for row in results if not json.loads(row["data"])["success"])
    ledger = {
        "nodes": NODES,
        "wakes": len(schedules),
        "terminated connections": len(killed),
        "requests refused with 503": len(refused),
        "seconds": round(seconds, 1),
        "runs by end": {f"{status}/{reason}": count for (status, reason), count in ended.items()},
        "second attempts": sum(run["attempt"] > 1 for run in runs),
        "failed tool calls": failed,
        "bookings of runs": len(later),
        "booked twice": len(later) - len({row["instructions"] for row in later}),
        "files not written": written.count(""),
        "written twice": sum(text.count("once") > 1 for text in written),
        "tracebacks": log.count("Traceback"),
    }
    print(json.dumps(ledger, indent=2))
    assert len(killed) >= WAKES / 2, "hardly anything was cut"
    assert ended == {("success", None): WAKES}, ledger
    assert {run["attempt"] for run in runs} == {1}, ledger
    assert not failed, ledger
    assert sorted(row["instructions"] for row in later) == sorted(f"later {number}" for number in range(WAKES)), ledger
    assert written == ["once\n"] * WAKES
    assert not ledger["tracebacks"], log
