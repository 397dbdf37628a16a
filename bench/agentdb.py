"""Overhead of the sandbox of agents' databases, compared with direct apsw-sqlite3mc calls on the same kind of file.

Writes bench/out/agentdb.json and says which of the targets are met. Both sides are measured alternately, and the
median of each counts. Measure on a quiet machine: on a busy one, two processes wait for a core more often than one.
"""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import apsw
import orjson

from wakeful.app.building import Wakeful, build
from wakeful.config.settings import Settings
from wakeful.core import ids
from wakeful.core.types import User
from wakeful.database.files import By
from wakeful.timing.bounds import PRESETS

OUT = Path(__file__).parent / "out" / "agentdb.json"
ROUNDS = 31
SINGLE_ROUNDS = 150
AGENTS, ACTIVE = 300, 20
COLUMNS = [
    {"name": "title", "type": "text"},
    {"name": "state", "type": "text"},
    {"name": "hours", "type": "real"},
    {"name": "note", "type": "text"},
]
NAMES = ("title", "state", "hours", "note")


def row(number: int) -> dict[str, Any]:
    return {"title": f"Task {number}", "state": "open", "hours": number / 4, "note": "Something to keep in mind. " * 2}


class Direct:
    """The same tables in the same file format, through the driver alone."""

    def __init__(self, path: Path, key: bytes) -> None:
        connection = self.connection = apsw.Connection(str(path))
        connection.pragma("cipher", "sqlcipher")
        connection.pragma("legacy", 4)
        connection.execute(f"PRAGMA key = 'raw:{key.hex()}'")
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "FULL")
        self._last = connection.execute("SELECT max(id) FROM _changelog").get or 0
        self._hash = b""

    def insert(self, rows: list[dict[str, Any]], *, with_changelog: bool) -> None:
        at = datetime.now(UTC).isoformat()
        with self.connection:
            first = (self.connection.execute("SELECT max(id) FROM tasks").get or 0) + 1
            self.connection.executemany(
                "INSERT INTO tasks (title, state, hours, note, _created_at, _updated_at) VALUES (?, ?, ?, ?, ?, ?)",
                [(*each.values(), at, at) for each in rows],
            )
            if with_changelog:
                self._log(rows, first, at)

    def _log(self, rows: list[dict[str, Any]], first: int, at: str) -> None:
        entries: list[tuple[Any, ...]] = []
        for number, each in enumerate(rows, first):
            self._last += 1
            after = orjson.dumps(
                {"id": number, **each, "_created_at": at, "_updated_at": at, "_deleted_at": None}
            ).decode()
            entry = (self._last, at, "agent", "run", "insert", "tasks", number, None, after, None)
            self._hash = blake2b(self._hash + orjson.dumps(entry), digest_size=32).digest()
            entries.append((*entry, self._hash))
        self.connection.executemany(f"INSERT INTO _changelog VALUES ({', '.join('?' * 11)})", entries)

    def query(self) -> list[tuple[Any, ...]]:
        select = "SELECT id, title, state, hours FROM tasks WHERE _deleted_at IS NULL LIMIT 1000"
        return self.connection.execute(select).fetchall()

    def query_as_json(self) -> bytes:
        """Return the tool's answer: text for a model."""
        return orjson.dumps({"columns": ["id", "title", "state", "hours"], "rows": self.query(), "row_count": 1000})


@asynccontextmanager
async def node(folder: Path) -> AsyncIterator[tuple[Wakeful, User]]:
    built = build(Settings(data_dir=folder / "data", config_dir=folder / "config"))
    async with built.opened():
        user = User(id=ids.new_id(), name="Bench", role="owner", created_at=built.clock.now())
        await built.agents.add_user(user)
        yield built, user


async def agent_of(built: Wakeful, user: User) -> By:
    agent = await built.agents.make(user, "Bench", {"toolsets": ("database",), "bounds": PRESETS["reactive"]})
    return By(agent=agent, actor="agent", run_id="run")


async def with_table(built: Wakeful, by: By) -> None:
    await built.services.data.run(by, "create_table", name="tasks", purpose="What is to be done.", columns=COLUMNS)


def timed(act: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


async def timed_async(act: Callable[[], Awaitable[Any]]) -> float:
    begun = time.perf_counter()
    await act()
    return time.perf_counter() - begun


def direct_on_a_file_of_its_own(built: Wakeful, by: By) -> Direct:
    path = built.settings.data_dir / "agents" / by.agent.id / "db.sqlite"
    return Direct(path, built.services.data.files.vault.open(by.agent.id).current)


async def compare(built: Wakeful, user: User) -> dict[str, float]:
    """Measure writes and reads, alternating with the same calls made directly."""
    data = built.services.data
    ours, bare, logged = [await agent_of(built, user) for _ in range(3)]
    for by in (ours, bare, logged):
        await with_table(built, by)
    await data.files.engine.close_file(str(built.settings.data_dir / "agents" / bare.agent.id / "db.sqlite"))
    without, with_log = direct_on_a_file_of_its_own(built, bare), direct_on_a_file_of_its_own(built, logged)
    many, one = [row(number) for number in range(1000)], [row(0)]
    took: dict[str, list[float]] = {}

    def note(name: str, seconds: float) -> None:
        took.setdefault(name, []).append(seconds)

    for _ in range(ROUNDS):
        note("insert 1,000 rows, ours", await timed_async(lambda: data.run(ours, "insert", table="tasks", rows=many)))
        note("insert 1,000 rows, direct with changelog", timed(lambda: with_log.insert(many, with_changelog=True)))
        note("insert 1,000 rows, direct, bare", timed(lambda: without.insert(many, with_changelog=False)))
    for _ in range(SINGLE_ROUNDS):
        note("insert 1 row, ours", await timed_async(lambda: data.run(ours, "insert", table="tasks", rows=one)))
        note("insert 1 row, direct with changelog", timed(lambda: with_log.insert(one, with_changelog=True)))
    select = "SELECT id, title, state, hours FROM tasks LIMIT 1000"
    for _ in range(ROUNDS * 4):
        note("query 1,000 rows, ours", await timed_async(lambda: data.run_unparsed(ours, "query", sql=select)))
        note("query 1,000 rows, direct and as JSON", timed(with_log.query_as_json))
        note("query 1,000 rows, direct", timed(with_log.query))
    return {name: statistics.median(each) * 1000 for name, each in took.items()}


async def opening(folder: Path) -> dict[str, float]:
    """Measure the first answer of a new worker, and of an idle one that has another file open."""
    cold: list[float] = []
    warm: list[float] = []
    async with node(folder) as (built, user):
        agents = [await agent_of(built, user) for _ in range(12)]
        for by in agents:
            await with_table(built, by)
        data = built.services.data
        for _ in range(7):
            for worker in list(data.files.engine.workers):
                await data.files.engine.end(worker)
            cold.append(await timed_async(lambda: data.run(agents[0], "query", sql="SELECT count(*) FROM tasks")))
        for by in agents[1:] * 3:
            warm.append(await timed_async(lambda by=by: data.run(by, "query", sql="SELECT count(*) FROM tasks")))
    return {"open, cold worker": statistics.median(cold) * 1000, "open, warm worker": statistics.median(warm) * 1000}


async def many_agents(folder: Path) -> dict[str, float]:
    """Measure the workers' memory with many agents, some of them active at the same time."""
    async with node(folder) as (built, user):
        agents = [await agent_of(built, user) for _ in range(AGENTS)]
        for by in agents:
            await with_table(built, by)
        data = built.services.data

        async def work(by: By) -> None:
            for _ in range(10):
                await data.run(by, "insert", table="tasks", rows=[row(number) for number in range(50)])
                await data.run(by, "query", sql="SELECT * FROM tasks ORDER BY hours DESC")

        await asyncio.gather(*(work(by) for by in agents[:ACTIVE]))
        sizes = [_resident(pid) for pid in data.files.engine.pids]
    return {"workers": len(sizes), "memory of all workers, MB": sum(sizes), "largest worker, MB": max(sizes)}


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def judge(took: dict[str, float]) -> list[tuple[str, float, float]]:
    """Return each target with what was measured and what is wanted."""

    def ratio(ours: str, theirs: str) -> float:
        return took[ours] / took[theirs]

    thousand, one = "insert 1,000 rows, ours", "insert 1 row, ours"
    return [
        ("1,000 rows, times rows and changelog", ratio(thousand, "insert 1,000 rows, direct with changelog"), 2),
        ("1,000 rows, times the bare rows", ratio(thousand, "insert 1,000 rows, direct, bare"), 8),
        ("1 row, times row and changelog", ratio(one, "insert 1 row, direct with changelog"), 3),
        ("query of 1,000 rows, times direct", ratio("query 1,000 rows, ours", "query 1,000 rows, direct"), 2),
        ("open with a cold worker, ms", took["open, cold worker"], 150),
        ("open with a warm worker, ms", took["open, warm worker"], 5),
        ("memory with 300 agents, MB", took["memory of all workers, MB"], 2 * 160),
    ]


async def main() -> None:
    took: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with node(Path(folder) / "a") as (built, user):
            took |= await compare(built, user)
        took |= await opening(Path(folder) / "b")
        took |= await many_agents(Path(folder) / "c")
    targets = judge(took)
    for name, value in took.items():
        print(f"{name:45} {value:9.2f}" + ("" if "MB" in name or name == "workers" else " ms"))
    for name, measured, wanted in targets:
        print(f"{'met ' if measured <= wanted else 'MISSED'} {name}: {measured:.2f}, wanted at most {wanted:g}")
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps({"measured": took, "targets": targets}, indent=2), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
