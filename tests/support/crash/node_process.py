"""A node in a process of its own, on the real clock, whose runs record their steps in a journal."""

import asyncio
import functools
import json
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from harness import Harness
from wakeful.app import building
from wakeful.config.settings import Settings
from wakeful.core.clock import Clock, ServerClock, SystemClock
from wakeful.core.events import RunEvent, StepSaved
from wakeful.core.types import Message, Run
from wakeful.runs.executor import BeforeCall, Stop
from wakeful.runs.lease_heartbeat import LeaseHeartbeat
from wakeful.store.drivers import postgres

STEPS = ("step 1", "step 2")


@dataclass(frozen=True, kw_only=True)
class Script:
    """The behaviour of this process's runs."""

    pause: float = 0.01  # seconds before each step and before the end
    blocks: float = 0.0  # seconds for which a first attempt then keeps the whole event loop from turning
    lingers: float = 0.0  # seconds for which a run then does nothing
    dies: bool = False  # a run whose instructions say so kills the process
    give_up_after: float | None = None  # seconds of a blocked event loop until its leases are no longer renewed
    freezes_after: str | None = None  # the statement in a transaction after which the process stops itself, once
    clock: Path | None = None  # a file with the seconds that the clock is off by


class SetClock(SystemClock):
    """This machine's clock, off by the seconds in a file."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def read_wall_clock(self) -> datetime:
        return super().read_wall_clock() + timedelta(seconds=set_by(self._file))


def set_by(file: Path) -> float:
    return float(file.read_text())


def clock_of(settings: Settings, file: Path | None, node: Callable[[], building.Wakeful]) -> Clock | None:
    """Return the clock of a node, on a shared store the database's, off by the seconds in a file."""
    if file is None:
        return None
    if settings.database_url is None:
        return SetClock(file)

    async def read() -> int | None:
        micros = await node().store.read_clock()
        return None if micros is None else micros + int(set_by(file) * 1_000_000)

    return ServerClock(read)


class Journal:
    """Lines in a file that survive a kill of the process that wrote them."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, event: str, **fields: Any) -> None:
        line = json.dumps({"event": event, "pid": os.getpid(), "at": time.time(), **fields})
        os.write(self._handle, f"{line}\n".encode())


class StepByStep:
    """Does two steps, beginning after those that an earlier attempt saved."""

    def __init__(self, journal: Journal, script: Script) -> None:
        self._journal = journal
        self._script = script

    async def execute(
        self, run: Run, saved_steps: Sequence[Message], stop: Stop, before_call: BeforeCall
    ) -> AsyncIterator[RunEvent]:
        done = [step.content for step in saved_steps]
        self._journal.write("start", run=run.id, fence=run.fence, attempt=run.attempt, owner=run.owner, steps=done)
        script = self._script
        await before_call()
        for step in STEPS[len(done) :]:
            await asyncio.sleep(script.pause)
            yield StepSaved(role="assistant", content=step)
            self._journal.write("step", run=run.id, fence=run.fence, step=step)
        if script.dies and run.kind == "message":
            os.kill(os.getpid(), signal.SIGKILL)
        if run.attempt == 1 and script.blocks:
            time.sleep(script.blocks)  # noqa: ASYNC251  (the fault that the heartbeat must survive)
        else:  # one that was blocked ends before it can notice its lost lease
            await asyncio.sleep(script.pause + script.lingers)
        self._journal.write("end", run=run.id, fence=run.fence)


def work(settings: dict[str, Any], journal: Path, script: Script) -> None:
    """Run a node until SIGTERM."""
    asyncio.run(_work(settings, journal, script))


async def _work(settings: dict[str, Any], journal: Path, script: Script) -> None:
    logging.basicConfig(filename=journal.with_suffix(".log"), format="%(process)d %(asctime)s %(message)s")
    if script.give_up_after is not None:
        patience = timedelta(seconds=script.give_up_after)
        building.LeaseHeartbeat = functools.partial(LeaseHeartbeat, give_up_after=patience)  # type: ignore[misc]
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    lines = Journal(journal)
    if script.freezes_after is not None:
        _freeze_after(script.freezes_after, lines)
    checked = Settings.model_validate(settings)
    clock = clock_of(checked, script.clock, lambda: node)
    node = building.build(checked, executor=StepByStep(lines, script), clock=clock)
    async with node.running():
        lines.write("up", owner=node.engine.runner.claims.owner)
        await stopping.wait()
    lines.write("down")


def _freeze_after(statement: str, lines: Journal) -> None:
    """Stop the whole process, every thread of it, between this statement and the next one on PostgreSQL."""
    is_frozen = False

    def stopping(run: Callable[..., Awaitable[Sequence[Any]]]) -> Callable[..., Awaitable[Sequence[Any]]]:
        async def run_and_stop(self: object, name: str, *params: Any) -> Sequence[Any]:
            nonlocal is_frozen
            rows = await run(self, name, *params)
            is_idle_look = name == "due_wakes" and not rows
            if name == statement and not is_idle_look and not is_frozen:
                is_frozen = True
                lines.write("frozen", statement=name)
                os.kill(os.getpid(), signal.SIGSTOP)
            return rows

        return run_and_stop

    postgres.PostgresStatements.fetch = stopping(postgres.PostgresStatements.fetch)  # type: ignore[method-assign]
    postgres.PostgresStatements.fetch_rows = stopping(postgres.PostgresStatements.fetch_rows)  # type: ignore[method-assign]


def book(settings: dict[str, Any], user_id: str, agent_id: str, journal: Path, callers: int) -> None:
    """Book wakes as fast as possible, and write each acknowledged id to the journal."""
    asyncio.run(_book(settings, user_id, agent_id, Journal(journal), callers))


async def _book(settings: dict[str, Any], user_id: str, agent_id: str, lines: Journal, callers: int) -> None:
    harness = Harness(settings)
    node = harness.node = building.build(Settings.model_validate(settings))
    async with node.opened():
        agent = await node.agents.get(agent_id, user_id)
        harness.user, harness.clock = (await node.store.read(lambda tx: tx.agents.user(user_id))), node.clock
        lines.write("up")

        async def go_on_booking() -> None:
            while True:
                wake = await harness.book(agent=agent, instructions=f"Read {os.urandom(8).hex()}.txt.")
                lines.write("acknowledged", wake=wake.id, instructions=wake.instructions)

        await asyncio.gather(*[go_on_booking() for _ in range(callers)])
