"""A node to test the engine with: a user, agents, sessions, a manual clock and a scripted executor."""

import asyncio
import atexit
import math
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from wakeful.app.building import Traces, Wakeful, build
from wakeful.config.settings import Settings
from wakeful.core import ids
from wakeful.core.clock import Clock, ManualClock
from wakeful.core.events import RunEvent
from wakeful.core.types import Agent, Decision, Message, Notice, Run, Session, User, Wake
from wakeful.runs.executor import BeforeCall, Stop
from wakeful.store.store import Tx
from wakeful.timing import lifecycle
from wakeful.timing.bounds import PRESETS
from wakeful.timing.lifecycle import create
from wakeful.toolbox.registry import ToolContext
from wakeful.wakes.service import WakeEdit, save_edit

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)  # a Monday
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

Script = Callable[[Run, Sequence[Message], Stop], AsyncIterator[RunEvent]]

_new_stores: dict[bool, Path] = {}  # directories of nodes that were only started and stopped; by whether encrypted


TIDYING = ("wrong-clock", "zone-rules", "forgotten-recalls", "deleted-agents", "uploads", "models")


async def run_tidy_jobs(node: Wakeful) -> None:
    """Do what the engine does each minute to finish what a crash, another node or a wrong clock left undone."""
    for name in TIDYING:
        for job in node.engine.jobs:
            if job.name == name:
                await job.run()


async def send_due(node: Wakeful, *kinds: str) -> None:
    """Send what is due, as the engine does; of all kinds if none is named."""
    for kind in kinds or node.services.outbox.kinds:
        while await node.services.outbox.send_due(kind):
            pass


@dataclass
class Ran:
    """One execution, as the executor saw it."""

    run: Run
    steps: list[str]
    at: datetime


async def eventually(condition: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    """Poll in real time until a condition holds, for background work that notifies nobody."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110  (background work, nothing to await)
            await asyncio.sleep(0.01)


class Gate:
    """A script that keeps runs executing until it is opened."""

    def __init__(self) -> None:
        self._entered = 0
        self._open = asyncio.Event()

    @property
    def is_holding(self) -> int:
        """Return how many runs it holds."""
        return 0 if self._open.is_set() else self._entered

    def open(self) -> None:
        self._open.set()

    async def __call__(self, run: Run, steps: Sequence[Message], stop: Stop) -> AsyncIterator[RunEvent]:
        self._entered += 1
        try:
            await self._open.wait()
        finally:
            self._entered -= 1
        return
        yield


def doing(act: Callable[[Run], Awaitable[object]]) -> Script:
    """Make a script that does one thing in the middle of a run."""

    async def script(run: Run, steps: Sequence[Message], stop: Stop) -> AsyncIterator[RunEvent]:
        await act(run)
        return
        yield

    return script


class ScriptedExecutor:
    """Records every execution; does nothing else unless a script is given for all runs, one wake or one session."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ran: list[Ran] = []
        self.default: Script | None = None
        self.by_wake: dict[str, Script] = {}
        self.by_session: dict[str, Script] = {}
        self.is_calling = True  # False: its runs reach no model or tool call

    async def execute(
        self, run: Run, saved_steps: Sequence[Message], stop: Stop, before_call: BeforeCall
    ) -> AsyncIterator[RunEvent]:
        self.ran.append(Ran(run, [step.content for step in saved_steps], self._clock.now()))
        if self.is_calling:
            await before_call()
        script = self.by_wake.get(run.wake_id or "") or self.by_session.get(run.session_id or "", self.default)
        if script is not None:
            async for event in script(run, saved_steps, stop):
                yield event


class Harness:
    """One node, with a user and an agent."""

    def __init__(self, settings: dict[str, object], *, now: datetime = NOON, traces: Traces | None = None) -> None:
        self.settings = settings
        self._traces = traces
        self.clock = ManualClock(now)
        self.executor = ScriptedExecutor(self.clock)
        self._gates: list[Gate] = []
        self.node = self.another_node()
        self.user = User(id=ids.new_id(), name="Ada", role="owner", created_at=now)
        self.agent = self.make_agent()

    def another_node(self, **settings: Any) -> Wakeful:
        """Build a node on the same store, clock and executor; the caller opens it."""
        given = Settings.model_validate(self.settings | settings)
        return build(given, executor=self.executor, clock=self.clock, traces=self._traces)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["Harness"]:
        """Open the node of a new store, with the user and the agent."""
        async with self.node.opened():
            await self.settle_in()
            yield self

    async def settle_in(self) -> None:
        await self.node.agents.add_user(self.user)
        await self.node.agents.add(self.agent)

    def make_agent(self, **changes: Any) -> Agent:
        now = self.clock.now()
        agent = Agent(
            id=ids.new_id(),
            user_id=self.user.id,
            name="Agent",
            timezone="Europe/Berlin",
            self_scheduling=True,
            bounds=PRESETS["reactive"],
            run_limit=30 * MINUTE,
            created_at=now,
            updated_at=now,
        )
        return replace(agent, **changes)

    async def add_agent(self, **changes: Any) -> Agent:
        return await self.node.agents.add(self.make_agent(**changes))

    async def session(self, agent: Agent | None = None) -> Session:
        return await self.node.sessions.open((agent or self.agent).id, self.user.id)

    async def book(self, *, agent: Agent | None = None, session: Session | None = None, **request: Any) -> Wake:
        """Book a wake; by default a recall of the user, once, in an hour, in a new session."""
        agent = agent or self.agent
        kind = request.get("kind", "recall")
        if session is None and kind != "next_run":
            session = await self.session(agent)
        now = self.clock.now()
        call_type = request.get("call_type", "once")
        defaults: dict[str, Any] = {
            "kind": kind,
            "call_type": call_type,
            "instructions": "Read notes.txt with read_file.",
            "timezone": agent.timezone,
            "scheduled_by": "user",
        }
        if call_type != "immediate" and "cron" not in request:
            defaults["at"] = now + HOUR
        if call_type == "recurring" and "cron" not in request:
            defaults["every"] = HOUR
        wake = create(
            agent_id=agent.id,
            user_id=self.user.id,
            session_id=session.id if session else None,
            now=now,
            rules=self.node.rules,
            **(defaults | request),
        )
        return await self.node.wakes.book(wake)

    async def change_wake(self, wake_id: str, changes: dict[str, Any]) -> Wake:
        """Change fields of a pending wake, without the checks for users."""
        now = self.clock.now()

        async def work(tx: Tx) -> Wake:
            before = await tx.wakes.get(wake_id)
            after = lifecycle.edit(before, changes, now, self.node.rules)
            return await save_edit(tx, WakeEdit(before=before, after=after, changed=tuple(sorted(changes))), now)

        return await self.node.store.write(work)

    async def turn(self) -> datetime:
        """Let scheduler and runner turn and claimed runs end; return when the scheduler's next turn is due."""
        until = await self.node.engine.scheduler.turn()
        await self.work()
        return until

    async def work(self) -> None:
        """Let the runner turn as long as it finds runs, and each run continue to its end or to a gate."""
        begun = -1
        while begun < len(self.executor.ran):
            begun = len(self.executor.ran)
            await self.node.engine.runner.turn()
            await self._settle()

    async def _settle(self) -> None:
        if not self._gates:
            await self.node.engine.runner.idle()
        while self._is_working():  # noqa: ASYNC110  (the runner has no event for it)
            await asyncio.sleep(0.001)

    async def turn_at(self, at: datetime) -> datetime:
        self.clock.set(at)
        return await self.turn()

    async def live_until(self, end: datetime, *, most_turns: int = 10_000) -> None:
        """Set the clock from one due time to the next, as the loop does, until nothing is due before the end."""
        for _ in range(most_turns):
            until = await self.turn()
            while self._is_working() or until <= self.clock.now():
                until = await self.turn()
            if until > end:
                self.clock.set(end)
                await self.turn()
                return
            self.clock.set(until)
        raise AssertionError(f"still busy at {self.clock.now()} after {most_turns} turns")

    def _is_working(self) -> bool:
        return self.node.engine.runner.active > sum(gate.is_holding for gate in self._gates)

    def gate(self) -> Gate:
        """Make a script that keeps runs executing; turns do not wait for those runs."""
        self._gates.append(Gate())
        return self._gates[-1]

    @asynccontextmanager
    async def talking(self, session: Session) -> AsyncIterator[Run]:
        """Send a message of the user, and keep its run executing until the block ends."""
        gate = self.executor.by_session[session.id] = self.gate()
        run = await self.node.runs.ask(session.id, self.user.id, "Hello?")
        await self.work()
        assert (await self.run(run.id)).status == "running"
        try:
            yield run
        finally:
            del self.executor.by_session[session.id]
            await self.let_through(gate)

    def forget_gates(self) -> None:
        """Forget all gates, as after a crash."""
        self._gates.clear()
        self.executor.by_session.clear()

    async def let_through(self, gate: Gate) -> None:
        """Open a gate and wait until the runs it held have ended."""
        gate.open()
        await self._settle()

    async def crash(self) -> None:
        """Lose all executing runs without releasing them, as a killed process does; their leases expire later.

        The node continues as the next process, which has another owner id.
        """
        runner = self.node.engine.runner
        runner.compare(math.inf, set())
        await runner.idle()
        await self.sql("UPDATE runs SET owner = 'a process that died' WHERE status = 'running'")

    async def sql(self, script: str) -> None:
        """Change the store's tables directly, without any announcement."""
        await self.node.store.database.run_script(script)

    async def wake(self, wake: Wake) -> Wake:
        return await self.node.wakes.get(wake.id, self.user.id)

    async def runs_of(self, wake: Wake) -> list[Run]:
        return await self.node.store.read(lambda tx: tx.runs.of_wake(wake.id))

    async def is_over(self, run: Run) -> bool:
        return (await self.run(run.id)).finished_at is not None

    async def run(self, run_id: str) -> Run:
        return await self.node.runs.get(run_id, self.user.id)

    async def notices(self) -> list[Notice]:
        return await self.node.store.read(lambda tx: tx.notices.of_user(self.user.id))

    async def why(self, wake: Wake) -> list[Decision]:
        return await self.node.wakes.why(wake.id, self.user.id)


def _is_used(settings: Mapping[str, Any]) -> bool:
    """Return whether a node was opened with these settings before; its store must stay."""
    return Path(settings["data_dir"]).exists()


async def lay_out(settings: Mapping[str, Any]) -> None:
    """Give a node on SQLite the directories of one that was only started: creating the tables takes 20 ms.

    To be called before the node is built, which reads its key from there.
    """
    if "database_url" in settings or _is_used(settings):
        return
    is_encrypted = settings.get("store_encryption", True)
    if is_encrypted not in _new_stores:
        made = Path(tempfile.mkdtemp(prefix="wakeful-new-store-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        new = {"data_dir": made / "data", "config_dir": made / "config", "store_encryption": is_encrypted}
        async with build(Settings.model_validate(new), clock=ManualClock(NOON)).opened():
            pass
        _new_stores[is_encrypted] = made
    for name in ("data", "config"):
        shutil.copytree(_new_stores[is_encrypted] / name, settings[f"{name}_dir"], dirs_exist_ok=True)


def tool_context(workspace: Path, *toolsets: str) -> ToolContext:
    """Make the context of a tool call: a run of an agent with these toolsets, and this workspace."""
    agent = Agent(
        id=ids.new_id(),
        user_id="user",
        name="Agent",
        toolsets=toolsets,
        timezone="UTC",
        self_scheduling=False,
        bounds=PRESETS["reactive"],
        run_limit=HOUR,
        created_at=NOON,
        updated_at=NOON,
    )
    run = Run(
        id=ids.new_id(),
        agent_id=agent.id,
        user_id="user",
        session_id="session",
        wake_id=None,
        kind=None,
        trigger="message",
        scheduled_by="user",
        nominal_at=NOON,
        queued_at=NOON,
    )
    return ToolContext(run=run, agent=agent, workspace=workspace)
