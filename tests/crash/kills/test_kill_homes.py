"""Three nodes with separate disks write to the same agents while they are killed and frozen at random."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from conftest import IS_LONG
from harness import NOON
from wakeful.app.building import build
from wakeful.config import Settings
from wakeful.domain.types import User
from wakeful.service.agents.database import By

FAULTS = 500 if IS_LONG else 6
SCRIPT = Path(__file__).parents[1] / "home_process.py"
COLUMNS = [{"name": "token", "type": "text"}]


class Nodes:
    """Three processes, each with a data directory of its own."""

    def __init__(self, folder, url, seed):
        self.settings = {"config_dir": str(folder / "config"), "database_url": url, "lease_seconds": 2}
        self.journal = folder / "journal"
        self._folder, self._chance, self._started = folder, random.Random(seed), 0
        self.processes = {}

    def start(self, place):
        self._started += 1
        settings = self.settings | {"data_dir": str(self._folder / place)}
        given = {"settings": settings, "journal": str(self.journal), "name": f"{place}{self._started}"}
        environment = os.environ | {"PYTHONPATH": str(SCRIPT.parents[1])}
        self.processes[place] = subprocess.Popen([sys.executable, SCRIPT, json.dumps(given)], env=environment)

    def lines(self, event):
        text = self.journal.read_text() if self.journal.exists() else ""
        found = [json.loads(line) for line in text.splitlines()]
        return [each for each in found if each["event"] == event]

    def wait_for(self, event, count, seconds=60):
        give_up_at = time.monotonic() + seconds
        while len(self.lines(event)) < count:
            assert time.monotonic() < give_up_at, (event, count, len(self.lines(event)))
            assert all(process.poll() is None for process in self.processes.values()), "a node ended by itself"
            time.sleep(0.05)

    def fault(self):
        """Kill a node and start it again, or freeze it for a moment, while the others write."""
        place = self._chance.choice(sorted(self.processes))
        process, kept = self.processes[place], len(self.lines("kept"))
        if self._chance.random() < 0.5:
            process.kill()
            process.wait()
            self.start(place)
        else:
            os.kill(process.pid, signal.SIGSTOP)
            self.wait_for("kept", kept + 3)
            os.kill(process.pid, signal.SIGCONT)
        self.wait_for("kept", kept + 5)

    def stop(self):
        for process in self.processes.values():
            process.kill()
            process.wait()


@pytest.fixture
def nodes(tmp_path, swept_postgres_url, request):
    nodes = Nodes(tmp_path, swept_postgres_url, seed=request.node.name)
    yield nodes
    nodes.stop()


async def prepare(settings):
    node = build(settings)
    async with node.opened():
        user = await node.agents.add_user(User(id="ada", name="Ada", role="owner", created_at=NOON))
        for name in ("One", "Two"):
            agent = await node.agents.make(user, name, {"toolsets": ("database",)})
            await node.services.data.run(By(agent=agent), "create_table", name="tokens", purpose="x", columns=COLUMNS)


async def found_in(settings):
    """Return the rows and files of each agent, and whether its changelog is intact."""
    node, found = build(settings), {}
    async with node.opened():
        for agent in await node.agents.of_user("ada"):
            data = node.services.data
            exported = await data.run_unparsed(By(agent=agent), "export", format="jsonl", table="tokens")
            await data.files.bring_files(agent.id)
            folder = node.services.workspace_of(agent.id)
            files = {path.name: path.read_text() for path in folder.iterdir()} if folder.exists() else {}
            rows = [json.loads(line)["token"] for line in exported.splitlines()]
            found[agent.id] = rows, files, (await data.run(By(agent=agent), "verify"))["intact"]
    return found


def test_everything_acknowledged_is_there_once_whatever_happens_to_the_nodes(nodes, tmp_path):
    settings = Settings.model_validate(nodes.settings | {"data_dir": tmp_path / "scene"})
    asyncio.run(prepare(settings))
    for place in ("a", "b", "c"):
        nodes.start(place)
    nodes.wait_for("up", 3)
    for _ in range(FAULTS):
        nodes.fault()
    nodes.stop()
    kept = nodes.lines("kept")
    found = asyncio.run(found_in(settings))
    for agent, (rows, files, is_intact) in found.items():
        assert is_intact
        assert max(Counter(rows).values(), default=1) == 1
        own = [each for each in kept if each["agent"] == agent]
        assert {each["token"] for each in own if each["kind"] == "row"} <= set(rows)
        assert {each["token"] for each in own if each["kind"] == "file"} <= set(files)
        assert all(name == content for name, content in files.items())
    assert len(kept) > 5 * FAULTS
