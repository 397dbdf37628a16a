"""Cost of running a server for long: log lines, metrics and traces in fires a second, a scrape under load, and memory.

Writes bench/out/operate.json and says which of the targets are met. Each cost is taken in processes of its own, in
turns, as the share of fires a second and of the processor time for one fire (`cpu_share`). Measure on a quiet machine.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from statistics import median
from typing import Any

from engine import CONCURRENCY, FIRES, Bench
from wakeful.app.building import Wakeful
from wakeful.config.settings import Settings
from wakeful.core.clock import SystemClock
from wakeful.core.identity import Identity
from wakeful.core.types import User
from wakeful.operations.metrics import Metrics
from wakeful.runs.runner import Runner
from wakeful.telemetry.logs import enter_run, setup_logging
from wakeful.telemetry.recent_logs import RecentLogs, kept_logs

OUT = Path(__file__).parent / "out" / "operate.json"
ROUNDS = 7
STORES = 4  # that each process fires on, one after the other
SCRAPES = 100
WAKES_OF_SOAK = 20_000
# Without log lines, metrics and traces; then with one of them each.
KINDS = ("bare", "metrics", "logged", "tracing_off")
Act = Callable[[Bench], Coroutine[Any, Any, dict[str, float]]]
TARGETS = {"logging_and_metrics_share": 0.05, "tracing_off_share": 0.01, "scrape_p99_ms": 50.0}


async def fire(bench: Bench) -> dict[str, float]:
    async with bench.node() as (node, executor, booker):
        due = node.clock.now()
        await asyncio.gather(*[node.wakes.book(booker.wake(due)) for _ in range(FIRES)])
        began, used = time.perf_counter(), time.process_time()
        await node.engine.start()
        await executor.has_run(FIRES)
        await node.engine.runner.idle()
        spent, used = time.perf_counter() - began, time.process_time() - used
        await node.engine.stop()
        return {"fires_per_s": FIRES / spent, "cpu_us_per_fire": used / FIRES * 1e6}


async def scrape(bench: Bench) -> dict[str, float]:
    """Scrape while wakes fire."""
    taken: list[float] = []
    async with bench.node() as (node, executor, booker):
        due = node.clock.now()
        await asyncio.gather(*[node.wakes.book(booker.wake(due)) for _ in range(FIRES)])
        owner = Identity(user=_owner_of(node), scope="read", token_id="")
        await node.engine.start()
        while len(taken) < SCRAPES:
            began = time.perf_counter()
            await node.services.metrics.text(owner, is_ready=True, is_draining=False)
            taken.append((time.perf_counter() - began) * 1000)
        await executor.has_run(FIRES)
        await node.engine.runner.idle()
        await node.engine.stop()
    return {"scrape_median_ms": median(taken), "scrape_p99_ms": sorted(taken)[int(len(taken) * 0.99) - 1]}


async def soak(bench: Bench) -> dict[str, float]:
    """Fire many wakes, round after round, and measure how the memory of the process grows from the third round on."""
    sizes: list[float] = []
    async with bench.node() as (node, executor, booker):
        await node.engine.start()
        for _ in range(WAKES_OF_SOAK // FIRES):
            due = node.clock.now()
            await asyncio.gather(*[node.wakes.book(booker.wake(due)) for _ in range(FIRES)])
            while len(executor.late) < FIRES:  # noqa: ASYNC110  (it has an event for the first time only)
                await asyncio.sleep(0.01)
            await node.engine.runner.idle()
            executor.late.clear()
            sizes.append(_resident_mb())
        await node.engine.stop()
    grown = sizes[-1] - sizes[2]
    return {"memory_mb": sizes[-1], "memory_bytes_per_wake": grown * 1e6 / (FIRES * (len(sizes) - 3))}


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def _owner_of(node: Wakeful) -> User:
    return User(id="bench", name="Bench", role="owner", created_at=node.clock.now())


def take(kind: str, folder: Path) -> dict[str, float]:
    """Measure once, in this process."""
    if kind in ("bare", "logged", "metrics"):
        _leave_out_tracing()
    if kind in ("bare", "tracing_off"):
        _leave_out_metrics()
    if kind == "scrape":
        return take_logged(scrape, folder)
    if kind == "soak":
        return take_logged(soak, folder)
    act = take_logged if kind == "logged" else take_plainly
    taken = [act(fire, folder / str(number)) for number in range(STORES)]
    return {name: median(each[name] for each in taken) for name in taken[0]}


def take_plainly(act: Act, folder: Path) -> dict[str, float]:
    return asyncio.run(act(Bench(settings_in(folder))))


def take_logged(act: Act, folder: Path) -> dict[str, float]:
    folder.mkdir(exist_ok=True)
    sys.stderr = (folder / "log").open("w")
    setup_logging("info", "text", ())
    with kept_logs(RecentLogs(SystemClock()), settings_in(folder)):
        return take_plainly(act, folder)


def settings_in(folder: Path) -> Settings:
    given = {"max_headless_runs": CONCURRENCY, "data_dir": folder / "data", "config_dir": folder / "config"}
    return Settings.model_validate(given)


def _leave_out_tracing() -> None:
    """Execute runs as if there were no tracing, not even one that is off."""

    async def carry_out(runner: Any, held: Any) -> None:
        enter_run(held.run)
        await runner._carry_out_traced(held)  # noqa: SLF001  (that is what is compared)

    Runner._carry_out = carry_out  # type: ignore[method-assign]  # noqa: SLF001  (so is this)


def _leave_out_metrics() -> None:
    for name in ("note_verdicts", "note_finished"):
        setattr(Metrics, name, lambda *_: None)


def take_in_process(kind: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder:
        command = [sys.executable, __file__, "--take", kind, folder]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def compare(rounds: int) -> dict[str, float]:
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for _ in range(rounds):
        for kind, taken in found.items():
            taken.append(take_in_process(kind))
    cpu = {kind: median(each["cpu_us_per_fire"] for each in taken) for kind, taken in found.items()}
    figures = {f"{kind}_cpu_us_per_fire": value for kind, value in cpu.items()}
    figures |= {f"{kind}_fires_per_s": median(each["fires_per_s"] for each in taken) for kind, taken in found.items()}
    for name, kind in (("metrics", "metrics"), ("logging_and_metrics", "logged"), ("tracing_off", "tracing_off")):
        figures[f"{name}_cpu_share"] = 1 - cpu["bare"] / cpu[kind]
        figures[f"{name}_share"] = 1 - figures[f"{kind}_fires_per_s"] / figures["bare_fires_per_s"]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--take", nargs=2, metavar=("KIND", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    if args.take:
        print(json.dumps(take(args.take[0], Path(args.take[1]))))
        return
    figures = compare(args.rounds) | take_in_process("scrape") | take_in_process("soak")
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(figures, indent=2) + "\n")
    for name, value in figures.items():
        print(f"{name} {value:,.3f}" if name.endswith("share") else f"{name} {value:,.1f}")
    for name, most in TARGETS.items():
        print(f"{'met   ' if figures[name] <= most else 'MISSED'} {name} {figures[name]:.3f}, at most {most}")


if __name__ == "__main__":
    main()
