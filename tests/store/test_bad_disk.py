"""I/O errors of SQLite's files: reported as text, survived, and nothing lost or doubled.

The errors are real to SQLite: a library answers EIO where the system would (`bad_disk.c`).
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from crash.bad_disk import BadDisk
from crash.crash_harness import IS_LONG
from crash.server_process import FINAL, Conversation, Start, results
from databases import AT, KEY, QUOTA, TASKS, Database
from forked_process import Forked
from openai_server import Exchange, call, calls, say
from wakeful.agentdb.connection import Request
from wakeful.agentdb.engine import DatabaseEngine
from wakeful.agentdb.errors import DatabaseUnavailable

pytestmark = pytest.mark.crash

PHASES = 40 if IS_LONG else 3
NOW = {"call_type": "immediate", "additional_context_message": "Say hello."}


@pytest.fixture
def backend_settings(tmp_path: Path) -> dict[str, Any]:
    """The embedded store alone."""
    return {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"}


@pytest.fixture
def disk(tmp_path: Path) -> BadDisk:
    return BadDisk(tmp_path, tmp_path / "data")


# ── Agents' databases ───────────────────────────────────────────────────────────────────────────────────────────────


def request(path: Path, op: str, **args: Any) -> Request:
    return Request(op=op, path=str(path), key=KEY.hex(), seconds=5, quota=QUOTA, at=AT, actor="agent", args=args)


def add(path: Path, number: int) -> Request:
    return request(path, "insert", table="tasks", rows=[{"title": f"Task {number}"}])


@pytest.mark.parametrize("what", ["w", "s", "ws", "r", "rws"])
async def test_an_agents_database_says_that_the_disk_failed_and_goes_on(disk, tmp_path, monkeypatch, what):
    monkeypatch.setattr(sys, "executable", str(disk.python))
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "db.sqlite"
    engine = DatabaseEngine(1)
    await engine.ask(request(path, "create_table", **TASKS))
    acknowledged, doubtful = [0], dict[int, str]()
    await engine.ask(add(path, 0))
    for number in range(1, 6):
        disk.fail(what)
        try:
            await engine.ask(add(path, number))
            acknowledged.append(number)
        except DatabaseUnavailable as error:
            doubtful[number] = error.message
        disk.work()
        await engine.ask(add(path, 100 + number))
        acknowledged.append(100 + number)
    assert doubtful or what == "r", "nothing failed"
    assert all("disk" in message and str(tmp_path) not in message for message in doubtful.values())
    found = (await engine.ask(request(path, "query", sql="SELECT title FROM tasks ORDER BY id"))).result["rows"]
    titles = Counter(title for (title,) in found)
    assert set(titles.values()) == {1}
    assert {f"Task {number}" for number in acknowledged} <= titles.keys()
    assert titles.keys() <= {f"Task {number}" for number in (*acknowledged, *doubtful)}
    assert (await engine.ask(request(path, "verify"))).result["intact"]
    await engine.aclose()
    again = Database(path)
    assert again.query("SELECT count(*) FROM tasks") == [[len(found)]]
    again.close()


async def test_a_failing_disk_at_the_stop_loses_nothing(disk, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(disk.python))
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "db.sqlite"
    engine = DatabaseEngine(1)
    await engine.ask(request(path, "create_table", **TASKS))
    await engine.ask(add(path, 1))
    disk.fail("rws")
    await engine.aclose()
    disk.work()
    again = Database(path)
    assert again.query("SELECT title FROM tasks") == [["Task 1"]]
    again.close()


# ── A whole server ──────────────────────────────────────────────────────────────────────────────────────────────────


async def book_now(talk: Conversation, name: str) -> httpx.Response:
    """Ask for a session and in it a recall that is due at once."""
    opened = await talk.served.client.post("/sessions", json={"title": name})
    if not opened.is_success:
        return opened
    return await talk.served.client.post(f"/sessions/{opened.json()['id']}/recall", json=NOW)


async def test_a_tool_hears_of_the_failing_disk_and_the_run_goes_on(
    talking: Start, disk: BadDisk, tmp_path: Path
) -> None:
    wrote = calls(*call("db_insert", json.dumps({"table": "tasks", "rows": [{"title": "Two"}]})))

    async def fail_first(exchange: Exchange) -> None:
        disk.fail("ws")
        await wrote(exchange)

    async def work_first(exchange: Exchange) -> None:
        disk.work()
        await say("I see.")(exchange)

    launch = partial(Forked, prepare=disk.use_in_workers)  # the store's disk works
    async with talking(fail_first, work_first, launch=launch) as (talk, provider):
        db = f"/agents/{talk.agent_id}/db"
        table = {"name": "tasks", "purpose": "What is to be done.", "columns": [{"name": "title", "type": "text"}]}
        await talk.served.send("POST", f"{db}/tables", table)
        await talk.served.send("POST", f"{db}/tables/tasks/rows", {"rows": [{"title": "One"}]})
        run = await talk.wait_for_end(await talk.say("Note two."))
        assert (run["status"], run["attempt"]) == ("success", 1)
        [said] = results(provider).values()
        assert json.loads(said)["kind"] == "unavailable"
        assert "disk" in said
        assert str(tmp_path) not in said
        # The answer said that this may or may not have been done; it was done at most once.
        assert len((await talk.served.get(f"{db}/tables/tasks/rows"))["rows"]) in (1, 2)


async def test_the_store_comes_back_by_itself_when_its_disk_does(talking: Start, disk: BadDisk, tmp_path: Path) -> None:
    """Wakes are booked while the disk fails now and then: those that were acknowledged run, each once."""
    chance = random.Random(16)
    ledger: Counter[str] = Counter()
    async with talking(always=say("Hello."), launch=disk.launch) as (talk, _):
        acknowledged: list[str] = []
        for phase in range(PHASES):
            failing = chance.choice(["w", "s", "ws", "rws", "r"] if IS_LONG else ["ws"])
            disk.fail(failing)
            end = time.monotonic() + (chance.uniform(0.2, 4.0) if IS_LONG else 0.4)
            while time.monotonic() < end:
                answer = await book_now(talk, f"In trouble {phase}")
                if answer.is_success:  # it was read from memory, or came before the error
                    acknowledged.append(answer.json()["recall"]["id"])
                    continue
                ledger["refused"] += 1
                assert answer.status_code == 503, answer.text
                assert answer.json()["error"]["code"] in ("store_unavailable", "store_unreadable")
                assert str(tmp_path) not in answer.text
                await asyncio.sleep(0.05)
            if "w" in failing:
                await talk.wait_until(lambda: is_unready(talk))
            disk.work()
            for _ in range(3):
                acknowledged.append(await booked(talk, f"In peace {phase}"))

        async def is_over() -> bool:
            return all(run["status"] in FINAL for run in await all_runs(talk))

        for wake_id in acknowledged:
            await talk.wait_until(lambda wake_id=wake_id: has_run(talk, wake_id))
        await talk.wait_until(is_over)
        runs = Counter(run["wake_id"] for run in await all_runs(talk))
        ends = Counter(f"{run['status']}/{run['reason']}" for run in await all_runs(talk))
        ledger["booked"] = len(acknowledged)
        ledger["lost"] = sum(runs[wake_id] == 0 for wake_id in acknowledged)
        ledger["doubled"] = sum(count > 1 for count in runs.values())
        print(f"\nbad disk: {PHASES} phases, {dict(ledger)}, ends {dict(ends)}")
        assert ledger["refused"] > 0
        assert (ledger["lost"], ledger["doubled"]) == (0, 0)
        assert set(ends) == {"success/None"}
        await talk.wait_until(lambda: is_ready(talk))
        # One answer is in the transcript once.
        assert {run["attempt"] for run in await all_runs(talk)} == {1}


async def booked(talk: Conversation, name: str) -> str:
    """Book, again as long as the store is not back yet."""
    async with asyncio.timeout(30):
        while True:
            answer = await book_now(talk, name)
            if answer.is_success:
                return answer.json()["recall"]["id"]
            await asyncio.sleep(0.05)


async def has_run(talk: Conversation, wake_id: str) -> bool:
    return any(run["status"] in FINAL for run in (await talk.served.get(f"/runs?wake_id={wake_id}"))["runs"])


async def all_runs(talk: Conversation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    page: str | None = ""
    while page is not None:
        listed = await talk.served.get(f"/runs?limit=200{page and f'&page={page}'}")
        found += listed["runs"]
        page = listed.get("next")
    return found


async def is_ready(talk: Conversation) -> bool:
    # A small write shows that the disk works again; without one the last failure counts for half a minute.
    await talk.served.client.post("/sessions", json={"title": "Works"})
    return (await talk.served.client.get("/readyz")).status_code == 200


async def is_unready(talk: Conversation) -> bool:
    return (await talk.served.client.get("/readyz")).status_code == 503
