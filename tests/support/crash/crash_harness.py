"""Harness for kill tests: a store, node processes, a journal of their steps and an audit of all status changes."""

import asyncio
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import MappingProxyType
from types import SimpleNamespace as Row
from typing import Any

import apsw
import asyncpg

from crash.node_process import STEPS, Script, book, work
from forked_process import fork
from harness import SECOND, Harness
from wakeful.app.building import build
from wakeful.config.settings import Settings
from wakeful.core.types import Wake
from wakeful.datadir.device_key import database_of

IS_LONG = os.environ.get("WAKEFUL_TEST_LONG") == "1"
LEASE = 2
FINAL = ("success", "failed", "stopped", "skipped", "interrupted")

# Every change of status, recorded by a trigger of the database, whichever process made it.
_AUDIT = {
    "sqlite": """
        CREATE TABLE audit (run_id TEXT, status TEXT, fence BIGINT, owner TEXT);
        CREATE TRIGGER audit_runs AFTER UPDATE OF status ON runs WHEN NEW.status <> OLD.status BEGIN
            INSERT INTO audit VALUES (NEW.id, NEW.status, NEW.fence, COALESCE(NEW.owner, OLD.owner));
        END;
    """,
    "postgres": """
        CREATE TABLE audit (run_id TEXT, status TEXT, fence BIGINT, owner TEXT);
        CREATE FUNCTION audit_run() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO audit VALUES (NEW.id, NEW.status, NEW.fence, COALESCE(NEW.owner, OLD.owner));
            RETURN NEW;
        END $$;
        CREATE TRIGGER audit_runs AFTER UPDATE OF status ON runs FOR EACH ROW
        WHEN (NEW.status IS DISTINCT FROM OLD.status) EXECUTE FUNCTION audit_run();
    """,
}


class CrashHarness:
    """A store with a user and agents, and the processes on it."""

    def __init__(self, folder: Path, database_url: str | None = None, **settings: Any) -> None:
        self.journal = folder / "journal"
        self.settings: dict[str, Any] = {
            "data_dir": folder / "data",
            "config_dir": folder / "config",
            "lease_seconds": LEASE,
            "max_headless_runs": 12,
            "min_interval_seconds": 1,
            "max_attempts": 100,
            **({"database_url": database_url} if database_url else {}),
            **settings,
        }
        self._database_url = database_url
        self._started: list[BaseProcess] = []
        self._do_in_world(Harness.settle_in)
        self.run_script(_AUDIT["postgres" if database_url else "sqlite"])

    # ── The store ───────────────────────────────────────────────────────────────────────────────────────────────────

    def book(self, arrange: Callable[[Harness], Any]) -> Any:
        """Open the store for a moment and book wakes; on SQLite no other process may have it open."""
        return self._do_in_world(arrange)

    def _do_in_world(self, act: Callable[[Harness], Any]) -> Any:
        async def run() -> Any:
            harness = Harness(self.settings)
            node = harness.node = build(Settings.model_validate(self.settings))
            if hasattr(self, "user"):
                harness.user, harness.agent = self.user, self.agent
            self.user, self.agent = harness.user, harness.agent
            async with node.opened():
                harness.clock = node.clock
                return await act(harness)

        return asyncio.run(run())

    def query(self, text: str) -> list[dict[str, Any]]:
        """Query the database directly, while processes have it open."""
        if self._database_url is not None:
            return asyncio.run(self._fetch(text))
        connection = database_of(Settings.model_validate(self.settings)).connect()
        try:
            connection.row_trace = _with_names
            return list(connection.execute(text))
        finally:
            connection.close()

    async def _fetch(self, text: str) -> list[dict[str, Any]]:
        connection = await asyncpg.connect(self._database_url)
        try:
            return [dict(row) for row in await connection.fetch(text)]
        finally:
            await connection.close()

    def run_script(self, script: str) -> None:
        async def run() -> None:
            connection = await asyncpg.connect(self._database_url)
            try:
                await connection.execute(script)
            finally:
                await connection.close()

        if self._database_url is None:
            self.query(script)
        else:
            asyncio.run(run())

    def wakes(self) -> list[Row]:
        return [Row(**row) for row in self.query("SELECT * FROM wakes")]

    def runs(self) -> list[Row]:
        return [Row(**row) for row in self.query("SELECT * FROM runs ORDER BY nominal_at")]

    def run(self) -> Row:
        [run] = self.runs()
        return run

    def steps(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        steps = """
            SELECT run_id, content FROM messages WHERE run_id IS NOT NULL AND role <> 'user'
            ORDER BY session_id, position
        """
        for row in self.query(steps):
            found.setdefault(row["run_id"], []).append(row["content"])
        return found

    def changes(self, *statuses: str) -> list[dict[str, Any]]:
        """Return the rows of the audit."""
        return [row for row in self.query("SELECT * FROM audit") if row["status"] in statuses]

    # ── The processes ───────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, on: Mapping[str, Any] = MappingProxyType({}), **script: Any) -> BaseProcess:
        """Start a node; `on` are settings of its own."""
        return self._start(work, {**self.settings, **on}, self.journal, Script(**script))

    def start_booking(self, callers: int) -> BaseProcess:
        """Start a process that books as fast as it can."""
        return self._start(book, self.settings, self.user.id, self.agent.id, self.journal, callers)

    def _start(self, target: Callable[..., None], *arguments: Any) -> BaseProcess:
        process = fork(target, *arguments)
        self._started.append(process)
        return process

    @contextmanager
    def running(self, **script: Any) -> Iterator[BaseProcess]:
        """Run a node for the length of a block, and stop it gracefully."""
        process = self.start(**script)
        try:
            self.wait_for("up", process)
            yield process
        finally:
            stop(process)

    def clean_up(self) -> None:
        for process in self._started:
            kill(process)
            process.close()

    # ── The journal ─────────────────────────────────────────────────────────────────────────────────────────────────

    def lines(self, event: str, process: BaseProcess | None = None) -> list[dict[str, Any]]:
        if not self.journal.exists():
            return []
        whole = self.journal.read_text().rpartition("\n")[0]  # the last line may be half written
        found = [json.loads(line) for line in whole.splitlines()]
        return [line for line in found if line["event"] == event and (process is None or line["pid"] == process.pid)]

    def wait_for(self, event: str, process: BaseProcess | None = None, *, count: int = 1, seconds: float = 30) -> None:
        self.wait_until(lambda: len(self.lines(event, process)) >= count, f"{count} × {event}", seconds)

    def let_work(self, process: BaseProcess, chance: random.Random) -> None:
        """Let a node live for a random time: one in three only while it starts, the others until they execute runs."""
        if chance.random() > 1 / 3:
            self.wait_until(
                lambda: bool(self.lines("start", process)) or self._is_done(), "a run of the new node", seconds=60
            )
        time.sleep(chance.uniform(0.05, 0.5))

    def wait_until_done(self, seconds: float = 1_800 if IS_LONG else 120) -> None:
        """Wait until no wake and no run is left to do. Interrupted runs are recovered one at a time."""
        self.wait_until(self._is_done, "the end of everything", seconds)

    def _is_done(self) -> bool:
        busy = """
            SELECT (SELECT COUNT(*) FROM wakes WHERE status IN ('pending', 'queued', 'running'))
                 + (SELECT COUNT(*) FROM runs WHERE status IN ('queued', 'running')) AS many
        """
        return self.query(busy)[0]["many"] == 0

    def wait_until(self, is_so: Callable[[], bool], what: str, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < end, f"waited {seconds} s for {what}; the log: {self.log()[-2000:]}"
            time.sleep(0.05)

    def log(self) -> str:
        file = self.journal.with_suffix(".log")
        return file.read_text() if file.exists() else ""


def _with_names(cursor: apsw.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip([column[0] for column in cursor.get_description()], row, strict=True))


def kill(process: BaseProcess) -> int | None:
    """Send SIGKILL and return how the process ended."""
    process.kill()
    process.join(10)
    return process.exitcode


def stop(process: BaseProcess, seconds: float = 60) -> int | None:
    """Send SIGTERM and return how the process ended; None if it did not."""
    process.terminate()
    process.join(seconds)
    return process.exitcode


def pause(process: BaseProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)


def go_on(process: BaseProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGCONT)


# ── Bookings ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def book_one(harness: Harness) -> Wake:
    return await harness.book(call_type="immediate")


def book_many(wakes: int, seconds: float, seed: int) -> Callable[[Harness], Any]:
    """Book wakes of every kind over the next `seconds`; one in twenty recurs each second for a while."""
    chance = random.Random(seed)

    async def arrange(harness: Harness) -> None:
        async def begin_sessions(count: int) -> list[Any]:
            return [await harness.session() for _ in range(count)]

        few = max(1, wakes // 40)
        sessions = await begin_sessions(few)
        start = harness.clock.now() + SECOND

        def some_time() -> datetime:
            return start + chance.uniform(0, seconds) * SECOND

        bookings = []
        for number in range(wakes):
            if number % 20 == 0:
                at = some_time()
                request = {"call_type": "recurring", "every": SECOND, "at": at, "until": at + 4 * SECOND}
            elif number % 20 < 4:
                request = {"kind": "recall", "at": some_time()}
            elif number % 20 < 9:
                request = {"kind": "message", "session": sessions[number % few], "at": some_time()}
            else:
                request = {"kind": "session", "session": sessions[number % few], "at": some_time()}
            bookings.append(request)
        bookings.sort(key=lambda request: request["at"])  # on a slow machine, one booked late would begin later
        for begin in range(0, wakes, 100):
            await asyncio.gather(*[harness.book(**request) for request in bookings[begin : begin + 100]])

    return arrange


def check_nothing_acknowledged_is_lost(crash: CrashHarness, rounds: int, seed: int) -> None:
    """Kill a process that books as fast as it can, several times, and look for every acknowledged wake."""
    chance = random.Random(seed)
    for _ in range(rounds):
        process = crash.start_booking(callers=8)
        crash.wait_for("acknowledged", process)
        time.sleep(chance.uniform(0, 0.6))
        assert kill(process) == -9
    kept = {wake.id: wake.instructions for wake in crash.wakes()}
    for line in crash.lines("acknowledged"):
        assert kept.get(line["wake"]) == line["instructions"]


# ── Checks at the end ───────────────────────────────────────────────────────────────────────────────────────────────


def check_everything_happened_once(crash: CrashHarness, wakes: int) -> None:
    """Every wake fired, every planned instant is in one row, every row was finished once, no step was done twice."""
    found = {wake.id: wake for wake in crash.wakes()}
    rows: dict[str, list[Row]] = {wake_id: [] for wake_id in found}
    for run in crash.runs():
        rows[run.wake_id].append(run)
    assert len(found) == wakes
    assert {wake.status for wake in found.values()} == {"fired"}
    for wake_id, wake in found.items():
        check_rows(wake, rows[wake_id])
    finished = Counter(change["run_id"] for change in crash.changes(*FINAL))
    assert set(finished.values()) == {1}, "finished twice"
    assert finished.keys() == {run.id for run in crash.runs()}
    planned = {run.id: run.nominal_at for run in crash.runs()}
    # By this machine's own clock, which is the server's too.
    assert all(line["at"] * 1_000_000 >= planned[line["run"]] for line in crash.lines("start")), "early"
    steps = crash.steps()
    assert steps.keys() == finished.keys()
    assert {tuple(each) for each in steps.values()} == {STEPS}, "a step was lost or done twice"


def check_rows(wake: Row, rows: list[Row]) -> None:
    """Instants are whole microseconds, as the store has them."""
    assert {row.status for row in rows} == {"success"}
    assert all(row.started_at >= row.queued_at >= row.nominal_at for row in rows), "early"
    if wake.call_type != "recurring":
        assert [(row.nominal_at, row.covers) for row in rows] == [(wake.nominal_at, 1)]
        return
    planned = [wake.until - seconds * 1_000_000 for seconds in (4, 3, 2, 1, 0)]
    covered: list[int] = []
    for row in rows:
        assert row.nominal_at == planned[len(covered)], "a planned instant is lost, or covered twice"
        covered += planned[len(covered) : len(covered) + row.covers]
    assert covered == planned
