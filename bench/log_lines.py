"""Cost of log lines and metrics: fires a second with the log at `info`, in a file, and without any.

Writes bench/out/log_lines.json and says whether the target is met. Each figure is taken in a process of its own, in
turns, and the median of several counts; the best is shown too.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from engine import CONCURRENCY, FIRES, Bench
from wakeful.app.logs.lines import setup_logging
from wakeful.app.logs.recent import kept_logs
from wakeful.clock import SystemClock
from wakeful.config import Settings
from wakeful.service.recent_logs import RecentLogs

OUT = Path(__file__).parent / "out" / "log_lines.json"
ROUNDS = 15
MAX_SHARE = 0.05


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


def take(kind: str, folder: Path) -> dict[str, float]:
    """Measure once, in this process."""
    settings = {"max_headless_runs": CONCURRENCY, "data_dir": folder / "data", "config_dir": folder / "config"}
    if kind == "logged":
        sys.stderr = (folder / "log").open("w")
        setup_logging("info", "text", ())
        clock = SystemClock()
        with kept_logs(RecentLogs(clock), Settings.model_validate(settings)):
            return asyncio.run(fire(Bench(Settings.model_validate(settings))))
    return asyncio.run(fire(Bench(Settings.model_validate(settings))))


def take_in_process(kind: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder:
        command = [sys.executable, __file__, "--take", kind, folder]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--take", nargs=2, metavar=("KIND", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.take:
        print(json.dumps(take(args.take[0], Path(args.take[1]))))
        return
    found: dict[str, list[dict[str, float]]] = {"silent": [], "logged": []}
    for _ in range(ROUNDS):
        for kind, taken in found.items():
            taken.append(take_in_process(kind))
    figures = {
        f"{kind}_{name}_{measure.__name__}": measure([each[name] for each in taken])
        for kind, taken in found.items()
        for name, measure in (("fires_per_s", median), ("fires_per_s", max), ("cpu_us_per_fire", median))
    }
    share = 1 - figures["logged_fires_per_s_median"] / figures["silent_fires_per_s_median"]
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(figures | {"share": share}, indent=2) + "\n")
    for name, value in figures.items():
        print(f"{name} {value:.0f}")
    verdict = "met   " if share <= MAX_SHARE else "MISSED"
    print(f"{verdict} log lines take {share:.1%} of the fires, at most {MAX_SHARE:.0%}")


if __name__ == "__main__":
    main()
