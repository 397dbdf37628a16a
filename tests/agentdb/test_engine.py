"""Worker processes: real ones, that hang, die and are replaced."""

import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from databases import AT, KEY, QUOTA, TASKS
from harness import eventually
from wakeful.agentdb.connection import Request
from wakeful.agentdb.engine import DatabaseEngine, WorkerBroke
from wakeful.agentdb.errors import DataInvalid, DataLimit, DataTimeout
from wakeful.core.resources import OutOfResources

BOMB = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"


@pytest.fixture
async def engine():
    engine = DatabaseEngine(1)
    yield engine
    await engine.aclose()


@pytest.fixture
async def two():
    engine = DatabaseEngine(2)
    yield engine
    await engine.aclose()


def of_process(pid, name):
    """Read what the system tells about a process; None if there is none."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None


def request(path, op, *, seconds=5.0, **args):
    return Request(op=op, path=str(path), key=KEY.hex(), seconds=seconds, quota=QUOTA, at=AT, actor="agent", args=args)


async def made(engine, path):
    await engine.ask(request(path, "create_table", **TASKS))
    await engine.ask(request(path, "insert", table="tasks", rows=[{"title": "a"}]))


async def count(engine, path):
    return (await engine.ask(request(path, "query", sql="SELECT count(*) FROM tasks"))).result["rows"][0][0]


async def test_a_statement_past_its_deadline_is_stopped_and_the_worker_goes_on(engine, tmp_path):
    await made(engine, tmp_path / "a")
    pids = engine.pids
    with pytest.raises(DataTimeout):
        await engine.ask(request(tmp_path / "a", "query", sql=BOMB, seconds=0.3))
    assert engine.pids == pids
    assert await count(engine, tmp_path / "a") == 1


async def test_a_worker_that_does_not_answer_is_killed_and_replaced(engine, tmp_path):
    await made(engine, tmp_path / "a")
    [pid] = engine.pids
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(DataTimeout):
        await engine.ask(request(tmp_path / "a", "query", sql="SELECT 1", seconds=-1.5))
    assert pid not in engine.pids
    assert of_process(pid, "status") is None
    assert await count(engine, tmp_path / "a") == 1


async def test_a_worker_that_dies_is_replaced_and_the_caller_is_told(engine, tmp_path):
    await made(engine, tmp_path / "a")
    [pid] = engine.pids
    asking = asyncio.ensure_future(engine.ask(request(tmp_path / "a", "query", sql=BOMB)))
    await asyncio.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkerBroke, match="may or may not have been done"):
        await asking
    assert await count(engine, tmp_path / "a") == 1


async def test_a_worker_that_died_while_idle_is_noticed_before_it_is_asked(engine, tmp_path):
    await made(engine, tmp_path / "a")
    [pid] = engine.pids
    os.kill(pid, signal.SIGKILL)
    while of_process(pid, "status") is not None:  # noqa: ASYNC110  (the kernel tells nobody else)
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)  # gone for the kernel; our loop hears of it a moment later
    assert await count(engine, tmp_path / "a") == 1
    assert pid not in engine.pids


async def test_memory_is_bounded(engine, tmp_path):
    await made(engine, tmp_path / "a")
    [pid] = engine.pids
    sql = (
        "WITH RECURSIVE n(x) AS (SELECT randomblob(900000) UNION ALL SELECT randomblob(900000) FROM n LIMIT 500)"
        " SELECT count(DISTINCT x) FROM n"
    )
    with pytest.raises(DataLimit, match="64 MB"):
        await engine.ask(request(tmp_path / "a", "query", sql=sql))
    assert memory_of(pid, "VmHWM") < 160 * 1024**2  # the heap's 64 MB and Python itself
    assert await count(engine, tmp_path / "a") == 1


def memory_of(pid, name):
    """Return a figure of a process's memory, in bytes."""
    line = next(line for line in of_process(pid, "status").splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


async def test_rows_are_measured_as_they_come_and_not_when_all_are_there(engine, tmp_path):
    await made(engine, tmp_path / "a")
    [pid] = engine.pids
    sql = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 5000)"
        " SELECT CAST(zeroblob(900000) AS TEXT) FROM n"
    )
    found = (await engine.ask(request(tmp_path / "a", "query", sql=sql, limit=5_000))).result
    assert (found["row_count"], found["truncated"]) == (0, True)
    assert memory_of(pid, "VmHWM") < 120 * 1024**2  # all of them would be 4.5 GB
    assert engine.pids == [pid]


async def test_memory_of_a_large_request_is_given_back(engine, tmp_path):
    await made(engine, tmp_path / "a")
    [pid] = engine.pids
    before = memory_of(pid, "VmRSS")
    text = "a,b\n" + "\n".join(f"{number},{'x' * 380}" for number in range(20_000))
    args = {"table": "large", "text": text, "format": "csv", "create": True}
    await engine.ask(replace(request(tmp_path / "a", "import", seconds=30, **args), quota=64 * 1024**2))
    await engine.ask(request(tmp_path / "a", "export", seconds=30, table="large", format="json"))
    assert memory_of(pid, "VmHWM") > before + 40 * 1024**2  # so there was memory to release
    assert await count(engine, tmp_path / "a") == 1
    assert memory_of(pid, "VmRSS") < before + 32 * 1024**2
    assert engine.pids == [pid]


async def test_a_worker_has_nothing_of_the_servers_surroundings(engine, tmp_path):
    await made(engine, tmp_path / "a")
    [pid] = engine.pids
    assert of_process(pid, "environ") in ("", "LC_CTYPE=C.UTF-8\x00")
    assert "Max core file size        0                    0" in of_process(pid, "limits")
    assert KEY.hex() not in of_process(pid, "cmdline")


async def test_a_few_workers_serve_many_files_at_once(two, tmp_path):
    paths = [tmp_path / str(number) for number in range(20)]
    await asyncio.gather(*(made(two, path) for path in paths))
    assert await asyncio.gather(*(count(two, path) for path in paths)) == [1] * 20

    async def are_two():  # the first may have answered everything before the second has started
        return len(two.pids) == 2

    await eventually(are_two)


async def test_slow_requests_of_one_agent_wait_for_each_other_and_not_for_another(two, tmp_path):
    """All of one agent's slow requests are there first, and still the other's is answered before the second of them."""
    await made(two, tmp_path / "a")
    await made(two, tmp_path / "b")
    answered = []

    async def ask(name, sql, seconds):
        with contextlib.suppress(DataTimeout):
            await two.ask(request(tmp_path / name, "query", sql=sql, seconds=seconds))
        answered.append(name)

    slow = [asyncio.ensure_future(ask("a", BOMB, 0.3)) for _ in range(4)]
    await asyncio.sleep(0)
    quick = [asyncio.ensure_future(ask("b", "SELECT 1", 5)) for _ in range(3)]
    await asyncio.gather(*slow, *quick)
    assert answered == ["b", "b", "b", "a", "a", "a", "a"]


async def test_agents_take_turns_when_workers_are_few(engine, tmp_path):
    for name in "abc":
        await made(engine, tmp_path / name)
    answered = []

    async def ask(name, number):
        await engine.ask(request(tmp_path / name, "query", sql="SELECT 1"))
        answered.append(f"{name}{number}")

    asked = [f"a{number}" for number in range(4)] + ["b0", "b1", "c0"]
    await asyncio.gather(*(ask(each[0], each[1]) for each in asked))
    assert answered == ["a0", "b0", "c0", "a1", "b1", "a2", "a3"]


async def test_agents_without_a_file_take_turns_too(two):
    """A request before the first write goes to an empty database; it still counts as its agent's turn."""
    answered = []

    async def ask(agent, sql, seconds):
        with contextlib.suppress(DataTimeout):
            await two.ask(request("", "query", sql=sql, seconds=seconds), agent)
        answered.append(agent)

    while answered[-2:] != ["quick", "slow"]:  # until the second worker has answered beside the first
        await asyncio.gather(ask("slow", BOMB, 0.3), ask("quick", "SELECT 1", 20))
    answered.clear()
    await asyncio.gather(*(ask("a", BOMB, 0.3) for _ in range(3)), ask("b", "SELECT 1", 20))
    assert sorted(answered) == ["a", "a", "a", "b"]
    assert answered.index("b") < 2


async def test_a_worker_is_ready_for_the_next_agent_before_it_asks(two, tmp_path):
    await made(two, tmp_path / "a")
    asking = asyncio.ensure_future(two.ask(request(tmp_path / "a", "query", sql=BOMB, seconds=3)))
    async with asyncio.timeout(20):
        while len(two.pids) < 2:  # noqa: ASYNC110  (nothing else tells that a process was started)
            await asyncio.sleep(0.01)
    pids = two.pids
    await two.ask(request("", "query", sql="SELECT 1"), "b")
    assert not asking.done()
    with pytest.raises(DataTimeout):
        await asking
    assert sorted(two.pids) == sorted(pids)


async def test_a_caller_who_leaves_does_not_disturb_the_next_one(engine, tmp_path):
    await made(engine, tmp_path / "a")
    rows = [{"title": "b"}] * 1000
    asking = asyncio.ensure_future(engine.ask(request(tmp_path / "a", "insert", table="tasks", rows=rows)))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await count(engine, tmp_path / "a") in (1, 1001)
    assert (await engine.ask(request(tmp_path / "a", "query", sql="SELECT 7"))).result["rows"] == [[7]]


@pytest.mark.parametrize("value", [2**70, "\ud800"])
async def test_what_cannot_be_sent_is_refused(engine, tmp_path, value):
    with pytest.raises(DataInvalid, match="cannot be stored"):
        await engine.ask(request(tmp_path / "a", "insert", table="tasks", rows=[{"title": value}]))


async def test_who_waits_for_a_worker_is_told_when_the_server_goes_down(tmp_path):
    engine = DatabaseEngine(1)
    await made(engine, tmp_path / "a")
    asked = [engine.ask(request(tmp_path / "a", "query", sql=sql)) for sql in (BOMB, "SELECT 1", "SELECT 2")]
    asking = [asyncio.ensure_future(each) for each in asked]
    await asyncio.sleep(0.05)
    asking[1].cancel()
    await engine.aclose()
    outcomes = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(each) for each in outcomes] == [WorkerBroke, asyncio.CancelledError, WorkerBroke]


async def test_a_file_is_let_go_of_even_by_a_worker_that_is_dead(engine, tmp_path):
    await made(engine, tmp_path / "a")
    [pid] = engine.pids
    os.kill(pid, signal.SIGKILL)
    await engine.close_file(str(tmp_path / "a"))
    assert await count(engine, tmp_path / "a") == 1


async def test_workers_end_with_the_server(tmp_path):
    engine = DatabaseEngine(2)
    await made(engine, tmp_path / "a")
    pids = engine.pids
    await engine.aclose()
    assert [of_process(pid, "status") for pid in pids] == [None] * len(pids)
    with pytest.raises(WorkerBroke, match="shutting down"):
        await engine.ask(request(tmp_path / "a", "query", sql="SELECT 1"))


# ── No worker to be had ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("python", "said"),
    [
        pytest.param("/nowhere/python", "No such file or directory", id="cannot be started"),
        # asyncio reports 255 if it finds the child reaped already.
        pytest.param("/bin/false", r"ended at once, with exit code (1|255)\b", id="dies at once"),
    ],
)
async def test_without_a_worker_callers_are_told_and_it_is_tried_again(tmp_path, monkeypatch, python, said):
    monkeypatch.setattr("wakeful.agentdb.engine.RETRY", 0.05)
    engine = DatabaseEngine(1)
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", python)
        with pytest.raises(OutOfResources, match=said) as refused:
            await engine.ask(request(tmp_path / "a", "query", sql="SELECT 1"))
        assert "/nowhere" not in str(refused.value)
        assert str(tmp_path) not in str(refused.value)
        assert engine.problem is not None
    async with asyncio.timeout(10):
        while engine.problem is not None:  # noqa: ASYNC110  (it tells nobody)
            await asyncio.sleep(0.02)
    await made(engine, tmp_path / "a")
    assert await count(engine, tmp_path / "a") == 1
    await engine.aclose()


async def test_a_worker_that_dies_is_no_unknown_child_process(engine, tmp_path, caplog, late_exit_status):
    """asyncio must be the one that reads the exit status, however late it does."""
    await made(engine, tmp_path / "a")
    [pid] = engine.pids
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(WorkerBroke):  # unless it noticed the death before the request
        await count(engine, tmp_path / "a")
    assert await count(engine, tmp_path / "a") == 1
    await engine.aclose()
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []
    assert late_exit_status
