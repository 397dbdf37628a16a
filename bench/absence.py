"""Cost of a start after thirty days of downtime with rules of every minute, and the latency of other requests.

Writes bench/out/absence.json and says which of the targets are met.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from wakeful.app.building import Wakeful, build
from wakeful.config.settings import Settings
from wakeful.core import ids
from wakeful.core.clock import ManualClock
from wakeful.core.events import RunEvent
from wakeful.core.types import Agent, Message, Run, User
from wakeful.runs.executor import Stop
from wakeful.timing.bounds import PRESETS
from wakeful.timing.lifecycle import create

OUT = Path(__file__).parent / "out" / "absence.json"
BEGIN = datetime(2026, 10, 10, 12, tzinfo=UTC)  # the clocks change in between
AWAY = timedelta(days=30)
RULES = 20
TARGETS = {"ms_per_rule": 10.0, "longest_wait_ms": 100.0}


class NoOp:
    """Does nothing."""

    async def execute(self, _run: Run, _steps: Sequence[Message], _stop: Stop) -> AsyncGenerator[RunEvent]:
        return
        yield


async def book(node: Wakeful) -> User:
    user = User(id=ids.new_id(), name="Ada", role="owner", created_at=BEGIN)
    agent = Agent(
        id=ids.new_id(),
        user_id=user.id,
        name="Agent",
        timezone="Europe/Berlin",
        self_scheduling=True,
        bounds=PRESETS["reactive"],
        run_limit=timedelta(minutes=30),
        created_at=BEGIN,
        updated_at=BEGIN,
    )
    await node.agents.add_user(user)
    await node.agents.add(agent)
    for number in range(RULES):
        session = await node.sessions.open(agent.id, user.id)
        wake = create(
            kind="recall",
            agent_id=agent.id,
            user_id=user.id,
            session_id=session.id,
            call_type="recurring",
            cron="* * * * *" if number % 2 else "* 0-22 * * *",
            instructions="Read notes.txt with read_file.",
            timezone="Europe/Berlin",
            scheduled_by="user",
            now=BEGIN,
            rules=node.rules,
        )
        await node.wakes.book(wake)
    return user


async def wait_in_line(node: Wakeful, user: User, waits: list[float]) -> None:
    """Read and write as someone else would, again and again."""
    while True:
        began = time.perf_counter()
        await node.wakes.find(user.id)
        await node.pauses.resume(user.id, None)
        waits.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.001)


async def measure(folder: str) -> dict[str, float]:
    clock = ManualClock(BEGIN)
    settings = Settings.model_validate({"data_dir": Path(folder) / "data", "config_dir": Path(folder) / "config"})
    node = build(settings, executor=NoOp(), clock=clock)
    async with node.opened():
        user = await book(node)
        clock.advance(AWAY)
        waits: list[float] = []
        others = asyncio.create_task(wait_in_line(node, user, waits))
        await asyncio.sleep(0.05)
        waits.clear()
        began = time.perf_counter()
        await node.engine.scheduler.turn()
        spent = (time.perf_counter() - began) * 1000
        await asyncio.sleep(0.05)
        others.cancel()
        runs = await node.store.read(lambda tx: tx.runs.of_user(user.id))
    covered = sum(run.covers for run in runs)
    return {
        "ms_per_rule": round(spent / RULES, 2),
        "longest_wait_ms": round(max(waits), 1),
        "instants_covered": covered,
    }


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder:
        figures = asyncio.run(measure(folder))
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))
    for name, limit in TARGETS.items():
        verdict = "met   " if figures[name] <= limit else "MISSED"
        print(f"{verdict} {name}: {figures[name]:.1f} (at most {limit:g})")


if __name__ == "__main__":
    main()
