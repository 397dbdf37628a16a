"""Servers killed at random moments, again and again, while clients use every API.

Checked at the end by REST alone, and by what the agents really did. `WAKEFUL_TEST_LONG=1` kills 260 times per store.
"""

import asyncio
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from crash.clients import House, Visitors
from crash.crash_harness import IS_LONG
from crash.ledger import Judge
from crash.server_process import PATIENCE, ServerProcess
from crash.task_model import TaskModel
from harness import eventually
from openai_server import OpenAIServer

pytestmark = pytest.mark.crash

KILLS = int(os.environ.get("WAKEFUL_TEST_KILLS", "260" if IS_LONG else "2"))
SEED = int(os.environ.get("WAKEFUL_TEST_SEED", "16"))
AT_ONCE = 4  # who come in between two kills
UP = 0.9  # seconds, at most, from the start of a server to its end; more on a machine that is slow to start one
SETTINGS = {
    "WAKEFUL_LEASE_SECONDS": "3" if IS_LONG else "2",
    "WAKEFUL_MAX_HEADLESS_RUNS": "6",
    "WAKEFUL_RUNS_PER_HOUR": "100000",
}


def make_house(environment: dict[str, str], folder: Path, base_url: str) -> House:
    """One node on SQLite; on PostgreSQL two that share a data directory, so that each can take on the other's runs."""
    environment = environment | SETTINGS | {"WAKEFUL_MODEL_BASE_URL": base_url}
    nodes = []
    for number in range(2 if "WAKEFUL_DATABASE_URL" in environment else 1):
        place = folder / f"node-{number}"  # for its log
        place.mkdir()
        nodes.append(ServerProcess(place, environment))
    return House(nodes, environment, folder)


async def test_nothing_is_lost_doubled_or_early_over_all_doors(environment: dict[str, str], tmp_path: Path) -> None:
    chance = random.Random(SEED)
    model = TaskModel(SEED)
    async with OpenAIServer(always=model) as provider:
        house = make_house(environment, tmp_path, provider.base_url)
        try:
            await house.open()
            visitors = Visitors(house, SEED)
            await visitors.settle_in()
            began = time.monotonic()
            for _ in range(KILLS):
                coming = [asyncio.create_task(visitors.act()) for _ in range(AT_ONCE)]
                await asyncio.sleep(chance.uniform(0, max(UP, house.start_seconds)))
                await house.kill_one(chance)
                await asyncio.gather(*coming)
            seconds = time.monotonic() - began
            node = house.any_node(chance)
            await wait_until_idle(node, house)
            await visitors.leave()
            judge = Judge(node, visitors, model)
            await judge.read()
            await judge.judge()
            print(f"\n{judge.ledger(house.kills, seconds)}")
            assert not judge.faults, "\n".join(judge.faults)
        finally:
            await house.close()


async def wait_until_idle(node: ServerProcess, house: House) -> None:
    """Wait until nothing waits and nothing runs; what was cut off comes back one at a time."""

    async def is_idle() -> bool:
        paths = ("/wakes?live=true", "/wakes?status=running", "/runs?status=queued", "/runs?status=running")
        answers: list[Any] = [await node.get(path) for path in paths]
        await asyncio.sleep(0.05)
        return not any(answer.get("wakes") or answer.get("runs") for answer in answers)

    try:
        await eventually(is_idle, PATIENCE * (10 if IS_LONG else 2))
    except TimeoutError:
        running = (await node.get("/runs?status=running"))["runs"] + (await node.get("/runs?status=queued"))["runs"]
        raise AssertionError(f"stuck: {running}\n{house.log()[-3000:]}") from None
