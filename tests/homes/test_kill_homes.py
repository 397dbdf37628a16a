"""Three nodes with separate disks and one PostgreSQL: all of them are killed, frozen and restarted at random.

Meanwhile people write to the agents on every node, and the agents work.
"""

import asyncio
import json
import os
import random
import re
import signal
import time
from collections import Counter

import asyncpg
import pytest

from crash.careful_model import FILE, TABLE, CarefulModel, answer_to, goal_of
from crash.home_process import USER, work
from fixtures.stores import IS_LONG
from forked_process import fork
from harness import NOON
from openai_server import OpenAIServer
from wakeful.app.building import build
from wakeful.config.settings import Settings
from wakeful.core.types import User
from wakeful.database.files import By

pytestmark = pytest.mark.crash

FAULTS = int(os.environ.get("WAKEFUL_TEST_FAULTS", "500" if IS_LONG else "6"))
LEASE = 2  # seconds
COLUMNS = [{"name": "token", "type": "text"}]
WRITTEN = re.compile(r"t[\w-]+/[a-d]/\d+")
UNENDED = "SELECT COUNT(*) FROM runs WHERE status IN ('queued', 'running')"


class Nodes:
    """Three processes, each with a data directory of its own, and the server that they share."""

    def __init__(self, folder, own_server, provider, seed):
        url, self._control = own_server
        self.settings = {
            "config_dir": str(folder / "config"),
            "database_url": url,
            "lease_seconds": LEASE,
            "max_attempts": 100,
            "model": "openai-chat:test",
            "model_base_url": provider.base_url,
        }
        self.journal = folder / "journal"
        self._folder, self._chance, self._started = folder, random.Random(seed), 0
        self._read, self._lines = 0, {}
        self.processes = {}
        self.faults = Counter()

    def start(self, place):
        self._started += 1
        settings = self.settings | {"data_dir": str(self._folder / place)}
        self.processes[place] = fork(work, settings, self.journal, f"{place}{self._started}")

    def lines(self, event):
        if self.journal.exists():
            with self.journal.open("rb") as file:
                file.seek(self._read)
                whole, cut, _ = file.read().rpartition(b"\n")  # the last line may be half written
            self._read += len(whole + cut)
            for line in whole.splitlines():
                found = json.loads(line)
                self._lines.setdefault(found["event"], []).append(found)
        return self._lines.get(event, [])

    async def wait_for(self, event, count, seconds=120):
        give_up_at = time.monotonic() + seconds
        while len(self.lines(event)) < count:
            assert time.monotonic() < give_up_at, (event, count, len(self.lines(event)), self.log()[-3000:])
            assert all(each.is_alive() for each in self.processes.values()), f"a node ended: {self.log()[-3000:]}"
            await asyncio.sleep(0.02)

    async def fault(self):
        """Kill a node, freeze one, or restart PostgreSQL, while the others write."""
        place = self._chance.choice(sorted(self.processes))
        process, kept = self.processes[place], len(self.lines("kept"))
        [kind] = self._chance.choices(("kill", "freeze", "long freeze", "restart"), (4, 2, 2, 2))
        self.faults[kind] += 1
        if kind == "kill":
            process.kill()
            process.join()
            self.start(place)
        elif kind == "restart":
            # As after a power failure: nobody is asked, nothing is flushed, the log is replayed.
            await asyncio.to_thread(self._control, "-m", "immediate", "restart")
        else:
            os.kill(process.pid, signal.SIGSTOP)
            if kind == "long freeze":  # others take over its runs
                await asyncio.sleep(LEASE * 1.5)
            await self.wait_for("kept", kept + 3)
            os.kill(process.pid, signal.SIGCONT)
        await self.wait_for("kept", kept + 5)

    def stop(self):
        for process in self.processes.values():
            process.kill()
            process.join()

    def log(self):
        file = self.journal.with_suffix(".log")
        return file.read_text() if file.exists() else ""


async def prepare(settings):
    node = build(settings)
    async with node.opened():
        user = await node.agents.add_user(User(id=USER, name="Ada", role="owner", created_at=NOON))
        for name in ("One", "Two"):
            agent = await node.agents.make(user, name, {"toolsets": ("database", "files")})
            await node.services.data.run(By(agent=agent), "create_table", name=TABLE, purpose="x", columns=COLUMNS)


async def wait_until_done(postgres, seconds=300):
    """Wait until every run has ended."""
    async with asyncio.timeout(seconds):
        while await postgres.fetchval(UNENDED):  # noqa: ASYNC110  (of other processes)
            await asyncio.sleep(0.1)


class Found:
    """Everything that is there after the last fault."""

    def __init__(self):
        self.rows, self.files, self.lines = {}, {}, Counter()
        self.answers, self.successes = Counter(), Counter()

    async def read(self, node):
        data = node.services.data
        for agent in await node.agents.of_user(USER):
            exported = await data.run_unparsed(By(agent=agent), "export", format="jsonl", table=TABLE)
            self.rows[agent.id] = Counter(json.loads(line)["token"] for line in exported.splitlines())
            assert (await data.run(By(agent=agent), "verify"))["intact"]
            await data.files.bring_files(agent.id)
            folder = node.services.workspace_of(agent.id)
            self.files[agent.id] = {path.name: path.read_text() for path in folder.iterdir()}
            self.lines.update(WRITTEN.findall(self.files[agent.id].pop(FILE, "")))

    async def read_messages(self, postgres):
        for role, content, data in await postgres.fetch("SELECT role, content, data FROM messages"):
            if role == "assistant" and content.startswith("Done "):
                self.answers[content] += 1
            if role == "tool" and (call := json.loads(data))["success"]:
                self.successes.update({goal_of(each) for each in WRITTEN.findall(json.dumps(call["args"]))})


@pytest.mark.timeout(4 * 3600)
async def test_everything_acknowledged_is_there_once_whatever_happens(tmp_path, own_server, request):
    model = CarefulModel()
    async with OpenAIServer(always=model) as provider:
        nodes = Nodes(tmp_path, own_server, provider, seed=request.node.name)
        settings = Settings.model_validate(nodes.settings | {"data_dir": tmp_path / "scene"})
        await prepare(settings)
        began = time.monotonic()
        try:
            for place in ("a", "b", "c"):
                nodes.start(place)
            await nodes.wait_for("up", 3)
            for number in range(FAULTS):
                await nodes.fault()
                if number % 25 == 24:
                    print(f"{number + 1} faults in {time.monotonic() - began:.0f} s", flush=True)
        finally:
            nodes.stop()
        seconds = time.monotonic() - began
        node, found = build(settings), Found()
        postgres = await asyncpg.connect(own_server[0])
        async with node.running():
            await wait_until_done(postgres)
            await found.read(node)
        await found.read_messages(postgres)
        await postgres.close()
    print(ledger(nodes, model, found, seconds))
    check(nodes, model, found)


def check(nodes, model, found):
    assert not model.faults, "a run saw less than its transcript tells"
    kept = nodes.lines("kept")
    for agent_id, rows in found.rows.items():
        own = [each for each in kept if each["agent"] == agent_id]
        assert {each["token"] for each in own if each["kind"] == "row"} <= rows.keys()
        assert {each["token"] for each in own if each["kind"] == "file"} <= found.files[agent_id].keys()
        assert all(name == content for name, content in found.files[agent_id].items())
    entries = sum(found.rows.values(), Counter()) + found.lines
    assert set(entries.values()) == {1}, "an entry is there twice"
    done = Counter(goal_of(entry) for entry in entries if "/" in entry)
    assert set(done.values()) == {1}, [goal for goal, times in done.items() if times > 1]
    assert set(found.successes.values()) == {1}, "an effect is recorded twice as a success"
    assert set().union(*model.told.values()) <= entries.keys(), "an entry that a transcript tells is lost"
    for each in kept:
        if each["kind"] == "message":
            assert found.answers[answer_to(each["token"])] == 1, each
    assert len(kept) > 5 * FAULTS
    assert sum(nodes.faults.values()) == FAULTS
    assert "Traceback" not in nodes.log(), nodes.log()


def ledger(nodes, model, found, seconds):
    """Write the figures down."""
    return "\n".join(
        (
            f"{sum(nodes.faults.values())} faults in {seconds:.0f} s: {dict(nodes.faults)}",
            f"starts: {len(nodes.lines('up'))}; not started: {len(nodes.lines('not started'))}",
            f"acknowledged: {dict(Counter(each['kind'] for each in nodes.lines('kept')))}; "
            f"refused: {dict(Counter(each['code'] for each in nodes.lines('refused')))}",
            f"model: {len(model.told)} tasks, {model.requests} requests; writes: {dict(model.calls)}",
            f"found: {sum(rows.total() for rows in found.rows.values())} rows, {found.lines.total()} lines, "
            f"{sum(map(len, found.files.values()))} files, {found.answers.total()} answers",
            f"runs that saw less than their transcript: {len(model.faults)}",
        )
    )
